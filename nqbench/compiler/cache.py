"""The compiler's cache on disk: one file per compiled kernel, safe under concurrent writers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nqbench.system.files import keep, kept


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled kernel.

    ``image`` is PTX text or an ELF cubin, ``symbol`` the kernel's mangled name in it, ``log`` the
    compiler's messages, ``variables`` the mangled name of each module variable asked for,
    ``cached`` whether it came from the disk.
    """

    image: bytes
    symbol: str
    log: str
    variables: Mapping[str, str] = field(default_factory=dict)
    cached: bool = field(default=False, compare=False)


def cache_key(parts: Iterable[bytes | str]) -> str:
    """Name of the entry for these parts; their boundaries are part of it."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.hexdigest()


def read_entry(key: str) -> Compiled | None:
    """The stored entry, or ``None`` if it is missing or damaged."""
    body = kept(f"kernels/{key[:2]}/{key}")
    if body is None:
        return None
    line, _, image = body.partition(b"\n")
    about = json.loads(line)
    return Compiled(image, about["symbol"], about["log"], about.get("variables", {}), cached=True)


def write_entry(key: str, entry: Compiled) -> bool:
    """Store an entry; ``False`` if the folder cannot be written (compiling works without)."""
    about = {"symbol": entry.symbol, "log": entry.log, "variables": dict(entry.variables)}
    return keep(f"kernels/{key[:2]}/{key}", json.dumps(about).encode() + b"\n" + entry.image)
