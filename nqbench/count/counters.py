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
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

import numpy as np

from nqbench.count.choice import MAX_JOBS, KernelChoice, choice_for
from nqbench.count.chunks import ChunkedBoard, ChunkSum, UnclaimedChunks
from nqbench.devices.registry import open_device
from nqbench.facts import DeviceFacts
from nqbench.plan import KernelPlan, MultiLaunchPlan
from nqbench.point import FactorLevels
from nqbench.system.machine import cpu_count
from nqbench.workloads.counting import border
from nqbench.workloads.counting.factors import MIDDLE, takes_closed_jobs
from nqbench.workloads.counting.plans import kernel_plan
from nqbench.workloads.counting.systems import MIDDLE_N

if TYPE_CHECKING:
    from nqbench.cluster.members import Who

Args = ParamSpec("Args")
Result = TypeVar("Result")
PathPlan = tuple[int, KernelPlan | MultiLaunchPlan]

CPU: Final = "cpu"
LAUNCH_S: Final = 1.0
"""Seconds of a launch on a GPU: what a kill costs, and long beside the 10 ms between launches."""
MIN_LAUNCH_S: Final = 0.03
"""Less work is not worth a launch of its own: preparing one takes some 10 ms."""
SHORTER: Final = 8
"""The first range of a device is as much shorter than is predicted: it shows the rate, or is
computed again on another path, which may take many times as long."""
AHEAD: Final = 2
"""Ranges that a GPU has at a time: the jobs of the second are made while the first is searched."""
LAUNCH_JOBS: Final = 1 << 21
"""Jobs of a launch, at least: a dozen for every thread of a large GPU."""
MIN_ROWS_LEFT: Final = 8
"""Rows that a launch searches, at least: fewer would be more jobs than work."""
SAMPLE: Final = 4
"""Chunks whose jobs are counted to know those of all."""
CHECK: Final = "zhang2011.pool_monolithic"
CHECK_LEVELS: Final[FactorLevels] = {"symmetry": "full"}
"""Another kernel: its loop and its form of the rule (``search.cuh``, ``border.cuh``) are not those
of the kernels written for speed (``frontier.cuh``)."""
CHECK_HALVES: Final[FactorLevels] = {
    "listing": "walk",
    "order": "plain",
    "masks": "and",
    "pair_test": "words",
}
"""Of groups of half boards: another part of the code lists them, and tests pair by pair what the
masks of another order leave. A test of all pairs takes hundreds of times as long as the count."""


@dataclass(eq=False)
class ChunkSlot:
    """A device that counts ``parallel`` ranges at a time, each with ``rate`` chunks per second.

    It may have ``ahead`` ranges, waiting ones included. If the rate is not ``sure``, its first ones
    are short. In a cluster ``who`` may count for it, on their device ``spec``. It has ``flying``
    ranges of ``owed`` chunks together, and has searched them ``since`` then.
    """

    name: str
    parallel: int
    ahead: int
    rate: float = 0.0
    sure: bool = True
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

    def begin(self, chunks: range) -> None:
        """It has a range more."""
        if not self.flying:
            self.since = time.monotonic()
        self.flying, self.owed = self.flying + 1, self.owed + len(chunks)

    def end(self, count: int, took_s: float) -> None:
        """It has a range of ``count`` chunks less, which took so long (0: unknown)."""
        self.flying, self.owed, self.since = self.flying - 1, self.owed - count, time.monotonic()
        if took_s > 0:
            self.rate, self.sure = count / took_s, True


class ChunkCounter(ABC):
    """Computes chunks on one path, and again on another one.

    ``launches``: whether a range is a launch of its own, rather than the work of one core.
    ``halves_n``: boards to which groups of half boards are its fastest path.
    """

    name: str
    check_name: str
    launches: bool
    timed: bool = True
    halves_n: Collection[int] = ()

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

    def _size(self, slot: ChunkSlot) -> int:
        """Most chunks of a device's next range, 0 if it has enough: a second's work, less where
        little is left, so that all devices end at the same time."""
        waiting = len(self._unclaimed)
        now, slots = time.monotonic(), self._slots.values()
        share = slot.speed / (sum(other.speed for other in slots) or 1.0)
        left = waiting + sum(other.left(now) for other in slots)
        fair = (share * left - slot.left(now)) / slot.parallel
        least = slot.rate * MIN_LAUNCH_S
        if fair < least and slot.flying >= slot.parallel:
            return 0
        short = self._unchecked(slot) or not slot.sure
        most = slot.rate * LAUNCH_S / (SHORTER if short else 1)
        size = min(most, max(fair, least))
        return waiting if waiting - size < least else max(1, round(size))

    @abstractmethod
    def _begin(self, slot: ChunkSlot, chunks: range, again: bool) -> None:
        """Start a range on a device."""

    @abstractmethod
    def _next(self) -> ChunkSum | None:
        """The next finished range; ``None`` if there is none for a while."""

    @abstractmethod
    def _cancel(self) -> None:
        """Give up what is under way."""


class LocalCounter(ChunkCounter):
    """Chunks in threads of this process, each for a range at a time, by a function ``count``."""

    def __init__(
        self, threads: int, count: Callable[[ChunkedBoard, range, bool], ChunkSum]
    ) -> None:
        self._threads, self._count = threads, count

    def parts(
        self, board: ChunkedBoard, left: Sequence[int], checked: float | None
    ) -> Generator[ChunkSum, None, None]:
        """See ``ChunkCounter``."""
        self._slot = self._new_slot(board)
        self._done: queue.SimpleQueue[Future[ChunkSum]] = queue.SimpleQueue()
        self._pool = ThreadPoolExecutor(self._threads)
        yield from super().parts(board, left, checked)

    def _look(self) -> None:
        self._slots = {self._slot.name: self._slot}

    def _begin(self, slot: ChunkSlot, chunks: range, again: bool) -> None:  # noqa: ARG002
        self._pool.submit(self._count, self._board, chunks, again).add_done_callback(self._done.put)

    def _next(self) -> ChunkSum:
        found = self._done.get().result()
        self._slot.end(found.count, found.took_s)
        return found

    def _cancel(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    @abstractmethod
    def _new_slot(self, board: ChunkedBoard) -> ChunkSlot:
        """What counts this board here."""


HALVES_N: Final = range(18, MIDDLE_N + 1)
"""Boards that a CPU counts from the middle: on smaller ones it saves at most 3 s, less than its
code takes to compile."""


class CpuCounter(LocalCounter):
    """Chunks on ``threads`` cores (0: all); again by a search without the rule, which weighs whole
    boards."""

    check_name = "a plain search of whole boards on the CPU"
    launches = False

    def __init__(self, threads: int = 0) -> None:
        super().__init__(threads or cpu_count(), count_on_core)
        self.halves_n = HALVES_N

    def _new_slot(self, board: ChunkedBoard) -> ChunkSlot:
        rule = "the search by the rule of the border queens"
        self.name = f"{'pairs of half boards' if board.halves else rule} on the CPU"
        return ChunkSlot(CPU, self._threads, 4 * self._threads)

    def _size(self, slot: ChunkSlot) -> int:  # noqa: ARG002
        return 1


def _searches(
    board: ChunkedBoard, span: tuple[int, int]
) -> tuple[Callable[[], int], Callable[[], int]]:
    """What counts some jobs, and what counts them by another path."""
    if not board.halves:
        from nqbench.workloads.counting.border_search import weights_of_boards, weights_of_jobs

        jobs = (board.n, board.depth, board.jobs.ravel(), *span)
        return partial(weights_of_jobs, *jobs), partial(weights_of_boards, *jobs)
    from nqbench.workloads.counting.middle import cpu
    from nqbench.workloads.counting.middle.vectors import paths
    from nqbench.workloads.counting.search import solutions_of_groups

    n, groups = board.n, board.jobs
    count = partial(cpu.solutions_of_groups, paths()[-1], cpu.board_of(n), groups, *span)
    return count, partial(solutions_of_groups, n, groups, *span)


def count_on_core(board: ChunkedBoard, chunks: range, again: bool) -> ChunkSum:
    """Count chunks on one core; ``again``: by a search without the rule, too."""
    count, search = _searches(board, board.span(chunks))
    started = time.perf_counter()
    weights = int(count())
    took_s = time.perf_counter() - started
    return ChunkSum(chunks.start, len(chunks), weights, took_s, int(search()) if again else None)


class KernelLauncher:
    """Launches on one GPU, or in the simulator, below the jobs of chunks.

    One thread has the device, and launches one after the other; jobs are made in the callers'.
    ``alone`` holds the device during a launch. Without ``choice`` it is the best one for a board.
    """

    def __init__(
        self,
        spec: str,
        choice: KernelChoice | None = None,
        alone: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._thread = ThreadPoolExecutor(1)
        self.device = self.run(open_device, spec)
        self.device.keeps_memory = True
        self._choice, self._alone = choice, alone
        self._launches: dict[int, tuple[int, int]] = {}

    def run(
        self, function: Callable[Args, Result], *args: Args.args, **more: Args.kwargs
    ) -> Result:
        """Call a function in the thread that has the device."""
        return self._thread.submit(function, *args, **more).result()

    def close(self) -> None:
        """Release the device, once a launch under way has ended: nobody waits for it."""
        self._thread.submit(self.device.close)
        self._thread.shutdown(wait=False)

    def choice(self, n: int, halves: bool = True) -> KernelChoice:
        """The kernel for a board; ``halves``: it may pair half boards."""
        return self._choice or choice_for(self.device.facts, n, halves)[0]

    def count(self, board: ChunkedBoard, chunks: range, again: bool) -> ChunkSum:
        """Count chunks, by several launches if one would have too many jobs."""
        sums, took_s = [0, 0], 0.0
        plans = self._of_halves if board.halves else self._of_jobs
        for path, plan in plans(board, chunks, again):
            weights, kernel_s = self.run(self._launch, plan)
            sums[path] += weights
            if not path:
                took_s += kernel_s
        return ChunkSum(chunks.start, len(chunks), sums[0], took_s, sums[1] if again else None)

    def _of_jobs(self, board: ChunkedBoard, chunks: range, again: bool) -> Iterator[PathPlan]:
        if board.n not in self._launches:
            self._launches[board.n] = self._depth(board)
        depth, most = self._launches[board.n]
        choice, given = self.choice(board.n, halves=False), {"n": board.n, "depth": depth}
        kernels = [(choice.system, choice.levels), (CHECK, CHECK_LEVELS)][: 1 + again]
        for first in range(chunks.start, chunks.stop, most):
            jobs = board.jobs_of(range(first, min(first + most, chunks.stop)))
            for path, (system, levels) in enumerate(kernels):
                yield path, kernel_plan({**levels, **given}, system, self.device.facts, jobs)

    def _of_halves(self, board: ChunkedBoard, chunks: range, again: bool) -> Iterator[PathPlan]:
        from nqbench.workloads.counting.middle import plans

        choice, (begin, end) = self.choice(board.n), board.span(chunks)
        own = choice.levels if choice.system == MIDDLE else {}
        for path, levels in enumerate([own, CHECK_HALVES][: 1 + again]):
            given = {**levels, "n": board.n}
            yield path, plans.make_plan(given, self.device.facts, board.jobs[begin:end])

    def _launch(self, plan: KernelPlan | MultiLaunchPlan) -> tuple[int, float]:
        """Sum of the weights, and seconds of the kernel."""
        result = "results" if isinstance(plan, KernelPlan) else "answer"
        with self._alone(), self.device.prepare(plan) as prepared:
            started = time.perf_counter()
            done = prepared.launch()
            took_s = time.perf_counter() - started if done.kernel_s is None else done.kernel_s
            return int(prepared.fetch()[result].sum(dtype=np.uint64)), took_s

    def _depth(self, board: ChunkedBoard) -> tuple[int, int]:
        """Rows at which a launch of a second has enough jobs, and the most chunks of a launch."""
        choice = self.choice(board.n, halves=False)
        size = max(1, int(chunk_rate(board, choice, self.device.facts) * LAUNCH_S))
        sample = min(size, board.chunks, SAMPLE)
        depth, each = board.depth, 0.0
        deepest = max(board.depth, board.n - MIN_ROWS_LEFT)
        least = max(board.depth, min(choice.wanted_depth(board.n), deepest))
        some = board.jobs_of(range(sample))
        for depth in range(least, deepest + 1):
            found = border.count_jobs(
                board.n, depth, closed=takes_closed_jobs(choice.loop), above=some
            )
            each = found / sample
            if each * size >= LAUNCH_JOBS:
                break
        return depth, max(1, int(MAX_JOBS / each))


def chunk_rate(board: ChunkedBoard, choice: KernelChoice, device: DeviceFacts) -> float:
    """Predicted chunks per second."""
    return board.chunks / choice.seconds(board.n, device)


class KernelCounter(LocalCounter):
    """Launches of about a second on a GPU or in the simulator; again by another kernel.

    While one launch runs, the cores make the jobs of the next.
    """

    launches = True

    def __init__(self, launcher: KernelLauncher, n: int) -> None:
        """``n``: the board that it will count."""
        super().__init__(AHEAD, launcher.count)
        device = launcher.device
        self._launcher, self.timed = launcher, device.timed
        self.halves_n = (n,) * (launcher.choice(n).system == MIDDLE)

    def _new_slot(self, board: ChunkedBoard) -> ChunkSlot:
        spec, choice = self._launcher.device.spec, self._launcher.choice(board.n, board.halves)
        self.name = f"{MIDDLE if board.halves else choice.system} on {spec}"
        self.check_name = f"{'a test pair by pair' if board.halves else CHECK} on {spec}"
        rate = chunk_rate(board, choice, self._launcher.device.facts)
        return ChunkSlot(self.name, 1, AHEAD, rate, sure=False)
