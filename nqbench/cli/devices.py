"""The command ``devices``."""

from __future__ import annotations

from typing import Annotated

import typer

from nqbench.cli import completion
from nqbench.cli.options import Json, Quiet


def devices(
    model: Annotated[
        str,
        typer.Argument(
            help="A model of the simulator (gtx480, my_gpu.yaml).",
            autocompletion=completion.models,
        ),
    ] = "",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the devices of this machine, or the facts of one model with their sources."""
    from nqbench.cli.show.as_json import print_json, rows_json
    from nqbench.cli.show.console import hush
    from nqbench.cli.show.tables import show_rows
    from nqbench.devices.registry import list_devices, model_facts

    hush(quiet)
    rows = model_facts(model) if model else list_devices()
    if as_json:
        print_json(rows_json(rows))
    else:
        show_rows(rows)
