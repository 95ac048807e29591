"""Crashes: unexpected exceptions, summarised in one line that a user can act on.

A worker exits after one, because its state is unknown; the runner reads that line.
"""

from __future__ import annotations

import sys
import sysconfig
import traceback
from pathlib import Path
from types import TracebackType
from typing import Final

from nqbench.system.versions import PACKAGE

UNEXPECTED: Final = "unexpected "
"""How the line begins; the runner recognises it by this."""


def write_crash(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Write the traceback and the summary to standard error (``sys.excepthook``)."""
    sys.__excepthook__(kind, error, trace)
    if issubclass(kind, Exception):
        sys.stderr.write(f"{summary(error)}\n")
        sys.stderr.flush()


def summary(error: BaseException) -> str:
    """The exception in one line: kind, place, text.

    The place is the innermost one in nqbench or a user's own code: an error that a library raises
    is mostly caused by its caller.
    """
    frames = _frames(error, ours=True) or traceback.extract_tb(error.__traceback__)
    last = frames[-1] if frames else None
    place = f" in {_short(last.filename)}:{last.lineno} ({last.name})" if last else ""
    text = " ".join(str(error).split())
    return f"{UNEXPECTED}{type(error).__name__}{place}" + (f": {text}" if text else "")


def where_raised(error: BaseException) -> str:
    """An exception in one sentence, with the last line of the user's own that it passed."""
    if isinstance(error, SyntaxError):
        file = Path(error.filename or "").name
        return f"{file}:{error.lineno}: {type(error).__name__}: {error.msg}"
    frames = _frames(error, ours=False)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}: " if frames else ""
    said = str(error).splitlines()[0] if str(error) else ""
    return f"{place}{type(error).__name__}" + (f": {said}" if said else "")


def _frames(error: BaseException, *, ours: bool) -> list[traceback.FrameSummary]:
    """The lines of a user's own code that it passed, and with ``ours`` those of nqbench."""
    libraries = [Path(sysconfig.get_path(n)).resolve() for n in ("stdlib", "purelib", "platlib")]
    found = []
    for frame in traceback.extract_tb(error.__traceback__):
        path = Path(frame.filename).resolve()
        generated = frame.filename.startswith("<")  # not a file; frozen modules too
        library = generated or any(map(path.is_relative_to, libraries))
        if ours if path.is_relative_to(PACKAGE) else not library:
            found.append(frame)
    return found


def _short(filename: str) -> str:
    """A path relative to its checkout, since reasons are published; else the whole path."""
    path = Path(filename)
    for root in (PACKAGE.parent, Path.cwd()):
        if path.is_relative_to(root):
            return str(path.relative_to(root))
    return filename
