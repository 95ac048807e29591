"""Run folders: a manifest and append-only records.

A run is a folder with ``manifest.json`` (what was to be measured, where, and with what) and
``records.jsonl`` (one :class:`~nqbench.record.Record` per line, written before the next measurement
starts). A killed runner can lose at most the line it was writing.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from nqbench.errors import FolderRefused, StoreError
from nqbench.record import Record
from nqbench.runs.reading import (
    CRATE,
    MANIFEST,
    MANIFEST_VERSION,
    PACKED,
    RECORDS,
    SUMS,
    TORN,
    RecordFile,
    line_of,
    look_through,
    record_bytes,
)
from nqbench.system.files import replacing

LOCK: Final = ".lock"
SYNC_S: Final = 0.1
"""Records that come faster than this share one flush of the disk (which takes 0.2 to 5 ms): what
a power failure can cost is a tenth of a second of measuring. Short measurements need not wait."""
OLD: Final = "old"
"""Sub-folder that keeps what ``--fresh`` put aside."""


def is_reference(path: Path) -> bool:
    """Whether a run folder lies under ``results/reference`` and so is part of the project."""
    parts = path.resolve().parts
    return any(pair == ("results", "reference") for pair in itertools.pairwise(parts))


class RunWriter(AbstractContextManager["RunWriter"]):
    """The only writer of a run folder, for as long as it is open (a lock file sees to that)."""

    def __init__(self, path: Path) -> None:
        """Lock and, if needed, create the folder.

        Raises ``FolderRefused`` for a reference run, a folder in use, or one that cannot be
        written.
        """
        if is_reference(path):
            raise FolderRefused(
                f"{path} is a reference run and is never written;"
                " give another folder with --out, e.g. under results/local"
            )
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(path / LOCK)
            self._lock.acquire(timeout=0)
        except Timeout:
            said = f"{path} is being written by another run; wait for it, or give another --out"
            raise FolderRefused(said) from None
        except OSError as error:
            raise FolderRefused(
                f"{path} cannot be written: {error.strerror}; nothing was measured,"
                " give another folder with --out"
            ) from error
        self._descriptor: int | None = None
        self._synced = 0.0

    def __exit__(self, *error: object) -> None:
        self.close()

    def repair(self) -> RecordFile:
        """Read the records, unpacked; move damaged lines and a torn last one to ``records.torn``.

        A listener is to be told of both (``message``, ``damage``).
        """
        found = look_through(self.path)
        if not (self.path / RECORDS).exists() and (self.path / PACKED).exists():
            with _failing(f"{self.path / PACKED} cannot be unpacked there"):
                content = record_bytes(self.path)
                (self.path / SUMS).unlink(missing_ok=True)  # first: they are of the packed records
                with replacing(self.path / RECORDS, durable=True) as temporary:
                    temporary.write_bytes(content)
                (self.path / PACKED).unlink()
        if bad := [*found.damaged.values(), *filter(None, [found.torn])]:
            file = self.path / RECORDS
            said = found.damage or found.message()
            with _failing(f"{said}, but {self.path} cannot be written"):
                with open(self.path / TORN, "ab", opener=_open_no_link) as aside:
                    aside.write(b"\n".join([*bad, b""]))
                *lines, _ = record_bytes(self.path).split(b"\n")
                kept = [line for number, line in enumerate(lines, 1) if number not in found.damaged]
                with replacing(file, durable=True) as temporary:
                    temporary.write_bytes(b"\n".join([*kept, b""]))
        return found

    def archive(self) -> Path | None:
        """Put an earlier run aside in ``old/TIME``; ``None`` if there was none."""
        # The manifest goes last: records without one would be taken for those of the new run.
        present = [f for f in (RECORDS, PACKED, SUMS, TORN, MANIFEST) if (self.path / f).exists()]
        if not present:
            return None
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        aside = self.path / OLD / stamp
        failed = f"the earlier run cannot be put aside in {aside}"
        with _failing(failed, "nothing of it is lost"):
            aside.mkdir(parents=True)
            for name in present:
                (self.path / name).rename(aside / name)
        return aside

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Replace the manifest at once: readers see the old one or the new one."""
        text = json.dumps({"version": MANIFEST_VERSION, **manifest}, indent=1, ensure_ascii=False)
        kept = "nothing was measured, and what was there before is kept"
        with (
            _failing(f"{self.path / MANIFEST} cannot be written", kept),
            replacing(self.path / MANIFEST, durable=True) as temporary,
        ):
            for name in (SUMS, CRATE):  # first: they are of the run before it went on
                (self.path / name).unlink(missing_ok=True)
            temporary.write_text(text + "\n", encoding="utf-8", errors="surrogatepass")

    def append(self, record: Record) -> None:
        """Add one record as one line of the file.

        It is with the operating system when this returns, so a killed runner loses nothing, and
        flushed to the disk itself unless the last flush was less than ``SYNC_S`` seconds ago.
        """
        with self._keeping():
            if self._descriptor is None:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
                self._descriptor = os.open(self.path / RECORDS, flags, 0o666)
            # Some network file systems count no links: the name has to be gone, too.
            if not os.fstat(self._descriptor).st_nlink and not (self.path / RECORDS).exists():
                raise StoreError(
                    f"{self.path / RECORDS} was deleted while the run wrote to it, and what it held"
                    " is lost; run again, and leave the folder alone until the run has ended"
                )
            data = line_of(record)
            while data:  # a full disk or a signal may cut a write short
                data = data[os.write(self._descriptor, data) :]
            if time.monotonic() - self._synced >= SYNC_S:
                os.fsync(self._descriptor)
                self._synced = time.monotonic()

    def close(self) -> None:
        """Close the file and release the folder. Raises ``StoreError`` for a disk error."""
        descriptor, self._descriptor = self._descriptor, None
        try:
            if descriptor is not None:
                with self._keeping():
                    try:
                        os.fsync(descriptor)
                    finally:
                        os.close(descriptor)
        finally:
            self._lock.release()

    def _keeping(self) -> AbstractContextManager[None]:
        kept = "the records before this one are kept: make room, then run again to resume"
        return _failing(f"{self.path / RECORDS} cannot be written", kept)


def _open_no_link(path: str, flags: int) -> int:
    """For a file that is made here: a link in its place leads to somebody's own."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


@contextmanager
def _failing(what: str, then: str = "") -> Iterator[None]:
    """Raise ``StoreError`` where the disk fails: what that means, and what to do then."""
    try:
        yield
    except OSError as error:
        rest = f"; {then}" if then else ""
        raise StoreError(f"{what}: {error.strerror}{rest}") from error
