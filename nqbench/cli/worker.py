"""The command ``worker``."""

from __future__ import annotations

from typing import Annotated

import typer

from nqbench.cli import options
from nqbench.cli.options import argument, option


def worker(
    scheduler: Annotated[str, argument("ADDRESS", "Of the scheduler: tcp://HOST:PORT, tls://...")],
    gpus: Annotated[
        str, option("--gpus", "Which GPUs; none: CPU only.", metavar="all|0,1|none")
    ] = "all",
    insecure: options.Insecure = False,
) -> None:
    """Offer this computer's devices to a Dask scheduler, until Ctrl-C or the scheduler's end."""
    from nqbench.cluster.connect import serve

    serve(scheduler, gpus, insecure, typer.echo)
