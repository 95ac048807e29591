"""The command ``scale``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nqbench.cli import completion


def scale(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="Run of counting kernels on a GPU.",
            autocompletion=completion.runs,
        ),
    ],
    system: Annotated[
        str, typer.Option(help="Predict from this system; default: the fastest of the run.")
    ] = "",
    watts: Annotated[
        float | None, typer.Option(help="Power of one GPU; default: as recorded in the run.")
    ] = None,
) -> None:
    """Show what 21 to 28 queens would cost on 1, 8 and 1,000 GPUs, and past predictions' errors."""
    from nqbench.analysis.data.collect import load_dataset
    from nqbench.analysis.scale import scale_of
    from nqbench.cli.show.outcome import note_incomplete
    from nqbench.cli.show.tables import show_report_table
    from nqbench.report.tables.scale import scale_tables

    note_incomplete([run])
    data = load_dataset(run)
    for table in scale_tables(data, scale_of(data, system, watts)):
        show_report_table(table)
