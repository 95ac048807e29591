"""Rooflines: the ceilings of a GPU and the kernels under them, as tables and a figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis.data.dataset import load_dataset
from nqbench.analysis.data.quantities import Quantity
from nqbench.analysis.limits.ceilings import STUDY, GpuCeilings, ceilings_of
from nqbench.analysis.limits.roofline import RoofPoint, roof_points
from nqbench.errors import StudyError
from nqbench.report.figures import style
from nqbench.report.figures.axes import value_axis
from nqbench.report.page import FORMATS, Page
from nqbench.report.table import Column, Source, Table, source_of, tabulate
from nqbench.report.tables.common import level_fields
from nqbench.runs.reading import MANIFEST, default_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes

UNITS: Final = {"bytes": "GB/s", "float": "Gop/s", "integer": "Gop/s"}
_GIGA: Final = 1e-9
LIMITS: Final = {"bytes": "memory", "float": "FP32", "integer": "INT32"}
SHARE_NOTE: Final = (
    "limit: which of bytes, FP32 and integer operations takes longest at its ceiling; share: that"
    " time over the measured time"
)
INTEGER_NOTE: Final = (
    "integer operations are instructions, including those for addresses and loops; a fused"
    " multiply-add counts as two floating-point operations"
)
PROGRAM_NOTE: Final = "kernel: of a program, that with the longest first launch; time: of that one"

DECADES: Final = 0.6
"""Room left and right of the points and the ridges, in powers of ten."""
ROOF: Final = "#333333"
"""Roofs have no colour: colours are the systems'."""
MAX_NAMES: Final = 12
"""Entries of the legend that fit next to the panel."""
OPERATIONS: Final = Quantity("operations", "operations", (), "counter")


def roofline_table(
    ceilings: GpuCeilings, points: Sequence[RoofPoint], left_out: Sequence[str], source: Source
) -> Table:
    """The kernels, a row each; the ceilings in a note."""
    programs = any(point.kernel for point in points)
    columns, rows = tabulate(
        points,
        (Column("system"), lambda p: p.system),
        *([(Column("kernel"), lambda p: p.kernel or "-")] if programs else []),
        *level_fields(points),
        (Column("N", "number"), lambda p: p.n),
        (Column("time", "time", spread=True), lambda p: p.time),
        (Column("FP32 operations", "number"), lambda p: p.work["float"]),
        (Column("integer operations", "number"), lambda p: p.work["integer"]),
        (Column("bytes", "number"), lambda p: p.work["bytes"]),
        (Column("operations per byte", "number"), lambda p: p.intensity),
        (Column("attained", "number", "Gop/s"), lambda p: p.per_s(p.operations) * _GIGA),
        (Column("attained", "number", "GB/s"), lambda p: p.per_s("bytes") * _GIGA),
        (Column("limit"), lambda p: LIMITS[p.limit]),
        (Column("share", "number"), lambda p: p.share),
    )
    known = ceilings.found.values()
    peaks = (f"{c.name} {c.per_s.value * _GIGA:,.0f} {UNITS[c.kind]}" for c in known)
    notes = [f"ceilings of {ceilings.device}: {', '.join(peaks)}", SHARE_NOTE, INTEGER_NOTE]
    if programs:
        notes.append(PROGRAM_NOTE)
    if left_out:
        notes.append(f"Without known operations, left out: {'; '.join(left_out)}")
    return Table("roofline", "Kernels under the roofline", columns, rows, source, tuple(notes))


def write_roofline(
    runs: Sequence[Path],
    ceilings: Path | None = None,
    out: Path | None = None,
    formats: Sequence[str] = (),
) -> tuple[Table, list[Path]]:
    """Write the roofline of runs of one GPU, by default next to the report of the first. Returns
    its table and the files.

    ``ceilings`` is the run of the ceilings on that GPU, by default the one next to the first run.
    Raises ``StudyError`` where there is no run of the ceilings and for an unknown format,
    ``AnalysisError`` where no kernel has both a time and known operations, ``StoreError`` for a
    folder that cannot be used.
    """
    beside = runs[0].resolve().parent / STUDY
    if not (ceilings or (beside / MANIFEST).exists()):
        raise StudyError(
            f"there is no run of the ceilings at {beside}; make one on the same GPU with"
            " `nqbench run ceilings`, or give it with --ceilings"
        )
    observed = [load_dataset(path) for path in runs]
    highest = ceilings_of(load_dataset(ceilings or beside))
    points, left_out = [], []
    for run in observed:
        found, without = roof_points(run, highest)
        points += found
        left_out += without
    source = source_of(observed[0])
    table = roofline_table(highest, points, left_out, source)
    page = Page(out or default_out(runs[0]) / "roofline", formats or FORMATS)
    page.table(table)
    with style.styled():
        drawing = draw(highest, points, source)
    page.drawing(drawing, source)
    return table, page.files


def draw(ceilings: GpuCeilings, points: Sequence[RoofPoint], source: Source) -> style.Drawing:
    """One panel: the ceilings as lines, the kernels as marks, filled where FP32 dominates."""
    shown = [p for p in points if 0 < p.intensity < math.inf]
    figure = style.new_figure(4.6)
    ax = figure.subplots()
    level = [c for c in ceilings.found.values() if c.kind != "bytes"]
    top = max(c.per_s.value for c in level)
    # All kernels, and where the roofs bend.
    bends = [c.per_s.value / ceilings.best("bytes").per_s.value for c in level]
    intensities = [*bends, *(p.intensity for p in shown)]
    low, high = min(intensities) / 10**DECADES, max(intensities) * 10**DECADES
    _roofs(ax, ceilings, top, low, high)
    for index, system in enumerate(dict.fromkeys(p.system for p in shown)):
        colour = style.series_style(index).colour
        marker = style.MARKERS[index // len(style.COLOURS) % len(style.MARKERS)]
        look: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": "", "zorder": 3}
        label = system if index < MAX_NAMES else None
        for point in (p for p in shown if p.system == system):
            look["markerfacecolor"] = colour if point.operations == "float" else "white"
            ax.plot([point.intensity], [point.per_s(point.operations)], label=label, **look)
            label = None
    slowest = min((p.per_s(p.operations) for p in shown), default=top)
    value_axis(ax, "y", [slowest, top], OPERATIONS, log=True)
    value_axis(ax, "x", [low, high], OPERATIONS, log=True)
    ax.set_xlim(low, high)
    ax.set_xlabel("operations per byte")
    ax.set_ylabel("operations per second")
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=7)
    title = f"Roofline of {ceilings.device}"
    subtitle = "filled: FP32 operations dominate; open: integer; counted by ncu"
    alt = f"{len(shown)} kernels under {len(ceilings.found)} measured ceilings."
    return style.finish(figure, "roofline", title, source, alt=alt, subtitle=subtitle)


def _roofs(ax: Axes, ceilings: GpuCeilings, top: float, low: float, high: float) -> None:
    """Slanted lines for bytes, level ones for operations; the legend has their names and rates."""
    found = [*ceilings.found.values()]
    steepest = max(c.per_s.value for c in found if c.kind == "bytes")
    for ceiling in sorted(found, key=lambda c: -c.per_s.value):
        rate = ceiling.per_s.value
        dashes = "-" if ceiling.operation == "copy" or ceiling.kind == "float" else "--"
        look: dict[str, Any] = {"linewidth": 1.2, "color": ROOF, "linestyle": dashes}
        ends = [rate / steepest, high], [rate, rate]
        if ceiling.kind == "bytes":
            end, look["color"] = min(high, top / rate), style.GREY
            ends = [low, end], [low * rate, end * rate]
        label = f"{ceiling.name}: {rate * _GIGA:,.0f} {UNITS[ceiling.kind]}"
        ax.plot(*ends, label=label, **look)
