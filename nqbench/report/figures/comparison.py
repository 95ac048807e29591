"""Ratios of a comparison as dots with whiskers, the verdict in colour and marker."""

from __future__ import annotations

import math
from textwrap import shorten
from typing import Final

from nqbench.analysis.compare.match import labels
from nqbench.analysis.compare.runs import Comparison, Section
from nqbench.analysis.data.estimate import CONFIDENCE
from nqbench.analysis.data.quantities import CPU_TIME, Quantity
from nqbench.errors import AnalysisError
from nqbench.report.figures.axes import ratio_axis
from nqbench.report.figures.style import (
    GREY,
    Drawing,
    finish,
    legend,
    new_figure,
    whiskers,
)
from nqbench.report.table import Source, slug

ON_CPU: Final = "CPU time: whole programs on the CPU, independent of the GPU"
MAX_ROWS: Final = 60
"""More rows than this are no longer legible on one page; the largest changes are shown."""
_ROW_IN: Final = 0.17
MAX_NAME: Final = 60
"""Characters of a run's name in the subtitle: two of them fill a line."""
LOOKS: Final = {
    "faster": ("#0072B2", "<"),
    "slower": ("#D55E00", ">"),
    "same": ("#009E73", "o"),
    "unclear": (GREY, "D"),
    "equal": ("#009E73", "o"),
    "differs": ("#CC79A7", "s"),
}
"""Colour and marker by verdict: either tells it."""


def ratios(comparison: Comparison, section: Section, source: Source, which: str = "") -> Drawing:
    """One dot per point, the largest change on top. Raises ``AnalysisError`` without a ratio."""
    usable = [row for row in section.rows if 0 < row.ratio.value < math.inf]
    if not usable:
        raise AnalysisError(f"no point has a ratio of {section.quantity.label} that can be drawn")
    ranked = sorted(usable, key=lambda row: -abs(math.log(row.ratio.value)))[:MAX_ROWS]
    names = labels([row.pair.first for row in section.rows])
    figure = new_figure(1.3 + _ROW_IN * max(len(ranked), 4))
    ax = figure.subplots()
    shown = [b for row in ranked for b in (row.ratio.value, row.ratio.low, row.ratio.high) if b]
    ratio_axis(ax, shown)
    if section.quantity.kind == "time":
        low, high = 1 / (1 + comparison.margin), 1 + comparison.margin
        ax.axvspan(low, high, color="#009E73", alpha=0.12, linewidth=0)
    for verdict, (colour, marker) in LOOKS.items():
        rows = [(y, row) for y, row in enumerate(ranked) if row.verdict == verdict]
        if rows:
            estimates = [row.ratio for _, row in rows]
            ax.errorbar(
                [e.value for e in estimates],
                [y for y, _ in rows],
                xerr=whiskers(estimates),
                fmt=marker,
                color=colour,
                markersize=4.5,
                linewidth=1,
                label=verdict,
            )
    ax.set_yticks(range(len(ranked)), [names[row.pair.first] for row in ranked], fontsize=6.5)
    ax.set_ylim(len(ranked) - 0.5, -0.5)
    ax.set_xlabel(f"{section.quantity.label}, compared / reference")
    legend(figure, ax)
    cut = f" (of {len(usable)}, the largest changes)" if len(ranked) < len(usable) else ""
    subtitle = f"{len(ranked)} points{cut}"
    if section.quantity.kind == "time":
        subtitle += f"; whiskers: {CONFIDENCE:.0%} interval; band: margin {comparison.margin:.1%}"
    sides = " against ".join(
        shorten(n, MAX_NAME, placeholder="...") for n in comparison.names[::-1]
    )
    if section.quantity == CPU_TIME:
        subtitle += f"\n{ON_CPU}"
    subtitle += f"\n{sides}"
    name = slug("ratios", which, file_part(section.quantity))
    title = f"Ratio of {section.quantity.label} per point"
    alt = f"Dot plot of the ratios of {len(ranked)} points."
    return finish(figure, name, title, source, alt=alt, subtitle=subtitle)


def file_part(what: Quantity) -> str:
    """A quantity in names of files; the time of CPU programs has files of its own."""
    return CPU_TIME.label if what == CPU_TIME else what.name
