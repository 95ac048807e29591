"""The command ``count``."""

from __future__ import annotations

from pathlib import Path

import typer

from nqbench.cli import options
from nqbench.cli.options import argument, option


def count(
    n: int | None = argument("N", "Board size, 1 to 27.", None),
    device: options.DeviceName = "auto",
    log: Path | None = option(
        "--log FILE", "Append finished chunks of a long count; run again, it goes on.", None
    ),
    predict: bool = option(
        "--estimate", "Count nothing: say what N would cost on 1, 8 and 1,000 GPUs.", False
    ),
    gpus: options.Gpus = None,
    scheduler: options.Scheduler = None,
    cluster: options.ClusterPath = None,
    insecure: options.Insecure = False,
) -> None:
    """Count the solutions for N queens, as fast as this machine can.

    On a GPU by the fastest verified kernel, else on all cores of the CPU.
    """
    from nqbench.cli.show import console
    from nqbench.cli.show.progress import progress
    from nqbench.count.solutions import check_size, choose, count_solutions, estimate
    from nqbench.errors import StudyError

    if n is None:
        raise StudyError("count needs a board size: nqbench count 16")
    target = options.cluster_target(gpus, scheduler, cluster, insecure)
    if predict:
        if log or target:
            raise StudyError("--estimate counts nothing; leave --log and the cluster out")
        typer.echo(estimate(n, device))
        return
    check_size(n)  # before anything about devices
    with progress() as row:

        def tell(share: float, rate: float, left_s: float) -> None:
            left = console.duration(max(1, round(left_s)))
            row.status(f"a({n}): {share:.1%}, {rate:.3g} solutions/s, {left} left")

        if target:
            from nqbench.count.cluster import count_on

            result = count_on(target, n, device, log, console.note, tell)
        else:
            chosen = choose(device)
            if device == "auto":
                console.note(chosen.why)
            result = count_solutions(n, chosen.spec, log, tell)
    typer.echo(f"a({result.n}) = {result.value}")
    typer.echo(result.how)
