"""Where text goes: a terminal, wrapped at words, or a file or pipe, one line per sentence.

Only ``show`` and the commands print.
"""

from __future__ import annotations

import textwrap
from typing import Final

from rich.console import Console
from rich.markup import escape

from nqbench.system.terminal import in_ascii

PIPE_WIDTH: Final = 220
"""Columns of a table that goes into a file or a pipe: wide enough not to fold a name."""
HANG: Final = 4
"""Indent of the further lines where the usual one would take more than two thirds."""
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


def say(text: str, out: Console | None = None, bullet: str = "", hang: int = 0) -> None:
    """Print a sentence: one line in a file or pipe, broken between words on a terminal.

    The lines after the first are indented as far as the ``bullet`` is wide, or by ``hang``.
    """
    out = out or console()
    out.print(escape(wrapped(bullet + text, out, hang or len(bullet))), soft_wrap=True)


def wrapped(text: str, out: Console, hang: int = 0) -> str:
    """Text broken between words for a terminal, unchanged for a file or pipe.

    A path or another word longer than a line is left whole, so that it can be copied.
    """
    text = drawable(text, out)
    if not out.is_terminal:
        return text
    words = textwrap.TextWrapper(
        out.width,
        subsequent_indent=" " * (hang if hang <= out.width * 2 // 3 else HANG),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(words.fill(line) for line in text.splitlines())


def drawable(text: str, out: Console) -> str:
    """Text in letters that the output has."""
    return in_ascii(text) if out.options.ascii_only else text


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
