"""Shared by all commands that measure: choose a device, measure, show, report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nqbench.cli.options import command_line
from nqbench.errors import FolderRefused, StoreError

if TYPE_CHECKING:
    from nqbench.measure.events import RunOutcome
    from nqbench.measure.run_state import StudyLike
    from nqbench.measure.runner import Expand
    from nqbench.study import Study


def choose(device: str, name: str = "") -> str:
    """The full name of a device; ``auto`` is a GPU whose name contains ``name``.

    A note says which one ``auto`` chose and why, and what counters of a model are of, whose
    architecture no longer compiles.
    """
    from nqbench.cli.show.console import note
    from nqbench.devices.registry import choose_device

    choice = choose_device(device, name)
    if device == "auto":
        note(f"on {choice.spec}: {choice.why}")
    if choice.remark:
        note(f"{choice.spec}: {choice.remark}")
    return choice.spec


def measure(
    study: StudyLike,
    spec: str,
    *,
    out: Path | None = None,
    fresh: bool = False,
    budget_s: float | None = None,
    expand: Expand | None = None,
) -> RunOutcome:
    """Measure a study with progress, then show the outcome."""
    from nqbench.cli.show.outcome import show_outcome
    from nqbench.cli.show.progress import progress
    from nqbench.measure.runner import run_study
    from nqbench.runs.layout import local_folder
    from nqbench.study import expand as expand_study

    with progress() as listener:
        outcome = run_study(
            study,
            spec,
            out or local_folder(study.name, spec),
            fresh=fresh,
            budget_s=budget_s,
            listener=listener,
            command=command_line(),
            expand=expand or partial(expand_study, warn=listener.message),
        )
    show_outcome(outcome)
    return outcome


def measure_on(
    way: tuple[str | None, str | None, Path | None, bool],
    study: Study,
    device: str,
    *,
    out: Path | None = None,
    fresh: bool = False,
    budget_s: float | None = None,
) -> list[RunOutcome]:
    """Measure a study on the devices of a cluster, ``way``; a run for each model."""
    from nqbench.cli.show.outcome import show_outcome
    from nqbench.cli.show.progress import progress
    from nqbench.cluster.connect import Way, connected
    from nqbench.cluster.places import ClusterSite, wanted
    from nqbench.measure.lanes import Request, run_on_site
    from nqbench.runs.layout import local_folder
    from nqbench.study import expand

    with progress() as listener, connected(Way(*way), listener.message) as cluster:
        site = ClusterSite(cluster, wanted(cluster, device), study.needs)
        several = len({place.model for place in site.first_places()}) > 1

        def folder(model: str) -> Path:
            if out is None:
                return local_folder(study.name, model)
            return out / local_folder(study.name, model).parent.name if several else out

        asked = Request(
            study,
            folder,
            partial(expand, warn=listener.message),
            fresh,
            budget_s,
            command_line(),
        )
        outcomes = run_on_site(asked, site, listener)
    for outcome in outcomes:
        show_outcome(outcome)
    return outcomes


def report(runs: Sequence[Path], out: Path | None = None, formats: Sequence[str] = ()) -> None:
    """Write the tables and figures of runs; show the files and the findings."""
    from nqbench.cli.show.outcome import show_report
    from nqbench.report.writer import write_report
    from nqbench.runs.layout import default_out

    show_report(write_report(runs, out or default_out(runs[0]), formats or ("md", "csv", "tex")))


def report_measured(outcome: RunOutcome) -> None:
    """Write the report of a run that this command measured, unless it is up to date."""
    from nqbench.cli.show.console import note
    from nqbench.runs.layout import default_out
    from nqbench.runs.reading import RECORDS

    page, records = default_out(outcome.path) / "report.md", outcome.path / RECORDS
    drawn = page.exists() and page.stat().st_mtime >= records.stat().st_mtime
    if outcome.unchanged and drawn:
        note(f"nothing was measured; the report is up to date: {page}")
        return
    try:
        report([outcome.path])
    except FolderRefused as error:  # exit code 2 would say that nothing was run
        raise StoreError(str(error)) from error
