"""The command ``roofline``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nqbench.cli import completion
from nqbench.cli.options import Formats, OutFolder


def roofline(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Runs of one GPU.", autocompletion=completion.runs),
    ],
    ceilings: Annotated[
        Path | None,
        typer.Option(
            "--ceilings", help="Run of the study ceilings on that GPU; default: next to the runs."
        ),
    ] = None,
    counters: Annotated[
        list[Path] | None,
        typer.Option("--counters", help="Simulated run of the same points; repeatable."),
    ] = None,
    out: OutFolder = None,
    formats: Formats = None,
) -> None:
    """Compare timed kernels with their GPU's limits: bytes, FP32 and integer operations.

    Their operations come from a profiler (studies with `counters: ncu`) or a simulated run.
    """
    from nqbench.cli.show.outcome import note_incomplete, show_paths
    from nqbench.cli.show.tables import show_report_table
    from nqbench.report.roofline import write_roofline

    note_incomplete([*runs, *(counters or ())])
    written = write_roofline(runs, ceilings, counters or (), out, formats or ())
    for table in written.tables:
        show_report_table(table)
    show_paths(written.paths)
