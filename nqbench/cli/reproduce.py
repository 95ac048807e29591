"""The command ``reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nqbench.cli import completion, measuring
from nqbench.cli.exit_codes import EXIT_INTERRUPTED, exit_code
from nqbench.cli.options import Budget, CpuBaseline, Device, Full, Quiet, budget_seconds


def reproduce(
    papers: Annotated[
        list[str],
        typer.Argument(metavar="PAPER", help="Papers by name.", autocompletion=completion.papers),
    ],
    device: Device = "auto",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder to write into (one paper only).")
    ] = None,
    budget: Budget = None,
    recorded: Annotated[
        bool, typer.Option("--recorded", help="Run nothing: use every run under results/.")
    ] = False,
    cpu: CpuBaseline = None,
    full: Full = False,
    quiet: Quiet = False,
) -> None:
    """Run a paper's experiments again; write its tables, figures and verdicts."""
    from nqbench.cli.show.console import hush, note
    from nqbench.errors import NothingRuns
    from nqbench.papers import paper_folder

    hush(quiet)
    _check(papers, device, out, budget, recorded)
    for name in papers:
        paper_folder(name)  # report a wrong name before anything is run
    if recorded:
        _from_records(papers, out, full, cpu)
        return
    worst, left_out = 0, 0
    for name in papers:
        try:
            worst = max(worst, _reproduce(name, device, out, budget, full, cpu))
        except NothingRuns as error:
            left_out += 1
            if left_out == len(papers):
                raise
            note(f"{name} is left out: {error}")
        if worst == EXIT_INTERRUPTED:  # whoever stops one paper does not want the next
            break
    if worst:
        raise typer.Exit(worst)


def _check(
    papers: list[str], device: str, out: Path | None, budget: str | None, recorded: bool
) -> None:
    """Refuse options that cannot be combined."""
    from nqbench.errors import FolderRefused, StudyError

    if out is not None and len(papers) > 1:
        raise StudyError("--out takes one paper; leave it out for several")
    if out is not None and out.exists() and not out.is_dir():  # before anything is measured
        raise FolderRefused(f"--out {out} is not a folder; give another one")
    if recorded and (device != "auto" or budget is not None):
        given = "--budget" if device == "auto" else "--device"
        raise StudyError(f"--recorded runs nothing, so {given} has no effect; drop one of them")


def _from_records(papers: list[str], out: Path | None, full: bool, cpu: Path | None) -> None:
    from nqbench.cli.show.claims import show_paper
    from nqbench.cli.show.console import note
    from nqbench.report.papers.write import never_run, report_recorded

    for report in report_recorded(papers, out, full=full, cpu=cpu):
        show_paper(report)
    for name in never_run(papers):
        note(f"there is no run of {name} here: `nqbench reproduce {name}` makes one")


def _reproduce(
    name: str, device: str, out: Path | None, budget: str | None, full: bool, cpu: Path | None
) -> int:
    """Reproduce one paper; the exit code is that of ``run``."""
    from nqbench.cli.show.claims import show_decided, show_paper
    from nqbench.cli.show.outcome import show_outcome
    from nqbench.papers import paper_folder
    from nqbench.report.papers.write import report_paper
    from nqbench.report.writer import read_run, write_report
    from nqbench.runs.layout import default_out
    from nqbench.study import load_study

    budget_s = budget_seconds(budget)
    study = load_study(paper_folder(name) / "study.yaml")
    outcome = measuring.measure(study, measuring.choose(device), budget_s=budget_s)
    show_outcome(outcome)
    if outcome.counts.get("ok", 0):
        # The study's own tables, next to the paper's.
        write_report([read_run(outcome.path)], out or default_out(outcome.path))
        made = report_paper(name, [outcome.path], out, full=full, cpu=cpu)
        show_decided(made)
        show_paper(made, outcome.path)
    return exit_code(outcome)
