"""A factorial as an array: one row per combination, one column per round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nqbench.analysis.data.dataset import Level, PointResult
from nqbench.analysis.data.estimate import Estimate, combine
from nqbench.analysis.data.quantities import Quantity
from nqbench.errors import AnalysisError


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Values of one quantity at one size.

    ``levels``  one tuple per combination, in the order of ``factors``
    ``values``  shape ``(combinations, rounds)``; every round has every combination
    ``exact``   the values are deterministic counts
    """

    factors: tuple[str, ...]
    levels: tuple[tuple[Level, ...], ...]
    values: NDArray[np.float64]
    exact: bool

    @property
    def index(self) -> dict[tuple[Level, ...], int]:
        """Row of each combination."""
        return {levels: i for i, levels in enumerate(self.levels)}

    def pairs(self, *changes: tuple[str, Level, Level]) -> list[tuple[int, ...]]:
        """Rows that differ only in ``changes`` (factor, from, to), all corners present.

        With one change each tuple is (from, to); with two it is (from-from, to-from, from-to,
        to-to), the first change varying fastest.
        """
        index = self.index
        where = [(self.factors.index(name), low, high) for name, low, high in changes]
        found = []
        for levels in self.levels:
            if any(levels[i] != low for i, low, _ in where):
                continue
            corners: list[tuple[Level, ...]] = [levels]
            for i, _, high in where:
                corners += [(*c[:i], high, *c[i + 1 :]) for c in corners]
            if all(c in index for c in corners):
                found.append(tuple(index[c] for c in corners))
        return found

    def ratio(self, rows: Sequence[tuple[int, ...]], signs: Sequence[int]) -> tuple[Estimate, str]:
        """Ratio over matched rows with its interval, and the name of the mean that was used.

        Values are raised to ``signs`` (+1 or -1), multiplied, and averaged geometrically over the
        matched rows, in each round; the rounds give the interval. Where a count is zero no
        geometric mean exists: totals are compared instead.
        """
        picked = self.values[np.asarray(rows, dtype=int)]  # (matches, corners, rounds)
        powers = np.asarray(signs, dtype=float)
        if (picked > 0).all():
            logs = np.einsum("mcr,c->mr", np.log(picked), powers)
            return combine(np.exp(logs.mean(axis=0)).tolist(), exact=self.exact), "geometric mean"
        totals = picked.sum(axis=0)[:, 0]
        above, below = totals[powers > 0], totals[powers < 0]
        if (below == 0).any():
            value = np.inf if (above > 0).all() else np.nan
        else:
            value = float(above.prod() / below.prod())
        return Estimate(float(value), rounds=picked.shape[2], exact=self.exact), "totals"


def cells(points: Sequence[PointResult], factors: Sequence[str], what: Quantity) -> Cells:
    """Collect the points of one size. Raises ``AnalysisError`` where there is nothing to compare.

    Rounds that miss a combination are dropped, so that all combinations share the same rounds;
    combinations that were measured in fewer rounds than the others go first.
    """
    usable = [(p, values) for p in points if p.ok and (values := p.values(what))]
    if not usable:
        raise AnalysisError(f"no point has a {what.label} to compare")
    most = max(len(values) for _, values in usable)
    full = [(p, values) for p, values in usable if len(values) * 2 > most]
    rounds = set.intersection(*(set(values) for _, values in full))
    if not rounds:
        raise AnalysisError(f"no round has a {what.label} of every combination; run it again")
    by_level: dict[tuple[Level, ...], list[float]] = {}
    for point, values in full:
        key = tuple(point.level(f) for f in factors)
        if key in by_level:
            same = ", ".join(f"{f} {v}" for f, v in zip(factors, key, strict=True))
            raise AnalysisError(
                f"two points share {same}: another factor varies too; name it or fix it"
            )
        by_level[key] = [values[r] for r in sorted(rounds)]
    table = np.asarray(list(by_level.values()), dtype=float)
    return Cells(tuple(factors), tuple(by_level), table, exact=what.exact)
