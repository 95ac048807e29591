"""Tables as HTML, by jinja2 with autoescape."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from nqbench.report.table import Table

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment() -> Environment:
    """Templates of the report; everything put into them is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("nqbench.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


class Html:
    """A complete page with one table."""

    suffix = ".html"

    def render(self, table: Table) -> str:
        """The whole file."""
        page = environment().get_template("table.html")
        return page.render(title=table.title, table=table, rows=list(table.texts()))
