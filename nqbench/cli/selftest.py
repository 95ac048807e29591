"""The command ``selftest``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nqbench.cli.exit_codes import EXIT_FAILED, wrong_request
from nqbench.cli.measuring import choose
from nqbench.cli.options import Budget, RunFolder, budget_seconds, command_line

if TYPE_CHECKING:
    from nqbench.selftest.statistics import SelfTest


def selftest(
    run: Annotated[
        Path | None,
        typer.Argument(metavar="RUN", help="Judge a recorded self-test again; measures nothing."),
    ] = None,
    trials: Annotated[
        int | None, typer.Option("--trials", help="Trials per kind of noise (default 4000).")
    ] = None,
    device: Annotated[
        str | None,
        typer.Option("--device", "-d", help="Measure identical kernels on this device instead."),
    ] = None,
    out: RunFolder = None,
    budget: Budget = None,
) -> None:
    """Compare identical code with itself: are the statistics right? Exit code 1 if not."""
    from nqbench.cli.show.console import note
    from nqbench.cli.show.selftest import show_self_test
    from nqbench.selftest.device import judge_run
    from nqbench.selftest.statistics import TRIALS, self_test
    from nqbench.selftest.trials import SCENARIOS
    from nqbench.system.machine import cpu_count

    _check(run, trials, device, out, budget)
    if run is not None:
        with wrong_request():
            result = judge_run(run)
    elif device is None:
        processes = min(cpu_count(), len(SCENARIOS))
        result = self_test(TRIALS if trials is None else trials, processes=processes, progress=note)
    else:
        result = _on_device(choose(device), out, budget)
    show_self_test(result)
    if not result.passed:
        raise typer.Exit(EXIT_FAILED)


def _check(
    run: Path | None, trials: int | None, device: str | None, out: Path | None, budget: str | None
) -> None:
    """Refuse options that cannot be combined."""
    from nqbench.errors import StudyError

    given = {"--trials": trials, "--device": device, "--out": out, "--budget": budget}
    named = [option for option, value in given.items() if value is not None]
    if run is not None and named:
        raise StudyError(
            f"{named[0]} is for a self-test that measures; {run} is only judged again:"
            " give the run alone, or leave it out"
        )
    if device is None and (out is not None or budget is not None):
        raise StudyError("--out and --budget belong to a run on a device: add --device cuda:0")
    if device is not None and trials is not None:
        raise StudyError("--trials is for the test device; on a device each pair is one trial")


def _on_device(spec: str, out: Path | None, budget: str | None) -> SelfTest:
    from nqbench.cli.show.console import note
    from nqbench.cli.show.progress import progress
    from nqbench.selftest.device import run_self_test

    budget_s = budget_seconds(budget)
    with progress() as listener:
        result, path = run_self_test(
            spec, out, budget_s=budget_s, listener=listener, command=command_line()
        )
    note(f"records: {path}")
    return result
