"""Feinbube et al. 2010: a bar per version, and the fastest configuration of each."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Final

from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.observed import TOTALS, Observed, time_of
from nqbench.analysis.data.quantities import TIME, Quantity, quantity
from nqbench.analysis.data.select import NotMeasured, best_point, configurations, timed_points
from nqbench.analysis.wording import time as time_text
from nqbench.errors import AnalysisError
from nqbench.papers.schema import Paper, PaperFigure, PaperTable
from nqbench.report.figures.axes import axis_label, value_axis
from nqbench.report.figures.style import COLOURS, GREY, HATCH, Drawing, legend, panels, whiskers
from nqbench.report.papers.common import FULL, KERNEL, finished, reproduced, share, short, speedup
from nqbench.report.table import Cell, Column, Source, Table
from nqbench.report.tables.common import interval_note

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BASE: Final = "base"
PARTS: Final = (
    ("kernel", COLOURS[0]),
    ("split on the CPU", COLOURS[4]),
    ("transfers, reduction", "#bbbbbb"),
)
"""Parts of a total, from below, with their colours."""


def bars(
    paper: Paper, figure: PaperFigure, runs: Sequence[Observed], source: Source
) -> list[Drawing]:
    """Figures 4 and 5: a bar per version, a panel per GPU, the published bars hatched, ours in
    parts.

    Raises ``NotMeasured`` where no run has a version.
    """
    n = figure.n[0]
    versions = [s for s in paper.systems if s.system.startswith(paper.id)]
    names = [s.id.replace("_", "\n") for s in versions]
    systems = [s.system for s in versions]
    ours = [(run, found) for run in runs if (found := _measured(run, systems, n))]
    if not ours:
        # Raises the first run's reason.
        best_point(runs[0].data, versions[0].system, n)
    drawing, axes = panels(len(figure.hardware) + len(ours), 1.0, 2.5, most=2)
    for ax, device in zip(axes, figure.hardware, strict=False):
        known = {k.system: k.value for k in figure.known if k.hardware == device and k.value}
        name = paper.device(device).name
        _published(ax, [known.get(s.system) for s in versions], name, time_of(paper))
    for ax, (run, found) in zip(axes[len(figure.hardware) :], ours, strict=False):
        _own(ax, [found.get(s.system) for s in versions], run.name, time_of(paper))
    for ax in axes:
        ax.set_xticks(range(len(names)), names, fontsize=6.5)
        ax.set_ylabel(axis_label(time_of(paper)))
    legend(drawing, axes[-1])
    alt = f"Bars of the times of {len(names)} versions on {len(axes)} devices, N = {n}."
    subtitle = "hatched: published; question mark: no number in the paper. Each panel has its own"
    subtitle += (
        " axis: compare shapes. In the bars: rows placed on the CPU \u00d7 threads per block"
    )
    return finished(figure, drawing, source, alt=alt, subtitle=subtitle)


def _measured(run: Observed, systems: Sequence[str], n: int) -> dict[str, PointResult]:
    """The fastest configuration of each version that was timed."""
    found = {}
    for system in systems:
        with suppress(NotMeasured):
            found[system] = best_point(run.data, system, n)
    return found


def _published(ax: Axes, values: Sequence[float | None], name: str, what: Quantity) -> None:
    known = [v for v in values if v is not None]
    value_axis(ax, "y", known, what, log=False)
    for i, value in enumerate(values):
        if value is None:
            ax.text(i, max(known) * 0.02, "?", ha="center", color=GREY, fontsize=9)
        else:
            ax.bar(i, value, width=0.7, facecolor="white", edgecolor=GREY, hatch=HATCH)
            ax.text(i, value, f"{value:g} s", ha="center", va="bottom", fontsize=7)
    ax.set_title(f"{name}\n(published)", fontsize=8)


def _own(ax: Axes, points: Sequence[PointResult | None], name: str, what: Quantity) -> None:
    found = [e for p in points if p and (e := p.estimate(TIME))]
    value_axis(ax, "y", [e.high or e.value for e in found], what, log=False)
    named = False
    for i, point in enumerate(points):
        estimate = point.estimate(TIME) if point else None
        if point is None or estimate is None:
            ax.text(i, 0, "not run", ha="center", va="bottom", color=GREY, fontsize=6.5)
            continue
        bottom = 0.0
        for (label, colour), height in zip(PARTS, _parts_s(point, estimate.value), strict=True):
            ax.bar(i, height, bottom=bottom, width=0.7, color=colour,
                   label=None if named else label)  # fmt: skip
            bottom += height
        named = True
        ax.errorbar([i], [estimate.value], yerr=whiskers([estimate]), color="#222222", capsize=3)
        above = max(estimate.value, estimate.high or 0.0)  # clear of the whisker
        text = time_text(estimate.value, 3)
        ax.annotate(text, (i, above), (0, 1.5), textcoords="offset points", ha="center",
                    va="bottom", fontsize=7)  # fmt: skip
        launch = f"{point.level('depth')}\u00d7{point.level('block_size')}"
        ax.text(i, 0, launch, ha="center", va="bottom", color="white", fontsize=7)
    ax.set_title(f"{name}\n(measured)", fontsize=8)


def _parts_s(point: PointResult, whole_s: float) -> tuple[float, float, float]:
    """Seconds of the kernel, of the split on the CPU, and of the rest of a total."""
    kernel, split = (point.estimate(what) for what in (KERNEL, quantity("split")))
    kernel_s = min(whole_s, kernel.value) if kernel else 0.0
    split_s = min(whole_s - kernel_s, split.value) if split else 0.0
    return kernel_s, split_s, whole_s - kernel_s - split_s


def best(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """The fastest configuration of each version, with its occupancy."""
    data = run.data
    versions = [s.system for s in paper.systems if s.system.startswith(paper.id)]
    rows = []
    missing: dict[str, None] = {}
    for n in run.sizes:
        for system in versions:
            try:
                rows.append(_best_row(paper, data, system, n))
            except NotMeasured as error:
                missing[str(error)] = None
    if not rows:
        raise AnalysisError(next(iter(missing)))
    columns = (
        *(Column("version"), Column("N"), Column("depth", "number", "rows")),
        *(Column("block size", "number", "threads"), Column("total", "time", spread=True)),
        Column("kernel", "time", spread=True),
        Column("split on the CPU", "number", "% of total"),
        Column("total: speed-up over base, paper"),
        *(Column(f"{part}: speed-up over base", "ratio", spread=True)
          for part in ("total", "kernel")),
        *(Column("occupancy", "number", "%"), Column("highest occupancy", "number", "%")),
        Column("total: slowest / best", "ratio"),
        *(Column("timed", "number"), Column("not run", "number")),
    )  # fmt: skip
    notes = [
        "the paper sweeps "
        + "; ".join(f"{row[0]} {', '.join(map(str, row[1]))}" for row in table.rows)
        + ", and does not say which configuration was best",
        TOTALS,
        "kernel: of the configuration with the fastest total; its speed-up shows what the split on"
        " the CPU, the same for all versions, hides",
        "occupancy: theoretical; timed, not run: numbers of configurations",
        interval_note(data.simulated, data.rounds),
        "the fastest configuration is picked from the same rounds that give its time, so it looks"
        " slightly too good",
    ]
    notes += [f"not measured: {reason}" for reason in missing]
    after = ": the fastest configuration of each version"
    return reproduced(paper, table, run, columns, rows, notes, after=after)


def _best_row(paper: Paper, data: Dataset, system: str, n: int) -> tuple[Cell, ...]:
    everyone = configurations(data, system, n)
    timed = timed_points(data, system, n)
    times = [point.value(TIME) for point in timed]
    chosen = best_point(data, system, n)
    fractions = [float(o) for p in timed if (o := p.detail("occupancy")) is not None]
    base_name = paper.system(_BASE)
    base = best_point(data, base_name, n) if system != base_name else None
    own, split = chosen.detail("occupancy"), share(chosen, quantity("split"), FULL)
    return (
        *(short(system), str(n), chosen.level("depth"), chosen.level("block_size")),
        *(chosen.estimate(TIME), chosen.estimate(KERNEL), split.value if split else None),
        published_speedups(paper, system, n),
        *(speedup(base, chosen, what) for what in (TIME, KERNEL)),
        *(None if f is None else FULL * float(f) for f in (own, max(fractions, default=None))),
        max(times) / min(times),
        *(len(timed), len(everyone) - len(timed)),
    )


def published_speedups(paper: Paper, system: str, n: int) -> str:
    """Quotients of the printed times over the base version, by device."""
    quotients = []
    for figure in paper.figures:
        known = {(k.system, k.hardware): k.value for k in figure.known if n in figure.n}
        for device in figure.hardware:
            base, own = known.get((paper.system(_BASE), device)), known.get((system, device))
            if base and own and system != paper.system(_BASE):
                # As a person rounds: the float nearest to 14.7 / 12.0 lies below 1.225.
                quotient = Decimal(str(base)) / Decimal(str(own))
                quotients.append(f"{quotient.quantize(Decimal('0.01'), ROUND_HALF_UP)} ({device})")
    return ", ".join(quotients)
