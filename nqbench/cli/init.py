"""The command ``init``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the study; NAME.yaml.")],
    kernel: Annotated[
        bool, typer.Option("--kernel", help="A study of a kernel of your own, with its NAME.cu.")
    ] = False,
) -> None:
    """Write a commented study to start from: NAME.yaml in this folder."""
    from nqbench.study.packaged import write_template

    name = name.removesuffix(".yaml")
    path = Path(f"{name}.yaml")
    written = write_template(name, path, kernel=kernel)
    named = " and ".join(map(str, written))
    typer.echo(f"{named}: edit it, then `nqbench run {path} --dry-run` shows its points")
