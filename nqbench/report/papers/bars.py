"""Bars of papers: stacked in parts that add up, or in a grid of panels; published ones hatched."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import Observed, time_of
from nqbench.analysis.data.quantities import Quantity
from nqbench.analysis.data.select import NotMeasured
from nqbench.analysis.wording import time as time_text
from nqbench.papers.forms import Bars, Height
from nqbench.papers.schema import Paper, PaperFigure
from nqbench.report.figures.axes import axis_label, value_axis
from nqbench.report.figures.style import COLOURS, GREY, HATCH, Drawing, legend, panels, whiskers
from nqbench.report.papers import cells, common
from nqbench.report.table import Source

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PART_COLOURS: Final = (COLOURS[0], COLOURS[1], "#bbbbbb")
"""Of the parts of a bar, from below."""
_TITLE: Final = 27  # characters that fit over a panel of a grid


@dataclass(frozen=True, eq=False)
class Bar:
    """A bar: the heights of its parts from below, its interval, and words above and within it."""

    parts: Sequence[float]
    text: str
    whole: Estimate | None = None
    inside: str = ""

    @property
    def top(self) -> float:
        """The end of the bar, or of its interval."""
        ends = (self.whole.value, self.whole.high) if self.whole else ()
        return max(float(end) for end in (sum(self.parts), *ends) if end is not None)


@dataclass(frozen=True, eq=False)
class BarPanel:
    """Bars by system; ``absent`` stands for a missing one. ``labels`` are the names of the parts of
    ours, ``what`` is on the axis, ``ideal`` a dotted line, ``top`` the end of the axis."""

    title: str
    bars: Mapping[str, Bar | None]
    absent: str
    labels: Sequence[str] = ()
    what: Quantity | None = None
    ideal: float | None = None
    top: float | None = None

    def draw(self, ax: Axes) -> None:
        """Everything of the panel."""
        known = [bar for bar in self.bars.values() if bar]
        tops = [bar.top for bar in known]
        if self.what is not None:
            value_axis(ax, "y", tops, self.what, log=False)
            ax.set_ylabel(axis_label(self.what))
        else:
            ax.set_ylim(0, self.top or max([1.2 * h for h in tops] + [1.3 * (self.ideal or 0.8)]))
        if self.ideal:
            ax.axhline(self.ideal, color="#333333", linestyle=":")
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
            ax.text(0.5, self.ideal, "ideal", ha="center", va="center", fontsize=6.5, bbox=box)
        for x, bar in enumerate(self.bars.values()):
            if bar is None:
                ax.text(x, 0, self.absent, ha="center", va="bottom", color=GREY, fontsize=6.5)
            else:
                self._bar(ax, x, bar, named=bar is known[0])
        names = [common.short(s).removeprefix("gpu_").replace("_", "\n") for s in self.bars]
        ax.set_xticks(range(len(names)), names, fontsize=6.5)
        ax.set_xlim(-0.6, len(names) - 0.4)
        ax.set_title(self.title, fontsize=8 if self.what else 7)

    def _bar(self, ax: Axes, x: int, bar: Bar, *, named: bool) -> None:
        bottom = 0.0
        for i, height in enumerate(bar.parts):
            colour = PART_COLOURS[i % len(PART_COLOURS)]
            look: dict[str, Any] = {"color": colour}
            if not self.labels:
                edge = colour if len(bar.parts) > 1 else GREY
                look = {"facecolor": "white", "edgecolor": edge, "hatch": HATCH}
            elif named:
                look["label"] = self.labels[i]
            ax.bar(x, height, bottom=bottom, width=0.7, **look)
            bottom += height
        if bar.whole:
            ends = whiskers([bar.whole])
            ax.errorbar([x], [bar.whole.value], yerr=ends, color="#222222", capsize=3)
        above: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "bottom"}
        ax.annotate(bar.text, (x, bar.top), (0, 1.5), fontsize=6.5, **above)
        if bar.inside:
            ax.text(x, 0, bar.inside, ha="center", va="bottom", color="white", fontsize=7)


def bars(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """The published bars, then those of each run: stacked in parts, or a panel for each part.

    Raises ``NotMeasured`` where no run has a bar.
    """
    spec = figure.bars
    assert spec is not None
    lacks: dict[str, str] = {}
    form = _stacked if figure.draw == "stacked" else _grid
    shown, most = form(paper, figure, spec, runs, lacks)
    if not shown:
        why = next(iter(lacks.items()), ("no run has what the figure shows", ""))
        raise NotMeasured(*why)
    drawing, axes = panels(len(shown), 1.2, 2.5, most=most)
    for ax, panel in zip(axes, shown, strict=True):
        panel.draw(ax)
    legend(drawing, axes[-1])
    alt = f"Bars of {len(shown[0].bars)} programs, published and from the runs."
    return common.finished(figure, drawing, source, alt=alt, runs=runs)


_Form = tuple[list[BarPanel], int]
"""The panels of a figure, and how many of them stand beside each other at most."""


def _stacked(
    paper: Paper, figure: PaperFigure, spec: Bars, runs: Sequence[Observed], lacks: dict[str, str]
) -> _Form:
    """A panel for each device and size of which the text states a bar, then for each of a run."""
    systems = cells.systems_of(paper, runs, spec.points.systems)
    what = replace(time_of(paper), label=spec.label or time_of(paper).label)
    labels = [part.label for part in spec.parts]
    ours: list[BarPanel] = []
    for run in runs:
        for n in figure.n:
            every: dict[str, Bar | None] = dict.fromkeys(systems)
            for row in cells.rows_of(paper, run, spec.points, [n], lacks=lacks):
                whole = row.value(spec.whole)
                if isinstance(whole, Estimate):
                    parts = [cells.number(row.value(part.value)) or 0.0 for part in spec.parts]
                    inside = " \u00d7 ".join(str(row.level(factor)) for factor in spec.inside)
                    every[row.system] = Bar(parts, time_text(whole.value, 3), whole, inside)
            if any(every.values()):
                title = f"{run.name}, N = {n} (measured)"
                ours.append(BarPanel(title, every, "not\ntimed", labels, what))
    if not ours and systems and not lacks:
        common.refuse(runs[0], systems[0], "no time to draw")
    theirs = _published_panels(paper, figure, spec, systems, what) if ours else ()
    return [*theirs, *ours], 2


def _published_panels(
    paper: Paper, figure: PaperFigure, spec: Bars, systems: Sequence[str], what: Quantity
) -> Iterator[BarPanel]:
    """A panel for each device and size of which the text states a bar."""
    roles = [part.role for part in spec.parts]
    own = [system for system in systems if system.startswith(paper.id)]
    for device in figure.hardware:
        for n in figure.n:
            bars: dict[str, Bar | None] = dict.fromkeys(own)
            for system in own:
                values = {
                    known.role: known.times * (known.value or 0.0)
                    for known in figure.known
                    if known.system == system
                    and known.hardware in ("", device)
                    and known.n in (None, n)
                }
                if any(role in values for role in roles if role):
                    parts = [values.get(role, 0.0) for role in roles]
                    bars[system] = Bar(parts, time_text(sum(parts), 3))
                elif values:
                    bars[system] = Bar([values[""]], f"{values['']:g} s")
            if any(bars.values()):
                title = f"{paper.device(device).name}, N = {n} (published)"
                yield BarPanel(title, bars, "?", what=what)


def _grid(
    paper: Paper, figure: PaperFigure, spec: Bars, runs: Sequence[Observed], lacks: dict[str, str]
) -> _Form:
    """A row of panels for each run that has the first part of all systems: published, then ours."""
    printed = {k.system: Bar([k.value], f"{k.value:g}") for k in figure.known if k.value}
    title = f"{figure.unit}\n{common.printed_on(paper, figure)} (published)"
    theirs = BarPanel(title, printed, "?", ideal=1.0)
    shown: list[BarPanel] = []
    for run in runs:
        for n in dict.fromkeys((*figure.n, *reversed(run.sizes))):
            rows = cells.rows_of(paper, run, spec.points, [n], lacks=lacks)
            if rows and all(row.value(spec.parts[0].value) is not None for row in rows):
                where = textwrap.fill(f"{run.data.device_short}, N = {n}", _TITLE)
                shown += [theirs, *(_part_panel(part, rows, where) for part in spec.parts)]
                break
            for row in rows:
                lacks |= row.lacks
    return shown, 1 + len(spec.parts)


def _part_panel(part: Height, rows: Sequence[cells.PointRow], where: str) -> BarPanel:
    found = {row.system: cells.number(row.value(part.value)) for row in rows}
    bars = {s: None if v is None else Bar([v], f"{v:.4g}") for s, v in found.items()}
    absent = "counted by\nNsight Compute\nonly"
    title = f"{part.label}\n{where}"
    return BarPanel(title, bars, absent, [part.label], ideal=part.ideal, top=part.top)
