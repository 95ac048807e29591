"""The command ``check``."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from nqbench.cli import completion
from nqbench.cli.exit_codes import EXIT_FAILED
from nqbench.cli.options import Json

SIMULATOR: Final = "sim:mini"
Subject = Annotated[
    str,
    typer.Argument(
        metavar="SYSTEM|CONFIG",
        help="A system, or a study (file or name).",
        autocompletion=completion.systems_or_studies,
    ),
]
Conditions = Annotated[
    list[str] | None,
    typer.Option("--point", metavar="FACTOR=LEVEL", help="Only such points; repeatable."),
]
Sizes = Annotated[
    list[int] | None,
    typer.Option("--n", help="Size; repeatable. Default: the smallest of each configuration."),
]
Simulator = Annotated[
    str,
    typer.Option(
        "--device",
        "-d",
        help="sim:MODEL or sim:MODEL:ORDER.",
        autocompletion=completion.simulators,
    ),
]


def check(
    subject: Subject,
    point: Conditions = None,
    n: Sizes = None,
    device: Simulator = SIMULATOR,
    as_json: Json = False,
) -> None:
    """Look for memory errors, races and divergent barriers, in the simulator; needs no GPU."""
    import json

    from nqbench.cli.show.check import show_checked
    from nqbench.cli.show.console import note
    from nqbench.cli.show.progress import progress
    from nqbench.devices.registry import open_simulator
    from nqbench.inspection import check_points
    from nqbench.study.chosen import chosen_points

    simulator = open_simulator(device, checked=True)
    points = chosen_points(subject, simulator.facts, point or (), n or (), warn=note)
    with progress() as listener:
        found = check_points(points, simulator, listener)
    if as_json:
        mistakes = [mistake.as_json() for mistake in found.mistakes]
        others = {"skipped": found.skipped, "failed": found.failed}
        data = {"subject": subject, "device": simulator.spec, "checked": found.checked}
        typer.echo(json.dumps({**data, **others, "findings": mistakes}, indent=2))
    else:
        show_checked(found)
    if found.mistakes or found.failed or not found.checked:
        raise typer.Exit(EXIT_FAILED)
