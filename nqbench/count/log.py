"""The file of a count: finished chunks, so that a kill costs only what is in flight."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from nqbench.count.chunks import ChunkSum, LogLine
from nqbench.errors import StudyError

SYNC_S: Final = 1.0
"""A kill loses no line that was flushed; a power failure those of about this time."""


class CountLog:
    """The file of a count: ``parts`` that it held when it was opened, and those appended.

    One process at a time has it. A last line that was cut off is removed.
    """

    def __init__(self, path: Path, head: LogLine) -> None:
        self._path = path
        self._lock = FileLock(f"{path}.lock")
        self._synced = -math.inf
        with self._errors():
            path.absolute().parent.stat()  # a lock would make the folder
            try:
                self._lock.acquire(blocking=False)
            except Timeout as busy:
                raise StudyError(f"--log {path} is in use by another count; wait for it") from busy
            try:
                self.parts = self._read(head)
                self._file = path.open("a", encoding="ascii")
                if not self._file.tell():
                    self._write(head)
            except BaseException:
                self._lock.release()
                raise

    @staticmethod
    def of(path: Path | None, head: LogLine) -> AbstractContextManager[CountLog | NoLog]:
        """The file, closed at the end; without a path one that keeps nothing."""
        return nullcontext(NoLog()) if path is None else closing(CountLog(path, head))

    def append(self, part: ChunkSum, about: LogLine) -> None:
        """Add a part, with more about it; a kill loses no part that was added."""
        line: LogLine = {"chunk": part.first, "weights": part.weights}
        if part.count > 1:
            line["count"] = part.count
        with self._errors():
            self._write(line | about)

    def close(self) -> None:
        """Flush the file to the disk, and let others have it."""
        with self._errors():
            os.fsync(self._file.fileno())
            self._file.close()
            self._lock.release()

    def _write(self, line: LogLine) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        if time.monotonic() - self._synced > SYNC_S:
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()

    def _read(self, head: LogLine) -> list[ChunkSum]:
        if not self._path.exists():
            return []
        try:
            text = self._path.read_text(encoding="ascii")
            whole = text[: text.rfind("\n") + 1]
            first, *lines = [json.loads(line) for line in whole.splitlines()] or [head]
            parts = [
                ChunkSum(int(line["chunk"]), int(line.get("count", 1)), int(line["weights"]), 0.0)
                for line in lines
            ]
        except (ValueError, KeyError, TypeError) as error:
            raise StudyError(
                f"--log {self._path} is no file of a count; name another file"
            ) from error
        if first != head:
            raise StudyError(
                f"--log {self._path} is of another count ({first}, this one is {head}); name"
                " another file"
            )
        if whole != text:
            os.truncate(self._path, len(whole))
        return parts

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StudyError(f"--log {self._path} cannot be written: {error.strerror}") from error


class NoLog:
    """A log that holds nothing and keeps nothing."""

    parts: Sequence[ChunkSum] = ()

    def append(self, part: ChunkSum, about: LogLine) -> None:
        """Forget it."""
