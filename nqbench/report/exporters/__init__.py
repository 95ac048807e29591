"""Exporters: one per format, behind one interface.

A new format is one file with a class like these and one line in :data:`EXPORTERS`.
"""

from __future__ import annotations

from typing import Final, Protocol

from nqbench.errors import StudyError
from nqbench.report.exporters.csv import Csv
from nqbench.report.exporters.html import Html
from nqbench.report.exporters.latex import Latex
from nqbench.report.exporters.markdown import Markdown
from nqbench.report.table import Table


class Exporter(Protocol):
    """Writes a table in one format."""

    suffix: str
    """File name ending, with its dot."""

    def render(self, table: Table) -> str:
        """The whole file."""


EXPORTERS: Final[dict[str, Exporter]] = {
    "md": Markdown(),
    "csv": Csv(),
    "tex": Latex(),
    "html": Html(),
}


def exporter(name: str) -> Exporter:
    """Look a format up. Raises ``StudyError`` for an unknown one."""
    try:
        return EXPORTERS[name]
    except KeyError:
        known = ", ".join(EXPORTERS)
        raise StudyError(f"no table format is called {name!r}; known: {known}") from None
