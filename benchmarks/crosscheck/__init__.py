"""The parts of the cross-check with nvbench; the command is ``benchmarks.nvbench_crosscheck``."""
