"""A count over all GPUs, or all cores, of a cluster: chunks go to whoever is free.

The file of finished chunks is written on the computer that started the count.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from pathlib import Path
from typing import Final

from nqbench.cluster.connect import ClusterTarget, connected
from nqbench.cluster.devices import ClusterSite, wanted
from nqbench.cluster.host import CORES, alone, here
from nqbench.cluster.jobs import RemoteJobs
from nqbench.cluster.members import Cluster
from nqbench.count.choice import choice_for
from nqbench.count.chunks import ChunkedBoard, ChunkRange, ChunkSum
from nqbench.count.counters import (
    CHECK,
    CPU,
    LAUNCH_S,
    MAX_GROWTH,
    ChunkCounter,
    ChunkSlot,
    KernelLauncher,
    count_on_core,
)
from nqbench.count.solutions import (
    MIN_LOGGED_N,
    Count,
    ShowProgress,
    count_solutions,
    in_chunks,
)
from nqbench.devices.registry import facts_for, open_device
from nqbench.errors import DeviceLost, NqbenchError
from nqbench.facts import DeviceFacts
from nqbench.plan import KernelPlan

AHEAD: Final = 2
"""Ranges that a GPU has at a time: the jobs of the second are made while the first is searched."""
MIN_LAUNCH_S: Final = 0.03
"""Less work is not worth a launch of its own: preparing one takes some 10 ms."""


@dataclass(frozen=True, slots=True)
class CountRequest:
    """Chunks of a board for one device. ``again``: on another path too."""

    run: str
    spec: str
    n: int
    chunks: ChunkRange
    again: bool


def count_part(asked: CountRequest) -> ChunkSum | str:
    """A Dask task: count some chunks on a device of this worker; or why it cannot."""
    try:
        board = _board(asked.n)
        if asked.spec == CPU:
            return count_on_core(board, asked.chunks, asked.again)
        gpu = here().kept(asked.run, asked.spec, lambda: SharedLauncher(asked.spec))
        return gpu.count(board, asked.chunks, asked.again)
    except NqbenchError as error:
        return str(error)


@lru_cache(1)
def _board(n: int) -> ChunkedBoard:
    return ChunkedBoard.of(n)


class SharedLauncher(KernelLauncher):
    """Launches on one GPU, asked for by several threads. One of its own has the context."""

    def __init__(self, spec: str) -> None:
        self._thread = ThreadPoolExecutor(1)
        device = self._thread.submit(open_device, spec).result()
        super().__init__(device, choice_for(device.facts)[0])
        self._n = 0

    def count(self, board: ChunkedBoard, chunks: ChunkRange, again: bool) -> ChunkSum:
        """Count chunks: jobs are made in the caller's thread, launches wait for each other."""
        if board.n != self._n:
            self._n, self.choice = board.n, choice_for(self.device.facts, board.n)[0]
        depth, most = self.depth(board, chunks.count)
        starts = range(chunks.first, chunks.end, most)
        ranges = [ChunkRange(first, min(most, chunks.end - first)) for first in starts]
        return reduce(operator.add, (self._sum(board, part, depth, again) for part in ranges))

    def launch(self, plan: KernelPlan) -> tuple[int, float, float]:
        """See ``KernelLauncher``; in the thread that has the GPU."""
        return self._thread.submit(self._alone, plan).result()

    def close(self) -> None:
        """Release the GPU."""
        self._thread.submit(self.device.close).result()
        self._thread.shutdown()

    def _sum(self, board: ChunkedBoard, part: ChunkRange, depth: int, again: bool) -> ChunkSum:
        weights, took_s, began = self.launch(self.plan(board, part, depth))
        second = self.launch(self.plan(board, part, depth, *CHECK))[0] if again else None
        return ChunkSum(part.first, part.count, weights, took_s, second, began)

    def _alone(self, plan: KernelPlan) -> tuple[int, float, float]:
        with alone(gpu=self.device.spec):
            return super().launch(plan)


CountJob = tuple[ChunkSlot, CountRequest]


class ClusterCounter(ChunkCounter):
    """Chunks on the devices of a cluster: ``wanted`` is ``cuda``, ``cpu`` or a simulator's spec."""

    def __init__(self, cluster: Cluster, wanted: str) -> None:
        self._cluster, self._wanted = cluster, wanted
        self._site = ClusterSite(cluster, wanted)
        self._jobs: RemoteJobs[CountJob, CountRequest, ChunkSum | str]
        self._jobs = RemoteJobs(cluster, count_part)
        self.launches = wanted != CPU
        self.timed = not wanted.startswith("sim")
        self.name = f"{wanted} on a cluster"
        self.check_name = "another path on the same device"

    def _look(self) -> None:
        """Add devices that joined, and forget those that left."""
        members = self._cluster.look()
        for slot in self._there():
            self._slots.setdefault(slot.name, slot)
        for name, slot in list(self._slots.items()):
            if not {*slot.who[1]} & {*members}:
                del self._slots[name]
        if not self._slots:
            raise DeviceLost("no device of the cluster is left; what was finished is kept")

    def _there(self) -> list[ChunkSlot]:
        """The GPUs that are there, or the cores of the workers for the CPU or a simulator."""
        if self._wanted == "cuda":
            return [
                ChunkSlot(
                    device.name,
                    parallel=1,
                    ahead=AHEAD,
                    rate=chunk_rate(self._board, device.hello.facts),
                    spec=device.hello.spec,
                    who=({device.resource: 1 / AHEAD}, device.there()),
                )
                for device in self._site.devices()
                if device.name not in self._slots
            ]
        cpu = self._wanted == CPU
        return [
            ChunkSlot(
                member.label,
                parallel=member.cores if cpu else 1,
                ahead=AHEAD * (member.cores if cpu else 1),
                rate=0.0 if cpu else chunk_rate(self._board, facts_for(self._wanted)),
                spec=self._wanted,
                who=({CORES: 1}, [member.address]),
            )
            for member in self._cluster.look().values()
            if member.label not in self._slots
        ]

    def _size(self, slot: ChunkSlot) -> int:
        """A second's work, less where little is left, so that all devices end at the same time."""
        waiting = len(self._unclaimed)
        now, slots = time.monotonic(), self._slots.values()
        share = slot.speed / (sum(other.speed for other in slots) or 1.0)
        left = waiting + sum(other.left(now) for other in slots)
        fair = (share * left - slot.left(now)) / slot.parallel
        least = slot.rate * MIN_LAUNCH_S
        if fair < least and slot.flying >= slot.parallel:
            return 0
        # Another path may take many times as long.
        most = slot.rate * LAUNCH_S / (MAX_GROWTH if self._unchecked(slot) else 1)
        size = min(most, max(fair, least))
        return waiting if waiting - size < least else max(1, round(size))

    def _begin(self, slot: ChunkSlot, chunks: ChunkRange, again: bool) -> None:
        asked = CountRequest(self._cluster.run, slot.spec, self._board.n, chunks, again)
        self._jobs.submit((slot, asked), asked, slot.who)

    def _next(self) -> ChunkSum | None:
        if (ended := self._jobs.next_ended()) is None:
            return None
        (slot, asked), found = ended
        slot.end(asked.chunks.count)
        if isinstance(found, ChunkSum) and not self._check_disagrees(slot, asked, found):
            if found.took_s > 0:
                slot.rate = found.count / found.took_s
            return found
        self._unclaimed.give_back(asked.chunks)
        if isinstance(found, str):
            for address in slot.who[1]:
                self._cluster.evict(address, found)
        return None

    def _cancel(self) -> None:
        self._jobs.cancel()

    def _check_disagrees(self, slot: ChunkSlot, asked: CountRequest, found: ChunkSum) -> bool:
        """Whether two sums of a device differ and those of another one do not; it is evicted."""
        if found.again in (None, found.weights):
            return False
        workers = slot.who[1]
        others = (
            (replace(asked, spec=other.spec), other.who)
            for other in self._slots.values()
            if not {*other.who[1]} & {*workers}
        )

        def reason(second: ChunkSum | str) -> str:
            assert isinstance(second, ChunkSum)
            sums = f"its sums of {found.count} chunks are {found.weights} and {found.again}"
            return f"{sums}; another device has {second.again}"

        agreed = self._jobs.overruled(
            workers,
            others,
            lambda second: isinstance(second, ChunkSum) and second.again == second.weights,
            reason,
        )
        return agreed is not None


def chunk_rate(board: ChunkedBoard, device: DeviceFacts) -> float:
    """Predicted chunks per second."""
    return board.chunks / choice_for(device, board.n)[0].seconds(board.n, device)


def count_on(
    target: ClusterTarget,
    n: int,
    device: str,
    log: Path | None,
    notice: Callable[[str], None],
    progress: ShowProgress | None,
) -> Count:
    """Count the placements of ``n`` queens on all devices of a cluster. Raises ``StudyError``,
    ``DeviceUnavailable``, ``DeviceLost``, ``WrongAnswer``."""
    if n < MIN_LOGGED_N:
        return count_solutions(n, CPU, log)
    with connected(target, notice) as cluster:
        kind = wanted(cluster, device, CPU)
        counter = ClusterCounter(cluster, kind)
        try:
            return in_chunks(n, counter, f"{kind} on a cluster", log, progress)
        except DeviceLost as lost:
            if log is not None:
                raise
            said = str(lost).partition(";")[0]
            raise DeviceLost(f"{said}; nothing is kept of a count without --log") from lost
