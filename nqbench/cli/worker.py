"""The command ``worker``."""

from __future__ import annotations

from typing import Annotated

import typer

from nqbench.cli.options import Insecure


def worker(
    scheduler: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="Of the scheduler: tcp://HOST:PORT, tls://...")
    ],
    gpus: Annotated[
        str, typer.Option("--gpus", metavar="all|0,1|none", help="Which GPUs; none: CPU only.")
    ] = "all",
    insecure: Insecure = False,
) -> None:
    """Offer this computer's devices to a Dask scheduler, until Ctrl-C or the scheduler's end."""
    from nqbench.cluster.worker import serve

    serve(scheduler, gpus, insecure, typer.echo)
