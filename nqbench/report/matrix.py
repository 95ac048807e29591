"""The matrix of effects as a table, a list of its cells, a figure, and the page ``effects.md``.

Printed values and those modelled for the papers' own GPUs stand hollow beside measured ones with
their intervals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.quantities import TIME
from nqbench.analysis.matrix import Matrix, MatrixCell, MatrixRow, Provenance, effects_matrix, short
from nqbench.analysis.wording import Difference, times_as_fast
from nqbench.errors import AnalysisError, StudyError
from nqbench.papers import load_paper, paper_names
from nqbench.report.figures import style
from nqbench.report.figures.axes import ratio_axis
from nqbench.report.page import FORMATS, Bullets, Page, Paragraph
from nqbench.report.papers.write import about_runs, recorded, with_repeated
from nqbench.report.table import Column, Source, Table, joint, source_of
from nqbench.runs.reading import PLOTS, RESULTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAGE: Final = "effects"
TITLE: Final = "What each change is worth"
ABLATION: Final = "ablation"
"""The study whose recorded runs are shown beside the papers'."""
MEANING: Final = (
    "What each change does to the time of a program, everything else equal. Printed values are the"
    " papers', for the GPUs named"
)
BIG: Final = 20.0
"""Rows with a larger factor, either way, have a panel of their own: on the axis of a factor of 300,
one of 1.1 cannot be seen."""


@dataclass(frozen=True, slots=True)
class MatrixReport:
    """The files written, the page first, and the matrix as a table and as a list of its cells."""

    paths: tuple[Path, ...]
    matrix: Table
    cells: Table


def write_effects(
    runs: Sequence[Dataset], out: Path | None, command: str, formats: Sequence[str] = FORMATS
) -> MatrixReport:
    """Write the matrix of some runs; ``command`` is what a reader types to get it again.

    Raises ``AnalysisError`` (no effect in these runs), ``StudyError`` (an unknown format),
    ``StoreError`` (the folder cannot be written).
    """
    page = Page(PLOTS / "local" / PAGE if out is None else out, formats or FORMATS)
    table, cells = add_effects(page, runs, command, level=1)
    page.table(cells, inline=False, size=f"{cells.size}: ", folded=True)
    return MatrixReport(tuple(page.write(PAGE)), table, cells)


def add_effects(
    page: Page, runs: Sequence[Dataset], command: str, *, level: int = 2
) -> tuple[Table, Table]:
    """Put the matrix of some runs on a page, below a heading of ``level``: figure, table, runs.

    Returns the matrix as a table and as a list of its cells, which is not on the page. Raises
    ``AnalysisError`` if there is no effect in these runs, before anything is put there.
    """
    matrix = effects_matrix(runs)
    observed = [run for _, run in matrix.runs]
    source = joint([source_of(run) for run in observed], command)
    table = about_runs(matrix_table(matrix, source), observed)
    cells = cells_table(matrix, source)
    page.heading(TITLE, level)
    page.add(Paragraph(f"{MEANING}."))
    with style.styled():
        drawing = effects_figure(matrix, source)
    page.drawing(drawing, source, level=0)
    page.heading("Every change, with intervals", level + 1, folded=True)
    page.table(table, level=0)
    page.heading("Runs", level + 1, folded=True)
    every = [(name, one) for name, run in matrix.runs for one in (run, *run.again)]
    baselines = [("CPU programs", run.baseline) for run in observed if run.baseline]
    about = [
        f"{name}: {run.name} on {source_of(run)}; {run.path.as_posix()}; {run.command}"
        for name, run in (*every, *baselines)
    ]
    page.add(Bullets(tuple(dict.fromkeys(about))))
    return table, cells


def write_recorded(
    out: Path | None, command: str, formats: Sequence[str] = (), *, cpu: Path | None = None
) -> list[MatrixReport]:
    """Write the matrix of every recorded run of a paper or of the ablation under ``results``.

    The project's runs and a user's get a matrix each, if they have an effect. ``cpu`` defaults to
    the recorded run of the study ``cpu_baseline``. Raises ``AnalysisError`` if there is no effect,
    ``StudyError`` if there is no run.
    """
    reports: list[MatrixReport] = []
    reason: StudyError | AnalysisError = StudyError(
        f"there is no run of a paper or of the ablation under {RESULTS}; `nqbench reproduce"
        " zhang2011` or `nqbench run ablation` makes one"
    )
    for runs, folder, baseline in recorded((*paper_names(), ABLATION), PAGE, out, cpu):
        try:
            reports.append(write_effects(with_repeated(runs, baseline), folder, command, formats))
        except AnalysisError as error:
            reason = error
    if not reports:
        raise reason
    return reports


# Tables.


def matrix_table(matrix: Matrix, source: Source) -> Table:
    """One row per change: what is printed, and a column per device of the runs."""
    own: tuple[Provenance, ...] = ("printed", "modelled")
    shown = [one for one in own if one == "printed" or any(row.of(one) for row in matrix.rows)]
    columns = [Column("source"), Column("change"), Column("N", "number"), *map(Column, shown)]
    measured = ((name, f"{name} times as fast") for name in matrix.devices)
    columns += [Column(name, "ratio", spread=True, plain=plain) for name, plain in measured]
    columns.append(Column("against print"))
    rows = []
    for row in matrix.rows:
        values = (_difference(row.cell(device)) for device in matrix.devices)
        texts = []
        for provenance in shown:
            by_text: dict[str, list[str]] = {}  # the chips with the same words
            for cell in row.of(provenance):
                text = cell.printed
                if cell.value and cell.provenance == "printed" and cell.value.value >= 1:
                    text = f"{text}x faster"
                elif cell.value:
                    text = times_as_fast(cell.value)
                by_text.setdefault(text, []).append(cell.device)
            texts.append(", ".join(f"{text} ({', '.join(on)})" for text, on in by_text.items()))
        rows.append((row.group, row.label, row.n, *texts, *values, _against(row, matrix)))
    return Table("effects", TITLE, tuple(columns), tuple(rows), source, tuple(_notes(matrix)))


def _against(row: MatrixRow, matrix: Matrix) -> str:
    """How what was measured stands to what is printed; where devices differ, of each in turn."""
    words = [word for name in matrix.devices if (word := row.against_print(name))]
    return words[0] if len({*words}) == 1 else ", ".join(words)


def cells_table(matrix: Matrix, source: Source) -> Table:
    """One row per cell, for a spreadsheet."""
    columns = (
        *(Column("source"), Column("effect"), Column("change"), Column("N", "number")),
        *(Column("device"), Column("provenance")),
        *(Column("effect", "ratio", spread=True, plain="times as fast"), Column("printed")),
    )
    rows = tuple(
        (row.group, row.name, row.label, c.n, c.device, c.provenance, _difference(c), c.printed)
        for row in matrix.rows
        for c in row.cells
    )
    return Table("effects-cells", f"{TITLE}, cell by cell", columns, rows, source)


def _difference(cell: MatrixCell | None) -> Difference | None:
    """A cell, which is how many times as fast, as a difference of the time."""
    if cell is None or cell.value is None:
        return None
    return Difference(cell.value.inverse(), TIME, turned=True)


def _notes(matrix: Matrix) -> Iterator[str]:
    yield MEANING
    yield (
        "±, or both bounds in brackets: 95% intervals over rounds and GPUs of a model, as in the"
        " verdicts; a paper that prints no number is quoted in words"
    )
    yield (
        "against print: agrees (80% to 125% of the effect, or the direction where no number is"
        " printed), weaker, stronger, reversed, or unclear: the interval has both directions"
    )
    studies = dict.fromkeys(run.name for _, run in matrix.runs)
    papers = [load_paper(name) for name in studies if name in paper_names()]
    if totals := [short(paper) for paper in papers if paper.timed == "total"]:
        yield f"{' and '.join(totals)}: total times, the CPU's part included, as printed"
    if ABLATION in {row.group for row in matrix.rows}:
        yield (
            f"{ABLATION}: geometric mean over all pairs of kernels that differ in this factor alone"
        )
    if sizes := {cell.n for row in matrix.rows for cell in row.of("modelled")}:
        yield (
            "modelled: times of the simulator's models of the papers' own GPUs at"
            f" N = {', '.join(map(str, sorted(sizes)))}; not measured, and effects below 5% say"
            " nothing (docs/simulator.md has the record)"
        )
    yield "Why a cell is empty stands with the verdicts of its paper"


# The figure.

_ROW_IN: Final = 0.19
_HEAD_ROWS: Final = 2.2
"""Rows that a panel takes for its heads and its axis."""
_HEAD_Y: Final = -1.05
_LANE: Final = 0.7
"""Part of a row's height over which the markers of its devices are spread."""
_Line = tuple[str, MatrixRow | None]
"""A line of a panel: the heading of a group, or a change with its row."""


def effects_figure(matrix: Matrix, source: Source) -> style.Drawing:
    """Rows down, one logarithmic axis of ratios, a marker per device, the numbers beside it."""

    def big(row: MatrixRow) -> bool:
        return any(not 1 / BIG <= cell.value.value <= BIG for cell in row.cells if cell.value)

    rows = sorted(matrix.rows, key=big)
    shown = [_lines(list(own)) for _, own in groupby(rows, big)]
    heights = [len(lines) + _HEAD_ROWS for lines in shown]
    figure = style.new_figure(1.0 + _ROW_IN * sum(heights))
    axes = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)
    for (ax,), lines in zip(axes, shown, strict=True):
        _panel(ax, lines, matrix)
    axes[-1][0].set_xlabel("times slower or faster, logarithmic")
    subtitle = "Bars: 95% intervals over all GPUs of a model. Right: measured against print"
    if len(shown) > 1:
        subtitle += f". Lower panel: factors above {BIG:g}"
    alt = f"{len(matrix.rows)} effects with printed, modelled and measured values."
    words = {"alt": alt, "subtitle": subtitle}
    return style.finish(figure, PAGE, TITLE, source, legend_of=axes[0][0], **words)


def _lines(rows: Sequence[MatrixRow]) -> list[_Line]:
    """Rows under the headings of their groups, which name the GPUs of what is printed."""
    lines: list[_Line] = []
    for group, members in groupby(rows, lambda row: row.group):
        own = list(members)
        chips = dict.fromkeys(cell.device for row in own for cell in row.of("printed"))
        head = group[:1].upper() + group[1:]
        lines.append((f"{head}: {', '.join(chips)}" if chips else head, None))
        often = Counter(row.label for row in own)
        sized = {row: f", N = {row.n:,}" * (often[row.label] > 1) for row in own}
        lines += [(f"{row.label}{sized[row]}", row) for row in own]
    return lines


def _panel(ax: Axes, lines: Sequence[_Line], matrix: Matrix) -> None:
    from matplotlib.transforms import blended_transform_factory

    rows = [(float(y), row) for y, (_, row) in enumerate(lines) if row]
    values = [cell.value for _, row in rows for cell in row.cells if cell.value]
    ratio_axis(ax, [b for v in values for b in (v.value, v.low, v.high) if b is not None and b > 0])
    for i, device in enumerate(matrix.devices):
        found = []
        for y, row in rows:
            if (cell := row.cell(device)) and cell.value:
                # Below or above the middle of its row: no marker covers another device's.
                present = [name for name in matrix.devices if row.cell(name)]
                lane = (present.index(device) + 0.5) / len(present) - 0.5
                found.append((y + _LANE * lane, cell.value))
        look: dict[str, Any] = {"markersize": 4.2, "capsize": 1.5, "elinewidth": 1.0, "zorder": 3}
        series = style.series_style(i)
        style.dots(ax, found, series.colour, series.marker, label=f"{device}, measured", **look)
    look = {"color": "#000000", "markerfacecolor": "white", "linestyle": "", "zorder": 2.5}
    look |= {"markersize": 4.6, "markeredgewidth": 0.9}
    own: dict[Provenance, str] = {"printed": "D", "modelled": "s"}
    for provenance, marker in own.items():
        if hollow := [(c.value.value, y) for y, row in rows for c in row.of(provenance) if c.value]:
            label = f"{provenance}, the paper's GPU"
            ax.plot(*zip(*hollow, strict=True), label=label, marker=marker, **look)
    aside: dict[str, Any] = {"textcoords": "offset points", "annotation_clip": False}
    aside |= {"va": "center", "fontsize": 7.5, "color": style.GREY}
    for text, side, gap in (("\u25c2 slower", "right", -4), ("faster \u25b8", "left", 4)):
        ax.annotate(text, (1, _HEAD_Y), (gap, 0), ha=side, **aside)
    ax.set_yticks(range(len(lines)), [text if row else "" for text, row in lines])
    ax.set_ylim(len(lines) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", visible=False)
    figure = ax.get_figure()
    assert figure is not None
    place = blended_transform_factory(figure.transFigure, ax.transData)
    bold: dict[str, Any] = {"va": "center", "fontsize": 7.5, "fontweight": "bold"}
    beside = ("axes fraction", "data")
    for y, (text, one) in enumerate(lines):
        if one is not None:
            ax.annotate(_against(one, matrix), (1, y), (4, 0), xycoords=beside, **aside)
        else:
            # A grey band from the left edge on, above the lines, so that none crosses the words.
            ax.axhspan(y - 0.5, y + 0.5, color="#f0f0f0", zorder=2.5, linewidth=0)
            ax.text(0.012, y, text, transform=place, in_layout=False, **bold)
