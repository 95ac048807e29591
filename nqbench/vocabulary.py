"""The words that studies, papers, records and figures share, whatever the workload.

Factors, and the phases and counters of one workload alone, are declared by that workload. The tests
check every YAML file of the project against both: a word that is in neither is a spelling mistake.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, get_args

Status = Literal[
    "ok", "unchecked", "wrong", "check_error", "compile_error", "launch_error", "timeout",
    "crashed", "throttled", "skipped",
]  # fmt: skip
STATUSES: Final[tuple[str, ...]] = get_args(Status)
MEASURED: Final = ("ok", "unchecked")
"""Of what has a time or counters; nothing was there to check an unchecked answer against."""

_DATA: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
KERNEL_PHASES: Final[Mapping[str, str]] = _DATA["kernel_phases"]
"""What every measurement of a kernel reports. For a program, ``kernel`` sums over its kernels."""
PHASES: Final[Mapping[str, str]] = {**KERNEL_PHASES, **_DATA["program_phases"]}
"""The phases of any workload, which may declare more (``Workload.phases``), with those of programs
and CPU functions. Each kernel of a program is also a phase, under its own name."""
COUNTERS: Final[Mapping[str, str]] = _DATA["counters"]
CACHE_COUNTERS: Final[Mapping[str, str]] = _DATA["cache_counters"]
"""Further counters of the simulator where it models the caches (``sim:MODEL:cache``)."""
TIME_COUNTERS: Final[Mapping[str, str]] = _DATA["time_counters"]
"""The simulator's modelled time (``sim:MODEL:time``). It is never shown as a time."""
PROGRAM_COUNTERS: Final[Mapping[str, str]] = _DATA["program_counters"]
"""Further counters of a program. Each name is a total over the kernels; ``NAME@KERNEL`` (see
``of_kernel``) is the part of one of them."""
FOLLOW: Final[Mapping[str, str]] = _DATA["follow"]
ERRORS: Final[Mapping[str, str]] = _DATA["errors"]
"""How far the outputs of an own kernel are from the right ones."""
_SHARED: Final = ("l1_hit_percent", "l2_hit_percent", "dram_read_bytes", "dram_write_bytes")
PROFILER_COUNTERS: Final[Mapping[str, str]] = {
    **{name: CACHE_COUNTERS[name] for name in (*_SHARED, "dram_bytes")},
    **_DATA["profiler_counters"],
}
"""What a profiler adds to the counters that it shares with the simulator (``counters: ncu``)."""
BETTER: Final[Mapping[str, Literal["lower", "higher"]]] = {
    name: direction for direction, names in _DATA["better"].items() for name in names
}
"""Which direction of a counter is good, where one is."""
PLAIN: Final[Mapping[str, str]] = _DATA["plain"]
"""What sentences call a counter; tables keep its exact name."""
RESOURCES: Final[Mapping[str, str]] = _DATA["resources"]
SPENT: Final[Mapping[str, str]] = _DATA["spent"]
PROTOCOL: Final[Mapping[str, str]] = _DATA["protocol"]
SENSORS: Final[Mapping[str, tuple[str, str, float]]] = _DATA["sensors"]

AT_KERNEL: Final = "@"


def of_kernel(name: str, kernel: str) -> str:
    """The name of one kernel's part of a counter or resource: ``global_bytes@apply``; without a
    kernel the name itself."""
    return f"{name}{AT_KERNEL}{kernel}" if kernel else name


def plain_name(name: str) -> tuple[str, str]:
    """The counter or resource of a name, and its kernel; an empty kernel for a total."""
    plain, _, kernel = name.partition(AT_KERNEL)
    return plain, kernel


SUMS: Final = {"off_chip_sectors": ("local_sectors", "global_sectors")}
"""Counters that are sums of others: a study may name them, records have their parts."""


def is_counter(name: str) -> bool:
    """Whether a name is a counter, or one kernel's part of a counter."""
    known = {**COUNTERS, **PROGRAM_COUNTERS, **CACHE_COUNTERS, **TIME_COUNTERS}
    return plain_name(name)[0] in known
