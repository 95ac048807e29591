"""The command ``report``."""

from __future__ import annotations

from nqbench.cli import measuring
from nqbench.cli.options import Formats, Json, OutFolder, Quiet, Runs


def report(
    runs: Runs,
    out: OutFolder = None,
    formats: Formats = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the numbers of recorded runs; write their tables and figures."""
    from nqbench.cli.show.console import hush
    from nqbench.cli.show.outcome import note_incomplete

    hush(quiet)
    note_incomplete(runs)
    measuring.report(runs, out, formats or (), as_json=as_json)
