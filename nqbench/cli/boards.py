"""The command ``boards``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nqbench.cli.measuring import choose
from nqbench.cli.options import Device


def boards(
    n: Annotated[int, typer.Argument(metavar="N", help="Queens on a board, from 4.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write, .npz.")],
    count: Annotated[int, typer.Option("--count", "-c", help="Number of different boards.")] = 10,
    seed: Annotated[int, typer.Option("--seed", "-s", help="Seed of the searches.")] = 1,
    device: Device = "auto",
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Find different valid boards by annealing, verify them, and write them as a data set.

    The set depends on N, seed and count only, not on the device.
    """
    from nqbench.cli.show.console import note
    from nqbench.solve.boards import check, check_target, find_boards
    from nqbench.workloads.fitness.board_set import write_board_set

    check(n, count, seed, device)  # before anything about devices
    check_target(out, force=force)
    spec = choose(device)
    found = find_boards(n, count, seed, spec)
    write_board_set(out, found)
    note(
        f"{len(found)} different boards of {n} queens, each verified:"
        f" {found.system} on {found.device}, {found.searches} searches of seed {seed}"
    )
    typer.echo(str(out))
