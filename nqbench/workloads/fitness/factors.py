"""The factor space: every axis, the schemes, and the systems named after them.

A scheme says where it runs and which factors apply to it. A CPU scheme is built by ``cpu.plans``,
one that anneals by ``annealing.points``, a kernel by ``gpu``. To add a factor to a scheme, add it
to ``factors.txt`` and, with its default, to ``schemes.toml``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from nqbench.point import FactorLevels
from nqbench.workloads.base import Factor, factor_table

MAX_N: Final = 10_000_000
"""Ten times the paper's largest board; every index of a diagonal then fits 32 bits."""

MILLI: Final = 1000
"""Temperatures and the cooling factor are given in thousandths."""

COOLED: Final[FactorLevels] = {
    "start_temperature": 500,
    "end_temperature": 10,
    "cooling": 800,
    "moves_per_queen": 20,
}
"""The fitness paper's own values are lost (its Table 1). It does say that a valid board is found
with a probability above 0.5, and at n = 3000 in 9443 s: at 27 ms per evaluation these are 350,000
evaluations, 116 per queen. Here the hot phase is short: up to 100 queens it is needed to leave dead
ends; on larger boards every move made while hot is undone later. At 0.5 a rise of one conflict is
accepted in 14% of cases, eight temperatures later (0.08) once in 150,000. The rest is a long
descent over plateaus. Success with these values (100 runs, 20 at n = 10,000): 73% at n = 6, 99% at
10, all at 100, 1000, 3000 and 10,000, with 238 proposals per queen at n = 3000. Half of
``moves_per_queen`` is closer to the paper's number but finds only 48% there; a start at 1 finds 96%
at n = 6 and takes a quarter longer at n = 3000."""

ATTACKED: Final[FactorLevels] = {"start_temperature": 200}
"""One temperature throughout: a proposal that begins with a queen in conflict hardly disturbs the
others, so no cooling is needed. At 0.3 boards of 10,000 queens are not found; at 0.1 a search with
6 queens takes 80 times as many proposals, or does not end within its limit (39%)."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """``levels``: the factors that apply to it (besides ``n``), with their defaults."""

    name: str
    place: Literal["cpu", "device"]
    task: Literal["evaluate", "anneal"]
    levels: FactorLevels


_BOARD: Final[FactorLevels] = {"board": "random", "seed": 1}
"""The input, which is not part of a scheme."""
_COMMON: Final[Mapping[str, FactorLevels]] = {
    "evaluate": _BOARD,
    "anneal": {"seed": 1, **dict.fromkeys(COOLED, "auto"), "max_evaluations": 0},
}
_DATA: Final[dict[Any, Any]] = tomllib.loads(
    Path(__file__).with_name("schemes.toml").read_text(encoding="utf-8")
)
_HOMES: Final = {
    f"{home}.{name}": Scheme(name, place, task, {**_COMMON[task], **levels})
    for place, tasks in _DATA.items()
    for task, homes in tasks.items()
    for home, schemes in homes.items()
    for name, levels in schemes.items()
}
SCHEMES: Final[Mapping[str, Scheme]] = {scheme.name: scheme for scheme in _HOMES.values()}
SYSTEMS: Final[Mapping[str, FactorLevels]] = {
    system: {"scheme": s.name, **{f: level for f, level in s.levels.items() if f not in _BOARD}}
    for system, s in _HOMES.items()
}
CPU_SYSTEMS: Final = frozenset(name for name, s in _HOMES.items() if s.place == "cpu")
"""They run on the CPU, whatever the device."""

REMOVED: Final = {
    "board": "boards are no longer read from files",
    "board_file": "boards are no longer read from files; give seed",
    "tally": "pairs are summed as a queen arrives (tally: arrival), the only way left",
    "evaluator": "a search evaluates as cpu_serial or gpu_coarse do; leave it out",
}
FACTORS: Final[Mapping[str, Factor]] = factor_table(
    Path(__file__).with_name("factors.txt"), max_n=MAX_N, schemes="|".join(SCHEMES)
)
