"""The command ``import``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def import_(
    form: Annotated[str, typer.Argument(metavar="FORMAT", help="kernel_tuner (its T1 files).")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to import.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Study file; standard output without it.")
    ] = None,
) -> None:
    """Make a study of another program's tuning space."""
    from nqbench.cli.show.console import note
    from nqbench.interchange import import_study

    text, notes = import_study(form, file, out)
    typer.echo(text if out is None else str(out), nl=out is not None)
    for sentence in notes:
        note(sentence)
