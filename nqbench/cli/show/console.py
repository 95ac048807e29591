"""Where text goes: a terminal, wrapped at words, or a file or pipe, one line per sentence.

Only ``show`` and the commands print.
"""

from __future__ import annotations

import textwrap
from typing import Final

from rich.console import Console
from rich.markup import escape

PIPE_WIDTH: Final = 220
"""Columns of a table that goes into a file or a pipe: wide enough not to fold a name."""
_asked: Final = {"quiet": False}


def console(stderr: bool = False) -> Console:
    """A console; wide when piped, so that tables are not folded in a log."""
    made = Console(stderr=stderr, highlight=False, quiet=_asked["quiet"])
    if not made.is_terminal:
        made.width = PIPE_WIDTH
    return made


def hush(quiet: bool) -> None:
    """``--quiet``: consoles print nothing from now on."""
    _asked["quiet"] = quiet


def note(text: str) -> None:
    """Print a sentence about progress to standard error."""
    say(text, console(stderr=True))


def say(text: str, out: Console | None = None, bullet: str = "") -> None:
    """Print a sentence: one line in a file or pipe, broken between words on a terminal.

    A path or another word longer than a line is left whole, so that it can be copied.
    """
    out = out or console()
    text = bullet + text
    if out.is_terminal:
        words = textwrap.TextWrapper(
            out.width,
            subsequent_indent=" " * len(bullet),
            break_long_words=False,
            break_on_hyphens=False,
        )
        text = "\n".join(words.fill(line) for line in text.splitlines())
    out.print(escape(text), soft_wrap=True)


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
