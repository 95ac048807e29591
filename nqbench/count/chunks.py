"""A count in chunks: its progress is known, and with a file a kill costs only what is in flight.

The jobs of a board's first rows are dealt out so that neighbours are far apart: any chunks take
about as long as any others, and their share of the board is a share of the time. Chunks depend on
the board alone: a CPU may go on where a GPU stopped. Kernels differ in the nodes they visit, and
none counts them without cost; what they all give is the chunk's sum of weights (``border``), so
this is what is written down, and what another path must find again.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from nqbench.count.choice import MAX_JOBS
from nqbench.errors import StudyError, WrongAnswer
from nqbench.system.machine import cpu_count

if TYPE_CHECKING:
    from nqbench.count.choice import KernelChoice
    from nqbench.device import Device
    from nqbench.plan import KernelPlan
    from nqbench.point import Level

CHUNKS: Final = 1024
"""Of a board of up to ``LAST_SHALLOW_N`` queens: a tenth of a percent of the work each. From there
every row more gives eight times as many, so that a chunk stays within seconds of a large GPU."""
LAST_SHALLOW_N: Final = 22
SHALLOW: Final = 4
"""Rows of the jobs that are dealt out: 5,382 jobs at N = 15; beyond ``LAST_SHALLOW_N`` one more."""

GOLDEN: Final = 0.6180339887498949
"""Steps of this share of a circle spread evenly, however many they are."""

LAUNCH_S: Final = 1.0
"""Seconds of a launch on a GPU: what a kill costs, and long beside the 10 ms between launches."""
MOST_GROWTH: Final = 8
"""Chunks of a launch over those of the one before it. The first one is as much shorter than is
predicted: it shows the rate, and is computed again."""
LAUNCH_JOBS: Final = 1 << 21
"""Jobs of a launch, at least: a dozen for every thread of a large GPU."""
MIN_ROWS_LEFT: Final = 8
"""Rows that a launch searches, at least: fewer would be more jobs than work."""

SAMPLE: Final = 4
"""Chunks whose jobs are counted to know those of all."""

CHECKED: Final = 0.01
"""Share of the chunks that are computed again on another path before they are written down."""
CHECK: Final[tuple[str, Mapping[str, Level]]] = ("zhang2011.pool_monolithic", {"symmetry": "full"})
"""Another kernel: its loop and its form of the rule (``search.cuh``, ``border.cuh``) are not those
of the kernels written for speed (``frontier.cuh``)."""

SYNC_S: Final = 1.0
"""A kill loses no line that was flushed; a power failure those of about this time."""

Line = dict[str, int | str]
Run = tuple[int, int]
"""Consecutive chunks: the first of them, and how many."""
Check = Callable[[], bool]
"""Whether to compute the next part again."""
Progress = Callable[[float, float, float], None]
"""Is told the share of the board that is done, the solutions found per second, the seconds left."""


@dataclass(frozen=True, slots=True, eq=False)
class Board:
    """A board's chunks. ``jobs`` as in ``border``, by chunk; ``edges`` are their first jobs."""

    n: int
    depth: int
    jobs: NDArray[np.uint32]
    edges: NDArray[np.int64]

    @classmethod
    def of(cls, n: int) -> Board:
        """The board of ``n >= 7`` queens."""
        from nqbench.workloads.counting import border

        depth = SHALLOW + (n > LAST_SHALLOW_N)
        jobs = border.jobs(n, depth).reshape(-1, 3)
        chunks = min(len(jobs), CHUNKS << 3 * max(0, n - LAST_SHALLOW_N))
        stride = int(GOLDEN * len(jobs))
        while math.gcd(stride, len(jobs)) > 1:
            stride += 1
        dealt = jobs[np.arange(len(jobs)) * stride % len(jobs)].ravel()
        return cls(n, depth, dealt, np.linspace(0, len(jobs), chunks + 1).astype(np.int64))

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return len(self.edges) - 1

    @property
    def head(self) -> Line:
        """First line of a file: what its chunks mean. ``code`` is a digest of all their jobs."""
        code = hashlib.sha256(self.jobs.tobytes()).hexdigest()[:12]
        return {"n": self.n, "depth": self.depth, "chunks": self.chunks, "code": code}

    def span(self, first: int, count: int) -> tuple[int, int]:
        """The jobs of chunks."""
        return int(self.edges[first]), int(self.edges[first + count])

    def jobs_of(self, first: int, count: int) -> NDArray[np.uint32]:
        """The words of the jobs of chunks."""
        begin, end = self.span(first, count)
        return self.jobs[3 * begin : 3 * end]


@dataclass(frozen=True, slots=True)
class Part:
    """The sum of weights of ``count`` chunks, and the seconds of the kernel, or of a core.

    ``again``: the same sum on another path, if it was asked for. ``began``: Unix time of the
    launch.
    """

    first: int
    count: int
    weights: int
    took_s: float
    again: int | None = None
    began: float = math.inf


class Waiting:
    """Chunks that nobody has taken, from ascending ones, as runs of consecutive ones."""

    def __init__(self, left: Sequence[int]) -> None:
        breaks = [i for i in range(len(left)) if i == 0 or left[i] != left[i - 1] + 1]
        ends = [*breaks[1:], len(left)]
        self._runs = deque((left[i], end - i) for i, end in zip(breaks, ends, strict=False))

    def __len__(self) -> int:
        return sum(count for _, count in self._runs)

    def take(self, most: int) -> Run:
        """The next consecutive chunks, at most so many."""
        first, count = self._runs.popleft()
        if most < count:
            self._runs.appendleft((first + most, count - most))
        return first, min(most, count)

    def give_back(self, first: int, count: int) -> None:
        """Chunks that were not counted come first."""
        self._runs.appendleft((first, count))


class Counter(ABC):
    """What computes chunks, on one path, and again on another one."""

    name: str
    check_name: str
    launches: bool
    """Whether a part is a launch of its own, rather than the work of one core."""
    timed: bool = True

    @abstractmethod
    def parts(self, board: Board, left: Sequence[int], check: Check) -> Generator[Part, None, None]:
        """Sums of the chunks ``left`` (ascending), as they are finished."""


class CpuCounter(Counter):
    """Chunks on ``threads`` cores (0: all); again by a search without the rule, which weighs whole
    boards."""

    name = "the search by the rule of the border queens on the CPU"
    check_name = "a plain search of whole boards on the CPU"
    launches = False

    def __init__(self, threads: int = 0) -> None:
        self._threads = threads or cpu_count()

    def parts(self, board: Board, left: Sequence[int], check: Check) -> Generator[Part, None, None]:
        """See ``Counter``."""
        from nqbench.workloads.counting import border

        def part(chunk: int) -> Part:
            began, started = time.time(), time.perf_counter()
            jobs = (board.n, board.depth, board.jobs, *board.span(chunk, 1))
            weights = int(border.weights_of_jobs(*jobs))
            took_s = time.perf_counter() - started
            again = int(border.weights_of_boards(*jobs)) if check() else None
            return Part(chunk, 1, weights, took_s, again, began)

        with ThreadPoolExecutor(self._threads) as pool:
            try:
                ahead = iter(left)
                running = {pool.submit(part, chunk) for chunk in islice(ahead, 4 * self._threads)}
                while running:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    running |= {pool.submit(part, chunk) for chunk in islice(ahead, len(done))}
                    yield from (future.result() for future in done)
            finally:
                pool.shutdown(cancel_futures=True)


class KernelCounter(Counter):
    """Launches of about ``launch_s`` on a GPU or in the simulator; again by another kernel.

    While one launch runs, the cores make the jobs of the next.
    """

    launches = True

    def __init__(self, device: Device, choice: KernelChoice, launch_s: float = LAUNCH_S) -> None:
        self.name = f"{choice.system} on {device.spec}"
        self.check_name = f"{CHECK[0]} on {device.spec}"
        self.timed = device.timed
        self._device, self._choice, self._launch_s = device, choice, launch_s

    def parts(self, board: Board, left: Sequence[int], check: Check) -> Generator[Part, None, None]:
        """See ``Counter``."""
        rate = board.chunks / self._choice.seconds(board.n, self._device.facts)
        size, waiting = max(1, int(rate * self._launch_s)), Waiting(left)
        depth, most = self._depth(board, size)
        size = max(1, min(size // MOST_GROWTH, most))
        with ThreadPoolExecutor(1) as maker:

            def make(run: Run) -> tuple[Run, Future[KernelPlan]]:
                return run, maker.submit(self._plan, board, run, depth)

            ahead = make(waiting.take(size)) if waiting else None
            while ahead is not None:
                (first, count), plan = ahead[0], ahead[1].result()
                ahead = make(waiting.take(size)) if waiting else None
                weights, took_s, began = self._launch(plan)
                size = int(self._launch_s * count / took_s)
                size = max(1, min(size, MOST_GROWTH * count, most))
                again = None
                if check():
                    again = self._launch(self._plan(board, (first, count), depth, *CHECK))[0]
                yield Part(first, count, weights, took_s, again, began)

    def _plan(
        self,
        board: Board,
        run: Run,
        depth: int,
        system: str = "",
        levels: Mapping[str, Level] | None = None,
    ) -> KernelPlan:
        from nqbench.workloads.counting.plans import kernel_plan

        own = self._choice.levels if levels is None else levels
        given = {**own, "n": board.n, "depth": depth}
        system = system or self._choice.system
        return kernel_plan(given, system, self._device.facts, board.jobs_of(*run))

    def _launch(self, plan: KernelPlan) -> tuple[int, float, float]:
        """Sum of the weights, seconds of the kernel, and Unix time at which it was launched."""
        with self._device.prepare(plan) as prepared:
            began, started = time.time(), time.perf_counter()
            done = prepared.launch()
            took_s = time.perf_counter() - started if done.kernel_s is None else done.kernel_s
            return int(prepared.fetch()["results"].sum(dtype=np.uint64)), took_s, began

    def _depth(self, board: Board, size: int) -> tuple[int, int]:
        """Rows at which a launch of so many chunks has enough jobs, and the most chunks of one."""
        from nqbench.workloads.counting import border

        sample = min(size, board.chunks, SAMPLE)
        depth, each = board.depth, 0.0
        deepest = max(board.depth, board.n - MIN_ROWS_LEFT)
        least = max(board.depth, min(self._choice.wanted_depth(board.n), deepest))
        closed = self._choice.closed_jobs
        for depth in range(least, deepest + 1):
            some = board.jobs_of(0, sample)
            found = border.count_below(board.n, board.depth, some, depth, closed=closed)
            each = found / sample
            if each * size >= LAUNCH_JOBS:
                break
        return depth, max(1, int(MAX_JOBS / each))


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
    counter: Counter,
    log: Path | None = None,
    *,
    checked: float = CHECKED,
    progress: Progress | None = None,
) -> Counted:
    """Count the placements of ``n >= 7`` queens, resuming ``log``.

    With a file the first part, and of the others a random share of ``checked``, is computed again
    before it is written. Raises ``StudyError`` for a file of another count, or one that cannot be
    written, and ``WrongAnswer`` if two paths disagree.
    """
    from nqbench.workloads.counting import border

    board = Board.of(n)
    with Log.of(log, board.head) as file:
        held = file.parts
        left = _left(held, board.chunks, log)
        before = sum(part.weights for part in held)
        weights, parts, again, took_s = before, 0, 0, 0.0
        resumed = done = board.chunks - len(left)
        started, first = time.perf_counter(), math.inf
        check = _first_and(checked) if log is not None else lambda: False
        with closing(counter.parts(board, left, check)) as running:
            for part in running:
                line: Line = {"by": counter.name}
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


def _left(held: Sequence[Part], chunks: int, log: Path | None) -> list[int]:
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


def _first_and(share: float) -> Check:
    """Yes to the first question, and to a random share of the others."""
    first = iter((True,))
    return lambda: next(first, False) or random.random() < share


def _compare(board: Board, counter: Counter, part: Part, log: Path | None) -> None:
    if part.again != part.weights:
        raise WrongAnswer(
            f"chunks {part.first} to {part.first + part.count - 1} of {board.n} queens: the weights"
            f" sum up to {part.weights} by {counter.name}, but to {part.again} by"
            f" {counter.check_name}; one of them is wrong, so nothing of it was written to"
            f" {log}, which keeps what was finished before: do not trust this device, run"
            " the GPU tests"
        )


class Log:
    """The file of a count: ``parts`` that it held when it was opened, and those appended.

    One process at a time has it. A last line that was cut off is removed.
    """

    def __init__(self, path: Path, head: Line) -> None:
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
    def of(path: Path | None, head: Line) -> AbstractContextManager[Log | NoLog]:
        """The file, closed at the end; without a path one that keeps nothing."""
        return nullcontext(NoLog()) if path is None else closing(Log(path, head))

    def append(self, part: Part, about: Line) -> None:
        """Add a part, with more about it; a kill loses no part that was added."""
        line: Line = {"chunk": part.first, "weights": part.weights}
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

    def _write(self, line: Line) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        if time.monotonic() - self._synced > SYNC_S:
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()

    def _read(self, head: Line) -> list[Part]:
        if not self._path.exists():
            return []
        try:
            text = self._path.read_text(encoding="ascii")
            whole = text[: text.rfind("\n") + 1]
            first, *lines = [json.loads(line) for line in whole.splitlines()] or [head]
            parts = [
                Part(int(line["chunk"]), int(line.get("count", 1)), int(line["weights"]), 0.0)
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

    parts: Sequence[Part] = ()

    def append(self, part: Part, about: Line) -> None:
        """Forget it."""
