"""Tables as GitHub Markdown."""

from __future__ import annotations

import re

from nqbench.report.table import Table

_SPECIAL = re.compile(r"([\\|`*_<>\[\]])")


def escape(text: str) -> str:
    """Make text safe inside a cell or a sentence."""
    return _SPECIAL.sub(r"\\\1", text).replace("\n", " ")


def code(text: str) -> str:
    """A command as inline code, also where it holds back-ticks or pipes."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}".replace("\n", " ")


class Markdown:
    """Markdown with right-aligned numbers."""

    suffix = ".md"

    def render(self, table: Table) -> str:
        """The table with its heading, source and notes."""
        return f"# {escape(table.title)}\n\n{body(table)}\n"


def body(table: Table) -> str:
    """The table without its heading."""
    lines = [f"{escape(str(table.source))}. Made by {code(table.source.command)}.", ""]
    lines.append("| " + " | ".join(escape(c.heading) for c in table.columns) + " |")
    lines.append("|" + "|".join("---" if c.kind == "text" else "---:" for c in table.columns) + "|")
    lines += ["| " + " | ".join(escape(cell) for cell in row) + " |" for row in table.texts()]
    if table.notes:
        lines += ["", *(f"- {escape(note)}" for note in table.notes)]
    return "\n".join(lines)
