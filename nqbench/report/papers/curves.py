"""Curves of papers: heights over a size or a level, published ones hollow, ours filled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis.data.dataset import PointResult
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.quantities import TIME
from nqbench.papers.forms import Curves, Height
from nqbench.papers.schema import Paper, PaperFigure
from nqbench.report.figures import style
from nqbench.report.figures.axes import sizes_axis, value_axis
from nqbench.report.papers import cells, common
from nqbench.report.table import Source

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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

    run: Observed
    system: str
    n: int | None
    y: int
    heights: Mapping[float, Estimate]
    points: Sequence[PointResult]

    @property
    def published(self) -> bool:
        """Whether it is the paper's."""
        return self.run.data.spec == cells.PUBLISHED

    def on(self, runs: Sequence[Observed]) -> str:
        """The device that it is of; the CPU of one of several runs by the GPU beside it."""
        device = common.timed_on(self.run, self.points)
        several = len(runs) > 1 and device != self.run.name
        return f"CPU beside {self.run.name}" if several else device


def curves(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[style.Drawing]:
    """A panel for each run, size or height. Raises ``NotMeasured`` where no run has a height."""
    spec = figure.curves
    assert spec is not None
    ours = [curve for run in runs for curve in _curves_of(paper, run, spec, figure.n)]
    named = cells.systems_of(paper, runs, spec.points.systems)
    systems = list(dict.fromkeys((*named, *(curve.system for curve in ours))))
    if not ours:
        common.refuse(runs[0], next(iter(systems), ""), "nothing to draw")
    run = cells.published_run(paper, figure.data, common.printed_on(paper, figure))
    theirs = list(_curves_of(paper, run, spec, spec.published_n or figure.n))
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
    row_in = 4.4 if spec.across == 1 else 2.7 if len(shown) > 3 else 3.4
    drawing, axes = style.panels(len(shown), 1.3, row_in, most=spec.across)
    for ax, (own, members) in zip(axes, shown.items(), strict=True):
        for curve in members:
            style.interval_curve(ax, curve.heights, form.look(curve), form.label(curve))
        if spec.panels == "n":
            ax.set_title(f"N = {own}", fontsize=8)
        elif spec.panels == "runs":
            mine = [curve for curve in members if curve.run is own]
            device = common.timed_on(mine[0].run, [p for c in mine for p in c.points])
            kind = "published" if mine[0].published else "measured"
            ax.set_title(f"{device} ({kind})", fontsize=8)
        form.finish(ax, members)
    for ax in axes if spec.legend == "below" else axes[:1]:
        columns = 3 if spec.lines != "runs" and spec.legend == "below" else 1
        if ax.get_legend_handles_labels()[1]:
            ax.legend(fontsize=6.5, ncols=columns, **_LEGENDS[spec.legend])
    alt = f"{figure.title[0].upper()}{figure.title[1:]}, published and measured."
    return common.finished(figure, drawing, source, alt=alt, runs=runs)


def _curves_of(paper: Paper, run: Observed, spec: Curves, listed: Sequence[int]) -> Iterator[Curve]:
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
    runs: Sequence[Observed]
    systems: Sequence[str]
    sizes: Sequence[int]

    def label(self, curve: Curve) -> str:
        """The words for a curve."""
        if self.spec.lines == "n":
            return f"N = {curve.n}"
        parts = [common.short(curve.system)] if len(self.systems) > 1 else []
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
            place = self.runs.index(curve.run)
            series = style.series_style(
                place * len(self.systems) + self.systems.index(curve.system)
            )
            # Devices of similar speed overlap: the larger mark shows beneath the smaller.
            return {**series.keywords, "markersize": SMALL + 1.5 * (len(self.runs) - 1 - place)}
        return {**series.keywords, "markersize": SMALL, **hollow}

    def finish(self, ax: Axes, drawn: Sequence[Curve]) -> None:
        """The published marks, the lines, and both axes of a panel."""
        spec, height = self.spec, self.spec.y[drawn[0].y]
        places = sorted({x for curve in drawn for x in curve.heights})
        shown = [
            b for c in drawn for e in c.heights.values() for b in (e.value, e.low, e.high) if b
        ]
        if height.line:
            shown += self._lines(ax, height)
        if height.marks:
            marks = (common.mark(ax, known, places[-1]) for known in self.figure.known)
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
            if spec.x == "n":
                ax.set_xticks(places)

    def _lines(self, ax: Axes, height: Height) -> Iterator[float]:
        """Draw a horizontal line for each run, in its colour; their heights."""
        for i, run in enumerate(self.runs):
            for row in cells.rows_of(self.paper, run, self.spec.points, self.figure.n)[:1]:
                value = row.value(height.line)
                if isinstance(value, Estimate):
                    # The dashes of one device fall into the gaps of the others, which may overlap.
                    dashes = (3 * i, (2, 3 * len(self.runs) - 2))
                    label = f"{run.name}, {height.line_label}"
                    ax.axhline(
                        value.value,
                        color=style.series_style(i).colour,
                        linestyle=dashes,
                        label=label,
                    )
                    yield value.value
