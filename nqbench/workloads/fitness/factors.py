"""The factor space of the fitness workload: every axis and its levels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from nqbench.workloads.base import Factor
from nqbench.workloads.fitness.schemes import SCHEMES
from nqbench.workloads.fitness.search_factors import ANNEALING_FACTORS

MAX_N: Final = 10_000_000
"""Ten times the paper's largest board; every index of a diagonal then fits 32 bits."""

MAX_THREADS: Final = 256
MAX_SEED: Final = 2**31 - 1

_launch: Final = partial(Factor, launch=True)

_AXES: Final = (
    Factor("n", "queens of the board", number=(1, MAX_N)),
    Factor("scheme", "how a board is evaluated or found", tuple(SCHEMES)),
    _launch("board", "which board is evaluated", ("random", "valid", "file")),
    Factor("board_file", "file of the board, for `board: file`", text=True),
    _launch("seed", "seed of a random board or of a search", number=(0, MAX_SEED)),
    _launch("batch", "boards evaluated in one launch", number=(1, 2**20)),
    Factor(
        "allocation",
        "when device memory is allocated: in every evaluation, or once before",
        ("per_call", "once"),
    ),
    _launch("block_size", "threads per block", number=(1, 1024), auto=True),
    Factor(
        "atomics",
        "what adds to the counter in global memory: every conflict, thread or warp",
        ("per_conflict", "per_thread", "per_warp"),
    ),
    Factor(
        "counters",
        "where the queens of each diagonal are counted",
        ("shared", "global"),
        auto=True,
    ),
    Factor(
        "tally",
        "when pairs are summed: as a queen arrives on a diagonal, or from the final counts",
        ("arrival", "final"),
    ),
    _launch(
        "threshold",
        "comparisons of one sub-thread (cdp), or queens of a leaf task (fork/join)",
        number=(1, 2**24),
    ),
    Factor("child_block_size", "threads per block of a sub-kernel", number=(1, 1024)),
    _launch("nesting", "nested sub-kernels for one row", number=(1, 64)),
    _launch("threads", "CPU threads", number=(1, MAX_THREADS), auto=True),
    _launch("optimization", "compiler optimization of the CPU baseline", ("default", "none")),
    *ANNEALING_FACTORS,
)

FACTORS: Final[Mapping[str, Factor]] = MappingProxyType({axis.name: axis for axis in _AXES})
