"""The end of a run: what did not run, the numbers, where the files are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import typer

from nqbench.cli.show.console import console, duration, note, say
from nqbench.cli.show.progress import failure_text, point_text
from nqbench.cli.show.tables import show_table

if TYPE_CHECKING:
    from pathlib import Path

    from nqbench.measure.events import RunOutcome
    from nqbench.report.items import ReadRun
    from nqbench.report.papers.write import PaperReport
    from nqbench.report.writer import RunReport

MAX_REASONS: Final = 10
"""Different reasons that are listed; the table ``skipped`` of a report has all points."""
_NUMBER: Final = re.compile(r"\d+(\.\d+)?")


def show_outcome(outcome: RunOutcome) -> None:
    """Why points have no value, then how many ended how."""
    failed = [(r.status, point_text(r), r.reason) for r in outcome.failures]
    skipped = [
        ("skipped", name.partition(": ")[2].rpartition(" (")[0], why)
        for name, why in outcome.skipped.items()
    ]
    show_reasons([*failed, *skipped])
    for failure in outcome.failures if console().quiet else ():
        typer.echo(failure_text(failure), err=True)
    counts = ", ".join(f"{number} {status}" for status, number in outcome.counts.items() if number)
    ending = "so far" if outcome.interrupted else "done"
    say(f"{ending}: {counts or 'nothing measured'} in {duration(outcome.wall_s)}")


def show_reasons(points: Iterable[tuple[str, str, str]]) -> None:
    """A table of status, point and reason: a row for all points with one reason, numbers aside."""
    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for status, point, reason in points:
        groups.setdefault((status, _NUMBER.sub("#", reason)), []).append((point, reason))
    rows = [
        [status, str(len(found)), found[0][0], found[0][1]] for (status, _), found in groups.items()
    ]
    if rows:
        show_table(["status", "points", "the first", "reason"], rows[:MAX_REASONS])
    if len(rows) > MAX_REASONS:
        say(f"... and {len(rows) - MAX_REASONS} more reasons")


def show_numbers(run: ReadRun, *, failures: bool = False) -> None:
    """The best points of a run, the effects, the findings; ``failures``: first what did not run."""
    from nqbench.report.tables.summary import best_points, strongest_effects

    data = run.data
    say(f"{data.name} on {data.device_short}, {data.provenance}")
    if failures:
        missing = [p for p in data.points if not p.ok]
        show_reasons((p.status, f"{p.system or p.sweep} N={p.n}", p.reason) for p in missing)
    for table in (*best_points(data), *strongest_effects(data)):
        say("")
        say(table.title)
        show_table([column.heading for column in table.columns], list(table.texts()))
        for sentence in table.notes:
            say(sentence)
    say("")
    for finding in run.findings:
        say(finding, bullet="* ")


def show_files(report: RunReport | PaperReport | None, records: Path | None = None) -> None:
    """What could not be drawn, then where everything is, in two lines."""
    for sentence in getattr(report, "not_made", ()):
        say(sentence)
    if records is not None:
        say(f"records: {records}")
    if report is not None:
        pages = [path for path in report.paths if path.stem == report.paths[0].stem]
        others = len(report.paths) - len(pages)
        beside = f" and {others} more files" if others else ""
        say(f"report: {', '.join(map(str, pages))}{beside}")


def show_paths(paths: Iterable[Path]) -> None:
    """A line for each file."""
    for path in paths:
        say(str(path))


def note_incomplete(runs: Iterable[Path]) -> None:
    """Warn about every run that is incomplete: what is shown of it is not everything."""
    from nqbench.runs.reading import incomplete

    for sentence in filter(None, map(incomplete, runs)):
        note(sentence)
