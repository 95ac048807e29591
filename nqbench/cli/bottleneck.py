"""The commands ``bottleneck`` and ``roofline``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from nqbench.cli.exit_codes import exit_code


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(bottleneck)
    app.command()(roofline)


def bottleneck(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="SYSTEM... [FACTOR=LEVEL...]", help="Systems, and levels for all of them."
        ),
    ],
    n: Annotated[
        list[int] | None, typer.Option("--n", help="Size; repeatable. Default: the workload's own.")
    ] = None,
    device: Annotated[
        str, typer.Option("--device", "-d", help="auto, cuda:0 or sim:NAME.")
    ] = "auto",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Run folder to write into.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over instead of resuming (old records are kept).")
    ] = False,
) -> None:
    """Time kernels without their arithmetic and without their memory; say what they wait for."""
    from nqbench.cli import ceilings as bottleneck_actions
    from nqbench.cli import measuring as actions
    from nqbench.cli.show import console as terminal
    from nqbench.cli.show import tables as terminal_tables

    study = bottleneck_actions.study_of(words, n or ())
    choice = actions.choose(device)
    if device == "auto":
        terminal.note(choice.why)
    with terminal.progress() as listener:
        outcome = bottleneck_actions.measure(
            study,
            choice.spec,
            out=out,
            fresh=fresh,
            listener=listener,
            command=["nqbench", *sys.argv[1:]],
        )
    terminal.show_outcome(outcome)
    if outcome.counts.get("ok", 0):
        for table in bottleneck_actions.tables(outcome.path):
            terminal_tables.show_table(terminal.console(), table)
        if not outcome.interrupted:
            terminal.show_report(actions.report([outcome.path], None, ()))
    if code := exit_code(outcome):
        raise typer.Exit(code)


def roofline(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Runs of one GPU.")],
    ceilings: Annotated[
        Path | None,
        typer.Option(
            "--ceilings", help="Run of configs/ceilings.yaml on that GPU; default: beside the runs."
        ),
    ] = None,
    counters: Annotated[
        list[Path] | None,
        typer.Option("--counters", help="Simulated run of the same points; repeatable."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the tables and the figure.")
    ] = None,
    formats: Annotated[
        list[str] | None, typer.Option("--format", "-f", help="md, csv, tex, html; repeatable.")
    ] = None,
) -> None:
    """Set timed kernels against what their GPU can do at most: bytes, FP32 and integer operations.

    Their operations come from a profiler (studies with `counters: ncu`) or a simulated run.
    """
    from nqbench.cli import ceilings as bottleneck_actions
    from nqbench.cli.show import console as terminal
    from nqbench.cli.show import tables as terminal_tables

    terminal.tell_incomplete([*runs, *(counters or ())])
    written = bottleneck_actions.roofline(
        runs, ceilings, tuple(counters or ()), out, tuple(formats or ())
    )
    for table in written.tables:
        terminal_tables.show_table(terminal.console(), table)
    for path in written.paths:
        terminal.console().print(str(path), soft_wrap=True, markup=False)
