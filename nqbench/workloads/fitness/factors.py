"""The factor space: every axis, the schemes, and the systems named after them.

A scheme says where it runs and which factors apply to it. A CPU scheme is built by ``cpu.plans``,
one that anneals by ``annealing.points``, a kernel by ``gpu``. To add a factor to a scheme, add it
to ``FACTORS`` and, with its default, to the scheme's ``levels``.

A paper's schemes are systems under its name, the others under the workload's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from nqbench.point import Level
from nqbench.workloads.base import Factor, factor_table

MAX_N: Final = 10_000_000
"""Ten times the paper's largest board; every index of a diagonal then fits 32 bits."""

MILLI: Final = 1000
"""Temperatures and the cooling factor are given in thousandths."""

GPU_EVALUATORS: Final = ("gpu_coarse", "gpu_fine1", "gpu_fine2", "gpu_cdp", "histogram")
CPU_EVALUATORS: Final = {
    "cpu_serial": "serial_conflicts",
    "cpu_histogram": "histogram_conflicts",
}
"""They are compiled into the search; the function of each in ``cpu.evaluators``."""

COOLED: Final[Mapping[str, Level]] = {
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

ATTACKED: Final[Mapping[str, Level]] = {"start_temperature": 200}
"""One temperature throughout: a proposal that begins with a queen in conflict hardly disturbs the
others, so no cooling is needed. At 0.3 boards of 10,000 queens are not found; at 0.1 a search with
6 queens takes 80 times as many proposals, or does not end within its limit (39%)."""

GPU_EVALUATOR_LEVELS: Final = (
    *("allocation", "block_size", "atomics", "counters"),
    *("threshold", "child_block_size", "nesting"),
)
"""Factors that `sa_gpu` leaves to its evaluator, whose defaults replace the ``-``."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """``levels``: the factors that apply to it (besides ``n``), with their defaults."""

    name: str
    place: Literal["cpu", "device"]
    task: Literal["evaluate", "anneal"]
    levels: Mapping[str, Level]


_BOARD: Final[Mapping[str, Level]] = {"board": "random", "seed": 1}
"""The input, which is not part of a scheme."""
_LAUNCH: Final[Mapping[str, Level]] = {**_BOARD, "allocation": "per_call", "block_size": 512}
"""The paper allocates in every call and takes blocks of 512 threads for every kernel."""
_OWN: Final[Mapping[str, Level]] = {
    **_BOARD,
    **{"allocation": "once", "block_size": "auto", "counters": "auto"},
}
_SEARCH: Final[Mapping[str, Level]] = {
    "seed": 1,
    **dict.fromkeys(COOLED, "auto"),
    "max_evaluations": 0,
}
_CHAINS: Final[Mapping[str, Level]] = {
    **{"proposal": "uniform", "chains": "auto", "stop": "first"},
    **{"block_size": 32, "counters": "auto"},
}
_OF_GPU: Final = dict.fromkeys(GPU_EVALUATOR_LEVELS, "-")
_CDP: Final = {"threshold": 4096, "child_block_size": 32, "nesting": 1}
_ALL: Final = (
    Scheme("cpu_serial", "cpu", "evaluate", {**_BOARD, "optimization": "default"}),
    Scheme("cpu_threads", "cpu", "evaluate", {**_BOARD, "threads": "auto"}),
    Scheme("cpu_tbb", "cpu", "evaluate", _BOARD),
    Scheme("cpu_forkjoin", "cpu", "evaluate", {**_BOARD, "threshold": 4}),
    Scheme("cpu_histogram", "cpu", "evaluate", {**_BOARD, "batch": 1}),
    Scheme("gpu_fine1", "device", "evaluate", _LAUNCH),
    Scheme("gpu_fine2", "device", "evaluate", _LAUNCH),
    Scheme("gpu_coarse", "device", "evaluate", {**_LAUNCH, "atomics": "per_conflict"}),
    Scheme("gpu_cdp", "device", "evaluate", {**_LAUNCH, **_CDP}),
    Scheme("histogram", "device", "evaluate", _OWN),
    Scheme("batched", "device", "evaluate", {**_OWN, "batch": 256}),
    Scheme("sa_cpu", "cpu", "anneal", {**_SEARCH, "evaluator": "cpu_serial"}),
    Scheme("sa_gpu", "device", "anneal", {**_SEARCH, "evaluator": "gpu_coarse", **_OF_GPU}),
    Scheme("sa_delta", "cpu", "anneal", {**_SEARCH, "proposal": "uniform"}),
    Scheme("sa_chains", "device", "anneal", {**_SEARCH, **_CHAINS}),
)
SCHEMES: Final[Mapping[str, Scheme]] = {scheme.name: scheme for scheme in _ALL}

_OF_PAPER: Final = (
    *("cpu_serial", "cpu_threads", "cpu_tbb", "cpu_forkjoin"),
    *("gpu_fine1", "gpu_fine2", "gpu_coarse", "gpu_cdp"),
    *("sa_cpu", "sa_gpu"),
)
SYSTEMS: Final[Mapping[str, Mapping[str, Level]]] = {
    f"{'fitness_schemes' if name in _OF_PAPER else 'fitness'}.{name}": {
        "scheme": name,
        **{factor: level for factor, level in scheme.levels.items() if factor not in _BOARD},
    }
    for name, scheme in SCHEMES.items()
}
CPU_SYSTEMS: Final = frozenset(
    name for name, levels in SYSTEMS.items() if SCHEMES[str(levels["scheme"])].place == "cpu"
)
"""They run on the CPU, whatever the device."""

REMOVED: Final = {
    "board": "boards are no longer read from files",
    "board_file": "boards are no longer read from files; give seed",
    "tally": "pairs are summed as a queen arrives (tally: arrival), the only way left",
    "evaluator": "on a CPU the schemes of one thread are left; time the others without a search",
}
FACTORS: Final[Mapping[str, Factor]] = factor_table(
    Path(__file__).with_name("factors.txt"),
    max_n=MAX_N,
    schemes="|".join(SCHEMES),
    evaluators="|".join((*CPU_EVALUATORS, *GPU_EVALUATORS)),
)
