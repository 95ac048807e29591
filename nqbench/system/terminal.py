"""Output that cannot hold every character: a terminal without Unicode, or another encoding."""

from __future__ import annotations

import codecs
import os
import sys
from typing import Final, TextIO

PLAIN: Final = "nqbench"
"""The error handler of output streams."""
ASCII: Final = {
    **{"±": "+-", "→": "->", "µ": "u", "\u00d7": "x", "\u2013": "-", "…": "..."},
    **{"─": "-", "━": "-", "╺": "-", "╸": "-"},
}


def prepare_output() -> None:
    """Let every character be written, in ASCII where the stream cannot hold it."""
    codecs.register_error(PLAIN, _plain)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # absent, or not a file, where it was closed
            # A path may hold bytes that are not text.
            stream.reconfigure(encoding="ascii" if _ascii(stream) else None, errors=PLAIN)


def in_ascii(text: str) -> str:
    """Text with ``±`` as ``+-``, and what is not in ``ASCII`` as an escape."""
    return "".join(ASCII.get(c) or c.encode("ascii", "backslashreplace").decode() for c in text)


def _ascii(stream: TextIO) -> bool:
    """Whether it is a terminal of a locale without Unicode. Python would write UTF-8 to it."""
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "C")
    return stream.isatty() and locale in ("C", "POSIX")


def _plain(error: UnicodeError) -> tuple[str, int]:
    """An error handler of codecs."""
    assert isinstance(error, UnicodeEncodeError)
    return in_ascii(error.object[error.start : error.end]), error.end
