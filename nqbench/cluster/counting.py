"""A count over all GPUs, or all cores, of a cluster: chunks go to whoever is free.

The chunks are those of ``solve.chunks``, and so is the file of finished ones, which is written on
the computer that started the count.
"""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nqbench.cluster.connect import Way, connected
from nqbench.cluster.host import CORES, alone, here
from nqbench.cluster.places import LOOK_S, Cluster, ClusterSite, Fetched, wanted
from nqbench.devices.registry import facts_for, open_device
from nqbench.errors import DeviceLost, NqbenchError
from nqbench.facts import DeviceFacts
from nqbench.solve.choice import choice_for
from nqbench.solve.chunks import (
    CHECK,
    LAUNCH_S,
    Board,
    Check,
    Counter,
    CpuCounter,
    KernelCounter,
    Part,
    Progress,
)
from nqbench.solve.count import MIN_LOGGED_N, Count, count_solutions, in_chunks

if TYPE_CHECKING:
    from distributed import Future

CPU: Final = "cpu"
AHEAD: Final = 2
"""Runs that a GPU has at a time: the jobs of the second are made while the first is searched."""
GREED: Final = 0.8
"""Largest part of its fair share that a device takes at once: the rest evens out who is faster."""


@dataclass(frozen=True, slots=True)
class Work:
    """A run of chunks for one device. ``again``: on another path too."""

    run: str
    spec: str
    n: int
    first: int
    count: int
    again: bool


@dataclass(frozen=True, slots=True)
class Worked:
    """The result of a :class:`Work`: sums of weights and seconds, or why there is none."""

    weights: int
    took_s: float
    again: int | None
    address: str
    fault: str = ""


def count_part(work: Work) -> Worked:
    """A Dask task: count some chunks on a device of this worker."""
    from distributed import get_worker

    address = str(get_worker().address)
    try:
        board = _board(work.n)
        if work.spec == CPU:
            counted = _on_core(board, work)
        else:
            gpu = here().kept(work.run, work.spec, lambda: GpuCounter(work.spec))
            counted = gpu.count(board, work.first, work.count, work.again)
    except NqbenchError as error:
        return Worked(0, 0.0, None, address, str(error))
    return Worked(counted.weights, counted.took_s, counted.again, address)


@lru_cache(1)
def _board(n: int) -> Board:
    return Board.of(n)


def _on_core(board: Board, work: Work) -> Part:
    asked = work.again
    left = range(work.first, work.first + work.count)
    parts = list(CpuCounter(1).parts(board, left, lambda: asked))
    again = sum(part.again or 0 for part in parts) if asked else None
    return Part(
        work.first,
        work.count,
        sum(part.weights for part in parts),
        sum(part.took_s for part in parts),
        again,
    )


class GpuCounter(KernelCounter):
    """Runs of chunks on one GPU, asked for by several threads. One of its own has the context."""

    def __init__(self, spec: str) -> None:
        self._thread = ThreadPoolExecutor(1)
        device = self._thread.submit(open_device, spec).result()
        super().__init__(device, choice_for(device.facts)[0])
        self._spec = spec

    def count(self, board: Board, first: int, count: int, again: bool) -> Part:
        """Count chunks: jobs are made in the caller's thread, launches wait for each other."""
        self._choice = choice_for(self._device.facts, board.n)[0]
        depth, most = self._depth(board, count)
        found = Part(first, 0, 0, 0.0, 0 if again else None)
        while found.count < count:
            run = first + found.count, min(most, count - found.count)
            weights, took_s = self._run(board, run, depth)
            other = self._run(board, run, depth, check=True)[0] if again else 0
            found = replace(
                found,
                count=found.count + run[1],
                weights=found.weights + weights,
                took_s=found.took_s + took_s,
                again=None if found.again is None else found.again + other,
            )
        return found

    def close(self) -> None:
        """Release the GPU."""
        self._thread.submit(self._device.close).result()
        self._thread.shutdown()

    def _run(
        self, board: Board, run: tuple[int, int], depth: int, *, check: bool = False
    ) -> tuple[int, float]:
        plan = self._plan(board, run, depth, *(CHECK if check else ()))
        with alone(gpu=self._spec):
            return self._thread.submit(self._launch, plan).result()


@dataclass(eq=False)
class Slot:
    """A device that counts: ``lanes`` runs at a time, each with ``rate`` chunks per second."""

    name: str
    spec: str
    needs: dict[str, float]
    lanes: int
    rate: float
    at: tuple[str, ...]
    checked: bool = False
    flying: int = 0

    @property
    def ahead(self) -> int:
        """Runs that it may have, waiting ones included."""
        return AHEAD * self.lanes


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
        self._waiting: deque[tuple[int, int]] = deque()
        self._unfinished = 0
        self._checks = False
        self.launches = wanted != CPU
        self.timed = not wanted.startswith("sim")
        self.name = f"{wanted} on a cluster"
        self.check_name = "another path on the same device"

    def parts(self, board: Board, left: Sequence[int], check: Check) -> Generator[Part, None, None]:
        """See ``Counter``. Raises ``DeviceLost`` when no device is left."""
        self._waiting = deque(_runs(left))
        self._unfinished = len(left)
        try:
            while self._unfinished:
                self._look(board)
                self._hand_out(board.n, check)
                if (part := self._next()) is not None:
                    self._unfinished -= part.count
                    yield part
        finally:
            for flight in self._flights.values():
                with suppress(Exception):
                    flight.future.cancel()
            self._flights.clear()
            for slot in self._slots.values():
                slot.flying = 0

    def _look(self, board: Board) -> None:
        """Add devices that joined, and give the work of lost ones to others."""
        members = self._cluster.look()
        found = self._gpus(board) if self._wanted == "cuda" else self._cores(board)
        for name, slot in found.items():
            self._slots.setdefault(name, slot)
        for name, slot in list(self._slots.items()):
            if not {*slot.at} & {*members}:
                self._drop(slot)
                del self._slots[name]
        if not self._slots:
            raise DeviceLost("no device of the cluster is left; finished chunks are kept in --log")

    def _cores(self, board: Board) -> dict[str, Slot]:
        """The workers' cores, for the CPU or a simulator."""
        found = {}
        for member in self._cluster.look().values():
            name, cores = member.label, int(member.described["cores"])
            lanes, rate = (cores, 0.0) if self._wanted == CPU else (1, self._predicted(board))
            found[name] = Slot(name, self._wanted, {CORES: 1}, lanes, rate, (member.address,))
        return found

    def _gpus(self, board: Board) -> dict[str, Slot]:
        found = {}
        for place in self._site.places():
            needs, at = {place.resource: 1 / AHEAD}, tuple(place.there())
            rate = board.chunks / _seconds(board.n, place.hello.facts)
            found[place.name] = Slot(place.name, place.hello.spec, needs, 1, rate, at)
        return found

    def _predicted(self, board: Board) -> float:
        return board.chunks / _seconds(board.n, facts_for(self._wanted))

    def _hand_out(self, n: int, check: Check) -> None:
        """Give every device as many runs as it may have at a time, in turns."""
        for depth in range(max(slot.ahead for slot in self._slots.values())):
            for slot in self._slots.values():
                if slot.flying <= depth < slot.ahead and (run := self._take(slot)):
                    self._submit(slot, n, run, check)

    def _take(self, slot: Slot) -> tuple[int, int] | None:
        """Consecutive chunks for a device: a second's work, less where little is left."""
        if not self._waiting:
            return None
        together = sum(other.rate * other.lanes for other in self._slots.values())
        share = slot.rate / together if together else 0.0
        waiting = sum(count for _, count in self._waiting)
        own = sum(f.work.count for f in self._flights.values() if f.slot is slot)
        fair = max(GREED * share * self._unfinished - own, share * waiting / 2)
        size = max(1, int(min(slot.rate * LAUNCH_S, fair)))
        first, count = self._waiting.popleft()
        if size < count:
            self._waiting.appendleft((first + size, count - size))
        return first, min(size, count)

    def _submit(self, slot: Slot, n: int, run: tuple[int, int], check: Check) -> None:
        asked = check()
        again = asked or (self._checks and not slot.checked)
        self._checks |= asked  # the first part is checked where there is a file: so is every device
        slot.checked |= again
        work = Work(self._cluster.run, slot.spec, n, *run, again)
        future = self._cluster.submit(count_part, work, slot.needs, slot.at)
        slot.flying += 1
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
        flight.slot.flying -= 1
        run = flight.work.first, flight.work.count
        if found is None or found.fault:
            self._waiting.appendleft(run)
            if found is not None:
                self._out(flight.slot, found.fault)
            return None
        if flight.work.again and found.again != found.weights and self._lies(flight, found):
            self._waiting.appendleft(run)
            return None
        if found.took_s > 0:
            flight.slot.rate = flight.work.count / found.took_s
        return Part(*run, found.weights, found.took_s, found.again)

    def _lies(self, flight: Flight, found: Worked) -> bool:
        """Whether another device agrees with itself on the same chunks; the first is then out."""
        for other in self._slots.values():
            if {*other.at} & {*flight.slot.at}:
                continue
            work = replace(flight.work, spec=other.spec)
            second = self._cluster.ask(count_part, work, other.needs, other.at)
            if not second.fault and second.again == second.weights:
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
                self._waiting.appendleft((flight.work.first, flight.work.count))


def _seconds(n: int, device: DeviceFacts) -> float:
    """Predicted seconds of a board on a device."""
    return choice_for(device, n)[0].seconds(n, device)


def _runs(left: Sequence[int]) -> list[tuple[int, int]]:
    """Ascending chunks as runs of consecutive ones: the first of each, and how many."""
    runs: list[tuple[int, int]] = []
    for chunk in left:
        if runs and chunk == sum(runs[-1]):
            runs[-1] = runs[-1][0], runs[-1][1] + 1
        else:
            runs.append((chunk, 1))
    return runs


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
        return in_chunks(n, ClusterCounter(cluster, kind), f"{kind} on a cluster", log, progress)
