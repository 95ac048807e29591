"""The compiler's cache on disk: one file per compiled kernel, safe under concurrent writers.

A file holds its own digest, so that a truncated or altered one is recognised and made again.
Writers fill a file of their own and rename it into place; readers see the old file or the new one.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CACHE_ENVIRONMENT: Final = "NQBENCH_CACHE_DIR"
_FORMAT: Final = b"nqbench kernel 1\n"
_DIGEST_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Entry:
    """What is kept of a compilation: the image, the kernel's symbol in it, the compiler's log."""

    image: bytes
    symbol: str
    log: str


def cache_folder() -> Path:
    """Folder of compiled kernels: ``$NQBENCH_CACHE_DIR/kernels``, else below the user's cache."""
    chosen = os.environ.get(CACHE_ENVIRONMENT)
    if chosen:
        return Path(chosen) / "kernels"
    import platformdirs

    return Path(platformdirs.user_cache_dir("nqbench", appauthor=False)) / "kernels"


def cache_key(parts: Iterable[bytes | str]) -> str:
    """Name of the entry for these parts; a part cannot run into its neighbour."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.hexdigest()


def read_entry(key: str) -> Entry | None:
    """The stored entry, or ``None`` if there is none, or none that is whole."""
    try:
        raw = _path(key).read_bytes()
    except OSError:
        return None
    head, body = raw[: len(_FORMAT) + _DIGEST_BYTES], raw[len(_FORMAT) + _DIGEST_BYTES :]
    if head != _FORMAT + hashlib.sha256(body).digest():
        return None
    line, _, image = body.partition(b"\n")
    about = json.loads(line)
    return Entry(image=image, symbol=about["symbol"], log=about["log"])


def write_entry(key: str, entry: Entry) -> bool:
    """Store an entry; ``False`` if the folder cannot be written (compiling goes on without)."""
    body = json.dumps({"symbol": entry.symbol, "log": entry.log}).encode() + b"\n" + entry.image
    path = _path(key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError:
        return False
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_FORMAT + hashlib.sha256(body).digest() + body)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        return False
    return True


def _path(key: str) -> Path:
    return cache_folder() / key[:2] / key
