"""What a profile showed: parts of kernels, and how loads coalesce."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from nqbench.analysis.claims.functions import first_counted
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.select import NotMeasured
from nqbench.errors import AnalysisError
from nqbench.papers.schema import Paper
from nqbench.papers.schema_shown import PaperFigure
from nqbench.report.figures.bottleneck import bottleneck
from nqbench.report.figures.style import (
    COLOURS,
    GREY,
    HATCH,
    Drawing,
    finish,
    new_figure,
)
from nqbench.report.papers.phase_bars import short
from nqbench.report.table import Source, slug
from nqbench.study.report_items import ReportItem
from nqbench.vocabulary import of_kernel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EVALUATION: Final = "evaluation"
IDEAL_SECTORS: Final = 4
"""Sectors of 32 bytes that a warp needs for 4 neighbouring bytes per lane."""
_TITLE: Final = 27  # characters that fit over a panel
Read = Callable[[str, str], float]


def parts(
    paper: Paper,  # noqa: ARG001 (all drawings are called alike)
    figure: PaperFigure,
    runs: Sequence[Observed],
    source: Source,  # noqa: ARG001 (each run is its own source)
) -> list[Drawing]:
    """Bars Math, Memory and Total of every kernel that was taken apart; a figure per run.

    Raises ``AnalysisError`` where no run timed the parts of a kernel.
    """
    drawn, reasons = [], dict[str, None]()
    for run in runs:
        item = ReportItem("figure", "bottleneck", title=f"Figure {figure.number}: {figure.title}")
        try:
            (drawing,) = bottleneck(run.data, item)
        except AnalysisError as error:
            reasons[str(error)] = None
            continue
        many = [run.device_id] if len(runs) > 1 else []
        drawn.append(replace(drawing, name=slug("paper", figure.id, *many)))
    if not drawn:
        raise AnalysisError("; ".join(reasons))
    return drawn


def requests(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Transactions per request as published; sectors, hits and efficiency of every run.

    Raises ``NotMeasured`` where no run counted both versions.
    """
    systems = [k.system for k in figure.known]
    found = [(run, n, _reader(run, n)) for run in runs if (n := _size(run, systems, figure.n))]
    if not found:
        _sectors(_reader(runs[0], figure.n[0]), systems[0])
        raise NotMeasured("no run counted the loads of both versions", runs[0].data.command)
    drawing = new_figure(2.2 + 2.2 * len(found))
    axes = drawing.subplots(len(found), 4, squeeze=False)
    for row, (run, n, read) in enumerate(found):
        _published(axes[row][0], paper, figure)
        _bars(axes[row][1], [_sectors(read, s) for s in systems], systems)
        _ideal(axes[row][1], IDEAL_SECTORS)
        where = textwrap.fill(f"{run.data.device_short}, N = {n}", _TITLE)
        axes[row][1].set_title(f"sectors (32 B) per request\n{where}", fontsize=7)
        for ax, name, words in (
            (axes[row][2], "global_load_hit_percent", "% of sectors found in L1"),
            (axes[row][3], "global_load_efficiency_percent", "% used of loaded bytes"),
        ):
            _percent(ax, read, name, systems)
            ax.set_title(words, fontsize=7)
    title = f"Figure {figure.number}: {figure.title}"
    subtitle = "a line of 128 bytes then, a sector of 32 bytes now: compare the two versions only"
    alt = "Bars of transactions per request of both versions, published and counted."
    name = slug("paper", figure.id)
    return [finish(drawing, name, title, source, alt=alt, subtitle=subtitle)]


def _reader(run: Observed, n: int) -> Read:
    def read(system: str, name: str) -> float:
        return first_counted(run, system, n, of_kernel(name, EVALUATION))

    return read


def _size(run: Observed, systems: Sequence[str], wanted: Sequence[int]) -> int:
    """The paper's size, else the largest at which the loads were counted; 0 if there is none."""
    for n in [*wanted, *reversed(run.sizes)]:
        try:
            for system in systems:
                _sectors(_reader(run, n), system)
        except NotMeasured:
            continue
        return n
    return 0


def _sectors(read: Read, system: str) -> float:
    """Per load; of a simulated run, which does not tell them apart, per load and store."""
    try:
        return read(system, "global_load_sectors_per_request")
    except NotMeasured:
        return read(system, "global_sectors") / read(system, "global_requests")


def _published(ax: Axes, paper: Paper, figure: PaperFigure) -> None:
    known = [(k.system, k.value) for k in figure.known if k.value is not None]
    for x, (_, value) in enumerate(known):
        ax.bar(x, value, width=0.6, facecolor="white", edgecolor=GREY, hatch=HATCH)
        ax.text(x, value, f"{value:g}", ha="center", va="bottom", fontsize=7)
    _names(ax, [system for system, _ in known])
    ax.set_ylim(0, 1.2 * max(value for _, value in known))
    _ideal(ax, 1)
    device = paper.device(figure.hardware[0]).name
    ax.set_title(f"transactions (128 B) per request\n{device} (published)", fontsize=7)


def _ideal(ax: Axes, value: float) -> None:
    ax.set_ylim(0, max(ax.get_ylim()[1], 1.3 * value))
    ax.axhline(value, color="#333333", linestyle=":")
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
    ax.text(0.5, value, "ideal", ha="center", va="center", fontsize=6.5, bbox=box)


def _bars(ax: Axes, values: Sequence[float], systems: Sequence[str]) -> None:
    for x, value in enumerate(values):
        ax.bar(x, value, width=0.6, color=COLOURS[x])
        ax.text(x, value, f"{value:.4g}", ha="center", va="bottom", fontsize=7)
    _names(ax, systems)
    ax.set_ylim(0, 1.2 * max(values))


def _percent(ax: Axes, read: Read, name: str, systems: Sequence[str]) -> None:
    try:
        _bars(ax, [read(system, name) for system in systems], systems)
    except NotMeasured:
        ax.text(0.5, 0.5, "counted by\nNsight Compute\nalone", ha="center", va="center",
                color=GREY, transform=ax.transAxes, fontsize=7)  # fmt: skip
        ax.set_xticks([])
    ax.set_ylim(0, 110)


def _names(ax: Axes, systems: Sequence[str]) -> None:
    ax.set_xticks(range(len(systems)), [short(s) for s in systems])
    ax.set_xlim(-0.6, len(systems) - 0.4)
