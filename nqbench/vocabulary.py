"""The words that studies, papers, records and figures share.

One list, checked by the tests against every YAML file of the project: a word that is not here is
a spelling mistake or a missing entry.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

Status = Literal[
    "ok", "wrong", "compile_error", "launch_error", "timeout", "crashed", "throttled", "skipped"
]
STATUSES: Final[tuple[str, ...]] = get_args(Status)

PHASES: Final = {
    "split": "host time to make the jobs",
    "transfer": "host-to-device copies",
    "kernel": "the kernel alone, by device events",
    "reduce": "device-to-host copy of the results and their sum",
    "total": "split + transfer + kernel + reduce",
}

COUNTERS: Final = {
    "warp_instructions": "instructions issued, each counted once per warp",
    "thread_instructions": "instructions summed over the active lanes",
    "issue_slots": "issue cycles the model charges: replays of shared and off-chip passes included",
    "lane_efficiency": "thread_instructions / (32 x warp_instructions)",
    "branches": "conditional branches executed, per warp",
    "divergent_branches": "conditional branches whose lanes went both ways",
    "loop_iterations": "loop latches passed, per warp",
    "shared_requests": "shared-memory instructions, per warp",
    "shared_passes": "passes through the banks that they took",
    "bank_conflicts": "passes beyond one per request",
    "local_requests": "local-memory instructions, per warp",
    "local_sectors": "32-byte sectors that they touched",
    "local_bytes": "bytes in those sectors",
    "global_requests": "global-memory instructions, per warp",
    "global_sectors": "32-byte sectors that they touched",
    "global_bytes": "bytes in those sectors",
    "shared_atomics": "atomic instructions on shared memory, per warp",
    "global_atomics": "atomic instructions on global memory, per warp",
    "barriers": "block barriers passed, per warp",
}
