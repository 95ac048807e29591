"""A kernel's source with its counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nqbench.cli.show.console import console, say
from nqbench.cli.show.tables import show_table
from nqbench.report.explain import NOTE, dearest, listing

if TYPE_CHECKING:
    from nqbench.report.explain import Explained
    from nqbench.report.table import Source


def show_explained(found: Sequence[Explained], source: Source) -> None:
    """For each kernel the dearest lines, then the annotated source."""
    out = console()
    for one in found:
        say(f"{one.title} ({source})")
        show_table(*dearest(one))
        for text in listing(one, out.width):
            out.print(text, markup=False, soft_wrap=True)
        say("")
    if found:
        say(NOTE)
