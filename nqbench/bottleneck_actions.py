"""What the commands ``bottleneck`` and ``roofline`` do, without printing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nqbench.bottleneck import PartsStudy
    from nqbench.measure.events import RunOutcome
    from nqbench.report.table import Table


def study_of(words: Sequence[str], sizes: Sequence[int]) -> PartsStudy:
    """The study of a command line: systems and ``factor=level`` words."""
    from nqbench.bottleneck import parts_study

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
    from nqbench.actions import run_folder
    from nqbench.bottleneck import measure_parts

    folder = out or run_folder(study, spec)
    return measure_parts(study, spec, folder, fresh=fresh, listener=listener, command=command)


def tables(run: Path) -> list[Table]:
    """The verdicts of a run, or the counters of a simulated one."""
    from nqbench.analysis.collect import load_dataset
    from nqbench.report.tables.bottleneck import bottleneck
    from nqbench.study import ReportItem

    return bottleneck(load_dataset(run), ReportItem("table", "bottleneck"))
