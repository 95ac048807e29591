"""The counters that claims read, and of which configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nqbench.analysis.claims.points import (
    NotMeasured,
    best_point,
    configurations,
    finished,
    main_point,
    paper_of,
)
from nqbench.analysis.claims.runs import Observed, profile_value
from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.quantities import quantity
from nqbench.vocabulary import PROFILER_COUNTERS, is_counter, plain_name


def counter_of(run: Observed, point: PointResult, name: str) -> float:
    """A counter or resource of a point. Raises :class:`NotMeasured` where it was not counted."""
    if is_counter(name):
        estimate = point.estimate(quantity(name))
        if estimate is not None:
            return estimate.value
        found = profile_value(run, point, name)
        if found is not None:
            return found
        raise NotMeasured(
            f"{name} is counted in the simulator"
            f" (nqbench reproduce {paper_of(run.data, point.system)} --device sim)"
            " or by Nsight Compute (`counters: ncu` in the study's measure block)"
        )
    if plain_name(name)[0] in PROFILER_COUNTERS:
        found = profile_value(run, point, name)
        if found is not None:
            return found
        raise NotMeasured(
            f"{name} is counted by Nsight Compute alone (`counters: ncu` in the study's measure"
            " block, on a GPU)"
        )
    value = point.detail(name)
    if value is None:
        raise NotMeasured(f"the run has no {name} of {point.system} N={point.n}")
    return float(value)


def first_counted(run: Observed, system: str, n: int, name: str) -> float:
    """A counter or resource of the first configuration of a system that has it.

    Raises :class:`NotMeasured` with the reason of the first configuration where none has.
    """
    reasons = []
    for point in finished(configurations(run.data, system, n), run.data):
        try:
            return counter_of(run, point, name)
        except NotMeasured as error:
            reasons.append(error)
    raise reasons[0]


def configuration(
    data: Dataset, system: str, n: int, config: str, levels: Mapping[str, Any]
) -> PointResult:
    """The configuration that ``config`` picks: ``fastest``, ``highest_occupancy``, main."""
    if config == "fastest":
        return best_point(data, system, n, levels)
    if config == "highest_occupancy":
        ok = finished(configurations(data, system, n, levels), data)
        known = [p for p in ok if p.detail("occupancy") is not None]
        if not known:
            raise NotMeasured(
                f"the run has no occupancy of {system}; a GPU's compiler reports it",
                f"nqbench reproduce {paper_of(data, system)} --device cuda:0",
            )
        return max(known, key=lambda p: float(p.detail("occupancy")))
    if config:
        raise NotMeasured(f"config {config!r} is neither fastest nor highest_occupancy")
    return main_point(data, system, n, levels)
