"""Shared by all commands that measure: choose a device, measure, show, report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nqbench.cli import options
from nqbench.errors import FolderRefused, StoreError

if TYPE_CHECKING:
    from nqbench.measure.events import RunOutcome
    from nqbench.point import Point
    from nqbench.report.items import ReadRun
    from nqbench.report.writer import RunReport
    from nqbench.study import ReportItem, Study


def choose(device: str, name: str = "") -> str:
    """The full name of a device; ``auto`` is a GPU whose name contains ``name``.

    A note says which one ``auto`` chose and why, and what counters of a model are of, whose
    architecture no longer compiles.
    """
    from nqbench.cli.show import console
    from nqbench.devices.registry import choose_device

    choice = choose_device(device, name)
    if device == "auto":
        console.note(f"on {choice.spec}: {choice.why}")
    if choice.remark:
        console.note(f"{choice.spec}: {choice.remark}")
    return choice.spec


def measure(
    study: Study,
    spec: str,
    points: Sequence[Point] | None = None,
    *,
    out: Path | None = None,
    fresh: bool = False,
    budget_s: float | None = None,
) -> RunOutcome:
    """Measure a study with progress. ``points``: in place of those in its file."""
    from nqbench.cli.show.progress import progress
    from nqbench.devices.registry import facts_for
    from nqbench.measure.runner import run_study
    from nqbench.runs.layout import local_folder
    from nqbench.study import expand

    with progress() as listener:
        if points is None:
            study.check_device(spec, facts := facts_for(spec))
            points = expand(study, facts, warn=listener.message)
        return run_study(
            study,
            points,
            spec,
            out or local_folder(study.name, spec),
            fresh=fresh,
            budget_s=budget_s,
            listener=listener,
            command=options.command_line(),
        )


def measure_on(
    target: tuple[str | None, str | None, Path | None, bool],
    study: Study,
    device: str,
    *,
    out: Path | None = None,
    fresh: bool = False,
    budget_s: float | None = None,
) -> list[RunOutcome]:
    """Measure a study on the devices of a cluster, ``target``; a run for each model."""
    from nqbench.cli.show.progress import progress
    from nqbench.cluster.connect import ClusterTarget, connected
    from nqbench.cluster.devices import ClusterSite, wanted
    from nqbench.measure.device_threads import StudyRequest, run_on_site
    from nqbench.runs.layout import local_folder
    from nqbench.study import expand

    with (
        progress() as listener,
        connected(ClusterTarget(*target), listener.message) as cluster,
    ):
        site = ClusterSite(cluster, wanted(cluster, device), study.needs)
        several = len({found.model for found in site.first_devices()}) > 1

        def folder(model: str) -> Path:
            if out is None:
                return local_folder(study.name, model)
            return out / local_folder(study.name, model).parent.name if several else out

        asked = StudyRequest(
            study,
            partial(expand, study, warn=listener.message),
            folder,
            fresh,
            budget_s,
            options.command_line(),
        )
        return run_on_site(asked, site, listener)


def conclude(
    outcomes: Sequence[RunOutcome],
    *,
    draw: bool = True,
    as_json: bool = False,
    items: Sequence[ReportItem] = (),
) -> None:
    """Show how runs ended, tables of them (``items``), their numbers and where their files are.

    ``draw``: write their reports too, unless they were interrupted: whoever stops a run does not
    want to wait for figures.
    """
    from nqbench.cli.show import documents, results
    from nqbench.report.items import read_run

    complete = not any(outcome.interrupted for outcome in outcomes)
    runs, reports = [], []
    for outcome in outcomes:
        measured = complete and outcome.counts.get("ok", 0)
        if not as_json:
            results.show_outcome(outcome)
        report = None
        if measured or as_json:
            run = read_run(outcome.path)
            runs.append(run)
            if not as_json:
                _show_tables(run, items)
                results.show_numbers(run)
            if draw and measured:
                report = _report_measured(run, outcome)
                reports.append(report)
        if not as_json:
            results.show_files(report, outcome.path)
    if as_json:
        documents.print_report(runs, reports, outcomes)


def _show_tables(run: ReadRun, items: Sequence[ReportItem]) -> None:
    if not items:
        return
    from nqbench.cli.show.console import show_report_table
    from nqbench.report.writer import prepare  # takes a while

    for table in (one for item in items for one in prepare(run.data, item)):
        show_report_table(table)


def write(runs: Sequence[ReadRun], out: Path | None, formats: Sequence[str] = ()) -> RunReport:
    """Write tables and figures of runs; what was written, the page first."""
    from nqbench.cli.show.progress import progress
    from nqbench.report.page import FORMATS
    from nqbench.report.writer import write_report
    from nqbench.runs.layout import default_out

    with progress() as row:
        row.status("writing tables and figures")
        target = out or default_out(runs[0].observed.path)
        return write_report(runs, target, formats or FORMATS)


def _report_measured(run: ReadRun, outcome: RunOutcome) -> RunReport:
    """Write the report of a run that this command measured, unless it is up to date."""
    from nqbench.cli.show import console
    from nqbench.report.writer import RunReport
    from nqbench.runs.layout import default_out
    from nqbench.runs.reading import RECORDS

    page, records = default_out(outcome.path) / "report.md", outcome.path / RECORDS
    drawn = page.exists() and page.stat().st_mtime >= records.stat().st_mtime
    if outcome.unchanged and drawn:
        console.note("nothing was measured; the report is up to date")
        return RunReport((page,), (), ())
    try:
        return write([run], None)
    except FolderRefused as error:  # exit code 2 would say that nothing was run
        raise StoreError(str(error)) from error
