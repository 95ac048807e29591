"""The files that a CUDA source includes: its own and those in the folders of its plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nqbench.errors import CompileError

_INCLUDE: Final = re.compile(
    r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Header:
    """An included file: the name that the source gives it, its full path, its text."""

    name: str
    path: Path
    text: str


def read_source(path: Path) -> str:
    """The text of a source or header. Raises ``CompileError`` if it cannot be read.

    Bytes that are not UTF-8 (in a comment, mostly) are read as Latin-1."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CompileError(f"kernel source {path} cannot be read: {reason}") from error
    try:
        return raw.decode("utf-8-sig")  # an editor's mark at the start is no C++
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def find_headers(
    source: Path, text: str, read: Callable[[Path], str] = read_source, folders: Sequence[Path] = ()
) -> list[Header]:
    """Every file of the user's that a source includes, directly or not. Each path and name occurs
    once.

    They are searched where NVRTC searches: beside the including file (with quotes), beside the
    kernel, then in ``folders``. A name that is not found is left to the compiler, which may not
    need it (``#if``) or reports the line.
    """
    source = source.resolve()
    search = (source.parent, *folders)
    found = _headers((), search, text, frozenset({source}), read)
    return list({(header.name, header.path): header for header in found}.values())


def included_names(text: str) -> dict[str, int]:
    """Names of the files that a text includes, in quotes or angle brackets, and their lines."""
    return {
        match[1] or match[2]: text.count("\n", 0, match.end()) + 1
        for match in _INCLUDE.finditer(text)
    }


def _headers(
    beside: tuple[Path, ...],
    folders: Sequence[Path],
    text: str,
    seen: frozenset[Path],
    read: Callable[[Path], str],
) -> Iterator[Header]:
    """``seen`` ends cycles of ``#pragma once`` headers."""
    for quoted, angled in _INCLUDE.findall(text):
        name = quoted or angled
        search = (*beside, *folders) if quoted else folders
        found = (path for folder in search if (path := (folder / name).resolve()).is_file())
        path = next(found, None)
        if path is None or path in seen:
            continue
        inner = read(path)
        yield Header(name, path, inner)
        yield from _headers((path.parent, *beside), folders, inner, seen | {path}, read)
