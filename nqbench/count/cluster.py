"""A count over all GPUs, or all cores, of a cluster: chunks go to whoever is free.

The chunks are those of ``solve.chunks``, and so is the file of finished ones, which is written on
the computer that started the count.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nqbench.cluster.connect import Way, connected
from nqbench.cluster.host import CORES, alone, here
from nqbench.cluster.places import LOOK_S, Cluster, ClusterSite, Fetched, wanted
from nqbench.count.choice import choice_for
from nqbench.count.chunks import (
    CHECK,
    LAUNCH_S,
    MOST_GROWTH,
    Board,
    Check,
    Counter,
    CpuCounter,
    KernelCounter,
    Part,
    Progress,
    Run,
    Waiting,
)
from nqbench.count.solutions import CPU, MIN_LOGGED_N, Count, count_solutions, in_chunks
from nqbench.devices.registry import facts_for, open_device
from nqbench.errors import DeviceLost, NqbenchError
from nqbench.facts import DeviceFacts

if TYPE_CHECKING:
    from distributed import Future

    from nqbench.plan import KernelPlan

AHEAD: Final = 2
"""Runs that a GPU has at a time: the jobs of the second are made while the first is searched."""
MIN_LAUNCH_S: Final = 0.03
"""Less work is not worth a launch of its own: preparing one takes some 10 ms."""


@dataclass(frozen=True, slots=True)
class Work:
    """A run of chunks for one device. ``again``: on another path too."""

    run: str
    spec: str
    n: int
    first: int
    count: int
    again: bool


def count_part(work: Work) -> Part | str:
    """A Dask task: count some chunks on a device of this worker; or why it cannot."""
    try:
        board = _board(work.n)
        if work.spec == CPU:
            return _on_core(board, work)
        gpu = here().kept(work.run, work.spec, lambda: GpuCounter(work.spec))
        return gpu.count(board, work.first, work.count, work.again)
    except NqbenchError as error:
        return str(error)


@lru_cache(1)
def _board(n: int) -> Board:
    return Board.of(n)


def _on_core(board: Board, work: Work) -> Part:
    left = range(work.first, work.first + work.count)
    return _sum(CpuCounter(1).parts(board, left, lambda: work.again))


def _sum(parts: Iterable[Part]) -> Part:
    """Consecutive chunks as one run."""

    def add(one: Part, two: Part) -> Part:
        again = None if one.again is None or two.again is None else one.again + two.again
        return Part(
            min(one.first, two.first),
            one.count + two.count,
            one.weights + two.weights,
            one.took_s + two.took_s,
            again,
            min(one.began, two.began),
        )

    return reduce(add, parts)


class GpuCounter(KernelCounter):
    """Runs of chunks on one GPU, asked for by several threads. One of its own has the context."""

    def __init__(self, spec: str) -> None:
        self._thread = ThreadPoolExecutor(1)
        device = self._thread.submit(open_device, spec).result()
        super().__init__(device, choice_for(device.facts)[0])
        self._n = 0

    def count(self, board: Board, first: int, count: int, again: bool) -> Part:
        """Count chunks: jobs are made in the caller's thread, launches wait for each other."""
        if board.n != self._n:
            self._n, self._choice = board.n, choice_for(self._device.facts, board.n)[0]
        depth, most = self._depth(board, count)
        end = first + count
        runs = [(start, min(most, end - start)) for start in range(first, end, most)]
        return _sum(self._part(board, run, depth, again) for run in runs)

    def close(self) -> None:
        """Release the GPU."""
        self._thread.submit(self._device.close).result()
        self._thread.shutdown()

    def _part(self, board: Board, run: Run, depth: int, again: bool) -> Part:
        def launch(*other: Any) -> tuple[int, float, float]:
            plan = self._plan(board, run, depth, *other)
            return self._thread.submit(self._alone, plan).result()

        weights, took_s, began = launch()
        return Part(*run, weights, took_s, launch(*CHECK)[0] if again else None, began)

    def _alone(self, plan: KernelPlan) -> tuple[int, float, float]:
        with alone(gpu=self._device.spec):
            return self._launch(plan)


@dataclass(eq=False)
class Slot:
    """A device that counts: ``lanes`` runs at a time, each with ``rate`` chunks per second.

    It has ``flying`` runs of ``owed`` chunks together, and has searched them ``since`` then.
    """

    name: str
    spec: str
    needs: dict[str, float]
    lanes: int
    rate: float
    at: tuple[str, ...]
    checked: bool = False
    flying: int = 0
    owed: int = 0
    since: float = 0.0

    @property
    def ahead(self) -> int:
        """Runs that it may have, waiting ones included."""
        return AHEAD * self.lanes

    @property
    def speed(self) -> float:
        """Chunks per second of all lanes."""
        return self.rate * self.lanes

    def left(self, now: float) -> float:
        """Chunks of its runs that it has not searched yet, as far as its speed tells."""
        return max(0.0, self.owed - self.speed * (now - self.since))

    def begin(self, count: int) -> None:
        """It has a run more."""
        if not self.flying:
            self.since = time.monotonic()
        self.flying, self.owed = self.flying + 1, self.owed + count

    def end(self, count: int) -> None:
        """It has a run less."""
        self.flying, self.owed, self.since = self.flying - 1, self.owed - count, time.monotonic()

    def reset(self) -> None:
        """It has no runs, and none was checked."""
        self.checked, self.flying, self.owed = False, 0, 0


@dataclass
class Flight:
    """A run of chunks under way."""

    future: Future[Any]
    slot: Slot
    work: Work


class ClusterCounter(Counter):
    """Chunks on the devices of a cluster: ``wanted`` is ``cuda`` or ``cpu``."""

    def __init__(self, cluster: Cluster, wanted: str) -> None:
        self._cluster, self._wanted = cluster, wanted
        self._site = ClusterSite(cluster, wanted)
        self._slots: dict[str, Slot] = {}
        self._flights: dict[str, Flight] = {}
        self._done: queue.SimpleQueue[Fetched] = queue.SimpleQueue()
        self._waiting = Waiting(())
        self._checks = False
        self.launches = wanted != CPU
        self.timed = not wanted.startswith("sim")
        self.name = f"{wanted} on a cluster"
        self.check_name = "another path on the same device"

    def parts(self, board: Board, left: Sequence[int], check: Check) -> Generator[Part, None, None]:
        """See ``Counter``. Raises ``DeviceLost`` when no device is left."""
        self._waiting = Waiting(left)
        unfinished = len(left)
        self._checks = bool(left) and check()  # the first part: here the first of every device
        try:
            while unfinished:
                self._look(board)
                self._hand_out(board.n, check)
                if (part := self._next()) is not None:
                    unfinished -= part.count
                    yield part
        finally:
            for flight in self._flights.values():
                with suppress(Exception):
                    flight.future.cancel()
            self._flights.clear()
            for slot in self._slots.values():
                slot.reset()

    def _look(self, board: Board) -> None:
        """Add devices that joined, and give the work of lost ones to others."""
        members = self._cluster.look()
        (self._add_gpus if self._wanted == "cuda" else self._add_cores)(board)
        for name, slot in list(self._slots.items()):
            if not {*slot.at} & {*members}:
                self._drop(slot)
                del self._slots[name]
        if not self._slots:
            raise DeviceLost("no device of the cluster is left; what was finished is kept")

    def _add_cores(self, board: Board) -> None:
        """The workers' cores, for the CPU or a simulator."""
        for member in self._cluster.look().values():
            if (name := member.label) not in self._slots:
                lanes, rate = int(member.described["cores"]), 0.0
                if self._wanted != CPU:
                    lanes, rate = 1, _rate(board, facts_for(self._wanted))
                slot = Slot(name, self._wanted, {CORES: 1}, lanes, rate, (member.address,))
                self._slots[name] = slot

    def _add_gpus(self, board: Board) -> None:
        for place in self._site.places():
            if (name := place.name) not in self._slots:
                needs, rate = {place.resource: 1 / AHEAD}, _rate(board, place.hello.facts)
                slot = Slot(name, place.hello.spec, needs, 1, rate, tuple(place.there()))
                self._slots[name] = slot

    def _hand_out(self, n: int, check: Check) -> None:
        """Give every device as many runs as it may have at a time, in turns."""
        for depth in range(max(slot.ahead for slot in self._slots.values())):
            for slot in self._slots.values():
                if slot.flying <= depth < slot.ahead and (run := self._take(slot)):
                    again = check() or self._unchecked(slot)
                    slot.checked |= again
                    self._submit(slot, Work(self._cluster.run, slot.spec, n, *run, again))

    def _unchecked(self, slot: Slot) -> bool:
        return self._checks and not slot.checked

    def _take(self, slot: Slot) -> Run | None:
        """Consecutive chunks for a device: a second's work, less where little is left, so that all
        devices end at the same time. ``None`` if it has enough already."""
        waiting = len(self._waiting)
        now, slots = time.monotonic(), self._slots.values()
        share = slot.speed / (sum(other.speed for other in slots) or 1.0)
        left = waiting + sum(other.left(now) for other in slots)
        fair = (share * left - slot.left(now)) / slot.lanes
        least = slot.rate * MIN_LAUNCH_S
        if not waiting or (fair < least and slot.flying >= slot.lanes):
            return None
        # Another path may take many times as long.
        most = slot.rate * LAUNCH_S / (MOST_GROWTH if self._unchecked(slot) else 1)
        size = min(most, max(fair, least))
        size = waiting if waiting - size < least else max(1, round(size))
        return self._waiting.take(size)

    def _submit(self, slot: Slot, work: Work) -> None:
        future = self._cluster.submit(count_part, work, slot.needs, slot.at)
        slot.begin(work.count)
        self._flights[str(future.key)] = Flight(future, slot, work)
        self._cluster.when_done(future, self._done.put)

    def _next(self) -> Part | None:
        """The next finished run of chunks; ``None`` if there is none for a while."""
        try:
            key, found = self._done.get(timeout=LOOK_S / 4)
        except queue.Empty:
            return None
        if isinstance(found, NqbenchError):
            raise found
        flight = self._flights.pop(key, None)
        if flight is None:
            return None
        flight.slot.end(flight.work.count)
        if isinstance(found, Part) and not (flight.work.again and self._lies(flight, found)):
            if found.took_s > 0:
                flight.slot.rate = found.count / found.took_s
            return found
        self._waiting.give_back(flight.work.first, flight.work.count)
        if isinstance(found, str):
            self._out(flight.slot, found)
        return None

    def _lies(self, flight: Flight, found: Part) -> bool:
        """Whether two sums of a device differ and those of another one do not; it is then out."""
        if found.again == found.weights:
            return False
        for other in self._slots.values():
            if {*other.at} & {*flight.slot.at}:
                continue
            work = replace(flight.work, spec=other.spec)
            try:
                second = self._cluster.ask(count_part, work, other.needs, other.at)
            except DeviceLost:  # that one alone: a lost scheduler is noticed by the next look
                continue
            if isinstance(second, Part) and second.again == second.weights:
                reason = f"its sums of {flight.work.count} chunks are {found.weights} and"
                self._out(flight.slot, f"{reason} {found.again}; another device has {second.again}")
                return True
            return False
        return False

    def _out(self, slot: Slot, reason: str) -> None:
        for address in slot.at:
            self._cluster.take_out(address, reason)

    def _drop(self, slot: Slot) -> None:
        for key, flight in list(self._flights.items()):
            if flight.slot is slot:
                del self._flights[key]
                self._waiting.give_back(flight.work.first, flight.work.count)


def _rate(board: Board, device: DeviceFacts) -> float:
    """Predicted chunks per second."""
    return board.chunks / choice_for(device, board.n)[0].seconds(board.n, device)


def count_on(
    way: Way,
    n: int,
    device: str,
    log: Path | None,
    notice: Callable[[str], None],
    progress: Progress | None,
) -> Count:
    """Count the placements of ``n`` queens on all devices of a cluster. Raises ``StudyError``,
    ``DeviceUnavailable``, ``DeviceLost``, ``WrongAnswer``."""
    if n < MIN_LOGGED_N:
        return count_solutions(n, CPU, log)
    with connected(way, notice) as cluster:
        kind = wanted(cluster, device, CPU)
        counter = ClusterCounter(cluster, kind)
        try:
            return in_chunks(n, counter, f"{kind} on a cluster", log, progress)
        except DeviceLost as lost:
            if log is not None:
                raise
            said = str(lost).partition(";")[0]
            raise DeviceLost(f"{said}; nothing is kept of a count without --log") from lost
