"""The command ``report``."""

from __future__ import annotations

from nqbench.cli import measuring
from nqbench.cli.options import Formats, OutFolder, Runs


def report(runs: Runs, out: OutFolder = None, formats: Formats = None) -> None:
    """Write the tables and figures of recorded runs."""
    from nqbench.cli.show.outcome import note_incomplete

    note_incomplete(runs)
    measuring.report(runs, out, formats or ())
