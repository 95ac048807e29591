"""The command ``doctor``."""

from __future__ import annotations

from typing import Annotated

import typer

from nqbench.cli.exit_codes import EXIT_FAILED
from nqbench.cli.options import Json


def doctor(
    device: Annotated[
        str, typer.Option("--device", "-d", help="The device you want: auto, cuda:0, sim or cpu.")
    ] = "auto",
    as_json: Json = False,
) -> None:
    """Show what this machine has and lacks, and the commands that fix it; changes nothing.

    Exit code 1 if something is missing that the device needs.
    """
    import json

    from nqbench.cli.show.doctor import show_doctor
    from nqbench.doctor import examine

    report = examine(device)
    if as_json:
        typer.echo(json.dumps(report.as_json(), indent=2))
    else:
        show_doctor(report)
    if not report.usable:
        raise typer.Exit(EXIT_FAILED)
