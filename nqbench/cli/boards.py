"""The command ``boards``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def boards(
    n: Annotated[int, typer.Argument(metavar="N", help="Queens of a board, from 4.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write, .npz.")],
    count: Annotated[int, typer.Option("--count", "-c", help="Different boards.")] = 10,
    seed: Annotated[int, typer.Option("--seed", "-s", help="Of the searches.")] = 1,
    device: Annotated[
        str, typer.Option("--device", "-d", help="auto, cuda:0, sim:NAME or cpu.")
    ] = "auto",
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Find different valid boards by annealing, verify them, and write them as a data set.

    The set depends on N, seed and count only, not on the device.
    """
    from nqbench.cli import measuring as actions
    from nqbench.cli.show import console as terminal
    from nqbench.solve.boards import check, check_target, find_boards
    from nqbench.workloads.fitness.board_set import write_board_set

    choice = actions.choose(device)
    check(n, count, seed, choice.spec)
    check_target(out, force=force)
    if device == "auto":
        terminal.note(choice.why)
    found = find_boards(n, count, seed, choice.spec)
    write_board_set(out, found)
    terminal.note(
        f"{len(found)} different boards of {n} queens, each verified:"
        f" {found.system} on {found.device}, {found.searches} searches of seed {seed}"
    )
    typer.echo(str(out))


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command()(boards)
