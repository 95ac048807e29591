"""A count in chunks: its progress is known, a file keeps what is finished, and some is checked."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from nqbench.count.chunks import ChunkedBoard, ChunkSum, LogLine
from nqbench.count.counters import CheckNext, ChunkCounter
from nqbench.count.log import CountLog
from nqbench.errors import StudyError, WrongAnswer
from nqbench.workloads.counting import border

CHECKED: Final = 0.01
"""Share of the chunks that are computed again on another path before they are written down."""

ShowProgress = Callable[[float, float, float], None]
"""Is told the share of the board that is done, the solutions found per second, the seconds left."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The number of solutions; of the chunks, how many there are, how many the file held already,
    and how many were computed again; launches (or pieces of work), the seconds they took together,
    and those from the first launch to the last result."""

    solutions: int
    chunks: int
    resumed: int
    checked: int
    parts: int
    took_s: float
    span_s: float


def count_in_chunks(
    n: int,
    counter: ChunkCounter,
    log: Path | None = None,
    *,
    checked: float = CHECKED,
    progress: ShowProgress | None = None,
) -> Counted:
    """Count the placements of ``n >= 7`` queens, resuming ``log``.

    With a file the first part, and of the others a random share of ``checked``, is computed again
    before it is written. Raises ``StudyError`` for a file of another count, or one that cannot be
    written, and ``WrongAnswer`` if two paths disagree.
    """
    board = ChunkedBoard.of(n)
    with CountLog.of(log, board.head) as file:
        held = file.parts
        left = _left(held, board.chunks, log)
        before = sum(part.weights for part in held)
        weights, parts, again, took_s = before, 0, 0, 0.0
        resumed = done = board.chunks - len(left)
        started, first = time.perf_counter(), math.inf
        check = _first_and(checked) if log is not None else lambda: False
        with closing(counter.parts(board, left, check)) as running:
            for part in running:
                line: LogLine = {"by": counter.name}
                if part.again is not None:
                    _compare(board, counter, part, log)
                    line["again"] = counter.check_name
                    again += part.count
                file.append(part, line)
                weights, done, parts = weights + part.weights, done + part.count, parts + 1
                took_s, first = took_s + part.took_s, min(first, part.began)
                if progress is not None:
                    seconds = time.perf_counter() - started
                    rate = (weights - before) * 2 / 3 / seconds
                    left_s = seconds * (board.chunks - done) / (done - resumed)
                    progress(done / board.chunks, rate, left_s)
    span_s = max(0.0, time.time() - first)
    return Counted(border.total(weights), board.chunks, resumed, again, parts, took_s, span_s)


def _left(held: Sequence[ChunkSum], chunks: int, log: Path | None) -> list[int]:
    """Chunks that no part holds; ``StudyError`` if two hold the same, or one that is none."""
    times = np.zeros(chunks + 1, np.int64)
    for part in held:
        times[part.first : part.first + part.count] += 1
    wrong = np.flatnonzero(times > 1)
    if wrong.size or any(not 0 <= p.first < p.first + p.count <= chunks for p in held):
        which = f"chunk {wrong[0]} twice" if wrong.size else "a chunk that the board does not have"
        raise StudyError(
            f"--log {log} holds {which}; delete one of the lines, or name another file"
        )
    return [int(chunk) for chunk in np.flatnonzero(times[:chunks] == 0)]


def _first_and(share: float) -> CheckNext:
    """Yes to the first question, and to a random share of the others."""
    first = iter((True,))
    return lambda: next(first, False) or random.random() < share


def _compare(board: ChunkedBoard, counter: ChunkCounter, part: ChunkSum, log: Path | None) -> None:
    if part.again != part.weights:
        raise WrongAnswer(
            f"chunks {part.first} to {part.first + part.count - 1} of {board.n} queens: the weights"
            f" sum up to {part.weights} by {counter.name}, but to {part.again} by"
            f" {counter.check_name}; one of them is wrong, so nothing of it was written to"
            f" {log}, which keeps what was finished before: do not trust this device, run"
            " the GPU tests"
        )
