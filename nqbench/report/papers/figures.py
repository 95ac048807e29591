"""Figures of papers: curves over a size or a level, bars in parts or in a grid of panels.

Published values are hollow or hatched, ours filled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from nqbench import expressions
from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.for_papers import time_of
from nqbench.analysis.data.quantities import TIME, Quantity
from nqbench.analysis.data.select import NotMeasured
from nqbench.analysis.wording import time as time_text
from nqbench.papers.forms import Bars, Curves, Height
from nqbench.papers.formula import CELLS
from nqbench.papers.schema import Known, Paper, PaperFigure
from nqbench.report.figures import style
from nqbench.report.figures.axes import axis_label, sizes_axis, value_axis
from nqbench.report.papers import cells
from nqbench.report.table import joint, slug, source_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


HOLLOW: Final = {"markerfacecolor": "white", "linewidth": 0.8, "alpha": 0.8}
WIDE: Final = 10
"""Largest over smallest size above which their axis is logarithmic."""
SMALL: Final = 4
"""Points of a mark."""
_LEGENDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "inside": {"loc": "best"},
    "right": {"loc": "upper left", "bbox_to_anchor": (1.01, 1)},
    "below": {"loc": "upper left", "bbox_to_anchor": (0, -0.16)},
}


@dataclass(frozen=True, eq=False)
class Curve:
    """Heights by place on the x axis, of a system of a run (published times are one as well).

    ``system``  with the word of the level that distinguishes it, if there is one
    ``n``       its size, if that is not the x axis
    ``y``       which of the heights of the figure it has
    ``points``  behind the heights
    """

    run: Dataset
    system: str
    n: int | None
    y: int
    heights: Mapping[float, Estimate]
    points: Sequence[PointResult]

    @property
    def published(self) -> bool:
        """Whether it is the paper's."""
        return self.run.spec == cells.PUBLISHED

    def on(self, runs: Sequence[Dataset]) -> str:
        """The device that it is of; the CPU of one of several runs by the GPU beside it."""
        device = cells.timed_on(self.run, self.points)
        several = len(runs) > 1 and device != self.run.device_name
        return f"CPU beside {self.run.device_name}" if several else device


def curves(paper: Paper, figure: PaperFigure, runs: Sequence[Dataset]) -> list[style.Drawing]:
    """A panel for each run, size or height. Raises ``NotMeasured`` where no run has a height."""
    spec = figure.curves
    assert spec is not None
    ours = [curve for run in runs for curve in _curves_of(paper, run, spec, figure.n)]
    named = cells.systems_of(paper, runs, spec.points.systems)
    systems = list(dict.fromkeys((*named, *(curve.system for curve in ours))))
    if not ours:
        cells.refuse(runs[0], next(iter(systems), ""), "nothing to draw")
    run = cells.published_run(paper, figure.data, printed_on(paper, figure))
    theirs = list(_curves_of(paper, run, spec, figure.n))
    keys: dict[str, Callable[[Curve], object]] = {
        "runs": lambda curve: curve.run, "n": lambda curve: curve.n, "y": lambda curve: curve.y
    }  # fmt: skip
    key = keys[spec.panels]
    shown: dict[object, list[Curve]] = {}
    for curve in [*theirs, *ours] if spec.published == "panel" else ours:
        shown.setdefault(key(curve), []).append(curve)
    if spec.published == "overlay":
        for own, members in shown.items():
            members[:0] = (c for c in theirs if spec.panels == "runs" or key(c) == own)
    sizes = sorted({c.n for members in shown.values() for c in members if c.n is not None})
    form = _Panels(paper, figure, spec, runs, systems, sizes)
    every = [curve for members in shown.values() for curve in members]
    row_in = 4.4 if spec.across == 1 else 2.7 if len(shown) > 3 else 3.4
    drawing, axes = style.panels(len(shown), 1.3, row_in, most=spec.across)
    for ax, (own, members) in zip(axes, shown.items(), strict=True):
        if spec.panels == "runs" and ax is not axes[0]:
            ax.sharex(axes[0])
        for curve in members:
            style.interval_curve(ax, curve.heights, form.look(curve), form.label(curve))
        if spec.panels == "n":
            ax.set_title(f"N = {own}", fontsize=8)
        elif spec.panels == "runs":
            mine = [curve for curve in members if curve.run is own]
            device = cells.timed_on(mine[0].run, [p for c in mine for p in c.points])
            kind = "published" if mine[0].published else "measured"
            ax.set_title(f"{device} ({kind})", fontsize=8)
        form.finish(ax, members, every if spec.panels == "runs" else members)
    for ax in axes if spec.legend == "below" else axes[:1]:
        columns = 3 if spec.lines != "runs" and spec.legend == "below" else 1
        if ax.get_legend_handles_labels()[1]:
            ax.legend(fontsize=6.5, ncols=columns, **_LEGENDS[spec.legend])
    alt = f"{figure.title[0].upper()}{figure.title[1:]}, published and measured."
    return finished(figure, drawing, alt, [curve.run for curve in ours])


def _curves_of(paper: Paper, run: Dataset, spec: Curves, listed: Sequence[int]) -> Iterator[Curve]:
    groups: dict[tuple[str, int | None], list[cells.PointRow]] = {}
    for row in cells.rows_of(paper, run, spec.points, listed):
        words = (level for level in row.own.values() if isinstance(level, str) and level != "-")
        key = (", ".join((row.system, *words)), None if spec.x == "n" else row.n)
        groups.setdefault(key, []).append(row)
    for (system, n), members in groups.items():
        points = [row.point for row in members if row.point]
        for y, height in enumerate(spec.y):
            heights = {}
            for row in members:
                found = row.value(height.value)
                if isinstance(found, Estimate | int | float):
                    x = row.n if spec.x == "n" else row.level(spec.x)
                    heights[x] = found if isinstance(found, Estimate) else Estimate(float(found))
            if heights:
                yield Curve(run, system, n, y, heights, points)


@dataclass(frozen=True, eq=False)
class _Panels:
    """What the panels of a figure share: its form, the runs, and what is shown of them."""

    paper: Paper
    figure: PaperFigure
    spec: Curves
    runs: Sequence[Dataset]
    systems: Sequence[str]
    sizes: Sequence[int]

    def label(self, curve: Curve) -> str:
        """The words for a curve."""
        if self.spec.lines == "n":
            return f"N = {curve.n}"
        parts = [cells.short(curve.system)] if len(self.systems) > 1 else []
        if self.spec.lines == "runs" and not curve.published:
            parts.append(curve.on(self.runs))
        name, kind = ", ".join(parts), "published" if curve.published else "measured"
        if self.spec.published == "panel":
            return name
        return f"{name} ({kind})" if name else kind

    def look(self, curve: Curve) -> dict[str, Any]:
        """The look of a curve; systems keep theirs in every figure of a paper."""
        hollow = HOLLOW if curve.published else {}
        if self.spec.lines == "n":
            series = style.ordered_style(self.sizes.index(curve.n or 0), len(self.sizes))
        elif self.spec.lines == "systems":
            series = style.series_style(self.systems.index(curve.system))
        elif curve.published:
            return {"color": style.GREY, "marker": "o", "markersize": 3, **hollow}
        else:
            place, system = self.runs.index(curve.run), self.systems.index(curve.system)
            series = style.series_style(place * len(self.systems) + system)
            # Devices of similar speed overlap: the larger mark shows beneath the smaller.
            return {**series.keywords, "markersize": SMALL + 3 * (len(self.runs) - 1 - place)}
        return {**series.keywords, "markersize": SMALL, **hollow}

    def finish(self, ax: Axes, drawn: Sequence[Curve], alike: Sequence[Curve]) -> None:
        """The published marks, the lines, and both axes of a panel: long enough for the curves of
        all panels that are ``alike``."""
        from matplotlib.ticker import MaxNLocator

        spec, height = self.spec, self.spec.y[drawn[0].y]
        places = sorted({x for curve in alike for x in curve.heights})
        found = (e for curve in alike for e in curve.heights.values())
        shown = [b for e in found for b in (e.value, e.low, e.high) if b]
        marks = (mark(ax, k, places[-1]) for k in self.figure.known if k.role == height.role)
        shown += [value for value in marks if value is not None]
        if height.kind == "ratio":
            shown.append(1.0)
            ax.axhline(1.0, color="#333333", linewidth=0.9)
        if height.scale == "log":
            value_axis(ax, "y", shown, TIME, log=True)
        elif height.scale == "zero":
            ax.set_ylim(0, height.top or 1.05 * max(shown))
        else:
            pad = 0.15 * (max(shown) - min(shown))
            ax.set_ylim(min(shown) - pad, max(shown) + pad)
        if height.kind != "time":
            ax.yaxis.set_major_formatter(lambda v, _: f"{v:g}")
        ax.set_ylabel(height.label)
        if spec.powers:
            sizes_axis(ax, spec.x_label, 2)
        elif spec.x == "n" and places[-1] > WIDE * places[0]:
            sizes_axis(ax, spec.x_label)
        else:
            ax.set_xlabel(spec.x_label)
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))


PART_COLOURS: Final = (style.COLOURS[0], style.COLOURS[1], "#bbbbbb")
"""Of the parts of a bar, from below."""
MANY: Final = 8
"""Bars of a panel beyond which their numbers are smaller."""


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
    ours, ``what`` is on the axis, ``ideal`` a dotted line, ``top`` the end of the axis; ``faint``
    bars are a model's, ``run`` is where ours come from."""

    title: str
    bars: Mapping[str, Bar | None]
    absent: str
    labels: Sequence[str] = ()
    what: Quantity | None = None
    ideal: float | None = None
    top: float | None = None
    faint: bool = False
    run: Dataset | None = None

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
                ax.text(x, 0, self.absent, ha="center", va="bottom", color=style.GREY, fontsize=6.5)
            else:
                self._bar(ax, x, bar, named=bar is known[0])
        names = [cells.short(s).removeprefix("gpu_").replace("_", "\n") for s in self.bars]
        ax.set_xticks(range(len(names)), names, fontsize=6.5)
        ax.set_xlim(-0.6, len(names) - 0.4)
        ax.set_title(self.title, fontsize=8 if self.what else 7)

    def _bar(self, ax: Axes, x: int, bar: Bar, *, named: bool) -> None:
        bottom = 0.0
        for i, height in enumerate(bar.parts):
            colour = PART_COLOURS[i % len(PART_COLOURS)]
            look: dict[str, Any] = {"color": colour, "alpha": 0.5 if self.faint else 1}
            if not self.labels:
                edge = colour if len(bar.parts) > 1 else style.GREY
                look = {"facecolor": "white", "edgecolor": edge, "hatch": style.HATCH}
            elif named:
                look["label"] = self.labels[i]
            ax.bar(x, height, bottom=bottom, width=0.7, **look)
            bottom += height
        if bar.whole:
            ends = style.whiskers([bar.whole])
            ax.errorbar([x], [bar.whole.value], yerr=ends, color="#222222", capsize=3)
        above: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "bottom"}
        size = 5.8 if len(self.bars) > MANY else 6.5
        ax.annotate(bar.text, (x, bar.top), (0, 1.5), fontsize=size, **above)
        if bar.inside:
            colour = "black" if self.faint else "white"
            ax.text(x, 0, bar.inside, ha="center", va="bottom", color=colour, fontsize=7)


def bars(paper: Paper, figure: PaperFigure, runs: Sequence[Dataset]) -> list[style.Drawing]:
    """The published bars, then those of each run: stacked in parts, or a panel for each part.

    Raises ``NotMeasured`` where no run has a bar.
    """
    spec = figure.bars
    assert spec is not None
    lacks: dict[str, str] = {}
    form = _stacked if figure.draw == "stacked" else _grid
    rows = form(paper, figure, spec, runs, lacks)
    if not rows:
        raise NotMeasured(*next(iter(lacks.items()), ("no run has what the figure shows", "")))
    most = max(map(len, rows))
    drawing, axes = style.panels(len(rows) * most, 1.2, 2.5, most=most)
    shown = [panel for row in rows for panel in (*row, *[None] * (most - len(row)))]
    for ax, panel in zip(axes, shown, strict=True):
        if panel:
            panel.draw(ax)
        else:
            ax.set_visible(False)
    style.legend(drawing, next(ax for ax in reversed(axes) if ax.get_visible()))
    alt = "Bars of the programs, published and from the runs."
    drawn = [panel.run for row in rows for panel in row if panel and panel.run]
    return finished(figure, drawing, alt, drawn)


_Form = list[list[BarPanel | None]]
"""The panels of a figure, row by row."""


def _stacked(
    paper: Paper, figure: PaperFigure, spec: Bars, runs: Sequence[Dataset], lacks: dict[str, str]
) -> _Form:
    """A panel for each device and size: a row of those of which the text states a bar, then one for
    each size of models of these devices and of measured runs."""
    systems = cells.systems_of(paper, runs, spec.points.systems)
    what = replace(time_of(paper), label=spec.label or time_of(paper).label)
    labels = [part.label for part in spec.parts]
    ours: dict[tuple[bool, int], list[BarPanel | None]] = {}
    for run in sorted(runs, key=lambda run: not run.modelled):
        if run.modelled and run.hardware(paper) not in figure.hardware:
            continue  # it is another figure's
        for n in run.sizes if run.modelled else figure.n:
            every: dict[str, Bar | None] = dict.fromkeys(systems)
            for row in cells.rows_of(paper, run, spec.points, [n], lacks=lacks):
                whole = row.value(spec.whole)
                if isinstance(whole, Estimate):
                    parts = [cells.number(row.value(part.value)) or 0.0 for part in spec.parts]
                    inside = " \u00d7 ".join(str(row.level(factor)) for factor in spec.inside)
                    every[row.system] = Bar(parts, time_text(whole.value, 3), whole, inside)
            if any(every.values()):
                title = f"{run.device_name}, N = {n} (measured)"
                panel = BarPanel(title, every, "not\ntimed", labels, what, run=run)
                if run.modelled:
                    title = f"{paper.device(run.hardware(paper)).name}, N = {n} (modelled)"
                    what_modelled = replace(what, label="modelled kernel time")
                    panel = replace(panel, title=title, what=what_modelled, faint=True)
                ours.setdefault((run.modelled, n), []).append(panel)
    if not ours and systems and not lacks:
        cells.refuse(runs[0], systems[0], "no time to draw")
    theirs = list(_published_panels(paper, figure, spec, systems, what)) if ours else []
    return [row for row in (theirs, *ours.values()) if row]


def _published_panels(
    paper: Paper, figure: PaperFigure, spec: Bars, systems: Sequence[str], what: Quantity
) -> Iterator[BarPanel | None]:
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
    paper: Paper, figure: PaperFigure, spec: Bars, runs: Sequence[Dataset], lacks: dict[str, str]
) -> _Form:
    """A row of panels for each run that has the first part of all systems; at the head of the first
    row the published one."""
    printed = {k.system: Bar([k.value], f"{k.value:g}") for k in figure.known if k.value}
    title = f"{figure.unit}\n{printed_on(paper, figure)} (published)"
    theirs = BarPanel(title, printed, "?", ideal=1.0)
    shown: _Form = []
    for run in runs:
        for n in dict.fromkeys((*figure.n, *reversed(run.sizes))):
            rows = cells.rows_of(paper, run, spec.points, [n], lacks=lacks)
            if rows and all(row.value(spec.parts[0].value) is not None for row in rows):
                parts = [_part_panel(part, rows) for part in spec.parts]
                shown.append([None if shown else theirs, *parts])
                break
            for row in rows:
                lacks |= row.lacks
    return shown


def _part_panel(part: Height, rows: Sequence[cells.PointRow]) -> BarPanel:
    run = rows[0].run
    found = {row.system: cells.number(row.value(part.value)) for row in rows}
    bars = {s: None if v is None else Bar([v], f"{v:.4g}") for s, v in found.items()}
    absent = "counted by\nNsight Compute\nonly"
    title = f"{part.label}\n{run.chip}, N = {rows[0].n}"
    return BarPanel(title, bars, absent, [part.label], ideal=part.ideal, top=part.top, run=run)


def printed_on(paper: Paper, figure: PaperFigure) -> str:
    """Whose numbers a figure's published ones are: its data file's, or its device's."""
    if figure.data in {part.id for part in paper.data}:
        return paper.series(figure.data).origin
    return next((paper.device(name).name for name in figure.hardware), "the paper")


def finished(
    figure: PaperFigure, drawing: Figure, alt: str, runs: Sequence[Dataset]
) -> list[style.Drawing]:
    """The figure with its title, the paper's number and what explains it, from the runs drawn."""
    source = joint([source_of(run) for run in runs])
    cpus = ", ".join(dict.fromkeys(cells.cpu_name(run) for run in runs))
    subtitle = figure.subtitle.replace("{cpu}", cpus)
    title = f"Figure {figure.number}: {figure.title}"
    name = slug("paper", figure.id)
    return [style.finish(drawing, name, title, source, alt=alt, subtitle=subtitle)]


def mark(ax: Axes, known: Known, end: float = 0.0) -> float | None:
    """Draw what the text states of a figure; its height, if it has one."""
    label = f"published: {known.label}"
    if not known.label:
        return None
    if known.pool_size:
        look: dict[str, Any] = {"facecolor": style.GREY, "alpha": 0.15}
        if known.until is None:
            look = {"facecolor": "none", "hatch": style.HATCH, "alpha": 0.4}
            look["edgecolor"] = style.GREY
        ax.axvspan(known.pool_size, known.until or 2 * end, linewidth=0, label=label, **look)
        return None
    if known.at:
        height = float(expressions.evaluate(expressions.parse(known.at, CELLS), CELLS, {}, {}))
        ax.axhline(height, color=style.GREY, linestyle="--", label=label)
        return height
    star: dict[str, Any] = {"marker": "*", "markersize": 11, "markerfacecolor": "white"}
    star |= {"color": style.GREY, "linestyle": "", "label": label}
    ax.plot([known.n or 0], [known.value or 0.0], **star)
    return known.value
