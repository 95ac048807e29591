"""What runs gave: what did not run, the numbers, comparisons, verdicts, where the files are, and
the races in a kernel of the user's own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import typer

from nqbench.cli.show.console import console, duration, say, show_report_table, show_table
from nqbench.cli.show.listings import show_mistake
from nqbench.cli.show.progress import failure_text, kind_of, point_text, progress
from nqbench.measure.measurement import PRINTED
from nqbench.system.files import printable
from nqbench.system.suggest import many

if TYPE_CHECKING:
    from pathlib import Path

    from nqbench.analysis.claims.scorecard import Scorecard
    from nqbench.analysis.compare.request import Findings
    from nqbench.inspection import Checked
    from nqbench.measure.run_state import RunOutcome
    from nqbench.report.papers.write import PaperReport
    from nqbench.report.table import Table
    from nqbench.report.writer import RunReport
    from nqbench.study import Study
    from nqbench.verify.checks import Verified

MAX_REASONS: Final = 10
"""Different reasons that are listed; the table ``skipped`` of a report has all points."""
MAX_PRINTED: Final = 12
"""Lines of printf that are shown."""
MAX_FAULTS: Final = 20
"""Of a check of a run that are listed; JSON has all."""
CHECK_S: Final = 20.0
"""What the check that ends a run may take; or as long as the run itself."""
SIGNS: Final = re.compile(r"a barrier missing\?|ILLEGAL_ADDRESS|MISALIGNED_ADDRESS")
"""In reasons that a race or a stray access may explain, of the simulator and of a GPU."""
SHOWN: Final = ("claim", "verdict", "size", "measured", "paper", "remark")
"""Columns that fit a terminal; the statement and the device are in the written table."""


def show_outcome(outcome: RunOutcome, *, ending: bool = True) -> None:
    """Why points have no value, what kernels printed, and as ``ending`` how many points ended how,
    which an answer says too."""
    failed = [(r.status, point_text(r), r.reason) for r in outcome.failures]
    skipped = [
        ("skipped", name.partition(": ")[2].rpartition(" (")[0], why)
        for name, why in outcome.skipped.items()
    ]
    show_reasons([*failed, *skipped], some_ran=not ending)
    for failure in outcome.failures if console().quiet else ():
        typer.echo(failure_text(failure), err=True)
    said = [(point_text(r), str(r.telemetry[PRINTED])) for r in outcome.printed]
    lines = [(point, line) for point, text in said for line in text.splitlines()]
    for point, line in lines[:MAX_PRINTED]:
        say(f"printf of {point}: {line}")
    if len(lines) > MAX_PRINTED:
        say(f"... and {len(lines) - MAX_PRINTED} more lines in the records")
    if ending:
        counts = ", ".join(f"{count} {status}" for status, count in outcome.counts.items() if count)
        word = "so far" if outcome.interrupted else "done"
        say(f"{word}: {counts or 'nothing measured'} in {duration(outcome.wall_s)}")


def show_reasons(points: Iterable[tuple[str, str, str]], *, some_ran: bool = False) -> None:
    """A table of status, point and reason: a row for all points with one reason, numbers aside.

    Where ``some_ran``, one line counts those that were skipped.
    """
    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for status, point, reason in points:
        groups.setdefault(kind_of(status, reason), []).append((point, reason))
    left_out = {kind: groups.pop(kind) for kind in [*groups] if some_ran and kind[0] == "skipped"}
    rows = [[kind[0], str(len(found)), *found[0]] for kind, found in groups.items()]
    if rows:
        show_table(["status", "points", "the first", "reason"], rows[:MAX_REASONS])
    if len(rows) > MAX_REASONS:
        say(f"... and {len(rows) - MAX_REASONS} more reasons")
    if left_out:
        count = many(sum(map(len, left_out.values())), "point")
        why = many(len(left_out), "reason")
        say(f"{count} skipped, for {why}: see `What did not run, and why` on the report's page")


def show_files(report: RunReport | PaperReport | None, records: Path | None = None) -> None:
    """What could not be drawn, then the page to open, or the records where there is none."""
    for sentence in getattr(report, "not_made", ()):
        say(sentence)
    if report is not None:
        pages = {path.suffix: path for path in report.paths if path.stem == report.paths[0].stem}
        page = pages.get(".html", report.paths[0])
        say(page.absolute().as_uri() if page.suffix == ".html" else str(page), bullet="Page   ")
    elif records is not None:
        say(str(records), bullet="Records   ")


def show_paths(paths: Iterable[Path]) -> None:
    """A line for each file."""
    for path in paths:
        say(str(path))


def show_claims(table: Table) -> None:
    """The verdict table."""
    from nqbench.analysis.claims.judge import ENUMERATED

    names = [column.name for column in table.columns]
    devices = {row[names.index("device")] for row in table.rows} - {ENUMERATED}
    asked = any(row[names.index("asked of")] for row in table.rows)
    extra = [*["asked of"] * asked, *["device"] * (len(devices) > 1)]
    show_report_table(table, [*SHOWN[:3], *extra, *SHOWN[3:]])


def show_scorecard(card: Scorecard, scores: Table) -> None:
    """The main claims of a paper, those that hold first; what was not measured in one line."""
    say(f"{card.paper.id}: {card.paper.title}")
    say(card.outcome)
    from nqbench.report.papers.tables import scorecard_table

    brief = scorecard_table(card, scores.source, spread=False)
    show_table([column.name for column in brief.columns], list(brief.texts()))
    for sentence in scores.notes:
        say(sentence)


def show_paper(report: PaperReport, records: Path | None = None) -> None:
    """The scorecard, all verdicts in one line, and where the files are."""
    show_scorecard(report.card, report.scores)
    counts = Counter(verdict.word for verdict in report.verdicts)
    words = ", ".join(f"{number} {word}" for word, number in counts.items())
    every = f"; nqbench claims {records} has all" if records else ""
    say(f"all {sum(counts.values())} verdicts: {words}{every}")
    show_files(report, records)


def show_verified(found: Verified) -> None:
    """Whether a run is what it says, what is not, and what could not be derived again."""
    faults = sum(len(check.faults) for check in found.checks)
    derived = many(sum(check.derived for check in found.checks), "thing")
    parts = ", ".join(f"{c.name} {c.derived:,}" for c in found.checks if c.derived)
    said = "all as recorded" if found.holds else f"{many(faults, 'fault')}"
    say(f"{printable(found.path)}: {derived} derived again ({parts}), {said}")
    for check in found.checks:
        for fault in check.faults[:MAX_FAULTS]:
            typer.echo(f"  {check.name}: {fault}")  # also with --quiet
        if more := check.faults[MAX_FAULTS:]:
            say(f"  {check.name}: ... and {len(more)} more; --json has all")
    for sentence in (sentence for check in found.checks for sentence in check.left):
        say(sentence, bullet="  not derived: ")


def show_comparison(findings: Findings, paths: Sequence[Path]) -> None:
    """The verdict, the best variant of each side, what each change does there, what changes order,
    within one device the points that changed most, what is missing, and the files."""
    from nqbench.analysis.compare import wording
    from nqbench.report import comparison as tables

    for sentence in wording.verdicts(findings):
        say(sentence)
    _tables(tables.at_a_glance(findings))
    _paragraph([*wording.turned(findings)])
    if not findings.several_devices:
        _tables(tables.changed(findings))
    equal = all(comparison.equal_everywhere for comparison in findings.comparisons)
    _paragraph([*wording.missing(findings), *(() if equal else findings.notes)])
    if paths:
        show_paths(paths)
    elif not equal:
        say("--format html: a page with every point; --out FOLDER: all tables", bullet="More   ")


def _tables(shown: Iterable[Table]) -> None:
    for table in shown:
        say("")
        show_report_table(table, source=False)


def _paragraph(told: Sequence[str]) -> None:
    for sentence in ["", *told] if told else []:
        say(sentence)


@dataclass
class Races:
    """What is known of them. ``command`` looks for them. A kernel of nqbench's (not ``own``) is
    checked by its tests."""

    command: str
    own: bool = True
    found: Checked | None = None

    @property
    def mistakes(self) -> bool:
        """Whether something is wrong."""
        return self.found is not None and bool(self.found.mistakes)

    def show_mistakes(self, outcome: RunOutcome) -> None:
        """The mistakes that were found; else where to look if something is wrong."""
        if self.found is not None and self.found.checked:
            for mistake in self.found.mistakes:
                show_mistake(mistake)
        elif any(r.status == "wrong" or SIGNS.search(r.reason) for r in outcome.failures):
            say(f"A race or a stray access? `{self.command}` looks for both")

    def line(self) -> str:
        """``races: none found at N = 64 (8 configurations, 1.2 s)``."""
        if self.found is None or not self.found.checked:
            return f"races: not checked ({self.command})"
        found = self.found
        kinds = Counter(mistake.first.kind for mistake in found.mistakes)
        what = ", ".join(f"{kind} ({n})" for kind, n in kinds.items())
        what = str(kinds.total()) if {*kinds} == {"race"} else what or "none"
        every = len(found.checked) + len(found.late)
        of = f"{len(found.checked)} of " if found.late else ""
        sizes = ", ".join(map(str, found.sizes))
        said = f"races: {what} found at N = {sizes} ({of}{many(every, 'configuration')},"
        said += f" {duration(found.wall_s)})"
        return said + (f"; for the others: {self.command}" if found.late else "")


def look_for_races(
    study: Study, config: object, outcomes: Sequence[RunOutcome], spec: str
) -> Races | None:
    """Check the configurations of a study's own kernel at their smallest sizes in the simulator.

    Without those that did not run. An empty ``spec`` stands for several devices, and nothing is
    checked then; ``None`` where no kernel ran.
    """
    from nqbench.devices.registry import facts_for, open_simulator
    from nqbench.inspection import check_points, points_that_ran

    races = Races(f"nqbench check {config}", own=":" in study.workload)
    if study.kernel is None:
        return None if study.workload == "programs" else races
    if not spec.startswith("sim") or any(outcome.interrupted for outcome in outcomes):
        return races
    ran = points_that_ran(study, facts_for(spec), outcomes)
    if not ran:
        return None
    limit_s = max(CHECK_S, *(outcome.wall_s for outcome in outcomes))
    with progress() as listener:
        model = ":".join(spec.split(":")[:2])  # neither an order nor caches matter for a race
        races.found = check_points(ran, open_simulator(model, checked=True), listener, limit_s)
    return races
