"""What computes chunks: one scheduler for all cores, one GPU, or the devices of a cluster.

A counter has slots, its devices. Each gets ranges of unclaimed chunks, one or more ahead of what it
computes; the first range of every device, and a random share of the others, is computed again on
another path where the count is written down.
"""

from __future__ import annotations

import queue
import random
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from nqbench.count.choice import MAX_JOBS, KernelChoice
from nqbench.count.chunks import ChunkedBoard, ChunkRange, ChunkSum, UnclaimedChunks
from nqbench.device import Device
from nqbench.plan import KernelPlan
from nqbench.point import Level
from nqbench.system.machine import cpu_count
from nqbench.workloads.counting import border
from nqbench.workloads.counting.plans import kernel_plan

if TYPE_CHECKING:
    from nqbench.cluster.jobs import Who

CPU: Final = "cpu"
LAUNCH_S: Final = 1.0
"""Seconds of a launch on a GPU: what a kill costs, and long beside the 10 ms between launches."""
MAX_GROWTH: Final = 8
"""Chunks of a launch over those of the one before it. The first one is as much shorter than is
predicted: it shows the rate, and is computed again."""
LAUNCH_JOBS: Final = 1 << 21
"""Jobs of a launch, at least: a dozen for every thread of a large GPU."""
MIN_ROWS_LEFT: Final = 8
"""Rows that a launch searches, at least: fewer would be more jobs than work."""
SAMPLE: Final = 4
"""Chunks whose jobs are counted to know those of all."""
CHECK: Final[tuple[str, Mapping[str, Level]]] = ("zhang2011.pool_monolithic", {"symmetry": "full"})
"""Another kernel: its loop and its form of the rule (``search.cuh``, ``border.cuh``) are not those
of the kernels written for speed (``frontier.cuh``)."""


@dataclass(eq=False)
class ChunkSlot:
    """A device that counts ``parallel`` ranges at a time, each with ``rate`` chunks per second.

    It may have ``ahead`` ranges, waiting ones included. In a cluster ``who`` may count for it, on
    their device ``spec``. It has ``flying`` ranges of ``owed`` chunks
    together, and has searched them ``since`` then.
    """

    name: str
    parallel: int
    ahead: int
    rate: float = 0.0
    spec: str = ""
    who: Who = ({}, ())
    checked: bool = False
    flying: int = 0
    owed: int = 0
    since: float = 0.0

    @property
    def speed(self) -> float:
        """Chunks per second of all ranges that it counts at a time."""
        return self.rate * self.parallel

    def left(self, now: float) -> float:
        """Chunks of its ranges that it has not searched yet, as far as its speed tells."""
        return max(0.0, self.owed - self.speed * (now - self.since))

    def begin(self, chunks: ChunkRange) -> None:
        """It has a range more."""
        if not self.flying:
            self.since = time.monotonic()
        self.flying, self.owed = self.flying + 1, self.owed + chunks.count

    def end(self, count: int) -> None:
        """It has a range of ``count`` chunks less."""
        self.flying, self.owed, self.since = self.flying - 1, self.owed - count, time.monotonic()


class ChunkCounter(ABC):
    """Computes chunks on one path, and again on another one.

    ``launches``: whether a range is a launch of its own, rather than the work of one core.
    """

    name: str
    check_name: str
    launches: bool
    timed: bool = True

    def parts(
        self, board: ChunkedBoard, left: Sequence[int], checked: float | None
    ) -> Generator[ChunkSum, None, None]:
        """Sums of the chunks ``left`` (ascending), as they are finished.

        The first range of every device, and a random share of ``checked``, is computed again;
        ``None``: nothing is.
        """
        self._board, self._unclaimed, self._checked = board, UnclaimedChunks(left), checked
        self._slots: dict[str, ChunkSlot] = {}
        unfinished = len(left)
        try:
            while unfinished:
                self._look()
                self._hand_out()
                if (found := self._next()) is not None:
                    unfinished -= found.count
                    yield found
        finally:
            self._cancel()

    def _hand_out(self) -> None:
        """Give every device as many ranges as it may have, in turns."""
        slots = self._slots.values()
        for depth in range(min(s.flying for s in slots), max(s.ahead for s in slots)):
            for slot in slots:
                if self._unclaimed and slot.flying <= depth < slot.ahead:
                    if not (size := self._size(slot)):
                        continue
                    chunks = self._unclaimed.take(size)
                    again = self._unchecked(slot) or random.random() < (self._checked or 0.0)
                    slot.checked |= again
                    slot.begin(chunks)
                    self._begin(slot, chunks, again)

    def _unchecked(self, slot: ChunkSlot) -> bool:
        return self._checked is not None and not slot.checked

    @abstractmethod
    def _look(self) -> None:
        """Keep a slot for every device that is there. Raises ``DeviceLost`` if none is left."""

    @abstractmethod
    def _size(self, slot: ChunkSlot) -> int:
        """Most chunks of a device's next range; 0 if it has enough."""

    @abstractmethod
    def _begin(self, slot: ChunkSlot, chunks: ChunkRange, again: bool) -> None:
        """Start a range on a device."""

    @abstractmethod
    def _next(self) -> ChunkSum | None:
        """The next finished range; ``None`` if there is none for a while."""

    @abstractmethod
    def _cancel(self) -> None:
        """Give up what is under way."""


class CpuCounter(ChunkCounter):
    """Chunks on ``threads`` cores (0: all); again by a search without the rule, which weighs whole
    boards."""

    name = "the search by the rule of the border queens on the CPU"
    check_name = "a plain search of whole boards on the CPU"
    launches = False

    def __init__(self, threads: int = 0) -> None:
        self._threads = threads or cpu_count()

    def parts(
        self, board: ChunkedBoard, left: Sequence[int], checked: float | None
    ) -> Generator[ChunkSum, None, None]:
        """See ``ChunkCounter``."""
        self._done: queue.SimpleQueue[Future[ChunkSum]] = queue.SimpleQueue()
        with ThreadPoolExecutor(self._threads) as self._pool:
            yield from super().parts(board, left, checked)

    def _look(self) -> None:
        self._slots = self._slots or {CPU: ChunkSlot(CPU, self._threads, 4 * self._threads)}

    def _size(self, slot: ChunkSlot) -> int:  # noqa: ARG002 (the same for all)
        return 1

    def _begin(self, slot: ChunkSlot, chunks: ChunkRange, again: bool) -> None:  # noqa: ARG002
        future = self._pool.submit(count_on_core, self._board, chunks, again)
        future.add_done_callback(self._done.put)

    def _next(self) -> ChunkSum:
        found = self._done.get().result()
        self._slots[CPU].end(found.count)
        return found

    def _cancel(self) -> None:
        self._pool.shutdown(cancel_futures=True)


def count_on_core(board: ChunkedBoard, chunks: ChunkRange, again: bool) -> ChunkSum:
    """Count chunks on one core; ``again``: by a search without the rule, too."""
    began, started = time.time(), time.perf_counter()
    jobs = (board.n, board.depth, board.jobs, *board.span(chunks))
    weights = int(border.weights_of_jobs(*jobs))
    took_s = time.perf_counter() - started
    second = int(border.weights_of_boards(*jobs)) if again else None
    return ChunkSum(chunks.first, chunks.count, weights, took_s, second, began)


class KernelLauncher:
    """Launches of the chosen kernel below the jobs of chunks, on a GPU or in the simulator."""

    def __init__(self, device: Device, choice: KernelChoice) -> None:
        self.device, self.choice = device, choice

    def plan(
        self,
        board: ChunkedBoard,
        chunks: ChunkRange,
        depth: int,
        system: str = "",
        levels: Mapping[str, Level] | None = None,
    ) -> KernelPlan:
        """A launch below some chunks; ``system`` and ``levels`` replace the chosen ones."""
        own = self.choice.levels if levels is None else levels
        given = {**own, "n": board.n, "depth": depth}
        system = system or self.choice.system
        return kernel_plan(given, system, self.device.facts, board.jobs_of(chunks))

    def launch(self, plan: KernelPlan) -> tuple[int, float, float]:
        """Sum of the weights, seconds of the kernel, and Unix time at which it was launched."""
        with self.device.prepare(plan) as prepared:
            began, started = time.time(), time.perf_counter()
            done = prepared.launch()
            took_s = time.perf_counter() - started if done.kernel_s is None else done.kernel_s
            return int(prepared.fetch()["results"].sum(dtype=np.uint64)), took_s, began

    def depth(self, board: ChunkedBoard, size: int) -> tuple[int, int]:
        """Rows at which a launch of so many chunks has enough jobs, and the most chunks of one."""
        sample = min(size, board.chunks, SAMPLE)
        depth, each = board.depth, 0.0
        deepest = max(board.depth, board.n - MIN_ROWS_LEFT)
        least = max(board.depth, min(self.choice.wanted_depth(board.n), deepest))
        some, closed = board.jobs_of(ChunkRange(0, sample)), self.choice.closed_jobs
        for depth in range(least, deepest + 1):
            found = border.count_jobs(board.n, depth, closed=closed, above=some)
            each = found / sample
            if each * size >= LAUNCH_JOBS:
                break
        return depth, max(1, int(MAX_JOBS / each))


class KernelCounter(ChunkCounter):
    """Launches of about ``launch_s`` on a GPU or in the simulator; again by another kernel.

    While one launch runs, the cores make the jobs of the next.
    """

    launches = True

    def __init__(self, device: Device, choice: KernelChoice, launch_s: float = LAUNCH_S) -> None:
        self.name = f"{choice.system} on {device.spec}"
        self.check_name = f"{CHECK[0]} on {device.spec}"
        self.timed = device.timed
        self._launcher, self._launch_s = KernelLauncher(device, choice), launch_s

    def parts(
        self, board: ChunkedBoard, left: Sequence[int], checked: float | None
    ) -> Generator[ChunkSum, None, None]:
        """See ``ChunkCounter``."""
        launcher = self._launcher
        rate = board.chunks / launcher.choice.seconds(board.n, launcher.device.facts)
        size = max(1, int(rate * self._launch_s))
        self._depth, self._most = launcher.depth(board, size)
        self._next_size = max(1, min(size // MAX_GROWTH, self._most))
        self._made: deque[tuple[ChunkSlot, ChunkRange, bool, Future[KernelPlan]]] = deque()
        with ThreadPoolExecutor(1) as self._maker:
            yield from super().parts(board, left, checked)

    def _look(self) -> None:
        self._slots = self._slots or {self.name: ChunkSlot(self.name, 1, 2)}

    def _size(self, slot: ChunkSlot) -> int:  # noqa: ARG002 (there is one)
        return self._next_size

    def _begin(self, slot: ChunkSlot, chunks: ChunkRange, again: bool) -> None:
        plan = self._maker.submit(self._launcher.plan, self._board, chunks, self._depth)
        self._made.append((slot, chunks, again, plan))

    def _next(self) -> ChunkSum:
        slot, chunks, again, plan = self._made.popleft()
        weights, took_s, began = self._launcher.launch(plan.result())
        size = int(self._launch_s * chunks.count / took_s)
        self._next_size = max(1, min(size, MAX_GROWTH * chunks.count, self._most))
        second = None
        if again:
            other = self._launcher.plan(self._board, chunks, self._depth, *CHECK)
            second = self._launcher.launch(other)[0]
        slot.end(chunks.count)
        return ChunkSum(chunks.first, chunks.count, weights, took_s, second, began)

    def _cancel(self) -> None:
        self._maker.shutdown(cancel_futures=True)
