"""The command ``static``."""

from __future__ import annotations

from typing import Annotated

import typer

from nqbench.cli.options import Config


def static(
    config: Config,
    arch: Annotated[
        str, typer.Option("--arch", help="Architectures, separated by commas.")
    ] = "sm_75,sm_80,sm_90,sm_120",
    sass: Annotated[
        bool, typer.Option("--sass", help="Count machine code too (needs nvdisasm).")
    ] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Comma-separated values.")] = False,
) -> None:
    """Registers, spills, shared memory and occupancy of every point; needs no GPU."""
    from nqbench.cli.show.console import note
    from nqbench.cli.show.progress import progress
    from nqbench.cli.show.tables import show_rows
    from nqbench.measure.static import static_rows
    from nqbench.study import expand, load_study

    archs = [name.strip() for name in arch.split(",") if name.strip()]
    study = load_study(config)
    with progress() as listener:
        rows = static_rows(lambda facts: expand(study, facts), archs, listener, sass=sass)
    if rows:
        show_rows(rows, csv=csv)
    else:
        note("no point of this study is a GPU kernel: there is nothing to compile")
