"""The roofline of recorded runs: its tables and its figure, written into a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nqbench.analysis.data.collect import load_dataset
from nqbench.analysis.data.observed import observe
from nqbench.analysis.limits.ceilings import FOLDER, ceilings_of
from nqbench.analysis.limits.roofline import roof_points
from nqbench.errors import StudyError
from nqbench.report.exporters import exporter
from nqbench.report.figures.roofline import roofline
from nqbench.report.figures.style import Drawing, save, styled
from nqbench.report.items import source_of
from nqbench.report.table import Source, Table
from nqbench.report.tables.roofline import ceilings_table, roofline_table
from nqbench.report.writer import FIGURE_FORMATS, Folder, default_out
from nqbench.runs.reading import MANIFEST


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
        ceilings_table(highest, source_of(roof)),
        roofline_table(points, left_out, source),
    )
    paths = _write(
        out or default_out(runs[0]) / "roofline",
        tables,
        lambda: roofline(highest, points, source),
        source,
        formats or ("md", "csv", "tex"),
    )
    return Rooflines(tables, tuple(paths))


def _ceilings_beside(run: Path) -> Path:
    """``results/local/DEVICE/ceilings`` for ``results/local/DEVICE/STUDY``."""
    found = run.resolve().parent / FOLDER
    if not (found / MANIFEST).exists():
        raise StudyError(
            f"there is no run of the ceilings at {found}; make one on the same GPU with"
            " `nqbench run configs/ceilings.yaml`, or name it with --ceilings"
        )
    return found


def _write(
    out: Path,
    tables: Sequence[Table],
    draw: Callable[[], Drawing],
    source: Source,
    formats: Sequence[str],
) -> list[Path]:
    chosen = [exporter(name) for name in formats]
    folder = Folder(out)
    for table in tables:
        for one in chosen:
            folder.text(f"table-{table.name}{one.suffix}", one.render(table))
    with styled():
        drawing = draw()
        for form in FIGURE_FORMATS:
            name = f"figure-{drawing.name}.{form}"
            folder.put(name, lambda path: save(drawing, path, source))
    return folder.written
