"""The words that studies, papers, records and figures share, whatever the workload.

Factors, and the phases and counters of one workload alone, are declared by that workload. The tests
check every YAML file of the project against both: a word that is in neither is a spelling mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

Status = Literal[
    "ok", "wrong", "check_error", "compile_error", "launch_error", "timeout", "crashed",
    "throttled", "skipped",
]  # fmt: skip
STATUSES: Final[tuple[str, ...]] = get_args(Status)

KERNEL_PHASES: Final = {
    "split": "CPU time to make the jobs",
    "transfer": "host-to-device copies",
    "kernel": "the kernel alone, by device events",
    "reduce": "device-to-host copy of the results and their sum",
    "total": "split + transfer + kernel + reduce; of a program or CPU function one whole run",
}
"""What every measurement of a kernel reports. For a program, ``kernel`` sums over its kernels."""

PROGRAM_PHASES: Final = {
    "allocate": "allocating device memory within the run",
    "free": "freeing it",
    "other": "what is left of the total: CPU work and waiting",
}
"""What programs and CPU functions report in addition. Each kernel of a program is also a phase,
under its own name."""

PHASES: Final = {**KERNEL_PHASES, **PROGRAM_PHASES}
"""The phases of any workload, which may declare more (``Workload.phases``)."""

COUNTERS: Final = {
    "warp_instructions": "instructions issued, each counted once per warp",
    "thread_instructions": "instructions summed over the active lanes",
    "float_operations": "floating-point operations, per thread; a fused multiply-add is two",
    "integer_operations": "integer and logic instructions, per thread, those of addresses included",
    "issue_slots": "issue cycles the model charges: replays of shared and off-chip passes included",
    "lane_efficiency": "thread_instructions / (32 x warp_instructions)",
    "branches": "conditional branches executed, per warp",
    "divergent_branches": "conditional branches whose lanes went both ways",
    "loop_iterations": "loop latches passed, per warp",
    "shared_requests": "shared-memory instructions, per warp",
    "shared_passes": "passes through the banks that they took",
    "shared_replays": "passes beyond one per request",
    "bank_conflicts": "passes beyond those that accesses of their width need",
    "local_requests": "local-memory instructions, per warp",
    "local_transactions": "segments, 128-byte lines or 32-byte sectors moved, as the rules have it",
    "local_sectors": "32-byte sectors that these moved",
    "local_bytes": "bytes in those sectors",
    "global_requests": "global-memory instructions, per warp",
    "global_transactions": "the same for global memory",
    "global_sectors": "32-byte sectors that these moved",
    "global_bytes": "bytes in those sectors",
    "shared_atomics": "atomic instructions on shared memory, per warp",
    "global_atomics": "atomic instructions on global memory, per warp",
    "barriers": "block barriers passed, per warp",
}

CACHE_COUNTERS: Final = {
    "l1_hit_sectors": "32-byte sectors looked up in L1 and found there",
    "l1_miss_sectors": "32-byte sectors looked up in L1 and not found",
    "l2_hit_sectors": "32-byte sectors asked of L2 and found there",
    "l2_miss_sectors": "32-byte sectors asked of L2 and not found",
    "l1_hit_percent": "sectors found in L1, of all that were looked up",
    "l2_hit_percent": "sectors found in L2, of all that were looked up",
    "dram_read_bytes": "bytes read from device memory",
    "dram_write_bytes": "bytes written to device memory",
    "dram_bytes": "dram_read_bytes + dram_write_bytes",
}
"""Further counters of the simulator where it models the caches (``sim:MODEL:cache``)."""

TIME_COUNTERS: Final = {"modelled_ms": "milliseconds that a formula gives: modelled, not measured"}
"""The simulator's modelled time (``sim:MODEL:time``). It is never shown as a time."""

BETTER: Final[Mapping[str, Literal["lower", "higher"]]] = {
    **dict.fromkeys(
        (
            *("warp_instructions", "issue_slots", "divergent_branches", "bank_conflicts"),
            *("shared_replays", "local_requests", "local_transactions", "local_sectors"),
            *("local_bytes", "global_requests", "global_transactions", "global_sectors"),
            "global_bytes",
            *("l1_miss_sectors", "l2_miss_sectors"),
            *("dram_read_bytes", "dram_write_bytes", "dram_bytes", "modelled_ms"),
        ),
        "lower",
    ),
    **dict.fromkeys(("l1_hit_percent", "l2_hit_percent"), "higher"),
    "lane_efficiency": "higher",
}
"""Which direction of a counter is good: less work for the same answer, fuller warps, less traffic
off the chip. The other counters have none: shared-memory accesses and atomics replace dearer ones,
and a loop of fewer passes may do more in each."""

PLAIN: Final[Mapping[str, str]] = {
    "warp_instructions": "instructions",
    "off_chip_sectors": "off-chip data",
    "lane_efficiency": "busy lanes",
    "modelled_ms": "modelled time",
}
"""What sentences call a counter; tables keep its exact name."""

PROGRAM_COUNTERS: Final = {"launches": "kernel launches in one run of a program"}
"""Further counters of a program. Each name is a total over the kernels; ``NAME@KERNEL`` (see
``of_kernel``) is the part of one of them."""

AT_KERNEL: Final = "@"


def of_kernel(name: str, kernel: str) -> str:
    """The name of one kernel's part of a counter or resource: ``global_bytes@apply``; without a
    kernel the name itself."""
    return f"{name}{AT_KERNEL}{kernel}" if kernel else name


def plain_name(name: str) -> tuple[str, str]:
    """The counter or resource of a name, and its kernel; an empty kernel for a total."""
    plain, _, kernel = name.partition(AT_KERNEL)
    return plain, kernel


def is_counter(name: str) -> bool:
    """Whether a name is a counter, or one kernel's part of a counter."""
    known = {**COUNTERS, **PROGRAM_COUNTERS, **CACHE_COUNTERS, **TIME_COUNTERS}
    return plain_name(name)[0] in known


PROFILER_COUNTERS: Final = {
    **{n: CACHE_COUNTERS[n] for n in ("l1_hit_percent", "l2_hit_percent")},
    **{n: CACHE_COUNTERS[n] for n in ("dram_read_bytes", "dram_write_bytes", "dram_bytes")},
    "achieved_occupancy": "warps active per multiprocessor over the most it holds, mean over time",
    "divergent_branch_percent": "100 x divergent_branches / branches",
    "duration_ns": "of the one profiled launch, at the clocks that the profiler found",
    "instructions_issued": "instructions issued, replays included, per warp",
    "replay_overhead_percent": "100 x (instructions_issued / warp_instructions - 1)",
    "branch_efficiency_percent": "100 x branches that are not divergent / branches, per thread",
    "fp32_operations": "additions and multiplications in single precision; a fused one is two",
    "fp64_operations": "the same in double precision",
    "fp32_operations_per_s": "fp32_operations over the duration of the profiled launch",
    "fp64_operations_per_s": "fp64_operations over the duration of the profiled launch",
    "fp32_thread_instructions": "single-precision instructions, summed over the active lanes",
    "fp64_thread_instructions": "double-precision instructions, summed over the active lanes",
    "integer_thread_instructions": "integer instructions, summed over the active lanes",
    "dram_read_bytes_per_s": "dram_read_bytes over the duration of the profiled launch",
    "dram_write_bytes_per_s": "dram_write_bytes over the duration of the profiled launch",
    "l1_bytes": "bytes that went through the L1 cache",
    "l2_bytes": "bytes that went through the L2 cache",
    "l2_read_hit_percent": "the same for reads",
    "global_load_hit_percent": "sectors of global loads found in L1",
    "global_load_misses": "sectors of global loads not found in L1",
    "global_load_sectors": "32-byte sectors of global loads",
    "global_store_sectors": "32-byte sectors of global stores",
    "global_load_sectors_per_request": "sectors per load of a warp: 4 are ideal for 4-byte words",
    "global_store_sectors_per_request": "sectors per store of a warp: 4 are ideal for 4-byte words",
    "global_load_efficiency_percent": "bytes that global loads asked for, of those they moved",
    "global_store_efficiency_percent": "bytes that global stores asked for, of those they moved",
    "issue_percent": "cycles in which a scheduler issues, of those with a warp",
    "alu_pipe_percent": "use of the pipe for logic and shifts, of its peak",
    "fma_heavy_pipe_percent": "use of the pipe for integer multiply-adds, of its peak",
    "shared_pipe_percent": "use of the data pipe of L1 and shared memory, of its peak",
    "active_lanes": "lanes of 32 that are active, mean over the instructions",
    "working_lanes": "the same without lanes whose instruction is predicated off",
    "stalled_short_scoreboard": "warps waiting for shared memory, per instruction issued",
    "stalled_long_scoreboard": "warps waiting for global or local memory, per instruction issued",
    "stalled_math_pipe_throttle": "warps waiting for a pipe, per instruction issued",
    "stalled_wait": "warps waiting a fixed number of cycles, per instruction issued",
}
"""What a profiler adds to the counters that it shares with the simulator (``counters: ncu``)."""
