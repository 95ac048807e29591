"""What larger boards would cost: measured times of a counting system, grown as the search grows.

The time of a board is that of another one times the ratio of the nodes of the tree that is walked,
or of the numbers of solutions, as a second opinion. Both are held against the run itself: every
measured board predicts the measured ones above it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nqbench.analysis.data.dataset import Dataset, PointResult, missing
from nqbench.analysis.data.quantities import TIME
from nqbench.errors import AnalysisError
from nqbench.workloads.counting.known import eighth_nodes, nodes, solutions

SIZES: Final = range(21, 29)
GPUS: Final = (1, 8, 1000)
MAX_STEP: Final = 3
MIN_BASE_S: Final = 0.005
"""Past predictions: at most so many rows ahead, from a board that took at least so long. A GPU is
not full on smaller ones, so that their times grow more slowly than the search."""


@dataclass(frozen=True, slots=True)
class Cost:
    """A measured board: seconds of the kernel, and watts of the GPU where they were recorded."""

    n: int
    seconds: float
    watts: float | None


@dataclass(frozen=True, slots=True)
class Past:
    """A board predicted from a smaller one that was measured, too: seconds."""

    base: int
    n: int
    measured_s: float
    by_nodes_s: float
    by_solutions_s: float


@dataclass(frozen=True, slots=True)
class Scale:
    """A system's measured costs, and the predictions that they test.

    ``tree``      nodes that it walks, by board, up to a factor
    ``watts``     power that energies are worked out with; ``watts_of`` says where it is from
    """

    system: str
    tree: Callable[[int], float]
    costs: tuple[Cost, ...]
    past: tuple[Past, ...]
    watts: float | None
    watts_of: str

    @property
    def base(self) -> Cost:
        """The largest measured board, from which others are predicted."""
        return self.costs[-1]

    def seconds(self, n: int) -> tuple[float, float]:
        """Predicted by nodes and by solutions, on one GPU."""
        return _predicted(self.base, n, self.tree)


def _predicted(base: Cost, n: int, tree: Callable[[int], float]) -> tuple[float, float]:
    return (
        base.seconds * tree(n) / tree(base.n),
        base.seconds * solutions(n) / solutions(base.n),
    )


def scale_of(data: Dataset, system: str = "", watts: float | None = None) -> Scale:
    """The costs of ``system``, by default of the fastest one on the largest board.

    ``watts`` replaces the recorded power. Raises ``AnalysisError`` for a run without times of a
    counting system on several boards.
    """
    timed: dict[str, dict[int, PointResult]] = {}
    for point in data.points:
        if point.ok and point.timed and not point.cpu and point.system and point.estimate(TIME):
            best = timed.setdefault(point.system, {})
            if point.n not in best or _seconds(point) < _seconds(best[point.n]):
                best[point.n] = point
    several = {name: best for name, best in timed.items() if len(best) > 1}
    if data.study.get("workload") != "counting" or not several:
        raise AnalysisError(
            "the run has no times of one counting system on two boards; measure"
            " configs/frontier.yaml on a GPU"
        )
    if system and system not in several:
        known = ", ".join(sorted(several))
        raise AnalysisError(f"the run has no times of {system} on two boards; it has {known}")
    largest = max(max(best) for best in several.values())
    there = [name for name, best in several.items() if largest in best]
    chosen = system or min(there, key=lambda name: _seconds(several[name][largest]))
    points = [several[chosen][n] for n in sorted(several[chosen])]
    costs = tuple(Cost(p.n, _seconds(p), _watts(p)) for p in points)
    power, power_of = _power(costs, watts)
    tree = eighth_nodes if points[-1].level("symmetry") == "full" else nodes
    return Scale(chosen, tree, costs, _past(costs, tree), power, power_of)


def _seconds(point: PointResult) -> float:
    found = point.estimate(TIME)
    assert found is not None
    return found.value


def _watts(point: PointResult) -> float | None:
    """Power of a launch, by its energy if that was resolved, else by readings of the power."""
    joules = _energies(point)
    if joules:
        return statistics.median(joules) / _seconds(point)
    rows = [row.get("power_mw") for row in point.measurements.values()]
    read = [float(mw) / 1000 for mw in rows if not missing(mw) and mw is not None]
    return statistics.median(read) if read else None


def _energies(point: PointResult) -> list[float]:
    """Joules of a launch in each round; empty unless every round lasts 1 s, nearly all of it inside
    kernels: NVML's counter moves about every 0.1 s."""
    found, shortest, busiest = [], math.inf, math.inf
    for row in point.measurements.values():
        energy_mj, sampled_s, launches = (row.get(c) for c in ("energy_mj", "sampled_s", "samples"))
        if missing(energy_mj) or energy_mj is None or not sampled_s or not launches:
            return []
        shortest = min(shortest, sampled_s)
        busiest = min(busiest, launches * row["value_s"] / sampled_s)
        found.append(energy_mj / 1000 / launches)
    return found if shortest >= 1 and busiest >= 0.9 else []


def _power(costs: tuple[Cost, ...], given: float | None) -> tuple[float | None, str]:
    if given is not None:
        return given, "as given"
    for cost in reversed(costs):
        if cost.watts is not None:
            return cost.watts, f"of the whole GPU, recorded at N = {cost.n}"
    return None, "not recorded; give --watts"


def _past(costs: tuple[Cost, ...], tree: Callable[[int], float]) -> tuple[Past, ...]:
    bases = [cost for cost in costs if cost.seconds >= MIN_BASE_S]
    pairs = [(one, two) for one in bases for two in costs if 0 < two.n - one.n <= MAX_STEP]
    return tuple(
        Past(one.n, two.n, two.seconds, *_predicted(one, two.n, tree)) for one, two in pairs
    )
