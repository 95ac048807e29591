"""The factor space of the local search: every axis, its levels, its systems."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from itertools import accumulate
from operator import or_
from pathlib import Path
from typing import Final

from nqbench.point import FactorLevels
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

GENERAL: Final[FactorLevels] = {"iterations": "auto", "seed": 1, "instance": "uniform"}
"""Defaults of factors that every system has, CPU systems included."""

_DATA: Final = tomllib.loads(Path(__file__).with_name("systems.toml").read_text(encoding="utf-8"))
KERNEL_DEFAULTS: Final[Mapping[str, FactorLevels]] = {
    kernel: {"kernel": kernel, **levels} for kernel, levels in _DATA["kernels"].items()
}
PAPER: Final = "brodtkorb_part1"
CPU_TWO_LOOPS: Final = f"{PAPER}.cpu_two_loops"
CPU_SYSTEMS: Final = frozenset(f"{PAPER}.{name}" for name in _DATA["cpu"])
_VERSIONS: Final = accumulate([KERNEL_DEFAULTS["indexed"], *_DATA["versions"].values()], or_)
SYSTEMS: Final[Mapping[str, FactorLevels]] = {
    **{f"{PAPER}.{name}": levels for name, levels in _DATA["cpu"].items()},
    **{f"{PAPER}.gpu_v{k}": levels for k, levels in enumerate(_VERSIONS) if k},
    "local_search.fused": KERNEL_DEFAULTS["tiled"],
    "local_search.resident": KERNEL_DEFAULTS["resident"],
}
