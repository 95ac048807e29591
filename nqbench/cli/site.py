"""The command ``site``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nqbench.cli import completion
from nqbench.cli.options import command_line


def site(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN]...",
            help="Run folders; default: every one under results/reference.",
            autocompletion=completion.runs,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the pages; default: plots/site.")
    ] = None,
) -> None:
    """Build linked HTML pages of papers, runs and comparisons; open index.html in a browser."""
    from nqbench.cli.show.console import say
    from nqbench.cli.show.outcome import note_incomplete
    from nqbench.report.site import SITE, write_site
    from nqbench.system.files import shown_command

    note_incomplete(runs or ())
    for path in write_site(out or SITE, runs or (), shown_command(command_line())):
        say(str(path))
