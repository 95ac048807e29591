"""The command ``export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nqbench.cli.options import Run


def export(
    run: Run,
    form: Annotated[str, typer.Option("--format", "-f", help="nvbench, kernel_tuner or csv.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File; standard output without it.")
    ] = None,
) -> None:
    """Write a run in the format of another program."""
    from nqbench.interchange import export_run

    text = export_run(run, form, out)
    typer.echo(text if out is None else str(out), nl=out is not None)
