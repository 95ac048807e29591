"""The files that a CUDA source includes with quotes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from nqbench.errors import CompileError

_INCLUDE: Final = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


def read_source(path: Path) -> str:
    """The text of a source or header. Raises ``CompileError`` if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CompileError(f"kernel source {path} cannot be read: {reason}") from error


def headers_of(
    source: Path, text: str, read: Callable[[Path], str] = read_source
) -> dict[Path, str]:
    """Text of every file that a source includes with quotes, directly or not, by its full path.

    They are searched where NVRTC searches: beside the including file, then beside the kernel. A
    name that is not found is left to the compiler, which may not need it (``#if``) or reports the
    line.
    """
    source = source.resolve()
    return dict(_headers((source.parent,), text, frozenset({source}), read))


def _headers(
    folders: tuple[Path, ...], text: str, seen: frozenset[Path], read: Callable[[Path], str]
) -> Iterator[tuple[Path, str]]:
    """Pairs of path and text; ``seen`` ends cycles of ``#pragma once`` headers."""
    for name in _INCLUDE.findall(text):
        found = (path for folder in folders if (path := (folder / name).resolve()).is_file())
        path = next(found, None)
        if path is None or path in seen:
            continue
        inner = read(path)
        yield path, inner
        yield from _headers((path.parent, *folders), inner, seen | {path}, read)
