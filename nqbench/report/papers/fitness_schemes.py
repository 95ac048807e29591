"""The fitness schemes: times and speed-ups of many schemes, numbers of threads, thresholds.

Of the tables of published times only the sizes that the run has are listed; the whole published
series is the CSV file itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis.data.dataset import PointResult, point_ratio
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.quantities import TIME
from nqbench.analysis.data.select import NotMeasured, launch_text, timed_points
from nqbench.papers.schema import DataFile, Paper, PaperFigure, PaperTable
from nqbench.report.figures.axes import powers_axis, sizes_axis, value_axis
from nqbench.report.figures.style import (
    GREY,
    Drawing,
    SeriesStyle,
    interval_curve,
    new_figure,
    ordered_style,
    panels,
    series_style,
)
from nqbench.report.papers.common import (
    COMPARE_RATIOS,
    cpu_name,
    finished,
    found_points,
    found_runs,
    host,
    measured,
    plain_ticks,
    published,
    quotient,
    ratio_line,
    refuse,
    reproduced,
    short,
    sizes_of,
    speedup,
    timed_on,
    timed_point,
)
from nqbench.report.table import Cell, Column, Source, Table
from nqbench.report.tables.common import interval_note

if TYPE_CHECKING:
    from matplotlib.axes import Axes


BASELINE: Final = "cpu_serial"
"""What every speed-up of the paper refers to."""
COARSE: Final = "gpu_coarse"
OWN: Final = ("fitness.cpu_histogram", "fitness.histogram")
"""Systems that the paper does not have, drawn with its own."""
OWN_COLOURS: Final = ("#882255", "#999933")
"""Theirs: the usual colours are those of the paper's seven."""
THIN: Final[Mapping[str, Any]] = {"linewidth": 0.8, "alpha": 0.75}
"""Published points are many: their lines are thin."""
SMALL: Final = 4
"""Points of our marks."""
MAX_CURVES: Final = 5
"""Published sizes of a panel, the largest ones: more lines cannot be distinguished."""
_MILLI: Final = 1e3


def times(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Seconds of every scheme against N: the published panel, then one per run."""
    systems, theirs, ours = _gather(paper, figure, runs)
    drawing, axes = panels(len(ours) + 1, 1.4, 3.6, most=2)
    for system in systems:
        if theirs.get(system):
            look = {**style_of(systems, system).keywords, **THIN}
            published(axes[0], theirs[system], short(system), **look)
    axes[0].set_title(f"published, {paper.series(figure.data).origin}", fontsize=8)
    _finish_panel(axes[0], [v for f in theirs.values() for v in f.values() if v > 0])
    for ax, (run, points) in zip(axes[1:], ours, strict=True):
        shown: list[float] = []
        for system in systems:
            estimates = {n: p.estimate(TIME) for n, p in points.get(system, {}).items()}
            values = {n: e for n, e in estimates.items() if e is not None}
            look = style_of(systems, system).keywords | {"markersize": SMALL}
            interval_curve(ax, values, look, short(system))
            shown += [e.value for e in values.values()]
        _finish_panel(ax, shown)
        everyone = (p for found in points.values() for p in found.values())
        ax.set_title(f"{timed_on(run, everyone)} (measured)", fontsize=8)
        # Below, since some scheme is slow and some fast at every size.
        ax.legend(loc="upper left", bbox_to_anchor=(0, -0.14), fontsize=6.5, ncols=3)
    alt = f"Times of {len(systems)} schemes against N, published and measured."
    subtitle = "hollow: published. One call with allocation and transfers; compare order and shape"
    return finished(figure, drawing, source, alt=alt, subtitle=subtitle)


def speedups(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Speed-up of every scheme over the single thread: a panel per run, the published curves in
    each."""
    systems, theirs, ours = _gather(paper, figure, runs)
    base = paper.system(BASELINE)
    drawing, axes = panels(len(ours), 1.0, 4.4, most=1, sharex=True)
    shown: list[float] = []
    bases = theirs.get(base, {})
    for ax, (run, points) in zip(axes, ours, strict=True):
        for system in systems:
            seconds = theirs.get(system, {})
            ratios = {n: bases[n] / s for n, s in seconds.items() if s > 0 and n in bases}
            look = style_of(systems, system).keywords
            if system != base and ratios:
                published(ax, ratios, f"{short(system)} (published)", **{**look, **THIN})
                shown += ratios.values()
            own = points.get(system, {}) if system != base else {}
            found = {n: r for n, p in own.items() if (r := speedup(points[base].get(n), p, TIME))}
            interval_curve(ax, found, look | {"markersize": SMALL}, f"{short(system)} (here)")
            shown += [r.value for r in found.values()]
        ax.set_title(f"{run.name}, against one core of {cpu_name(run)}", fontsize=8)
    if not shown:
        refuse(runs[0], base, "no time of two schemes at one size")
    for ax in axes:
        value_axis(ax, "y", shown, TIME, log=True)
        plain_ticks(ax)
        ratio_line(ax)
        sizes_axis(ax)
        ax.set_ylabel("speed-up over one thread (higher is better)")
    axes[0].legend(loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=6.5)
    alt = "Speed-up of the schemes over one thread against N, published and measured."
    subtitle = "hollow: published, against one core of its Xeon E7-4820 v4"
    return finished(figure, drawing, source, alt=alt, subtitle=subtitle)


def boards(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Time on random boards over that on valid ones, against N."""
    system = paper.system(COARSE)
    drawing = new_figure(3.8)
    ax = drawing.subplots()
    shown = [1.0]
    for i, run in enumerate(runs):
        found = {}
        for n in run.sizes:
            rand = timed_point(run.data, system, n, {"board": "random"})
            valid = timed_point(run.data, system, n, {"board": "valid"})
            if rand and valid:
                found[n] = point_ratio(rand, valid, TIME)
        measured(ax, found, f"{run.name} (measured)", i, markersize=SMALL)
        shown += [b for r in found.values() for b in (r.value, r.low, r.high) if b]
    if len(shown) == 1:
        refuse(runs[0], system, "no size with both boards")
    loss = next((k.value for k in figure.known if k.value), None)
    if loss is not None:
        label = f"published: {loss:g}% slower on average"
        ax.axhline(1 + loss / 100, color=GREY, linestyle="--", label=label)
        shown.append(1 + loss / 100)
    ratio_line(ax)
    pad = 0.15 * (max(shown) - min(shown))
    ax.set_ylim(min(shown) - pad, max(shown) + pad)
    sizes_axis(ax)
    ax.set_ylabel("time on a random / on a valid board")
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=7)
    alt = "Time on random boards over time on valid boards against N."
    subtitle = "the axis does not start at 0; the paper's curve is lost, so its mean is drawn"
    return finished(figure, drawing, source, alt=alt, subtitle=subtitle)


def thread_curves(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Speed-up over the single thread against the number of threads: a panel per N."""
    data, bases = paper.series(figure.data), _base_times(paper)
    system, base = paper.system(data.system), paper.system(BASELINE)
    sizes = [n for n in figure.n if any(by_level(run, system, n, "threads") for run in runs)]
    if not sizes:
        refuse(runs[0], system, "no drawn size with several numbers of threads")
    drawing, axes = panels(len(sizes), 1.4, 2.7, most=2)
    for ax, n in zip(axes, sizes, strict=True):
        theirs = thread_times(data, n)
        if theirs and n in bases:
            published(ax, {t: bases[n] / s for t, s in theirs.items()}, "published")
        for i, run in enumerate(runs):
            serial = found_points(run.data, base, [n])
            points = by_level(run, system, n, "threads")
            if n in serial:
                found = {t: point_ratio(serial[n], p, TIME) for t, p in points.items()}
                measured(ax, found, f"{host(run, runs)} (measured)", i, markersize=SMALL)
        ratio_line(ax)
        ax.set_ylim(bottom=0)
        ax.set_title(f"N = {n}", fontsize=8)
        ax.set_xlabel("threads")
        ax.set_ylabel("speed-up over one thread")
    axes[0].legend(loc="upper right", fontsize=6.5)
    alt = f"Speed-up against the number of threads at {len(sizes)} sizes."
    subtitle = f"hollow: published, 20 cores with 40 threads; {figure.note}"
    return finished(figure, drawing, source, alt=alt, subtitle=subtitle)


def best_threads(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Best speed-up and the number of threads that gives it, against N."""
    data, bases = paper.series(figure.data), _base_times(paper)
    system = paper.system(data.system)
    drawing = new_figure(3.8)
    left, right = drawing.subplots(1, 2)
    theirs = {n: thread_times(data, n) for n in sorted({row.n for row in data.rows})}
    best = {n: min(found, key=lambda t: found[t]) for n, found in theirs.items()}
    known = {n: bases[n] / theirs[n][t] for n, t in best.items() if n in bases}
    published(left, known, "published")
    published(right, best, "published")
    drawn = 0
    for i, run in enumerate(runs):
        serial = found_points(run.data, paper.system(BASELINE))
        levels = {n: by_level(run, system, n, "threads") for n in sizes_of(run.data, system)}
        own = {n: min(f, key=lambda t: f[t].value(TIME)) for n, f in levels.items() if len(f) > 1}
        ratios = {n: point_ratio(serial[n], levels[n][t], TIME) for n, t in own.items()
                  if n in serial}  # fmt: skip
        name = f"{host(run, runs)} (measured)"
        measured(left, ratios, name, i, markersize=SMALL)
        right.plot(list(own), list(own.values()), label=name, **series_style(i).keywords)
        drawn += len(own)
    if not drawn:
        refuse(runs[0], system, "no size with several numbers of threads")
    for ax, label in ((left, "best speed-up"), (right, "best number of threads")):
        sizes_axis(ax)
        ax.set_ylabel(label)
        ax.set_ylim(bottom=0)
    left.legend(fontsize=6.5)
    alt = "Best speed-up and best number of threads against N."
    subtitle = "hollow: published (20 cores, 40 threads); fewer thread counts are timed here"
    return finished(figure, drawing, source, alt=alt, subtitle=subtitle)


def thresholds(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Time over that of the coarse scheme against the threshold, a line per N."""
    data, coarse = paper.series(figure.data), paper.system(COARSE)
    system = paper.system(data.system)
    ours = {run.name: _over_coarse(run, system, coarse) for run in runs}
    ours = {name: found for name, found in ours.items() if found}
    if not ours:
        refuse(runs[0], system, "no size with several thresholds")
    theirs = _published_over_coarse(data, _unnamed(paper).times(coarse))
    drawing, axes = panels(len(ours) + 1, 1.2, 3.4, most=2)
    titles = [f"{paper.device(figure.hardware[0]).name} (published, {data.origin})"]
    titles += [f"{name} (measured)" for name in ours]
    sizes = sorted({n for found in (theirs, *ours.values()) for n in found})
    for ax, found, title in zip(axes, (theirs, *ours.values()), titles, strict=True):
        values = [e.value for f in found.values() for e in f.values()]
        hollow = {"markerfacecolor": "white"} if found is theirs else {}
        for n, curve in sorted(found.items()):
            look = ordered_style(sizes.index(n), len(sizes)).keywords
            look |= {"markersize": SMALL, **hollow}
            interval_curve(ax, dict(sorted(curve.items())), look, f"N = {n}")
        value_axis(ax, "y", [*values, 1.0], TIME, log=True)
        plain_ticks(ax)
        ratio_line(ax)
        powers_axis(ax, "threshold (comparisons of a sub-thread)")
        ax.set_ylabel("time / time of the coarse scheme")
        ax.set_title(title, fontsize=8)
        # Below: the lines fall through every height.
        ax.legend(loc="upper left", bbox_to_anchor=(0, -0.16), fontsize=6.5, ncols=3)
    alt = "Time of dynamic parallelism over the coarse scheme against the threshold."
    subtitle = "from N - 1 on, no sub-kernel is launched; published times are whole milliseconds"
    return finished(figure, drawing, source, alt=alt, subtitle=subtitle)


def _published_over_coarse(
    data: DataFile, coarse: Mapping[int, float]
) -> dict[int, dict[int, Estimate]]:
    """Published ratios by size and threshold, of the sizes where the threshold matters."""
    found: dict[int, dict[int, Estimate]] = {}
    for row in data.rows:
        if row.n in coarse and row.seconds > 0 and coarse[row.n] > 0:
            own = found.setdefault(row.n, {})
            own[row.levels["threshold"]] = Estimate(row.seconds / coarse[row.n])
    kept = {n: f for n, f in found.items() if len(f) > 1 and max(e.value for e in f.values()) > 1}
    return dict(sorted(kept.items())[-MAX_CURVES:])


def _over_coarse(run: Observed, system: str, coarse: str) -> dict[int, dict[int, Estimate]]:
    found = {}
    for n in sizes_of(run.data, system):
        points = by_level(run, system, n, "threshold")
        base = timed_point(run.data, coarse, n)
        if base and len(points) > 1:
            found[n] = {t: point_ratio(p, base, TIME) for t, p in points.items()}
    return found


def _gather(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed]
) -> tuple[list[str], dict[str, dict[int, float]], list[Any]]:
    """Systems to draw, the published seconds, and the points of each run that has any."""
    data = paper.series(figure.data)
    systems = drawn_systems(paper)
    theirs = {system: data.times(system) for system in systems}
    return systems, theirs, found_runs(runs, systems, "no time to draw")


def style_of(systems: Sequence[str], system: str) -> SeriesStyle:
    """The look of a system in every figure of this paper, however many of them are drawn."""
    style = series_style(systems.index(system))
    return replace(style, colour=OWN_COLOURS[OWN.index(system)]) if system in OWN else style


def drawn_systems(paper: Paper) -> list[str]:
    """The systems of the published times, then ours: the order of colours."""
    return [*dict.fromkeys(row.system for row in _unnamed(paper).rows), *OWN]


def _finish_panel(ax: Axes, values: Sequence[float]) -> None:
    value_axis(ax, "y", values, TIME, log=True)
    sizes_axis(ax)
    ax.set_ylabel("time of one evaluation")


def _unnamed(paper: Paper) -> DataFile:
    """The published times of many systems: the data file that is not of one system."""
    return next(part for part in paper.data if not part.system)


def _base_times(paper: Paper) -> dict[int, float]:
    return _unnamed(paper).times(paper.system(BASELINE))


# Tables.


def speedup_table(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """Times and speed-ups of every published system at every size that both have."""
    theirs_all, data = paper.series(table.data), run.data
    base = paper.system(BASELINE)
    ours = found_points(data, base)
    rows: list[tuple[Cell, ...]] = []
    for system in dict.fromkeys(row.system for row in theirs_all.rows):
        theirs = theirs_all.times(system)
        bases = theirs_all.times(base)
        for n, point in found_points(data, system).items():
            if n not in theirs:
                continue
            own = point_ratio(ours[n], point, TIME) if n in ours and system != base else None
            paper_ratio = quotient(bases.get(n), theirs[n]) if system != base else ""
            here = point.estimate(TIME)
            text = f"{theirs[n]:g}"
            rows.append(
                (short(system), str(n), text, here, paper_ratio, own, launch_text(data, point))
            )
    if not rows:
        refuse(run, base, "no size of the published series")
    columns = (
        *(Column("system"), Column("N"), Column("paper", "text", "s")),
        *(Column("here", "time", spread=True), Column("speed-up, paper", "text")),
        *(Column("speed-up, here", "ratio", spread=True), Column("configuration here")),
    )
    return _beside_series(paper, table, run, columns, rows)


def thread_table(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """The best number of threads by size, its speed-up, and what too many threads cost."""
    theirs_all, data = paper.series(table.data), run.data
    system, base = paper.system(theirs_all.system), paper.system(BASELINE)
    serial = found_points(data, base)
    bases = _base_times(paper)
    rows: list[tuple[Cell, ...]] = []
    for n in sizes_of(data, system):
        theirs, ours = thread_times(theirs_all, n), by_level(run, system, n, "threads")
        if len(ours) < 2 or not theirs:
            continue
        best, most = min(ours, key=lambda t: ours[t].value(TIME)), max(ours)
        their_best = min(theirs, key=lambda t: theirs[t])
        rows.append(
            (
                *(str(n), str(their_best), str(best)),
                quotient(bases.get(n), theirs[their_best]),
                point_ratio(serial[n], ours[best], TIME) if n in serial else None,
                f"{theirs[max(theirs)] / theirs[their_best]:.3g} ({max(theirs)})",
                *(point_ratio(ours[most], ours[best], TIME), str(most)),
            )
        )
    if not rows:
        refuse(run, system, "no published size with several numbers of threads")
    columns = (
        *(Column("N"), Column("best threads, paper"), Column("best threads, here")),
        Column("speed-up, paper", "text"),
        Column("speed-up, here", "ratio", spread=True),
        Column("most threads / best, paper (threads)", "text"),
        *(Column("most threads / best, here", "ratio", spread=True), Column("most threads, here")),
    )
    return _beside_series(paper, table, run, columns, rows)


def threshold_table(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """The dynamic-parallelism scheme over the coarse one, by size and threshold."""
    theirs_all, data = paper.series(table.data), run.data
    system = paper.system(theirs_all.system)
    coarse = _unnamed(paper).times(paper.system(COARSE))
    rows: list[tuple[Cell, ...]] = []
    for n in sizes_of(data, system):
        ours = by_level(run, system, n, "threshold")
        base = timed_point(data, paper.system(COARSE), n)
        if base is None or len(ours) < 2:
            continue
        theirs = {row.levels["threshold"]: row.seconds for row in theirs_all.rows if row.n == n}
        for level in sorted({*ours, *theirs}):
            point = ours.get(level)
            text = f"{_MILLI * theirs[level]:.0f}" if level in theirs else ""
            rows.append(
                (
                    *(str(n), str(level), str(max(0, n - 1 - level)), text),
                    point.estimate(TIME) if point else None,
                    quotient(theirs.get(level), coarse.get(n)),
                    point_ratio(point, base, TIME) if point else None,
                )
            )
    if not rows:
        refuse(run, system, "no size with several thresholds")
    columns = (
        *(Column("N"), Column("threshold"), Column("sub-kernels")),
        *(Column("paper", "text", table.unit), Column("here", "time", spread=True)),
        Column("over the coarse scheme, paper", "text"),
        Column("over the coarse scheme, here", "ratio", spread=True),
    )
    return _beside_series(paper, table, run, columns, rows)


def _beside_series(
    paper: Paper,
    table: PaperTable,
    run: Observed,
    columns: Sequence[Column],
    rows: Sequence[tuple[Cell, ...]],
) -> Table:
    series = paper.series(table.data)
    devices = ", ".join(paper.device(d).name for d in table.hardware)
    notes = (
        f"paper: {devices}; {series.origin}: {series.file}"
        + (f" ({series.note})" if series.note else ""),
        COMPARE_RATIOS,
        "in brackets: quotients of the published numbers",
        interval_note(run.data.simulated, run.data.rounds),
        table.note,
    )
    return reproduced(paper, table, run, columns, rows, notes)


def by_level(run: Observed, system: str, n: int, factor: str) -> dict[int, PointResult]:
    """The timed points of a system at a size, by the numbers of a factor; empty without any.

    ``auto`` is not a number; where two points share one (other factors differ) the first stays.
    """
    found: dict[int, PointResult] = {}
    try:
        points = timed_points(run.data, system, n)
    except NotMeasured:
        return {}
    for point in points:
        level = point.level(factor)
        if isinstance(level, int) and point.level("nesting") in ("-", 1):
            found.setdefault(level, point)
    return dict(sorted(found.items()))


def thread_times(published: DataFile, n: int) -> dict[int, float]:
    """Published seconds by number of threads at a size."""
    return {row.levels["threads"]: row.seconds for row in published.rows if row.n == n}
