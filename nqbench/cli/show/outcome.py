"""The outcome of a run, and the findings of its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from nqbench.cli.show.console import duration, note, say
from nqbench.cli.show.progress import failure_text

if TYPE_CHECKING:
    from pathlib import Path

    from nqbench.measure.events import RunOutcome
    from nqbench.report.writer import Report


def show_outcome(outcome: RunOutcome) -> None:
    """Every failure with its reason, the counts, the folder."""
    for failure in outcome.failures:
        say(failure_text(failure))
    for reason, number in Counter(outcome.skipped.values()).items():
        say(f"skipped {number}: {reason}")
    counts = ", ".join(f"{number} {status}" for status, number in outcome.counts.items() if number)
    ending = "so far" if outcome.interrupted else "done"
    say(f"{ending}: {counts or 'nothing measured'} in {duration(outcome.wall_s)}")
    say(f"records: {outcome.path}")


def show_report(report: Report) -> None:
    """The files, what could not be made, then the findings in words."""
    show_paths(report.paths)
    for sentence in report.not_made:
        say(sentence)
    for finding in report.findings:
        say(finding, bullet="* ")


def show_paths(paths: Iterable[Path]) -> None:
    """A line for each file."""
    for path in paths:
        say(str(path))


def note_incomplete(runs: Iterable[Path]) -> None:
    """Warn about every run that is incomplete: what is shown of it is not everything."""
    from nqbench.runs.reading import incomplete

    for sentence in filter(None, map(incomplete, runs)):
        note(sentence)
