"""What each line of a kernel's source costs, of one point or of two side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis import wording
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import Quantity, quantity
from nqbench.report.table import Column, Source, Table, slug, tabulate
from nqbench.runs.frame import table_of
from nqbench.system.suggest import many

if TYPE_CHECKING:
    import pandas as pd

LANES: Final = 32
SLOTS_NOTE: Final = "slots: issue slots (a count, not a time)"
NOTE: Final = (
    f"{SLOTS_NOTE}; lanes: active ones of an instruction; divergent: branches whose lanes part;"
    " conflicts: bank conflicts; sectors per request to local and global memory"
)
TOTALS: Final = (
    *("issue_slots", "warp_instructions", "lane_efficiency", "off_chip_sectors", "bank_conflicts"),
    *("divergent_branches", "modelled_ms"),
)
"""Counters of a whole launch that stand above the lines of two points."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the source with its counters (``simulator.tally.SOURCE_COUNTS``).

    ``file`` is empty for instructions that belong to no line.
    """

    file: str
    line: int
    text: str
    counts: Mapping[str, int]

    @property
    def place(self) -> str:
        """``file:line``."""
        return f"{self.file}:{self.line}" if self.file else "(no line)"

    @property
    def efficiency(self) -> float:
        """Active lanes of an instruction as a fraction of all; NaN without an instruction."""
        issued = self.counts["warp_instructions"]
        return self.counts["thread_instructions"] / (LANES * issued) if issued else math.nan

    @property
    def off_chip(self) -> int:
        """Sectors of local and global memory."""
        return self.counts["local_sectors"] + self.counts["global_sectors"]

    @property
    def sectors(self) -> float | None:
        """Sectors per request to local and global memory; ``None`` without requests."""
        requests = self.counts["local_requests"] + self.counts["global_requests"]
        return self.off_chip / requests if requests else None


COUNTED: Final[Mapping[str, Callable[[SourceLine], int]]] = {
    "slots": lambda line: line.counts["issue_slots"],
    "sectors": lambda line: line.off_chip,
    "conflicts": lambda line: line.counts["bank_conflicts"],
}
"""Counters of a line that two points are compared by."""
_slots: Final = COUNTED["slots"]


@dataclass(frozen=True, slots=True)
class Explained:
    """A kernel of a point: its lines.

    ``counters``  of the whole launch, by their names
    """

    label: str
    kernel: str
    lines: Sequence[SourceLine]
    counters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def slots(self) -> int:
        """Issue slots of the whole kernel."""
        return sum(line.counts["issue_slots"] for line in self.lines)

    @property
    def title(self) -> str:
        """What it is called in tables and figures."""
        return f"{self.label}, {self.kernel}" if self.kernel else self.label

    def as_json(self) -> dict[str, Any]:
        """Plain form."""
        about = {"point": self.label, "kernel": self.kernel, "counters": dict(self.counters)}
        return {**about, "lines": [_row(line) for line in self.lines]}

    def table(self) -> pd.DataFrame:
        """One row per line, in the order of the source: ``file``, ``line``, ``text``, its counters,
        ``lane_efficiency`` (0 to 1), ``sectors_per_request``."""
        return table_of([_row(line) for line in self.lines])


def _row(line: SourceLine) -> dict[str, Any]:
    return {
        **{"file": line.file, "line": line.line, "text": line.text},
        **line.counts,
        "lane_efficiency": line.efficiency,
        "sectors_per_request": line.sectors,
    }


@dataclass(frozen=True, slots=True)
class Pair:
    """Two points side by side: what B is against A, and why these two."""

    a: Explained
    b: Explained
    why: str = ""

    @property
    def lines(self) -> list[tuple[SourceLine, SourceLine]]:
        """Every line of A and of B, the largest difference in issue slots first; a line that one of
        them lacks has counts of zero there."""
        sides = [{line.place: line for line in one.lines} for one in (self.a, self.b)]
        found = []
        for place in dict.fromkeys(place for side in sides for place in side):
            known = next(side[place] for side in sides if place in side)
            none = replace(known, counts=dict.fromkeys(known.counts, 0))
            found.append((sides[0].get(place, none), sides[1].get(place, none)))
        return sorted(found, key=lambda pair: -abs(_slots(pair[1]) - _slots(pair[0])))


def whole(found: Sequence[Explained]) -> Explained:
    """All kernels of a point as one."""
    sums: dict[str, SourceLine] = {}
    for line in (line for one in found for line in one.lines):
        seen = sums.get(line.place)
        counts = {k: n + (seen.counts[k] if seen else 0) for k, n in line.counts.items()}
        sums[line.place] = replace(line, counts=counts)
    return replace(found[0], kernel="", lines=list(sums.values()))


def lines_table(found: Explained, source: Source) -> Table:
    """The lines, those with the most issue slots first."""
    columns, rows = tabulate(
        sorted(found.lines, key=_slots, reverse=True),
        (Column("line"), lambda line: line.place),
        (Column("slots", "number"), _slots),
        (Column("share", "number", "%"), lambda line: 100 * _slots(line) / (found.slots or 1)),
        (Column("lanes", "number", "%"), lambda line: 100 * line.efficiency),
        (Column("divergent", "number"), lambda line: line.counts["divergent_branches"] or None),
        (Column("conflicts", "number"), lambda line: line.counts["bank_conflicts"] or None),
        (Column("sectors/request", "number"), lambda line: line.sectors),
        (Column("source"), lambda line: line.text.strip()),
    )
    return Table(slug("lines", found.title), found.title, columns, rows, source, (NOTE,))


def pair_tables(pair: Pair, source: Source) -> tuple[Table, Table]:
    """The counters that both launches have, and the lines that differ."""
    a, b = pair.a.counters, pair.b.counters
    against = Column("B against A", "ratio", plain="b_over_a")
    columns, rows = tabulate(
        [what for what in map(quantity, TOTALS) if math.isfinite(what.of(a) + what.of(b))],
        (Column("quantity"), lambda what: what.plain),
        (Column("A", "number"), lambda what: what.of(a)),
        (Column("B", "number"), lambda what: what.of(b)),
        (against, lambda what: _difference(what.of(a), what.of(b), what)),
    )
    totals = Table("pair-counters", "B against A, in all", columns, rows, source)
    lines = [(one, two) for one, two in pair.lines if one.counts != two.counts]
    columns, rows = tabulate(
        lines,
        (Column("line"), lambda ab: ab[0].place),
        *(
            (Column(name), lambda ab, of=of: _change(*map(of, ab)))
            for name, of in COUNTED.items()
            if any(of(one) != of(two) for one, two in lines)
        ),
        (Column("source"), lambda ab: ab[0].text.strip()),
    )
    same = len(pair.lines) - len(lines)
    notes = (SLOTS_NOTE, *([f"{many(same, 'line')} cost the same in both"] * bool(same)))
    return totals, Table("pair-lines", "A -> B, by line", columns, rows, source, notes)


def _change(a: int, b: int) -> str:
    """``320 -> 80``; one number where both are equal, nothing where that is 0."""
    return f"{a:,} -> {b:,}" if a != b else f"{a:,}" * bool(a)


def _difference(a: float, b: float, what: Quantity) -> wording.Difference:
    """Without the two values, which stand beside it."""
    ratio = b / a if a else (math.inf if b else 1.0)
    return wording.Difference(Estimate(ratio, exact=True), what)
