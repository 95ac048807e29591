"""The page that ties a report together: findings, device, command, tables and figures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nqbench.report.exporters.html import environment
from nqbench.report.exporters.markdown import body, code, escape

if TYPE_CHECKING:
    from nqbench.report.writer import Entry, Section

INLINE_ROWS: Final = 30
"""Rows up to which a table stands on the index page; longer ones are linked only."""
_SHOWN_FIRST: Final = (".svg", ".png")


def markdown_page(sections: Sequence[Section], out: Path) -> str:
    """``report.md``."""
    lines: list[str] = []
    for section in sections:
        lines += [f"# {escape(section.title)}: {escape(section.source.device)}", ""]
        if section.about:
            lines += [escape(section.about), ""]
        facts = f"**{escape(section.source.manner)}** on {escape(section.source.device)}"
        lines += [f"{facts}; {section.counts}. Made by {code(section.source.command)}.", ""]
        lines += ["## Findings", "", *(f"- {escape(f)}" for f in section.findings), ""]
        for entry in section.entries:
            lines += _entry(entry, out)
    return "\n".join(lines).rstrip() + "\n"


def _entry(entry: Entry, out: Path) -> list[str]:
    lines = [f"## {escape(entry.title)}", ""]
    if entry.missing:
        return [*lines, escape(entry.missing), ""]
    if entry.drawing is not None:
        picture = _picture(entry)
        if picture is not None:
            lines += [f"![{escape(entry.drawing.alt)}](<{_link(picture, out)}>)", ""]
    if entry.table is not None and len(entry.table.rows) <= INLINE_ROWS:
        lines += [body(entry.table), ""]
    links = [f"[{path.suffix[1:]}](<{_link(path, out)}>)" for path in entry.files]
    size = f"{entry.table.size}: " if entry.table is not None else ""
    return [*lines, size + " · ".join(links), ""] if links else lines


def _picture(entry: Entry) -> Path | None:
    for suffix in _SHOWN_FIRST:
        for path in entry.files:
            if path.suffix == suffix:
                return path
    return None


def _link(path: Path, out: Path) -> str:
    """A link from the index page, with forward slashes."""
    return Path(os.path.relpath(path, out)).as_posix()


def html_page(sections: Sequence[Section], out: Path) -> str:
    """``report.html``."""
    shown: list[dict[str, Any]] = []
    for section in sections:
        entries = []
        for entry in section.entries:
            picture = _picture(entry)
            entries.append(
                {
                    "title": entry.title,
                    "missing": entry.missing,
                    "picture": _link(picture, out) if picture else "",
                    "alt": entry.drawing.alt if entry.drawing else "",
                    "table": entry.table,
                    "rows": list(entry.table.texts()) if entry.table else [],
                    "links": [(path.suffix[1:], _link(path, out)) for path in entry.files],
                }
            )
        shown.append({"section": section, "entries": entries})
    return environment().get_template("report.html").render(sections=shown)
