"""Normalised rates of the points of two runs: work per second, per multiprocessor and GHz, the
share of the roof, and the energy of a launch.

Energy is the whole board's, by NVML's counter, from the first to the last timed launch of a
measurement. The counter moves about every 0.1 s, so a measurement shorter than ``ENERGY_S`` has no
energy worth printing, and one that was not inside kernels nearly all the time none that is the
kernel's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from nqbench.analysis.compare.match import Matched
from nqbench.analysis.compare.runs import Comparison
from nqbench.analysis.data.dataset import Dataset, PointResult, missing
from nqbench.analysis.data.estimate import Estimate, combine
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.quantities import TIME
from nqbench.analysis.data.statistics import Values, overall
from nqbench.analysis.limits.ceilings import Ceilings, ceilings_beside, data_sheet, multiprocessors
from nqbench.analysis.limits.roofline import roof_points
from nqbench.errors import AnalysisError
from nqbench.point import PART

ENERGY_S: Final = 1.0
"""Shortest measurement whose energy is shown: NVML's counter moves about every 0.1 s (seen on H100
and H200), so each end of a measurement of 1 s is uncertain by a tenth of it."""
BUSY: Final = 0.9
"""Share of a measurement that its kernels must take for its energy to be theirs."""
Amount = Callable[[Mapping[str, Any]], Any]
WORK: Final[Mapping[str, tuple[str, Amount]]] = MappingProxyType(
    {
        "counting": ("solutions", lambda row: row.get("answer")),
        # A search counts its evaluations; any other launch evaluates its boards once.
        "fitness": (
            "evaluations",
            lambda row: (
                row.get("evaluations") or (b if isinstance(b := row.get("batch"), int) else 1)
            ),
        ),
        "local_search": ("moves", lambda row: row.get("moves_evaluated")),
    }
)
"""What a launch of each workload gets done: the unit of its rates, and the recorded amount."""
LAUNCHES: Final[tuple[str, Amount]] = ("launches", lambda _: 1)
"""The same of workloads that are not listed."""


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """A point on one side. ``None`` where something was not recorded.

    ``per_s``     work per second; ``per_clock`` the same per multiprocessor and GHz
    ``share``     of the roof: 1 is at the limit; ``energy_j`` of a launch (of a program: a run)
    ``no_energy`` why there is no energy, in words
    """

    per_s: Estimate | None
    per_clock: Estimate | None
    share: float | None
    energy_j: Estimate | None
    no_energy: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Rated:
    """The rates of all kernels of a comparison.

    ``unit``     what is counted
    ``rows``     pairs with their rates on either side
    ``per_clock``, ``energy``  geometric means over the points that have both: second over first
    ``counted``  points behind these two
    ``roofs``    where the roofs come from; empty without a share
    """

    comparison: Comparison
    unit: str
    rows: tuple[tuple[Matched, tuple[Rates, Rates]], ...]
    per_clock: Estimate | None
    energy: Estimate | None
    counted: tuple[int, int]
    roofs: str


def rated(comparison: Comparison, runs: tuple[Observed | None, Observed | None]) -> Rated | None:
    """The rates of a comparison of two runs; ``None`` where no kernel was timed.

    ``runs`` are its sides with what profilers counted, where they are known.
    """
    section = next((s for s in comparison.sections if s.quantity is TIME), None)
    if section is None:
        return None
    pairs = [r.pair for r in section.rows if r.pair.first.levels.get(PART, "full") == "full"]
    unit, amount = _work(comparison.sides[0])
    roofs, shares = _roofs(runs)
    rows = []
    for pair in pairs:
        points = (pair.first, pair.second)
        one, two = (
            _rates(point, data, amount, share.get(_identity(point)))
            for point, data, share in zip(points, comparison.sides, shares, strict=True)
        )
        rows.append((pair, (one, two)))

    def mean(
        values: Callable[[PointResult, Dataset], Values], has: Callable[[Rates], Any]
    ) -> tuple[Estimate | None, int]:
        own = [pair for pair, both in rows if all(has(one) is not None for one in both)]
        firsts = [values(pair.first, comparison.sides[0]) for pair in own]
        seconds = [values(pair.second, comparison.sides[1]) for pair in own]
        found = overall(firsts, seconds, same_run=False)
        return (found.estimate() if found else None), len(own)

    per_clock, clocked = mean(lambda p, d: _per_clock(p, d, amount), lambda r: r.per_clock)
    energy, powered = mean(lambda p, _: energies(p)[0], lambda r: r.energy_j)
    return Rated(comparison, unit, tuple(rows), per_clock, energy, (clocked, powered), roofs)


def _work(data: Dataset) -> tuple[str, Amount]:
    return WORK.get(str(data.study.get("workload", "")), LAUNCHES)


def _rates(point: PointResult, data: Dataset, amount: Amount, share: float | None) -> Rates:
    joules, why = energies(point)
    return Rates(
        _estimate(_per_s(point, amount)),
        _estimate(_per_clock(point, data, amount)),
        share,
        _estimate(joules),
        why,
    )


def _estimate(values: Values) -> Estimate | None:
    return combine(list(values.values())) if values else None


def _per_s(point: PointResult, amount: Amount) -> Values:
    """Work per second in each round."""
    found = {}
    for number, row in point.measurements.items():
        done = amount(row)
        if not missing(done) and row.get("value_s") and float(done) > 0:
            found[number] = float(done) / float(row["value_s"])
    return found


def _per_clock(point: PointResult, data: Dataset, amount: Amount) -> Values:
    """The same per multiprocessor and GHz of the SM clock that was read in that round."""
    units = multiprocessors(data)
    found = {}
    for number, rate in _per_s(point, amount).items():
        clock_mhz = point.measurements[number].get("sm_mhz")
        if units and clock_mhz:
            found[number] = rate / units / (float(clock_mhz) / 1000)
    return found


def energies(point: PointResult) -> tuple[Values, str]:
    """Joules of a launch in each round, or why there are none."""
    found, shortest, busiest = {}, math.inf, math.inf
    for number, row in point.measurements.items():
        energy_mj, sampled_s, launches = (row.get(c) for c in ("energy_mj", "sampled_s", "samples"))
        if missing(energy_mj) or energy_mj is None or not sampled_s or not launches:
            return {}, "no energy was read"
        shortest = min(shortest, sampled_s)
        busiest = min(busiest, launches * row["value_s"] / sampled_s)
        found[number] = energy_mj / 1000 / launches
    if shortest < ENERGY_S:
        return {}, f"a round lasts under {ENERGY_S:g} s"
    if busiest < BUSY:
        return {}, f"kernels took only {busiest:.0%} of the measurement"
    return found, ""


KernelId = tuple[str, int, tuple[tuple[str, str], ...]]


def _identity(point: Any) -> KernelId:
    """System, size and levels: one kernel in whatever sweep."""
    levels = tuple(sorted((k, str(v)) for k, v in point.levels.items()))
    return (point.system or getattr(point, "sweep", ""), point.n, levels)


def _roofs(
    runs: tuple[Observed | None, Observed | None],
) -> tuple[str, tuple[Mapping[KernelId, float], Mapping[KernelId, float]]]:
    """The share of the roof of each profiled kernel, per side.

    Both sides are held against ceilings of one kind: measured ones where both GPUs have them, else
    those of their data sheets.
    """
    known = [ceilings_beside(run.path, run.data.device) if run else None for run in runs]
    of = "measured ceilings"
    if not all(known):
        known = [data_sheet(run.data) if run else None for run in runs]
        of = "data sheets"
    one, two = (_shares(run, roof) for run, roof in zip(runs, known, strict=True))
    return (of if one or two else ""), (one, two)


def _shares(run: Observed | None, roof: Ceilings | None) -> Mapping[KernelId, float]:
    if run is None or roof is None or not run.profiles:
        return {}
    try:
        points, _ = roof_points(run, roof)
    except AnalysisError:
        return {}  # no kernel was profiled with what a roof needs
    return {_identity(point): point.share for point in points}
