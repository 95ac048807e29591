"""Bottleneck analysis: kernels and their variants without arithmetic and without memory, as a table
and as bars, like figure 7 of Brodtkorb et al."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import quantity
from nqbench.analysis.limits.bottleneck import BEYOND, NEAR, Bottleneck, bottlenecks
from nqbench.analysis.wording import time as time_text
from nqbench.errors import AnalysisError
from nqbench.point import PART
from nqbench.report.figures import style
from nqbench.report.table import Column, Table, source_of, tabulate
from nqbench.report.tables.common import interval_note, level_fields, plain, varied_levels
from nqbench.study.report_items import ReportItem
from nqbench.workloads.base import VARIANTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COUNTED: Final = (
    "warp_instructions",
    "thread_instructions",
    "global_requests",
    "global_sectors",
    "shared_requests",
    "local_requests",
)
"""Counters that show, for a simulated variant, whether it kept what it should."""
METHOD: Final = (
    "math_only: loads are replaced by values computed from indices and stores never execute;"
    " memory_only: everything loaded is summed and the sum stored (Brodtkorb et al., section 6.5)"
)
RULE: Final = (
    f"A variant is close to the full kernel if its whole interval is at {NEAR:.0%} of that time or"
    " above. Both close: balanced; one: bound by it; neither: latency bound. A variant slower than"
    f" the full kernel by more than {BEYOND - 1:.0%}, or an interval that contains a limit: unclear"
)
UNMATCHED: Final = (
    "a variant's occupancy differs from the full kernel's (*): more or fewer warps hide latency, so"
    " treat the verdict with caution"
)
BARS: Final = (
    ("Math", style.COLOURS[0], ""),
    ("Memory", style.COLOURS[1], "////"),
    ("Total", style.GREY, ""),
)
"""Names as in the paper; the hatch distinguishes them in grey."""
PER_ROW: Final = 6
"""Groups of bars that fit the width with their names below."""


def bottleneck_table(data: Dataset, item: ReportItem) -> list[Table]:
    """One row per kernel with times; of a simulated run one row per variant, with counters."""
    found = [b for b in bottlenecks(data) if not item.n or b.n in item.n]
    title = item.title or "Bottleneck analysis"
    make = _counted if data.simulated else _timed
    return [make(data, found, title)]


def _timed(data: Dataset, found: list[Bottleneck], title: str) -> Table:
    columns, rows = tabulate(
        found,
        (Column("system"), lambda b: b.system),
        *level_fields(found),
        (Column("N", "number"), lambda b: b.n),
        (Column("total", "time", spread=True), lambda b: b.total),
        (Column("math / total", "ratio", spread=True), lambda b: b.math),
        (Column("memory / total", "ratio", spread=True), lambda b: b.memory),
        (Column("(math + memory) / total", "ratio", spread=True), lambda b: b.both),
        (Column("occupancy total, math, memory"), _occupancies),
        (Column("verdict"), lambda b: b.judged.word),
        (Column("because"), lambda b: b.judged.reason),
    )
    unmatched = () if all(b.matched for b in found) else (UNMATCHED,)
    notes = (METHOD, RULE, interval_note(False, data.rounds), *unmatched)
    return Table("bottleneck", title, columns, rows, source_of(data), notes)


def _occupancies(found: Bottleneck) -> str:
    """Computed occupancy of the full kernel and its variants."""
    texts = []
    for variant in VARIANTS:
        point = found.points.get(variant)
        value = point.detail("occupancy_part") if point else None
        same = point is None or point.detail("occupancy_matched") in (None, 1)
        texts.append("-" if value is None else f"{float(value):.0%}" + ("" if same else "*"))
    return ", ".join(texts)


def _counted(data: Dataset, found: list[Bottleneck], title: str) -> Table:
    columns, rows = tabulate(
        [(b, variant) for b in found for variant in VARIANTS if variant in b.points],
        (Column("system"), lambda row: row[0].system),
        *(
            (column, lambda row, level=level: level(row[0]))
            for column, level in level_fields(found)
        ),
        (Column("N", "number"), lambda row: row[0].n),
        (Column(PART), lambda row: row[1]),
        *(
            (
                Column(quantity(name).label, "number"),
                lambda row, name=name: plain(row[0].points[row[1]].detail(name)),
            )
            for name in COUNTED
        ),
    )
    notes = (
        METHOD,
        "These are counters, not times: only a run on a GPU shows what limits a kernel",
    )
    return Table("bottleneck", title, columns, rows, source_of(data), notes)


def bottleneck_figure(data: Dataset, item: ReportItem) -> list[style.PreparedFigure]:
    """Three bars for each kernel, relative to the time of the full kernel.

    Raises ``AnalysisError`` where nothing was timed.
    """
    found = [b for b in bottlenecks(data) if not item.n or b.n in item.n]
    drawn = [b for b in found if b.math is not None and b.memory is not None]
    if not drawn:
        raise AnalysisError(f"no kernel has all three times: {found[0].judged.reason}")
    return [partial(_bars, data, item, drawn)]


def _bars(data: Dataset, item: ReportItem, drawn: list[Bottleneck]) -> style.Drawing:
    rows = _rows(drawn)
    figure = style.new_figure(1.0 + 2.4 * len(rows))
    axes = list(figure.subplots(len(rows), 1, squeeze=False).flat)
    factors = varied_levels(drawn)
    widest = max(3, *map(len, rows))
    for row, ax in zip(rows, axes, strict=True):
        _panel(ax, row, factors, widest)
    style.legend(figure, axes[0])
    title = item.title or "Bottleneck analysis"
    subtitle = "time of the math-only, memory-only and full variants, relative to the full kernel"
    verdicts = "; ".join(f"{b.system} at N = {b.n}: {b.judged.word}" for b in drawn)
    alt = f"Bars of {len(drawn)} kernels: {verdicts}."
    source = source_of(data)
    return style.finish(figure, "bottleneck", title, source, alt=alt, subtitle=subtitle)


def _rows(drawn: list[Bottleneck]) -> list[list[Bottleneck]]:
    """The kernels of each row: one row if all fit, else rows of equal length, each of one size."""
    if len(drawn) <= PER_ROW:
        return [drawn]
    rows = []
    for n in dict.fromkeys(b.n for b in drawn):
        own = [b for b in drawn if b.n == n]
        length = -(-len(own) // -(-len(own) // PER_ROW))
        rows += [own[i : i + length] for i in range(0, len(own), length)]
    return rows


def _panel(ax: Axes, shown: list[Bottleneck], factors: list[str], widest: int) -> None:
    whole = Estimate(1.0)
    highest = 1.0
    for place, found in enumerate(shown):
        assert found.math is not None
        assert found.memory is not None
        values = (found.math, found.memory, whole)
        for bar, (value, (name, colour, hatch)) in enumerate(zip(values, BARS, strict=True)):
            x, label = place + (bar - 1) * 0.27, name if place == 0 else None
            look: dict[str, Any] = {"color": colour, "hatch": hatch, "linewidth": 0}
            ax.bar(x, value.value, width=0.25, label=label, **look)
            ends = style.whiskers([value])
            ax.errorbar([x], [value.value], yerr=ends, color="#222222", capsize=2)
            highest = max(highest, value.high or value.value)
        star = "" if found.matched else " *"
        above = max(1.0, *(v.high or v.value for v in values)) + 0.03
        ax.text(place, above, found.judged.word + star, ha="center", va="bottom", fontsize=7.5)
    names = []
    for found in shown:
        levels = [f"{name}={found.levels.get(name, '-')}" for name in factors]
        size = f"N = {found.n}, {time_text(found.total.value, 3) if found.total else ''}"
        names.append("\n".join([*found.system.split(".", 1), *levels, size]))
    ax.set_xticks(range(len(shown)), names, fontsize=6.5)
    ax.set_xlim(-0.6, widest - 0.4)
    ax.set_ylim(0, highest * 1.2)
    ax.set_ylabel("time / total")
    ax.axhline(NEAR, color=style.GREY, linewidth=0.8, linestyle=":")
