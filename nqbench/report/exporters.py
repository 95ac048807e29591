"""Tables as Markdown, CSV and LaTeX; the templates of HTML pages.

A new format is a function from a table to the text of its file, and a line in :data:`EXPORTERS`.
"""

from __future__ import annotations

import csv
import io
import re
import tomllib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nqbench.errors import StudyError
from nqbench.report.table import Table

if TYPE_CHECKING:
    from jinja2 import Environment

HTML: Final = "html"
"""The format of whole pages; it has no file per table."""
_NO_CHARACTER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_SPECIAL = re.compile(r"([\\|`*_<>\[\]])")


def markdown(table: Table) -> str:
    """GitHub Markdown with right-aligned numbers: heading, source, table, notes."""
    return f"# {escape(table.title)}\n\n{macro('table_block')(table, ())}"


def macro(name: str) -> Callable[..., str]:
    """What writes a part of a Markdown page: ``table_block`` or ``block_text``."""
    return getattr(templates().get_template("page.md").module, name)  # type: ignore[no-any-return]


def escape(text: str) -> str:
    """Make text safe inside a cell or a sentence of Markdown."""
    return _SPECIAL.sub(r"\\\1", text).replace("\n", " ")


def readable(text: str) -> str:
    """The text with a mark for each character that HTML and XML cannot hold: a program's message
    may have colours or half a letter in it."""
    return _NO_CHARACTER.sub("\ufffd", text)


def code(text: str) -> str:
    """A command as inline code of Markdown, even if it contains back-ticks or pipes."""
    fence = "`" * (1 + max(map(len, re.findall("`*", text))))
    space = " " if "`" in text[:1] + text[-1:] else ""
    return f"{fence}{space}{text}{space}{fence}".replace("\n", " ")


def comma_separated(table: Table) -> str:
    """RFC 4180 with a header line of distinct names; all digits, bounds in columns of their own.

    CSV has no comments that every reader skips, so the device, the provenance and the command are
    the last three columns of every row.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.data_headings)
    writer.writerows(table.data())
    return out.getvalue()


_LATEX_ESCAPES: Final = str.maketrans(
    tomllib.loads(Path(__file__).with_name("latex.toml").read_text(encoding="utf-8"))
)


def latex_escape(text: str) -> str:
    """Make text safe in a LaTeX document."""
    return text.translate(_LATEX_ESCAPES)


def latex(table: Table) -> str:
    """A ``longtable`` with booktabs rules, to be read with ``\\input``.

    It needs the packages booktabs, longtable and textcomp.
    """
    spec = "".join("l" if c.kind == "text" else "r" for c in table.columns)
    return templates().get_template("table.tex").render(table=table, spec=spec)


@cache
def templates() -> Environment:
    """The templates of reports; everything put into those of HTML is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup
    from markupsafe import escape as html_escape

    made = Environment(
        loader=PackageLoader("nqbench.report", "templates"),
        autoescape=lambda name: str(name).endswith(".html"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    # What stands between back-ticks is code.
    coded = partial(re.sub, r"`([^`]+)`", r"<code>\1</code>")
    made.filters["sentence"] = lambda text: Markup(coded(str(html_escape(text))))
    made.filters |= {"latex": latex_escape, "markdown": escape, "code": code}
    return made


EXPORTERS: Final[dict[str, Callable[[Table], str]]] = {
    "md": markdown,
    "csv": comma_separated,
    "tex": latex,
}
"""By the format's name, which is also the ending of its files."""
FIGURE_FORMATS: Final = ("svg", "pdf", "png")
"""Of figures, the default first."""
FORMATS: Final = (*EXPORTERS, *FIGURE_FORMATS, HTML)


def exporter(name: str) -> Callable[[Table], str]:
    """Look a format up. Raises ``StudyError`` for an unknown one."""
    if name not in EXPORTERS:
        raise StudyError(f"no format is called {name!r}; known: {', '.join(FORMATS)}")
    return EXPORTERS[name]
