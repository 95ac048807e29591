"""The command ``devices``."""

from __future__ import annotations

from typing import Annotated

import typer

from nqbench.cli import completion


def devices(
    model: Annotated[
        str,
        typer.Argument(
            help="A model of the simulator (gtx480, my_gpu.yaml).",
            autocompletion=completion.models,
        ),
    ] = "",
) -> None:
    """List the devices of this machine, or the facts of one model with their sources."""
    from nqbench.cli.show.tables import show_rows
    from nqbench.devices.registry import list_devices, model_facts

    show_rows(model_facts(model) if model else list_devices())
