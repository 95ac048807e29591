"""The command ``effects``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nqbench.cli import completion
from nqbench.cli.options import CpuBaseline, Formats, Json, OutFolder, command_line


def effects(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN]...",
            help="Runs of papers and of ablations; default: every one under results/.",
            autocompletion=completion.runs,
        ),
    ] = None,
    cpu: CpuBaseline = None,
    out: OutFolder = None,
    formats: Formats = None,
    as_json: Json = False,
) -> None:
    """Show what each change is worth: printed by the papers, measured, simulated; by device."""
    import json

    from nqbench.cli.show.outcome import note_incomplete, show_paths
    from nqbench.cli.show.tables import show_report_table
    from nqbench.report.matrix import write_effects, write_recorded
    from nqbench.system.files import shown_command

    note_incomplete(runs or ())
    command = shown_command(command_line())
    if runs:
        reports = [write_effects(runs, out, command, formats or (), cpu=cpu)]
    else:
        reports = write_recorded(out, command, formats or (), cpu=cpu)
    if as_json:
        typer.echo(json.dumps([row for r in reports for row in r.cells.records()], indent=2))
        return
    for report in reports:
        show_report_table(report.matrix)
        show_paths(report.paths)
