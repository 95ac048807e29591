"""nqbench: reproducible benchmarks and ablations of irregular search on GPUs."""

__version__ = "0.1.0"
