"""The command ``count``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from nqbench.cli.options import ClusterFile, Device, Gpus, Insecure, Scheduler

REDRAWN_S: Final = 0.2


def count(
    n: Annotated[
        int | None, typer.Argument(metavar="N", help="Board size, 1 to 27.", show_default=False)
    ] = None,
    device: Device = "auto",
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Append finished chunks of a long count; the same command resumes it.",
        ),
    ] = None,
    tuned_from: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="Launch from now on as the fastest point of this run, on GPUs like its own.",
        ),
    ] = None,
    gpus: Gpus = None,
    scheduler: Scheduler = None,
    cluster: ClusterFile = None,
    insecure: Insecure = False,
) -> None:
    """Count the solutions for N queens by the fastest verified path; without a GPU, on the CPU."""
    from nqbench.cli.show.console import note
    from nqbench.errors import StudyError
    from nqbench.solve.count import check_size, choose, count_solutions

    if tuned_from is not None:
        from nqbench.solve.choice import tuned_from as store

        choice, path = store(tuned_from)
        typer.echo(f"{choice.line}\nstored in {path}")
    if n is None:
        if tuned_from is None:
            raise StudyError("count needs a board size: nqbench count 16")
        return
    check_size(n)  # before anything about devices
    if (gpus, scheduler, cluster) != (None, None, None):
        from nqbench.cluster.connect import Way
        from nqbench.cluster.counting import count_on

        way = Way(gpus, scheduler, cluster, insecure)
        with _line(n) as progress:
            result = count_on(way, n, device, log, note, progress)
    else:
        chosen = choose(device)
        if device == "auto":
            note(chosen.why)
        with _line(n) as progress:
            result = count_solutions(n, chosen.spec, log, progress)
    typer.echo(f"a({result.n}) = {result.value}")
    typer.echo(result.how)


@contextmanager
def _line(n: int) -> Iterator[Callable[[float, float, float], None] | None]:
    """One line of progress on a terminal: the share that is done, the rate, the time left."""
    if not sys.stderr.isatty():
        yield None
        return
    from nqbench.cli.show.console import duration

    drawn = 0.0

    def draw(share: float, rate: float, left_s: float) -> None:
        nonlocal drawn
        now = time.monotonic()
        if now - drawn >= REDRAWN_S:
            drawn = now
            text = f"a({n}): {share:.1%}, {rate:.3g} solutions/s, {duration(left_s)} left"
            typer.echo(f"\r\x1b[K{text}", nl=False, err=True)

    try:
        yield draw
    finally:
        if drawn:
            typer.echo("\r\x1b[K", nl=False, err=True)
