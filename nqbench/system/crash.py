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
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if _is_ours(frame.filename)] or list(frames)
    place = f" in {_short(ours[-1].filename)}:{ours[-1].lineno} ({ours[-1].name})" if ours else ""
    text = " ".join(str(error).split())
    return f"{UNEXPECTED}{type(error).__name__}{place}" + (f": {text}" if text else "")


def _short(filename: str) -> str:
    """A path relative to its checkout, since reasons are published; else the whole path."""
    path = Path(filename)
    for root in (PACKAGE.parent, Path.cwd()):
        if path.is_relative_to(root):
            return str(path.relative_to(root))
    return filename


def _is_ours(filename: str) -> bool:
    if filename.startswith("<"):  # not a file: frozen modules and generated code
        return False
    path = Path(filename).resolve()
    if path.is_relative_to(PACKAGE):
        return True
    libraries = (sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
    return not any(path.is_relative_to(Path(folder).resolve()) for folder in libraries)
