"""The command ``count``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nqbench.cli.options import Device


def count(
    n: Annotated[int, typer.Argument(metavar="N", help="Board size, 1 to 27.")],
    device: Device = "auto",
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Append finished parts of a long count on the CPU; the same command resumes it.",
        ),
    ] = None,
) -> None:
    """Count the solutions for N queens by the fastest verified path; without a GPU, on the CPU."""
    from nqbench.cli.show.console import note
    from nqbench.solve.count import check_size, choose, count_solutions

    check_size(n)  # before anything about devices
    choice = choose(device)
    if device == "auto":
        note(choice.why)
    result = count_solutions(n, choice.spec, log)
    typer.echo(f"a({result.n}) = {result.value}")
    typer.echo(result.how)
