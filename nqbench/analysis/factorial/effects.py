"""Main effects and two-way interactions of a factorial, as ratios.

A main effect is the geometric mean, over all otherwise equal pairs of points, of the quantity at
one level divided by the quantity at the base level. It is computed in each round on its own; the
rounds give the interval (Student's t on logarithms), so that what differs between processes is in
it. Deterministic counts give exact ratios.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, combinations, product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nqbench.analysis.data.dataset import INAPPLICABLE, Dataset, Level, PointResult
from nqbench.analysis.data.estimate import Estimate, combine
from nqbench.analysis.data.quantities import Quantity
from nqbench.analysis.wording import Difference
from nqbench.errors import AnalysisError

MATCHED_SHARE: Final = 0.5
"""Below this share of matched pairs, pairs would represent only a corner of the design: a model of
all main effects is fitted to every combination instead, and the table says so."""

DECISIVE: Final = 1.1
"""Smallest interaction worth a sentence."""
MOST_INTERACTIONS: Final = 12
"""Those that a page shows; the files have all."""


@dataclass(frozen=True, slots=True)
class FactorEffect:
    """What changing one factor from ``base`` to ``level`` multiplies a quantity by.

    ``pairs``   otherwise equal pairs of points behind it
    ``method``  ``geometric mean``, ``totals`` (some count is zero) or ``least squares``
    ``totals``  mean value at ``base`` and at ``level`` over the pairs; ``None`` without pairs
    """

    quantity: Quantity
    n: int
    factor: str
    base: Level
    level: Level
    ratio: Estimate
    pairs: int
    method: str
    totals: tuple[float, float] | None

    @property
    def difference(self) -> Difference:
        """It, for people: ``16% less +``."""
        return Difference(self.ratio, self.quantity, self.totals)


@dataclass(frozen=True, slots=True)
class Interaction(FactorEffect):
    """How the effect of one factor depends on the level of another.

    ``ratio``     ``at_level / at_base``: 1 means that the two do not interact
    ``pairs``     squares of points equal in everything else behind it
    ``at_base``   effect of ``factor`` while ``other`` is at ``other_base``
    ``at_level``  effect of ``factor`` while ``other`` is at ``other_level``
    ``reversed``  those of the two factors whose effect clearly changes its direction with the other
    """

    other: str
    other_base: Level
    other_level: Level
    at_base: Estimate
    at_level: Estimate
    reversed: tuple[str, ...] = ()


Change = tuple[str, Level, Level]
"""A factor, its level before and the one after."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Values of one quantity at one size.

    ``levels``  one tuple per combination, in the order of ``factors``
    ``values``  shape ``(combinations, rounds)``; every round has every combination
    """

    quantity: Quantity
    n: int
    factors: tuple[str, ...]
    levels: tuple[tuple[Level, ...], ...]
    values: NDArray[np.float64]

    def pairs(self, *changes: Change) -> list[tuple[int, ...]]:
        """Rows that differ only in ``changes``, all corners present.

        With one change each tuple is (from, to); with two it is (from-from, to-from, from-to,
        to-to), the first change varying fastest.
        """
        index = {levels: i for i, levels in enumerate(self.levels)}
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
            return self.combined(logs.mean(axis=0)), "geometric mean"
        totals = picked.sum(axis=0)[:, 0]
        above, below = totals[powers > 0], totals[powers < 0]
        if (below == 0).any():
            value = np.inf if (above > 0).all() else np.nan
        else:
            value = float(above.prod() / below.prod())
        exact = self.quantity.exact
        return Estimate(float(value), rounds=picked.shape[2], exact=exact), "totals"

    def combined(self, logs: NDArray[np.float64]) -> Estimate:
        """The ratio whose logarithm in each round is given."""
        return combine(np.exp(logs).tolist(), exact=self.quantity.exact)


def _cells(points: Sequence[PointResult], factors: tuple[str, ...], what: Quantity) -> Cells:
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
            said = f"two points share {same}: another factor varies too; name it or fix it"
            raise AnalysisError(said)
        by_level[key] = [values[r] for r in sorted(rounds)]
    table = np.asarray(list(by_level.values()), dtype=float)
    return Cells(what, points[0].n, factors, tuple(by_level), table)


def main_effect(table: Cells, change: Change) -> FactorEffect:
    """One main effect. Raises ``AnalysisError`` if the two levels cannot be separated."""
    factor, *sides = change
    pairs = table.pairs(change)
    column = table.factors.index(factor)
    most = max(sum(levels[column] == side for levels in table.levels) for side in sides)
    if len(pairs) >= MATCHED_SHARE * most and pairs:
        ratio, method = table.ratio(pairs, (-1, 1))
    elif (table.values > 0).all():
        ratio, method = _fitted(table, change), "least squares"
    else:
        raise AnalysisError(
            f"{factor}: {' and '.join(map(str, sides))} share no otherwise equal points, and"
            " counts of zero cannot be fitted"
        )
    totals = None
    if pairs:
        before, after = (float(table.values[list(own)].mean()) for own in zip(*pairs, strict=True))
        totals = before, after
    return FactorEffect(table.quantity, table.n, *change, ratio, len(pairs), method, totals)


def _interaction(table: Cells, change: Change, other: Change) -> Interaction | None:
    """One two-way interaction, from squares of points equal in everything else; ``None`` where no
    square is complete."""
    squares = table.pairs(change, other)
    if not squares:
        return None
    ratio, method = table.ratio(squares, (1, -1, -1, 1))
    at_base, at_level, other_before, other_after = (
        table.ratio([(s[i], s[j]) for s in squares], (-1, 1))[0]
        for i, j in ((0, 1), (2, 3), (0, 2), (1, 3))
    )
    both = ((change[0], at_base, at_level), (other[0], other_before, other_after))
    reversing = tuple(
        name
        for name, before, after in both
        if (before.value - 1) * (after.value - 1) < 0
        and before.differs_from(1)
        and after.differs_from(1)
    )
    what, n, behind = table.quantity, table.n, (ratio, len(squares), method)
    return Interaction(what, n, *change, *behind, None, *other, at_base, at_level, reversing)


def _fitted(table: Cells, change: Change) -> Estimate:
    """Main effect by ordinary least squares on logarithms, all factors additive, per round."""
    factor, base, level = change
    columns: dict[tuple[str, Level], NDArray[np.float64]] = {}
    columns["", 1] = np.ones(len(table.levels))
    for i, name in enumerate(table.factors):
        own = [levels[i] for levels in table.levels]
        reference = base if name == factor else own[0]
        for value in dict.fromkeys(own):
            if value != reference:
                columns[name, value] = np.asarray([v == value for v in own], dtype=float)
    target = list(columns).index((factor, level))
    design = np.column_stack(list(columns.values()))
    others = np.delete(design, target, axis=1)
    if np.linalg.matrix_rank(design) == np.linalg.matrix_rank(others):
        said = f"{factor}: {base} and {level} cannot be separated from another factor of the sweep"
        raise AnalysisError(said)
    return table.combined(np.linalg.lstsq(design, np.log(table.values), rcond=None)[0][target])


def effects(data: Dataset, sweep: str, what: Quantity) -> list[FactorEffect]:
    """Main effects of every factor of a sweep, against its first level, at every size.

    Raises ``AnalysisError`` where the sweep varies no factor or nothing can be compared.
    """
    found: list[FactorEffect] = []
    refused: dict[str, None] = {}
    for table in _tables(data, sweep, what, swept_factors(data, sweep)):
        for change in chain(*_steps(data, sweep, table)):
            try:
                found.append(main_effect(table, change))
            except AnalysisError as error:
                refused[str(error)] = None
    if not found:
        why = "; ".join(refused) or f"sweep {sweep!r}: no two levels of a factor apply"
        raise AnalysisError(why)
    return found


def interactions(
    data: Dataset, sweep: str, shown: Iterable[Quantity], factors: Sequence[str] = ()
) -> list[Interaction]:
    """Two-way interactions of every pair of factors, by default of those that the sweep varies, at
    every size and for every quantity that was measured; incomplete ones are left out. Raises
    ``AnalysisError`` where there are none."""
    found: list[Interaction] = []
    for what in shown:
        with suppress(AnalysisError):  # another quantity may have some
            found += [
                made
                for table in _tables(data, sweep, what, factors or swept_factors(data, sweep))
                for pair in combinations(_steps(data, sweep, table), 2)
                for change, other in product(*pair)
                if (made := _interaction(table, change, other))
            ]
    if not found:
        said = f"sweep {sweep!r} has no two factors that were varied together: no interaction"
        raise AnalysisError(said)
    return found


def clear_interactions(found: Sequence[Interaction]) -> list[Interaction]:
    """Those at the largest size that are clear and change an effect by ``DECISIVE`` or more."""
    n = max((i.n for i in found), default=0)
    here = [i for i in found if i.n == n and 0 < i.ratio.value < math.inf]
    large = [i for i in here if i.ratio.distance >= math.log(DECISIVE)]
    return [i for i in large if i.ratio.differs_from(1, len(here))]


def strongest(found: Sequence[Interaction]) -> list[Interaction]:
    """The clear ones, the strongest of each quantity and pair of factors, the strongest first."""
    clear = clear_interactions(found)
    clear.sort(key=lambda i: (bool(i.reversed), i.ratio.distance), reverse=True)
    strongest = {(i.quantity, i.factor, i.other): i for i in reversed(clear)}
    return sorted(strongest.values(), key=clear.index)[:MOST_INTERACTIONS]


def _tables(data: Dataset, sweep: str, what: Quantity, factors: Sequence[str]) -> list[Cells]:
    """The cells of each size that has any. Raises ``AnalysisError`` without one."""
    if not factors:
        said = f"sweep {sweep!r} varies no factor: an effect needs two levels of one; add a matrix"
        raise AnalysisError(said)
    by_size: dict[int, list[PointResult]] = {}
    for point in data.select(sweep, cpu=data.programs_only):
        if point.ok and point.values(what):
            by_size.setdefault(point.n, []).append(point)
    if not by_size:
        raise AnalysisError(f"sweep {sweep!r} has no finished point with a {what.label}")
    return [_cells(by_size[n], tuple(factors), what) for n in sorted(by_size)]


def _steps(data: Dataset, sweep: str, table: Cells) -> list[list[Change]]:
    """Of each factor the changes to each level but the first, in the order of the study."""
    found = []
    for i, factor in enumerate(table.factors):
        present = {levels[i] for levels in table.levels} - {INAPPLICABLE}
        order = [level for level in data.order(sweep, factor) if level in present]
        found.append([(factor, order[0], level) for level in order[1:]])
    return found


# Which factors a sweep varies, and whether they can be separated.


def swept_factors(data: Dataset, sweep: str) -> tuple[str, ...]:
    """Factors that a sweep varies at a fixed size, ``system`` included: of those that the study
    lists, so that one that merely follows another is left out; where it lists none, all."""
    varying = _varying(data.select(sweep, cpu=data.programs_only))
    return tuple([f for f in data.swept(sweep) if f in varying] or varying)


def distinct_factors(data: Dataset, sweep: str, given: tuple[str, ...]) -> tuple[str, ...]:
    """``given``, and as many of the other factors that vary as distinguish the points (on the CPU
    too); those that the study lists come first."""
    points = data.select(sweep)
    varying, chosen = _varying(points), given
    for factor in dict.fromkeys([*data.swept(sweep), *varying]):
        if factor in varying and _kinds(points, *chosen, factor) > _kinds(points, *chosen):
            chosen = (*chosen, factor)
    return chosen


def _varying(points: Sequence[PointResult]) -> list[str]:
    """Factors that have several levels at one size."""
    factors = dict.fromkeys(["system", *(f for p in points for f in p.levels)])
    return [f for f in factors if _kinds(points, f) > _kinds(points)]


def _kinds(points: Sequence[PointResult], *factors: str) -> int:
    """How many combinations of size and levels there are."""
    return len({(p.n, *map(p.level, factors)) for p in points})
