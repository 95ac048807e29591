"""Bars of a kernel and its variants, as in figure 7 of Brodtkorb et al."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.limits.bottleneck import NEAR, Bottleneck, bottlenecks
from nqbench.analysis.wording import time as time_text
from nqbench.errors import AnalysisError
from nqbench.report.figures.style import (
    COLOURS,
    GREY,
    Drawing,
    PreparedFigure,
    finish,
    legend,
    new_figure,
    whiskers,
)
from nqbench.report.table import source_of
from nqbench.report.tables.common import varied_levels
from nqbench.study.report_items import ReportItem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BARS: Final = (("Math", COLOURS[0], ""), ("Memory", COLOURS[1], "////"), ("Total", GREY, ""))
"""Names as in the paper; the hatch distinguishes them in grey."""
PER_ROW: Final = 6
"""Groups of bars that fit the width with their names below."""


def bottleneck(data: Dataset, item: ReportItem) -> list[PreparedFigure]:
    """Three bars for each kernel, relative to the time of the full kernel.

    Raises ``AnalysisError`` where nothing was timed.
    """
    found = [b for b in bottlenecks(data) if not item.n or b.n in item.n]
    drawn = [b for b in found if b.math is not None and b.memory is not None]
    if not drawn:
        raise AnalysisError(f"no kernel has all three times: {found[0].judged.reason}")
    return [partial(_bars, data, item, drawn)]


def _bars(data: Dataset, item: ReportItem, drawn: list[Bottleneck]) -> Drawing:
    rows = _rows(drawn)
    figure = new_figure(1.0 + 2.4 * len(rows))
    axes = list(figure.subplots(len(rows), 1, squeeze=False).flat)
    factors = varied_levels(drawn)
    widest = max(3, *map(len, rows))
    for row, ax in zip(rows, axes, strict=True):
        _panel(ax, row, factors, widest)
    legend(figure, axes[0])
    title = item.title or "Bottleneck analysis"
    subtitle = "time of the math-only, memory-only and full variants, relative to the full kernel"
    verdicts = "; ".join(f"{b.system} at N = {b.n}: {b.judged.word}" for b in drawn)
    alt = f"Bars of {len(drawn)} kernels: {verdicts}."
    source = source_of(data)
    return finish(figure, "bottleneck", title, source, alt=alt, subtitle=subtitle)


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
            x = place + (bar - 1) * 0.27
            style: dict[str, Any] = {"color": colour, "hatch": hatch, "linewidth": 0}
            ax.bar(x, value.value, width=0.25, label=name if place == 0 else None, **style)
            ax.errorbar([x], [value.value], yerr=whiskers([value]), color="#222222", capsize=2)
            highest = max(highest, value.high or value.value)
        star = "" if found.matched else " *"
        above = max(1.0, *(v.high or v.value for v in values)) + 0.03
        ax.text(place, above, found.judged.word + star, ha="center", va="bottom", fontsize=7.5)
    names = [_name(found, factors) for found in shown]
    ax.set_xticks(range(len(shown)), names, fontsize=6.5)
    ax.set_xlim(-0.6, widest - 0.4)
    ax.set_ylim(0, highest * 1.2)
    ax.set_ylabel("time / total")
    ax.axhline(NEAR, color=GREY, linewidth=0.8, linestyle=":")


def _name(found: Bottleneck, factors: list[str]) -> str:
    assert found.total is not None
    levels = [f"{name}={found.levels.get(name, '-')}" for name in factors]
    size = f"N = {found.n}, {time_text(found.total.value, 3)}"
    return "\n".join([*found.system.split(".", 1), *levels, size])
