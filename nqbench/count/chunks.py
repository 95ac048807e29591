"""The chunks of a board: what a long count is made of, and what it writes down.

The jobs of a board's first rows, or its groups of half boards (``workloads.counting.middle``), are
dealt out so that neighbours are far apart: any chunks take about as long as any others, and their
share of the board is a share of the time. Chunks depend on the board alone: a count may start on a
GPU and continue on a CPU. Kernels differ in the nodes they visit; what they all give is the chunk's
sum of weights (``border``; of groups, the solutions), so this is written down.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import StudyError
from nqbench.system.files import contents_of
from nqbench.workloads.counting import border
from nqbench.workloads.counting.middle.groups import dealt, dealt_groups

CHUNKS: Final = 1024
"""Of a board of up to ``LAST_SHALLOW_N`` queens: a tenth of a percent of the work each. From there
every row more gives eight times as many, so that a chunk stays within seconds of a large GPU."""
LAST_SHALLOW_N: Final = 22
SHALLOW: Final = 4
"""Rows of the jobs that are dealt out: 5,382 jobs at N = 15; beyond ``LAST_SHALLOW_N`` one more."""

SYNC_S: Final = 1.0
"""A kill loses no line that was flushed; a power failure those of about this time."""

LogLine = dict[str, int | str]


@dataclass(frozen=True, slots=True, eq=False)
class ChunkedBoard:
    """A board's chunks. ``jobs`` as in ``border``, a row for each, by chunk; ``edges`` are their
    first jobs. With a ``depth`` of 0 the jobs are groups of half boards (``middle.groups``)."""

    n: int
    depth: int
    jobs: NDArray[Any]
    edges: NDArray[np.int64]

    @classmethod
    def of(cls, n: int, halves: bool = False) -> ChunkedBoard:
        """The board of ``n >= 7`` queens, by its first rows or by ``halves``."""
        jobs: NDArray[Any]
        if halves:
            depth, jobs = 0, dealt_groups(n)
        else:
            depth = SHALLOW + (n > LAST_SHALLOW_N)
            jobs = dealt(border.jobs(n, depth).reshape(-1, 3))
        chunks = min(len(jobs), CHUNKS << 3 * max(0, n - LAST_SHALLOW_N))
        return cls(n, depth, jobs, np.linspace(0, len(jobs), chunks + 1).astype(np.int64))

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return len(self.edges) - 1

    @property
    def halves(self) -> bool:
        """Whether its jobs are groups of half boards."""
        return not self.depth

    @property
    def share(self) -> float:
        """Solutions per weight."""
        return 1.0 if self.halves else 2 / 3

    def solutions(self, weights: int) -> int:
        """Solutions of the board from the weights of all chunks; -1 if no boards have that sum."""
        return weights if self.halves else border.total(weights)

    @property
    def head(self) -> LogLine:
        """First line of a file: what its chunks mean. ``code`` is a digest of all their jobs."""
        code = hashlib.sha256(self.jobs.tobytes()).hexdigest()[:12]
        return {"n": self.n, "depth": self.depth, "chunks": self.chunks, "code": code}

    def span(self, chunks: range) -> tuple[int, int]:
        """The first job of some consecutive chunks, and the one after the last."""
        return int(self.edges[chunks.start]), int(self.edges[chunks.stop])

    def jobs_of(self, chunks: range) -> NDArray[np.uint32]:
        """The words of the jobs of some chunks."""
        begin, end = self.span(chunks)
        return self.jobs[begin:end].ravel()


@dataclass(frozen=True, slots=True)
class ChunkSum:
    """The sum of weights of ``count`` chunks, and the seconds of the kernel, or of a core.

    ``again``: the same sum on another path, if it was asked for.
    """

    first: int
    count: int
    weights: int
    took_s: float
    again: int | None = None


class UnclaimedChunks:
    """Chunks that no device has taken; ``left`` are ascending."""

    def __init__(self, left: Sequence[int]) -> None:
        self._left = deque(left)

    def __len__(self) -> int:
        return len(self._left)

    def take(self, most: int) -> range:
        """The next consecutive chunks, at most so many."""
        taken = [self._left.popleft()]
        while len(taken) < most and self._left and self._left[0] == taken[-1] + 1:
            taken.append(self._left.popleft())
        return range(taken[0], taken[-1] + 1)

    def give_back(self, chunks: range) -> None:
        """Chunks that were not counted come first."""
        self._left.extendleft(reversed(chunks))


class CountLog:
    """The file of a count: ``parts`` that it held when it was opened, and those appended.

    One process at a time has it. A last line that was cut off is removed.
    """

    def __init__(self, path: Path, head: LogLine) -> None:
        from filelock import FileLock, Timeout  # 70 ms that a count without a file saves

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
        text = contents_of(self._path).decode("ascii", "replace")
        whole = text[: text.rfind("\n") + 1]
        parts = []
        for number, line in enumerate(whole.split("\n")[:-1], 1):
            try:
                read = json.loads(line)
                if number > 1:
                    size = int(read.get("count", 1))
                    parts.append(ChunkSum(int(read["chunk"]), size, int(read["weights"]), 0.0))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                said = "is not a line of a count; delete it, or name another file with --log"
                raise StudyError(f"{self._path}:{number} {said}") from error
            if number == 1 and read != head:
                said = f"is of another count ({line}; this one is {json.dumps(head)})"
                raise StudyError(f"--log {self._path} {said}; name another file")
        if whole != text:
            os.truncate(self._path, len(whole))
        return parts

    @staticmethod
    def is_of_halves(path: Path) -> bool | None:
        """Whether a file is of groups of half boards; ``None`` if there is none, or no count's."""
        try:
            return bool(json.loads(contents_of(path).partition(b"\n")[0])["depth"] == 0)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StudyError(f"--log {self._path} cannot be written: {error.strerror}") from error
