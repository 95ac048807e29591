"""The command ``kernels``."""

from __future__ import annotations

from typing import Annotated

import typer

from nqbench.cli import completion


def kernels(
    system: Annotated[
        str | None,
        typer.Argument(
            metavar="SYSTEM",
            help="One system; default: all.",
            autocompletion=completion.systems,
        ),
    ] = None,
) -> None:
    """List the systems; with a name, show what that one is made of."""
    from nqbench.cli.show.systems import show_system, show_systems
    from nqbench.workloads import find_system, with_systems

    if system is None:
        show_systems(with_systems())
    else:
        show_system(*find_system(system))
