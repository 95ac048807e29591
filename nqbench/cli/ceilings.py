"""What the commands ``bottleneck`` and ``roofline`` do, without printing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from nqbench.measure.events import RunOutcome
    from nqbench.report.table import Table
    from nqbench.study.variants import PartsStudy

FORMATS: Final = ("md", "csv", "tex")


@dataclass(frozen=True, slots=True)
class Rooflines:
    """The tables of a roofline, and the files that were written."""

    tables: tuple[Table, ...]
    paths: tuple[Path, ...]


def study_of(words: Sequence[str], sizes: Sequence[int]) -> PartsStudy:
    """The study of a command line: systems and ``factor=level`` words."""
    from nqbench.study.variants import parts_study

    return parts_study(words, sizes)


def measure(
    study: PartsStudy,
    spec: str,
    *,
    out: Path | None,
    fresh: bool,
    listener: Any,
    command: Sequence[str],
) -> RunOutcome:
    """Measure the parts; by default into ``results/local/DEVICE/bottleneck-SYSTEM``."""
    from nqbench.cli.measuring import run_folder
    from nqbench.study.variants import measure_parts

    folder = out or run_folder(study, spec)
    return measure_parts(study, spec, folder, fresh=fresh, listener=listener, command=command)


def tables(run: Path) -> list[Table]:
    """The verdicts of a run, or the counters of a simulated one."""
    from nqbench.analysis.data.collect import load_dataset
    from nqbench.report.tables.bottleneck import bottleneck
    from nqbench.study import ReportItem

    return bottleneck(load_dataset(run), ReportItem("table", "bottleneck"))


def roofline(
    runs: Sequence[Path],
    ceilings: Path | None,
    counters: Sequence[Path],
    out: Path | None,
    formats: Sequence[str],
) -> Rooflines:
    """The roofline of runs of one GPU, by default beside the report of the first.

    Raises ``StudyError`` where there is no run of the ceilings, ``AnalysisError`` where no kernel
    has both a time and known operations.
    """
    from nqbench.analysis.claims.runs import observe
    from nqbench.analysis.data.collect import load_dataset
    from nqbench.analysis.limits.ceilings import ceilings_of
    from nqbench.analysis.limits.roofline import roof_points
    from nqbench.report import default_out
    from nqbench.report.figures.roofline import roofline as draw
    from nqbench.report.items import source_of
    from nqbench.report.roofline_files import write
    from nqbench.report.tables.roofline import ceilings_table, roofline_table

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
    folder = out or default_out(runs[0]) / "roofline"
    paths = write(folder, tables, lambda: draw(highest, points, source), source, formats or FORMATS)
    return Rooflines(tables, tuple(paths))


def _ceilings_beside(run: Path) -> Path:
    """``results/local/DEVICE/ceilings`` for ``results/local/DEVICE/STUDY``."""
    from nqbench.analysis.limits.ceilings import FOLDER
    from nqbench.errors import StudyError
    from nqbench.runs.folder import MANIFEST

    found = run.resolve().parent / FOLDER
    if not (found / MANIFEST).exists():
        raise StudyError(
            f"there is no run of the ceilings at {found}; make one on the same GPU with"
            " `nqbench run configs/ceilings.yaml`, or name it with --ceilings"
        )
    return found
