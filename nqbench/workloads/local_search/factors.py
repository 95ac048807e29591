"""The factor space of the local search: every axis, its levels, its systems."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from operator import or_
from pathlib import Path
from typing import Final

from nqbench.point import Level
from nqbench.workloads.base import Factor, factor_table

THRESHOLD: Final = -1e-7
"""A change above it is not an improvement, and ends the search (section 5)."""

MAPPING_CODES: Final = {"quadratic": 0, "rearranged": 1, "rectangle": 2}
"""Numbers of the mappings in compiled code; the order of ``Mapping`` in ``mapping.cuh``."""

MIN_N: Final = 4
MAX_N: Final = 65_536
"""A position is packed into 16 bits, and the number of a move fits 31."""

MAX_ITERATIONS: Final = 10_000_000
AUTO_ITERATIONS: Final = 10
"""`iterations: auto` allows this many times n: a search ends by itself after 1 n (n = 100) to 7 n
(n = 10,000) moves from a random tour of a uniform instance."""

FACTORS: Final[Mapping[str, Factor]] = factor_table(
    Path(__file__).with_name("factors.txt"),
    min_n=MIN_N,
    max_n=MAX_N,
    mappings="|".join(MAPPING_CODES),
    max_iterations=MAX_ITERATIONS,
)

GENERAL: Final[Mapping[str, Level]] = {"iterations": "auto", "seed": 1, "instance": "uniform"}
"""Defaults of factors that every system has, CPU systems included."""

INDEXED: Final[Mapping[str, Level]] = {
    "kernel": "indexed",
    "moves": "strided",
    "mapping": "rectangle",
    "reduction": "strided",
    "unroll": "full",
    "cache": "prefer_l1",
    "block_size": 192,
    "blocks": 105,
    "apply_size": 512,
}
"""Defaults of the paper's kernels: its last version."""

TILED: Final[Mapping[str, Level]] = {
    **{"kernel": "tiled", "cache": "default", "block_size": 128},
    **{"tile_x": "auto", "tile_y": "auto"},
}
RESIDENT: Final[Mapping[str, Level]] = {**TILED, "kernel": "resident", "check_every": 64}
KERNEL_DEFAULTS: Final = {"indexed": INDEXED, "tiled": TILED, "resident": RESIDENT}

_CHANGES: Final[tuple[dict[str, Level], ...]] = (
    {
        **INDEXED,
        "moves": "consecutive",
        "mapping": "quadratic",
        "reduction": "consecutive",
        "unroll": "none",
        "cache": "default",
        "block_size": 128,
        "blocks": 64,
    },
    {"block_size": 192, "blocks": 105},
    {"cache": "prefer_l1"},
    {"moves": "strided"},
    {"reduction": "strided"},
    {"unroll": "full"},
    {"mapping": "rearranged"},
    {"mapping": "rectangle"},
)
"""Version 1, and how each of versions 2 to 8 differs from the one before: as the paper says, and in
nothing else. That versions 3 to 8 keep the launch of version 2 and the L1 setting of version 3 is
implied."""

CPU_MAPPED: Final = "brodtkorb_part1.cpu_mapped"
CPU_TWO_LOOPS: Final = "brodtkorb_part1.cpu_two_loops"
CPU_SYSTEMS: Final = frozenset({CPU_MAPPED, CPU_TWO_LOOPS})

SYSTEMS: Final[Mapping[str, Mapping[str, Level]]] = {
    CPU_MAPPED: {"mapping": "quadratic"},
    CPU_TWO_LOOPS: {},
    **{
        f"brodtkorb_part1.gpu_v{version}": levels
        for version, levels in enumerate(accumulate(_CHANGES, or_), 1)
    },
    "local_search.fused": TILED,
    "local_search.resident": RESIDENT,
}
