"""The result of a self-test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nqbench.cli.show.console import say
from nqbench.cli.show.tables import show_table

if TYPE_CHECKING:
    from nqbench.selftest.statistics import SelfTest


def show_self_test(result: SelfTest) -> None:
    """Every rate with its bounds and its limit, then how many limits are broken."""
    rows = []
    for f in result.findings:
        low, high = f.rate.bounds()
        verdict = "" if not f.limit else "holds" if f.holds else "BROKEN"
        rates = [f"{f.rate.value:.2%}", f"{low:.2%} to {high:.2%}", str(f.rate.trials)]
        rows.append([f.scenario, f.design, f.what, *rates, f.limit, verdict])
    show_table(["noise", "design", "what", "rate", "95% bounds", "of", "limit", ""], rows)
    for note in result.notes:
        say(note)
    broken = sum(not f.holds for f in result.findings)
    say("every limit holds" if result.passed else f"{broken} limits are BROKEN")
