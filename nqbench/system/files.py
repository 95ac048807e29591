"""Files: written whole or not at all, errors of disks, the cache folder, printable names."""

from __future__ import annotations

import atexit
import errno
import hashlib
import json
import os
import re
import shlex
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

CACHE_ENVIRONMENT: Final = "NQBENCH_CACHE_DIR"
DISK_ERRORS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""A disk that is full or broken; after any other error, another folder helps."""

MAX_KEPT: Final = 1 << 30
"""Bytes of a file that the cache folder is believed to hold."""
_KEPT: Final = b"nqbench kept 1\n"
_DIGEST_BYTES: Final = 32
WRITABLE: Final = stat.S_IWGRP | stat.S_IWOTH
_CONTROLS: Final = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""What moves the cursor, ends a line of TeX or turns the direction of writing; not a line's end."""
_OPTION: Final = re.compile(r"(--[\w-]+=|-o(?=/)|)(.*)", re.DOTALL)
"""A word of a command line: an option that is written in front of its value, the value."""


@contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """A temporary file that replaces ``path`` when the ``with`` block ends.

    Readers see the old file or the new one. After an error the old one stays and the temporary file
    is removed. The suffix is that of ``path``. ``durable`` flushes contents and name to the disk.
    Raises ``OSError`` if the folder cannot be written.
    """
    temporary = path.with_name(f".{os.getpid()}-{threading.get_ident()}-{path.name}")
    try:
        yield temporary
        if durable:
            _flush(temporary)
        temporary.replace(path)
        if durable:
            _flush(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def cache_folder() -> Path:
    """Folder for regenerable files, some of which are run as they are: the chosen one, unless
    others can write there; then an empty one that this process has for itself."""
    return _trusted(chosen_cache())


@cache
def _trusted(folder: Path) -> Path:
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return own_folder() if others_write(folder) else folder


@cache
def own_folder() -> Path:
    """An empty folder that this process has for itself; it goes when the process ends."""
    own = Path(tempfile.mkdtemp(prefix="nqbench-"))
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return own


def others_write(path: Path) -> bool:
    """Whether another user than this one or root made a file or folder, a link to it, or can change
    it."""
    try:
        found = (path.lstat(), path.stat())
    except OSError:
        return False
    known = {0, os.getuid()}
    return any(s.st_uid not in known for s in found) or bool(found[1].st_mode & WRITABLE)


def chosen_cache() -> Path:
    """``$NQBENCH_CACHE_DIR``, else ``nqbench`` in the user's cache folder."""
    chosen = os.environ.get(CACHE_ENVIRONMENT)
    if chosen:
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("nqbench", appauthor=False))


def kept(name: str) -> bytes | None:
    """What ``keep`` stored in the cache folder; ``None`` if that is missing or damaged, or if
    another user has made what is there, or could change it."""
    raw = _own_contents(cache_folder() / name)
    head, body = raw[: len(_KEPT) + _DIGEST_BYTES], raw[len(_KEPT) + _DIGEST_BYTES :]
    return body if head == _head(name, body) else None


def keep(name: str, body: bytes) -> bool:
    """Store bytes in the cache folder; ``False`` if it cannot be written (all works without)."""
    try:
        _replace(cache_folder() / name, _head(name, body) + body)
    except OSError:
        return False
    return True


def written(name: str, content: bytes) -> Path:
    """A file of the cache folder with this content, for a compiler; where that cannot be, a file of
    this process. Raises ``OSError`` if no temporary file can be written either."""
    path = cache_folder() / name
    if _own_contents(path) != content:
        try:
            _replace(path, content)
        except OSError:
            _replace(path := own_folder() / name, content)
    return path


def _head(name: str, body: bytes) -> bytes:
    """A file's own digest is in front: what was truncated, altered or renamed is found out."""
    return _KEPT + hashlib.sha256(name.encode() + b"\n" + body).digest()


def _own_contents(path: Path) -> bytes:
    """The bytes of a file that no other user can change; none where there is no such file."""
    try:
        usable = not others_write(path) and path.stat().st_size <= MAX_KEPT
        return contents_of(path) if usable else b""
    except OSError:
        return b""


def _replace(path: Path, content: bytes) -> None:
    """Readers see the old file or the new one, other users none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.touch(0o600)
        temporary.write_bytes(content)


def kept_json(name: str, make: Callable[[], Any]) -> Any:
    """What a file of the cache folder holds as JSON; what ``make`` gives, which is then stored, if
    there is none."""
    found = kept(name)
    if found is not None:
        return json.loads(found)
    made = make()
    keep(name, json.dumps(made).encode())
    return made


def harmless(data: Any) -> Any:
    """Text, or JSON data with text in it, with a mark for each control character: a terminal would
    obey it, and TeX or Markdown begin a line there."""
    if isinstance(data, str):
        return _CONTROLS.sub("\ufffd", data)
    if isinstance(data, dict):
        return {harmless(name): harmless(value) for name, value in data.items()}
    return [*map(harmless, data)] if isinstance(data, list) else data


def printable(name: str | Path) -> str:
    r"""A path or command-line word as UTF-8 text: bytes that are not UTF-8 are spelt ``\xe9``.

    Such file names exist on old disks. Python keeps their bytes as lone surrogates, which cannot be
    written to a UTF-8 file.
    """
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def from_here(word: str) -> str:
    """A word of a command line, its path from the working directory where it is in there."""
    option, path = _OPTION.fullmatch(word).groups()  # type: ignore[union-attr]  # any word fits
    if path[:1] == "/" and Path(path).is_relative_to(here := Path.cwd()):
        return f"{option}{Path(path).relative_to(here).as_posix()}"
    return word


def shown_path(path: str | Path) -> str:
    """A path fit for a page that others read: from the working directory, else ``FOLDER/NAME``."""
    path = Path(from_here(printable(path)))
    return f"FOLDER/{path.name}" if path.is_absolute() else path.as_posix()


def shown_command(words: Iterable[str]) -> str:
    """A command line fit for a page that others read, wherever they are: an absolute path is
    ``FOLDER/NAME``."""
    parts = (_OPTION.fullmatch(word) for word in words)
    return shlex.join(
        f"{p[1]}FOLDER/{Path(p[2]).name}" if p[2][:1] == "/" else p[0] for p in parts if p
    )


def contents_of(file: Path) -> bytes:
    """The bytes of a file. Raises ``OSError``, also for what never ends: a pipe, a device."""
    return ending(file).read_bytes()


def ending(file: Path) -> Path:
    """The file. Raises ``OSError`` for a pipe and a device."""
    mode = file.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "it is a pipe or a device")
    return file


def open_at_once(path: str, flags: int) -> int:
    """An opener for ``open``: a pipe that nobody writes to is empty, and does not wait."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    return descriptor


def contents(path: Path) -> bytes:
    """The bytes of a file; none if it is gone, as it may be while an editor replaces it."""
    try:
        return contents_of(path)
    except OSError:
        return b""


def text(path: Path) -> str:
    """The text of a file; empty if it is not there or cannot be read."""
    return contents(path).decode(errors="replace")


def digest(files: Iterable[Path]) -> str:
    """A hash of the names and bytes of files, in their order."""
    total = hashlib.sha256()
    for path in files:
        total.update(path.name.encode(errors="surrogateescape") + b"\0" + contents(path) + b"\0")
    return total.hexdigest()


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
