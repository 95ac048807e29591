"""Results as JSON, for scripts. docs/reading-results.md says what each field is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from nqbench.errors import AnalysisError

if TYPE_CHECKING:
    import pandas as pd

    from nqbench.analysis.compare.request import Findings
    from nqbench.measure.events import RunOutcome
    from nqbench.report.items import ReadRun
    from nqbench.report.table import Table
    from nqbench.report.writer import RunReport


def print_json(data: object) -> None:
    """Print a document on standard output, whatever is quiet."""
    typer.echo(json.dumps(data, indent=2, allow_nan=False))


def print_report(
    runs: Sequence[ReadRun], reports: Sequence[RunReport], outcomes: Sequence[RunOutcome] = ()
) -> None:
    """Runs, with ``outcomes`` how their measuring ended, and the files written about them."""
    ended = [{"interrupted": one.interrupted, "wall_s": one.wall_s} for one in outcomes]
    found = [_run(run, more) for run, more in zip(runs, ended or [{}] * len(runs), strict=True)]
    files = [str(path) for report in reports for path in report.paths]
    not_made = [sentence for report in reports for sentence in report.not_made]
    print_json({"runs": found, "files": files, "not_made": not_made})


def _run(run: ReadRun, ended: Mapping[str, Any]) -> dict[str, Any]:
    """A run: its points, effects and findings."""
    from nqbench.api import effects_table, points_table

    data = run.data
    points = _rows(points_table(data))
    statuses = [point["status"] for point in points]
    try:
        effects = _rows(effects_table(data))
    except AnalysisError:  # the study varies nothing
        effects = []
    return {
        "study": data.name,
        "device": data.spec,
        "device_name": data.device,
        "provenance": data.provenance,
        "folder": str(run.observed.path),
        **ended,
        "counts": {status: statuses.count(status) for status in dict.fromkeys(statuses)},
        "points": points,
        "effects": effects,
        "findings": run.findings,
    }


def comparison_json(findings: Findings, files: Iterable[Path]) -> dict[str, Any]:
    """A comparison."""
    from nqbench.analysis.compare.wording import sentences

    return {
        "findings": list(sentences(findings)),
        "points": _rows(findings.table()),
        "notes": list(findings.notes),
        "files": [str(path) for path in files],
    }


def claims_json(tables: Mapping[str, Table]) -> list[dict[str, Any]]:
    """The verdicts on the claims of each paper."""
    return [
        {
            "paper": paper,
            "title": table.title,
            "source": str(table.source),
            "claims": table.records(),
            "notes": list(table.notes),
        }
        for paper, table in tables.items()
    ]


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """An object per row; what is not a number is null."""
    rows: list[dict[str, Any]] = json.loads(frame.to_json(orient="records", double_precision=15))
    return rows
