"""Run folders: a manifest and append-only records.

A run is a folder with ``manifest.json`` (what was to be measured, where, and with what) and
``records.jsonl`` (one :class:`~nqbench.record.Record` per line, written before the next block
starts). A killed runner can lose at most the line it was writing.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from filelock import FileLock, Timeout

from nqbench.errors import StoreError
from nqbench.record import Record

if TYPE_CHECKING:
    import pandas as pd

MANIFEST_VERSION: Final = 1
MANIFEST: Final = "manifest.json"
RECORDS: Final = "records.jsonl"
TORN: Final = "records.torn"
LOCK: Final = ".lock"
SYNC_S: Final = 0.1
"""Records that come faster than this share one flush of the disk (which takes 0.2 to 5 ms): what
a power failure can cost is a tenth of a second of measuring, and short blocks need not wait."""
OLD: Final = "old"
"""Sub-folder that keeps what ``--fresh`` put aside."""


@dataclass(frozen=True, slots=True)
class RecordFile:
    """The readable records of a run, and the torn last line if there is one."""

    records: tuple[Record, ...]
    torn: bytes = b""

    def message(self) -> str:
        """What was kept, in one sentence; empty if nothing is torn."""
        if not self.torn:
            return ""
        return (
            f"the last line of {RECORDS} is torn (a run was killed while writing it):"
            f" {len(self.records)} complete records are kept, that block is measured again"
        )


def is_reference(path: Path) -> bool:
    """Whether a run folder lies under ``results/reference`` and so is part of the project."""
    parts = path.resolve().parts
    return any(pair == ("results", "reference") for pair in itertools.pairwise(parts))


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a run folder. Raises ``StoreError``."""
    file = path / MANIFEST
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StoreError(
            f"{path} is not a run folder: it has no {MANIFEST};"
            " give the folder that `nqbench run` wrote"
        ) from None
    except OSError as error:
        raise StoreError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise StoreError(f"{file} is not JSON ({error}); take a copy of it from a backup") from None
    version = data.get("version") if isinstance(data, dict) else None
    if not isinstance(version, int):
        raise StoreError(f"{file} is not a manifest: it has no version number")
    if version > MANIFEST_VERSION:
        raise StoreError(
            f"{file} has version {version}, newer than this nqbench reads ({MANIFEST_VERSION});"
            " update nqbench"
        )
    return dict(data)


def read_records(path: Path) -> RecordFile:
    """The records of a run folder in the order of the file. Raises ``StoreError``.

    A last line without its newline is what a killed runner leaves: it is returned as ``torn``.
    A damaged line anywhere else is an error, since silently losing a block would bias a result.
    """
    file = path / RECORDS
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return RecordFile(())
    except OSError as error:
        raise StoreError(f"{file} cannot be read: {error.strerror}") from error
    *lines, torn = content.split(b"\n")
    return RecordFile(
        tuple(_parse(file, number, line) for number, line in enumerate(lines, 1) if line), torn
    )


def _parse(file: Path, number: int, line: bytes) -> Record:
    try:
        return Record.from_json(json.loads(line))
    except StoreError as error:
        raise StoreError(f"{file}:{number}: {error}") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreError(
            f"{file}:{number}: not a record ({error}); move that line out of the file to go on:"
            " its block is then measured again"
        ) from None


class RunWriter:
    """The only writer of a run folder, for as long as it is open (a lock file sees to that)."""

    def __init__(self, path: Path) -> None:
        """Lock and, if needed, create the folder.

        Raises ``StoreError`` for a reference run, a folder in use, or one that cannot be written.
        """
        if is_reference(path):
            raise StoreError(
                f"{path} is a reference run and is never written;"
                " give another folder with --out, e.g. under results/local"
            )
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(path / LOCK)
            self._lock.acquire(timeout=0)
        except Timeout:
            raise StoreError(
                f"{path} is being written by another run; wait for it, or give another --out"
            ) from None
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}") from error
        self._descriptor: int | None = None
        self._synced = 0.0

    def repair(self) -> RecordFile:
        """Read the records; move a torn last line to ``records.torn``."""
        found = read_records(self.path)
        if found.torn:
            with (self.path / TORN).open("ab") as aside:
                aside.write(found.torn + b"\n")
            file = self.path / RECORDS
            os.truncate(file, file.stat().st_size - len(found.torn))
        return found

    def archive(self) -> Path | None:
        """Put an earlier run aside in ``old/TIME``; ``None`` if there was none."""
        present = [f for f in (MANIFEST, RECORDS, TORN) if (self.path / f).exists()]
        if not present:
            return None
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        aside = self.path / OLD / stamp
        aside.mkdir(parents=True)
        for name in present:
            (self.path / name).rename(aside / name)
        return aside

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Replace the manifest at once: readers see the old one or the new one."""
        text = json.dumps({"version": MANIFEST_VERSION, **manifest}, indent=1, ensure_ascii=False)
        temporary = self.path / (MANIFEST + ".tmp")
        try:
            with temporary.open("w", encoding="utf-8") as file:
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path / MANIFEST)
        except OSError as error:
            raise StoreError(f"{self.path / MANIFEST} cannot be written: {error.strerror}") from (
                error
            )

    def append(self, record: Record) -> None:
        """Add one record as one line of the file.

        It is with the operating system when this returns, so a killed runner loses nothing, and
        flushed to the disk itself unless the last flush was less than ``SYNC_S`` seconds ago.
        """
        line = json.dumps(record.as_json(), separators=(",", ":"), ensure_ascii=False) + "\n"
        try:
            if self._descriptor is None:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
                self._descriptor = os.open(self.path / RECORDS, flags, 0o666)
            data = line.encode()
            while data:  # a full disk or a signal may cut a write short
                data = data[os.write(self._descriptor, data) :]
            if time.monotonic() - self._synced >= SYNC_S:
                os.fsync(self._descriptor)
                self._synced = time.monotonic()
        except OSError as error:
            raise StoreError(
                f"{self.path / RECORDS} cannot be written: {error.strerror};"
                " the records before it are kept, run again to go on"
            ) from error

    def close(self) -> None:
        """Close the file and give the folder free."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def newest(records: Iterable[Record]) -> dict[tuple[str, int], Record]:
    """The last record of each (key, round), in file order: later ones supersede earlier ones."""
    latest: dict[tuple[str, int], Record] = {}
    for record in records:
        latest[record.key, record.round] = record
    return latest


def load(run: Path | str) -> pd.DataFrame:
    """A run as a table: one row per block, see :mod:`nqbench.frame`. Raises ``StoreError``."""
    from nqbench.frame import frame  # pandas takes half a second to import

    return frame(Path(run))
