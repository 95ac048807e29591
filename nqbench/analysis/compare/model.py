"""What a comparison consists of: runs or levels, quantities, rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from nqbench.analysis.compare.match import Matched, Missing
from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import Quantity

Verdict = Literal["faster", "slower", "same", "unclear", "equal", "differs"]
TIME_VERDICTS: Final[tuple[Verdict, ...]] = ("faster", "slower", "same", "unclear")
COUNT_VERDICTS: Final[tuple[Verdict, ...]] = ("equal", "differs")


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """One quantity of one pair of points.

    ``ratio``   second over first
    ``p``       corrected for all points; NaN for counts and where there is no interval
    ``reason``  why a verdict is ``unclear``
    """

    pair: Matched
    quantity: Quantity
    first: Estimate
    second: Estimate
    ratio: Estimate
    verdict: Verdict
    p: float = math.nan
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """All points under one quantity, with the geometric mean over them (``None``: undefined)."""

    quantity: Quantity
    rows: tuple[Compared, ...]
    overall: Estimate | None

    @property
    def counts(self) -> dict[str, int]:
        """Number of points per verdict, the verdicts that occur not at all included."""
        names = TIME_VERDICTS if self.quantity.kind == "time" else COUNT_VERDICTS
        return {name: sum(row.verdict == name for row in self.rows) for name in names}


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Two runs, or two levels of one factor in one run.

    ``names``   what the two sides are called, the reference first
    ``sides``   the runs (the same one twice, for two levels)
    ``design``  ``paired`` by round within one run, ``welch`` between runs
    """

    names: tuple[str, str]
    sides: tuple[Dataset, Dataset]
    design: Literal["paired", "welch"]
    margin: float
    blocks: tuple[Block, ...]
    missing: tuple[Missing, ...]
    notes: tuple[str, ...]

    @property
    def rows(self) -> Iterable[Compared]:
        """Every compared quantity of every pair."""
        return (row for block in self.blocks for row in block.rows)

    @property
    def matched(self) -> int:
        """Pairs of points that were compared."""
        return len({id(row.pair) for row in self.rows})

    @property
    def unmatched(self) -> int:
        """Points that were not compared, each counted once."""
        return sum(not entry.again for entry in self.missing)
