"""The scheme that a search evaluates with: which may be one, and the factors it brings along."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nqbench.errors import InfeasibleError
from nqbench.point import Level
from nqbench.workloads.fitness.annealing_factors import (
    EVALUATOR_LEVELS,
    GPU_EVALUATORS,
    HOST_EVALUATOR_LEVELS,
    HOST_EVALUATORS,
)
from nqbench.workloads.fitness.levels import Levels
from nqbench.workloads.fitness.schemes import SCHEMES

COMPILED: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "cpu_serial": ("cpu_pairs", "serial_conflicts"),
        "cpu_histogram": ("cpu_histogram", "histogram_conflicts"),
    }
)
"""Schemes that are compiled into the search (``annealing_full``): module and function of each."""

_UNSET: Final = "-"


def evaluator_levels(levels: Mapping[str, Level]) -> Levels:
    """A point of the evaluator's scheme: its defaults, and what the search was given.

    Raises ``InfeasibleError`` for a scheme of the other place, one that scores many boards at once,
    and a factor that the scheme does not have.
    """
    evaluator = str(levels["evaluator"])
    host = levels["scheme"] == "sa_cpu"
    _check_place(evaluator, host=host)
    scheme, owned = SCHEMES[evaluator], HOST_EVALUATOR_LEVELS if host else EVALUATOR_LEVELS
    for name in owned:
        if levels[name] != _UNSET and name not in scheme.levels:
            raise InfeasibleError(
                f"{name}: {levels[name]} means nothing to evaluator: {evaluator}; leave {name} out",
                name,
            )
    given = {name: levels[name] for name in owned if levels[name] != _UNSET}
    blank = dict.fromkeys(levels, _UNSET)
    return {**blank, **scheme.levels, **given, "n": levels["n"], "scheme": evaluator}


def _check_place(evaluator: str, *, host: bool) -> None:
    here = HOST_EVALUATORS if host else GPU_EVALUATORS
    if evaluator in here:
        return
    if host:
        what, other = "no scheme of the processor", "fitness_schemes.sa_gpu"
    else:
        what, other = "a scheme of the processor", "fitness_schemes.sa_cpu"
    raise InfeasibleError(
        f"evaluator: {evaluator} is {what}; use {', '.join(here)}, or system: {other}", "evaluator"
    )
