"""Where text and tables go: a terminal, wrapped at words, or a file or pipe, a line per sentence.

Tables keep every cell, however narrow the terminal. Only ``show`` and the commands print.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from nqbench.system.files import harmless

if TYPE_CHECKING:
    from nqbench.report.table import Table as ReportTable

HANG: Final = 4
"""Indent of a paragraph, and of further lines where theirs would take more than two thirds."""
_asked: Final = {"quiet": False}
EMPTY: Final = "\u2013"
"""An empty cell of a report's table, which a paragraph leaves out."""
MAX_LINES: Final = 6
"""Lines of a cell beyond which a paragraph is easier to read on a terminal."""


def console(stderr: bool = False) -> Console:
    """A console; wide when piped, so that tables are not folded in a log."""
    made = Console(stderr=stderr, highlight=False, emoji=False, quiet=_asked["quiet"])
    if not made.is_terminal:
        made.width = 220  # of a file or a pipe: wide enough not to fold a name
    return made


def print_json(data: object) -> None:
    """Print a document on standard output, whatever is quiet. docs/reading-results.md has all."""
    typer.echo(json.dumps(data, indent=2, allow_nan=False))


def hush(quiet: bool) -> None:
    """``--quiet``: consoles print nothing from now on."""
    _asked["quiet"] = quiet


def note(text: str) -> None:
    """Print a sentence about progress to standard error."""
    say(text, console(stderr=True))


def say(text: str, out: Console | None = None, bullet: str = "", hang: int = 0) -> None:
    """Print a sentence: one line in a file or pipe, broken between words on a terminal.

    The lines after the first are indented as far as the ``bullet`` is wide, or by ``hang``.
    """
    out = out or console()
    out.print(escape(wrapped(bullet + harmless(text), out, hang or len(bullet))), soft_wrap=True)


def wrapped(text: str, out: Console, hang: int = 0) -> str:
    """Text broken between words for a terminal, unchanged for a file or pipe.

    A path or another word longer than a line is left whole, so that it can be copied.
    """
    if not out.is_terminal:
        return text
    words = textwrap.TextWrapper(
        out.width,
        subsequent_indent=" " * (hang if hang <= out.width * 2 // 3 else HANG),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(words.fill(line) for line in text.splitlines())


def duration(seconds: float) -> str:
    """Seconds as people write them: ``54 µs``, ``850 ms``, ``12 s``, ``3 min 20 s``."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} µs"
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def show_table(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str = "",
    out: Console | None = None,
) -> None:
    """Print rows under the names of their columns: a line below these, two spaces between columns.

    Where the terminal is too narrow for the words of a row, or a cell would take many lines, each
    row becomes a paragraph under its first cell: rich would drop the columns that do not fit.
    """
    out = out or console()
    columns = [[name, *cells] for name, *cells in zip(names, *rows, strict=True)]
    most = [max(map(cell_len, cells)) for cells in columns]
    least = [max(cell_len(w) for c in cells for w in c.split() or [""]) for cells in columns]
    least[0] = most[0]
    room = out.width - 2 * len(names) + 1
    widths = _widths(least, most, room)
    lines = max(most[i] / width for i, width in enumerate(widths) if width)
    if len(rows) > 300:  # rich takes 2 ms for a row
        wide = [f"{{:<{width}}}" for width in most]
        padded = ["  ".join(wide).format(*row).rstrip() for row in (names, *rows)]
        out.out(harmless("\n".join(padded)), highlight=False)
    elif sum(least) <= room and (lines <= MAX_LINES or not out.is_terminal):
        table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
        for name, width in zip(names, widths, strict=True):
            table.add_column(escape(name), width=width, overflow="fold")
        for row in rows:
            table.add_row(*(Text(harmless(cell)) for cell in row))
        out.print(table)
    else:
        for row in rows:
            say(row[0] or "-", out)
            cells = zip(names[1:], row[1:], strict=True)
            pairs = [f"{name}={cell}" for name, cell in cells if cell not in ("", EMPTY)]
            if pairs:
                say(", ".join(pairs), out, bullet=" " * HANG)
    if caption:
        say(caption, out)


def _widths(least: Sequence[int], most: Sequence[int], room: int) -> list[int]:
    """Widths that break no word: columns that need little more get it, others share the rest."""
    widths, spare = list(least), room - sum(least)
    lacking = sorted(range(len(widths)), key=lambda i: most[i] - least[i])
    for done, index in enumerate(lacking):
        more = min(most[index] - least[index], spare // (len(lacking) - done))
        widths[index] += more
        spare -= more
    return widths


def show_rows(rows: Sequence[Mapping[str, Any]], varying: str | None = None) -> None:
    """Rows of the same fields as a table, a column per field.

    ``varying``: only the fields that differ between rows, the others in a sentence below, which
    begins with this text.
    """
    names = [*rows[0]]
    cells = [[_cell(value) for value in row.values()] for row in rows]
    same = ""
    if varying is not None and len(rows) > 1:
        kept = [i for i, _ in enumerate(names) if len({row[i] for row in cells}) > 1]
        rest = [f"{n} {cells[0][i]}" for i, n in enumerate(names) if i not in kept and cells[0][i]]
        same = varying + (f"The same in every row: {', '.join(rest)}" if rest else "")
        names, cells = [names[i] for i in kept], [[row[i] for i in kept] for row in cells]
    heads = names if varying is None else [name.replace("_", " ") for name in names]
    show_table(heads, cells, same)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def show_report_table(
    table: ReportTable, columns: Sequence[str] = (), *, source: bool = True
) -> None:
    """A table of a report with its notes: some of its columns, by default all."""
    say(table.title)
    if source:
        say(str(table.source))
    names = [column.name for column in table.columns]
    chosen = [names.index(name) for name in columns or names]
    heads = [names[i] if columns else table.columns[i].heading for i in chosen]
    show_table(heads, [[row[i] for i in chosen] for row in table.texts()])
    for note in table.notes:
        say(note)
