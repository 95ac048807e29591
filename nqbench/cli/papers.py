"""The commands about papers: ``claims`` and ``reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nqbench.cli.exit_codes import EXIT_INTERRUPTED, exit_code

FullOption = Annotated[
    bool,
    typer.Option("--full", help="Let deterministic counts walk large trees (minutes, once)."),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(claims)
    app.command()(reproduce)


def claims(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")],
    paper: Annotated[
        str | None, typer.Option("--paper", help="Whose claims; default: the runs' own papers.")
    ] = None,
    full: FullOption = False,
) -> None:
    """Judge every claim of a paper by recorded runs (exit code 0 whatever the verdicts)."""
    from nqbench.cli import reproducing as paper_actions
    from nqbench.cli.show import console as terminal
    from nqbench.cli.show import papers as paper_terminal

    if full:
        terminal.note("walking the large trees where they are not known yet: minutes, once")
    terminal.tell_incomplete(runs)
    for table, _ in paper_actions.claims(runs, paper, full=full):
        paper_terminal.show_claims(table)


def reproduce(
    papers: Annotated[list[str], typer.Argument(metavar="PAPER...", help="Papers by name.")],
    device: Annotated[
        str, typer.Option("--device", "-d", help="auto, cuda:0, sim:NAME, cpu or replay:RUN.")
    ] = "auto",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder to write into (one paper only).")
    ] = None,
    budget: Annotated[
        str | None, typer.Option("--budget", help="Time for each run: 90s, 10m, 1h.")
    ] = None,
    recorded: Annotated[
        bool, typer.Option("--recorded", help="Run nothing: use every run under results/.")
    ] = False,
    full: FullOption = False,
) -> None:
    """Run a paper's experiments again; write its tables, figures and verdicts."""
    from nqbench.cli import reproducing as paper_actions
    from nqbench.cli.show import console as terminal
    from nqbench.cli.show import papers as paper_terminal
    from nqbench.errors import NothingRuns, StudyError

    if out is not None and len(papers) > 1:
        raise StudyError("--out takes one paper; leave it out for several")
    if recorded and (device != "auto" or budget is not None):
        given = "--budget" if device == "auto" else "--device"
        raise StudyError(
            f"--recorded runs nothing, so that {given} has no meaning; drop one of them"
        )
    for name in papers:
        paper_actions.study_of(name)  # a wrong name is said before anything is run
    if recorded:
        for report in paper_actions.report_recorded(papers, out, full=full):
            paper_terminal.show_paper(report)
        for name in paper_actions.never_run(papers):
            terminal.note(
                f"{name} was never run here: `nqbench reproduce {name}` does, on a device"
            )
        return
    worst, left_out = 0, 0
    for name in papers:
        try:
            worst = max(worst, _reproduce(name, device, out, budget, full))
        except NothingRuns as error:
            left_out += 1
            if left_out == len(papers):
                raise
            terminal.note(f"{name} is left out: {error}")
        if worst == EXIT_INTERRUPTED:  # who stops one paper does not want the next
            break
    if worst:
        raise typer.Exit(worst)


def _reproduce(name: str, device: str, out: Path | None, budget: str | None, full: bool) -> int:
    """One paper; the exit code of ``run``."""
    import sys

    from nqbench.cli import measuring as actions
    from nqbench.cli import reproducing as paper_actions
    from nqbench.cli.show import console as terminal
    from nqbench.cli.show import papers as paper_terminal
    from nqbench.study import load_study

    budget_s = actions.budget_seconds(budget)
    study = load_study(paper_actions.study_of(name))
    choice = actions.choose(device)
    if device == "auto":
        terminal.note(choice.why)
    with terminal.progress() as listener:
        outcome = actions.measure(
            study,
            choice.spec,
            out=None,
            fresh=False,
            budget_s=budget_s,
            listener=listener,
            command=["nqbench", *sys.argv[1:]],
        )
    terminal.show_outcome(outcome)
    if outcome.counts.get("ok", 0):
        actions.report([outcome.path], out, ())  # the study's own tables, beside the paper's
        paper_terminal.show_paper(paper_actions.report_paper(name, [outcome.path], out, full=full))
    return exit_code(outcome)
