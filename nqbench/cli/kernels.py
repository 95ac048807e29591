"""The command ``kernels``."""

from __future__ import annotations

from typing import Annotated

import typer

from nqbench.cli import completion
from nqbench.cli.options import Json, Quiet


def kernels(
    system: Annotated[
        str | None,
        typer.Argument(
            metavar="SYSTEM",
            help="One system; default: all.",
            autocompletion=completion.systems,
        ),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the systems; with a name, show what that one is made of."""
    from nqbench.cli.show.as_json import print_json, systems_json
    from nqbench.cli.show.console import hush
    from nqbench.cli.show.systems import show_system, show_systems
    from nqbench.workloads import find_system, with_systems

    hush(quiet)
    if as_json:
        chosen = [find_system(system)[0]] if system else with_systems()
        print_json(systems_json(chosen, system))
    elif system is None:
        show_systems(with_systems())
    else:
        show_system(*find_system(system))
