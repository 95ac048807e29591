"""The command ``run``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nqbench.cli.exit_codes import EXIT_INTERRUPTED, exit_code
from nqbench.cli.measuring import choose, conclude, measure, measure_on
from nqbench.cli.options import (
    Budget,
    ClusterFile,
    Config,
    Device,
    Fresh,
    Gpus,
    Insecure,
    Json,
    Quiet,
    RunFolder,
    Scheduler,
    budget_seconds,
)
from nqbench.errors import StudyError

if TYPE_CHECKING:
    from nqbench.study import Study


def run(
    config: Config,
    device: Device = "auto",
    out: RunFolder = None,
    fresh: Fresh = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the points and an estimate; run nothing.")
    ] = False,
    budget: Budget = None,
    no_report: Annotated[
        bool, typer.Option("--no-report", help="Measure only; draw nothing.")
    ] = False,
    gpus: Gpus = None,
    scheduler: Scheduler = None,
    cluster: ClusterFile = None,
    insecure: Insecure = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure a study and write its tables and figures."""
    from nqbench.cli.show.console import hush
    from nqbench.study import load_study

    hush(quiet)
    budget_s = budget_seconds(budget)
    study = load_study(config)
    many = (gpus, scheduler, cluster) != (None, None, None)
    if dry_run:
        if many:
            raise StudyError("--dry-run plans for one device of this computer; name no cluster")
        _dry_run(study, choose(device, study.needs), as_json=as_json)
        return
    if many:
        way = (gpus, scheduler, cluster, insecure)
        outcomes = measure_on(way, study, device, out=out, fresh=fresh, budget_s=budget_s)
    else:
        outcomes = [
            measure(study, choose(device, study.needs), out=out, fresh=fresh, budget_s=budget_s)
        ]
    conclude(outcomes, draw=not no_report, as_json=as_json)
    if any(outcome.interrupted for outcome in outcomes):
        raise typer.Exit(EXIT_INTERRUPTED)
    if code := max(map(exit_code, outcomes)):
        raise typer.Exit(code)


def _dry_run(study: Study, spec: str, *, as_json: bool) -> None:
    """Show the points, how long they may take, and what the report cannot show."""
    from nqbench.cli.show.as_json import planned, print_json
    from nqbench.cli.show.console import note
    from nqbench.cli.show.points import show_points
    from nqbench.devices.registry import facts_for
    from nqbench.measure.forecast import estimate
    from nqbench.report.writer import report_problems
    from nqbench.study import expand

    facts = facts_for(spec)
    points = expand(study, facts, warn=note)
    estimate_s = estimate(points, study, spec)
    if as_json:
        print_json(planned(points, estimate_s))
    else:
        show_points(points, estimate_s)
    for entry, problem in report_problems(study.as_json(), points, facts):
        note(f"{study.source.place(('report', entry))}: {problem}")
