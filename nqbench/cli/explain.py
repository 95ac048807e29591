"""The command ``explain``."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from nqbench.cli.check import SIMULATOR, Simulator, Sizes, Subject
from nqbench.cli.options import Formats, Json, OutFolder, command_line
from nqbench.errors import StudyError

MAX_POINTS: Final = 6
"""Points whose listings a person still compares."""


def explain(
    subject: Subject,
    point: Annotated[
        list[str] | None,
        typer.Option(
            "--point",
            metavar="FACTOR=LEVEL",
            help="Only such points; FACTOR=LEVEL,LEVEL for several; repeatable.",
        ),
    ] = None,
    n: Sizes = None,
    device: Simulator = SIMULATOR,
    as_json: Json = False,
    out: OutFolder = None,
    formats: Formats = None,
) -> None:
    """Count by source line, in the simulator: executions, lanes, divergence, conflicts, sectors.

    With --out also a page with figures of one warp: its lanes over time, and its banks.
    """
    import json

    from nqbench.cli.show.console import note
    from nqbench.cli.show.explain import show_explained
    from nqbench.cli.show.outcome import show_paths
    from nqbench.devices.registry import facts_for
    from nqbench.inspection import explain_points
    from nqbench.point import varied
    from nqbench.report.explain import write_explained
    from nqbench.report.table import Source
    from nqbench.study.chosen import chosen_points
    from nqbench.system.files import shown_command
    from nqbench.system.suggest import listing

    facts = facts_for(device)
    points = chosen_points(subject, facts, point or (), n or (), warn=note)
    if len(points) > MAX_POINTS:
        differ = listing(["system", *varied(points)] if points[0].system else varied(points), "and")
        raise StudyError(
            f"{subject} has {len(points)} such points, which differ in {differ}; choose at most"
            f" {MAX_POINTS} with --point FACTOR=LEVEL"
        )
    found = explain_points(points, device, trace=out is not None)
    source = Source(facts.name, "simulated", shown_command(command_line()), subject)
    if as_json:
        typer.echo(json.dumps([one.as_json() for one in found], indent=2))
    else:
        show_explained(found, source)
    if out is not None:
        paths = write_explained(found, source, out, formats or ())
        if not as_json:
            show_paths(paths)
