"""The factors of the searches: how they propose, cool, evaluate and end."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nqbench.errors import InfeasibleError
from nqbench.point import Level
from nqbench.workloads.base import Factor

MILLI: Final = 1000
"""Temperatures and the cooling factor are given in thousandths."""

MAX_START: Final = 2 * MILLI

GPU_EVALUATORS: Final = ("gpu_coarse", "gpu_fine1", "gpu_fine2", "gpu_cdp", "histogram")
CPU_EVALUATORS: Final = ("cpu_serial", "cpu_threads", "cpu_tbb", "cpu_forkjoin", "cpu_histogram")

MAX_EVALUATIONS: Final = 2**31 - 1
MAX_CHAINS: Final = 2**20

ANNEALING_FACTORS: Final = (
    Factor("evaluator", "scheme that a search evaluates with", (*CPU_EVALUATORS, *GPU_EVALUATORS)),
    Factor("proposal", "first queen of a move: any, or one in conflict",
           ("uniform", "attacked"), launch=True),
    Factor("start_temperature", "highest temperature, in thousandths of a conflict",
           number=(1, MAX_START), auto=True),
    Factor("end_temperature", "temperature at which a search gives up, in thousandths",
           number=(1, MAX_START), auto=True),
    Factor("cooling", "ratio of successive temperatures, in thousandths",
           number=(1, MILLI - 1), auto=True),
    Factor("moves_per_queen", "proposals at each temperature, over n",
           number=(1, 100_000), auto=True),
    Factor("max_evaluations", "proposals after which a search stops; 0 for no limit",
           number=(0, MAX_EVALUATIONS), launch=True),
    Factor("chains", "searches run in parallel; `auto` fills the device", number=(1, MAX_CHAINS),
           auto=True),
    Factor("stop", "when chains end: at the first board found, or each at its own board",
           ("first", "all")),
)  # fmt: skip

_PAPER: Final[Mapping[str, Level]] = MappingProxyType(
    {"start_temperature": 500, "end_temperature": 10, "cooling": 800, "moves_per_queen": 20}
)
"""The fitness paper's own values are lost (its Table 1). It does say that a valid board is found
with a probability above 0.5, and at n = 3000 in 9443 s: at 27 ms per evaluation these are 350,000
evaluations, 116 per queen. Here the hot phase is short: up to 100 queens it is needed to leave dead
ends; on larger boards every move made while hot is undone later. At 0.5 a rise of one conflict is
accepted in 14% of cases, eight temperatures later (0.08) once in 150,000. The rest is a long
descent over plateaus. Success with these values (100 runs, 20 at n = 10,000): 73% at n = 6, 99% at
10, all at 100, 1000, 3000 and 10,000, with 238 proposals per queen at n = 3000. Half of
``moves_per_queen`` is closer to the paper's number but finds only 48% there; a start at 1 finds 96%
at n = 6 and takes a quarter longer at n = 3000."""

ATTACKED: Final[Mapping[str, Level]] = MappingProxyType({"start_temperature": 200})
"""One temperature throughout: a proposal that begins with a queen in conflict hardly disturbs the
others, so no cooling is needed. At 0.3 boards of 10,000 queens are not found; at 0.1 a search with
6 queens takes 80 times as many proposals, or does not end within its limit (39%)."""

GPU_EVALUATOR_LEVELS: Final[Mapping[str, Level]] = MappingProxyType(
    dict.fromkeys(
        (
            *("allocation", "block_size", "atomics", "counters", "tally"),
            *("threshold", "child_block_size", "nesting"),
        ),
        "-",
    )
)
"""Factors that `sa_gpu` leaves to its evaluator, whose defaults replace the ``-``."""

CPU_EVALUATOR_LEVELS: Final[Mapping[str, Level]] = MappingProxyType(
    dict.fromkeys(("threads", "threshold"), "-")
)
"""The same for `sa_cpu`."""

SCHEDULE: Final[Mapping[str, Level]] = MappingProxyType(
    {**dict.fromkeys(_PAPER, "auto"), "max_evaluations": 0}
)
"""Default levels of every search."""


def resolve_schedule(levels: dict[str, Level]) -> None:
    """Resolve ``auto`` of the schedule in place.

    Raises ``InfeasibleError`` for a schedule that never cools, or for factors of cooling without
    cooling.
    """
    attacked = levels.get("proposal") == "attacked"
    own = ATTACKED if attacked else _PAPER
    for name in _PAPER:
        if levels[name] not in ("auto", "-"):
            if name not in own:
                raise InfeasibleError(
                    f"{name}: {levels[name]} means nothing with proposal: attacked, which keeps"
                    f" start_temperature; leave {name} out",
                    name,
                )
        else:
            levels[name] = own.get(name, "-")
    if not attacked and int(str(levels["end_temperature"])) > int(str(levels["start_temperature"])):
        raise InfeasibleError(
            f"end_temperature: {levels['end_temperature']} is above start_temperature:"
            f" {levels['start_temperature']}, and a search cools down; exchange them",
            "end_temperature",
        )
