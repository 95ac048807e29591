"""Rooflines: the ceilings of a GPU and the kernels under them, as tables and a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from nqbench.analysis.data.collect import load_dataset
from nqbench.analysis.data.observed import observe
from nqbench.analysis.limits.ceilings import FOLDER, Ceilings, ceilings_of
from nqbench.analysis.limits.roofline import SIMULATED, RoofPoint, roof_points
from nqbench.errors import StudyError
from nqbench.report.figures.roofline import roofline as draw
from nqbench.report.figures.style import styled
from nqbench.report.page import FORMATS, Page
from nqbench.report.table import Column, Source, Table, source_of, tabulate
from nqbench.report.tables.common import level_fields
from nqbench.report.writer import default_out
from nqbench.runs.reading import MANIFEST

UNITS: Final = {
    "bytes": ("GB/s", 1e-9),
    "float": ("Gop/s", 1e-9),
    "integer": ("Gop/s", 1e-9),
}
_GIGA: Final = 1e-9
LIMITS: Final = {"bytes": "memory", "float": "FP32", "integer": "INT32"}
UNSURE: Final = f"{LIMITS['bytes']}, if uncached"
SHARE_NOTE: Final = (
    "limit: which of bytes, FP32 and integer operations takes longest at its ceiling; share: that"
    " time over the measured time"
)
INTEGER_NOTE: Final = (
    "integer operations are instructions, including those for addresses and loops; a fused"
    " multiply-add counts as two floating-point operations"
)
PROGRAM_NOTE: Final = (
    "kernel: of a program, the kernel that takes most of the time in a run with phase timers; time:"
    " all its launches in a run, or the first launch where a profiler counted"
)
SIMULATED_NOTE: Final = (
    "simulated: operations of the PTX, not of the machine code, and bytes of all off-chip accesses,"
    " as if there were no cache: `memory, if uncached` holds only for accesses that reach device"
    " memory; above 100%, a cache has served them"
)


def ceilings_table(ceilings: Ceilings, source: Source) -> Table:
    """The ceilings, a row each."""
    columns, rows = tabulate(
        ceilings.found.values(),
        (Column("ceiling"), lambda c: c.name),
        (Column("bounds"), lambda c: LIMITS[c.kind]),
        (Column("peak", "number", spread=True), lambda c: c.per_s.scaled(UNITS[c.kind][1])),
        (Column("unit"), lambda c: UNITS[c.kind][0]),
    )
    notes = ("The best of several sizes and launches; a copy counts bytes read and written",)
    title = f"Ceilings of {ceilings.device}"
    return Table("ceilings", title, columns, rows, source, notes)


def roofline_table(points: Sequence[RoofPoint], left_out: Sequence[str], source: Source) -> Table:
    """The kernels, a row each."""
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
        (Column("limit"), lambda p: LIMITS[p.limit] if p.sure else UNSURE),
        (Column("share", "number"), lambda p: p.share),
        (Column("counted by"), lambda p: f"{p.counted_by}; {p.bytes_of}"),
    )
    notes = [SHARE_NOTE, INTEGER_NOTE]
    if any(point.counted_by == SIMULATED for point in points):
        notes.append(SIMULATED_NOTE)
    if programs:
        notes.append(PROGRAM_NOTE)
    if left_out:
        notes.append(f"Without known operations, left out: {'; '.join(left_out)}")
    title = "Kernels under the roofline"
    return Table("roofline", title, columns, rows, source, tuple(notes))


@dataclass(frozen=True, slots=True)
class Rooflines:
    """The tables of a roofline, and the files that were written."""

    tables: tuple[Table, ...]
    paths: tuple[Path, ...]


def write_roofline(
    runs: Sequence[Path],
    ceilings: Path | None = None,
    counters: Sequence[Path] = (),
    out: Path | None = None,
    formats: Sequence[str] = (),
) -> Rooflines:
    """Write the roofline of runs of one GPU, by default beside the report of the first.

    ``ceilings`` is the run of the ceilings on that GPU, by default the one beside the first run;
    ``counters`` are simulated runs of the same points. Raises ``StudyError`` where there is no run
    of the ceilings and for an unknown format, ``AnalysisError`` where no kernel has both a time and
    known operations, ``StoreError`` where a folder refuses.
    """
    observed = [observe(path) for path in runs]
    roof = load_dataset(ceilings or _ceilings_beside(runs[0]))
    highest = ceilings_of(roof)
    simulated = [load_dataset(path) for path in counters]
    points, left_out = [], []
    for run in observed:
        found, without = roof_points(run, highest, simulated)
        points += found
        left_out += without
    source = source_of(observed[0].data)
    tables = (
        # The ceilings stand beside many runs: each such table has a label of its own.
        ceilings_table(highest, replace(source_of(roof), run=source.run)),
        roofline_table(points, left_out, source),
    )
    page = Page(out or default_out(runs[0]) / "roofline", formats or FORMATS)
    for table in tables:
        page.table(table)
    with styled():
        drawing = draw(highest, points, source)
    page.drawing(drawing, source)
    return Rooflines(tables, tuple(page.files))


def _ceilings_beside(run: Path) -> Path:
    """``results/local/DEVICE/ceilings`` for ``results/local/DEVICE/STUDY``."""
    found = run.resolve().parent / FOLDER
    if not (found / MANIFEST).exists():
        raise StudyError(
            f"there is no run of the ceilings at {found}; make one on the same GPU with"
            " `nqbench run ceilings`, or name it with --ceilings"
        )
    return found
