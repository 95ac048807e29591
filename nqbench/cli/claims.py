"""The command ``claims``."""

from __future__ import annotations

from typing import Annotated

import typer

from nqbench.cli import completion
from nqbench.cli.options import CpuBaseline, Full, Json, Quiet, Runs


def claims(
    runs: Runs,
    paper: Annotated[
        str | None,
        typer.Option(
            "--paper",
            help="Judge this paper's claims; default: the papers of the runs.",
            autocompletion=completion.papers,
        ),
    ] = None,
    cpu: CpuBaseline = None,
    full: Full = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Judge every claim of a paper by recorded runs (exit code 0 whatever the verdicts)."""
    from nqbench.cli.show.as_json import claims_json, print_json
    from nqbench.cli.show.claims import show_claims
    from nqbench.cli.show.console import hush, note
    from nqbench.cli.show.outcome import note_incomplete
    from nqbench.report.papers.write import claims_tables

    hush(quiet)
    if full:
        note("counting on large boards where the numbers are not cached yet: minutes, once")
    note_incomplete(runs)
    tables = claims_tables(runs, paper, full=full, cpu=cpu)
    if as_json:
        print_json(claims_json(tables))
        return
    for table in tables.values():
        show_claims(table)
