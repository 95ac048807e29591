"""Shared by all commands that measure: choose a device, measure, show, report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nqbench.cli import options, show
from nqbench.errors import FolderRefused, StoreError

if TYPE_CHECKING:
    from nqbench.analysis.answer import Answer
    from nqbench.cli.show.results import Races
    from nqbench.measure.run_state import RunOutcome
    from nqbench.report.writer import RunReport
    from nqbench.study import ReportItem, Study


def choose(device: str, study: str = "") -> str:
    """The full name of a device.

    A note says which one ``auto`` chose and why, once: not if it has a run of ``study`` already.
    Another says what counters of a model are of, whose architecture no longer compiles.
    """
    from nqbench.devices.registry import choose_device
    from nqbench.runs.reading import local_folder

    choice = choose_device(device)
    if device == "auto" and not (study and local_folder(study, choice.spec).exists()):
        gpu = choice.spec.startswith("cuda")
        why = choice.why if gpu else "no CUDA GPU can be used (nqbench doctor says why)"
        show.console.note(f"on {choice.spec}: {why}")
    if choice.remark:
        show.console.note(f"{choice.spec}: {choice.remark}")
    return choice.spec


def measure(study: Study, spec: str, **how: Any) -> RunOutcome:
    """Measure a study with progress; ``how``: further arguments of ``api.measured``."""
    from nqbench import api

    with show.progress.progress() as row:
        return api.measured(study, spec, options.command_line(), listener=row, **how)


def conclude(
    outcomes: Sequence[RunOutcome],
    *,
    draw: bool = True,
    as_json: bool = False,
    items: Sequence[ReportItem] = (),
    races: Races | None = None,
    config: Path | None = None,
) -> None:
    """Show how runs ended, tables of them (``items``), their numbers and where their files are.

    ``draw``: write their reports too, unless they were interrupted: whoever stops a run does not
    want to wait for figures. ``races``: what is known of those in kernels of the user's own.
    ``config``: the study that ``run`` was given.
    """
    from nqbench.analysis.answer import Answer
    from nqbench.analysis.data.dataset import load_dataset

    complete = not any(outcome.interrupted for outcome in outcomes)
    runs, reports = [], []
    for outcome in outcomes:
        measured = bool(complete and outcome.measured)
        run = Answer(load_dataset(outcome.path)) if measured or as_json else None
        if not as_json:
            _show(outcome, run, items, races, config)
        report = _report_measured(run, outcome) if run and draw and measured else None
        if not as_json:
            show.results.show_files(report, outcome.path)
        runs += [run] if run else []
        reports += [report] if report else []
    if as_json:
        check = {"check": races.found.as_json()} if races and races.found else {}
        ended = [
            {"interrupted": one.interrupted, "wall_s": one.wall_s, **check} for one in outcomes
        ]
        print_runs(runs, reports, ended)


def _show(
    outcome: RunOutcome,
    run: Answer | None,
    items: Sequence[ReportItem],
    races: Races | None,
    config: Path | None,
) -> None:
    """What did not run, the tables, the answer of a ``run`` that has one, races, what is next."""
    show.results.show_outcome(outcome, ending=run is None)
    if races:
        races.show_mistakes(outcome)
    if run:
        for item in items:
            from nqbench.report.writer import prepare  # takes a while

            for table in prepare(run.data, item):
                show.console.show_report_table(table)
        show.answer.show_answer(run, show.console.duration(outcome.wall_s))
        show.console.say("")
    if races and races.own:
        show.console.say(races.line())
    if run and config:
        show.answer.show_next(run, config, checked=bool(races and races.found))


def print_runs(
    runs: Sequence[Answer], reports: Sequence[RunReport], ended: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Runs as JSON, what more is known of each (``ended``), and the files written about them."""
    from nqbench.analysis.frames import run_json

    more = ended or [{}] * len(runs)
    found = [
        {**run_json(run, str(run.data.path)), **known}
        for run, known in zip(runs, more, strict=True)
    ]
    files = [str(path) for report in reports for path in report.paths]
    not_made = [sentence for report in reports for sentence in report.not_made]
    show.console.print_json({"runs": found, "files": files, "not_made": not_made})


def write(run: Answer, out: Path | None, formats: Sequence[str] = ()) -> RunReport:
    """Write tables and figures of a run; what was written, the page first."""
    from nqbench.report.writer import write_report

    with show.progress.progress() as row:
        row.status("writing tables and figures")
        return write_report(run, out, formats)


def _report_measured(run: Answer, outcome: RunOutcome) -> RunReport:
    """Write the report of a run that this command measured, unless it is up to date."""
    from nqbench.report.writer import RunReport
    from nqbench.runs.reading import RECORDS, default_out

    page, records = default_out(outcome.path) / "report.html", outcome.path / RECORDS
    drawn = page.exists() and page.stat().st_mtime >= records.stat().st_mtime
    if outcome.unchanged and drawn:
        show.console.note("nothing was measured; the report is up to date")
        return RunReport((page,), ())
    try:
        return write(run, None)
    except FolderRefused as error:  # exit code 2 would say that nothing was run
        raise StoreError(str(error)) from error
