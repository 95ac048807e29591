"""A count over all GPUs, or all cores, of a cluster: chunks go to whoever is free.

The file of finished chunks is written on the computer that started the count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

from nqbench.cluster.connect import ClusterTarget, connected
from nqbench.cluster.devices import ClusterSite, wanted
from nqbench.cluster.host import CORES, alone, here
from nqbench.cluster.members import Cluster, RemoteJobs, Who, ask_others
from nqbench.count import counters, solutions
from nqbench.count.choice import choice_for
from nqbench.count.chunks import ChunkedBoard, ChunkSum
from nqbench.count.counters import AHEAD, CPU, ChunkSlot, KernelLauncher, chunk_rate
from nqbench.devices.registry import facts_for
from nqbench.errors import DeviceLost, NqbenchError
from nqbench.facts import DeviceFacts
from nqbench.workloads.counting.factors import MIDDLE


@dataclass(frozen=True, slots=True)
class ChunkRequest:
    """Chunks of a board for one device. ``again``: on another path too."""

    run: str
    spec: str
    n: int
    halves: bool
    chunks: range
    again: bool


def count_part(asked: ChunkRequest) -> ChunkSum | str:
    """A Dask task: count some chunks on a device of this worker; or why it cannot."""
    try:
        board = _board(asked.n, asked.halves)
        if asked.spec == CPU:
            return counters.count_on_core(board, asked.chunks, asked.again)
        own = partial(alone, gpu=asked.spec)
        gpu = here().kept(asked.run, asked.spec, lambda: KernelLauncher(asked.spec, alone=own))
        return gpu.count(board, asked.chunks, asked.again)
    except NqbenchError as error:
        return str(error)


_board = lru_cache(1)(ChunkedBoard.of)


CountJob = tuple[ChunkSlot, ChunkRequest]


class ClusterCounter(counters.ChunkCounter):
    """Chunks on the devices of a cluster: ``wanted`` is ``cuda``, ``cpu`` or a simulator's spec."""

    def __init__(self, cluster: Cluster, wanted: str, n: int = 0) -> None:
        """``n``: the board that its GPUs will count."""
        self._cluster, self._wanted = cluster, wanted
        self._site = ClusterSite(cluster, wanted)
        self._jobs: RemoteJobs[CountJob, ChunkRequest, ChunkSum | str]
        self._jobs = RemoteJobs(cluster, count_part)
        self.launches = wanted != CPU
        self.halves_n = () if self.launches else counters.HALVES_N
        if wanted == "cuda":
            chosen = {choice_for(gpu.hello.facts, n)[0].system for gpu in self._site.devices()}
            self.halves_n = (n,) * (chosen == {MIDDLE})
        self.timed = not wanted.startswith("sim")
        self.name = f"{wanted} on a cluster"
        self.check_name = "another path on the same device"

    def _look(self) -> None:
        """Add devices that joined, and forget those that left."""
        members, cpu = self._cluster.look(), self._wanted == CPU
        found: list[tuple[str, int, DeviceFacts | None, str, Who]]
        if self._wanted == "cuda":
            found = [
                (gpu.name, 1, gpu.hello.facts, gpu.hello.spec, ({gpu.resource: 1 / AHEAD}, there))
                for gpu in self._site.devices()
                if (there := gpu.there())
            ]
        else:  # the cores of the workers for the CPU or a simulator
            facts = None if cpu else facts_for(self._wanted)
            found = [
                (m.label, m.cores if cpu else 1, facts, self._wanted, ({CORES: 1}, [m.address]))
                for m in members.values()
            ]
        for name, parallel, device, spec, who in found:
            if name not in self._slots:
                board, rate = self._board, 0.0
                if device is not None:
                    rate = chunk_rate(board, choice_for(device, board.n, board.halves)[0], device)
                slot = ChunkSlot(name, parallel, AHEAD * parallel, rate, spec=spec, who=who)
                self._slots[name] = slot
        for name, slot in list(self._slots.items()):
            if not {*slot.who[1]} & {*members}:
                del self._slots[name]
        if not self._slots:
            raise DeviceLost("no device of the cluster is left; what was finished is kept")

    def _begin(self, slot: ChunkSlot, chunks: range, again: bool) -> None:
        board = self._board
        asked = ChunkRequest(self._cluster.run, slot.spec, board.n, board.halves, chunks, again)
        self._jobs.submit((slot, asked), asked, slot.who)

    def _next(self) -> ChunkSum | None:
        if (ended := self._jobs.next_ended()) is None:
            return None
        (slot, asked), found = ended
        slot.end(len(asked.chunks), found.took_s if isinstance(found, ChunkSum) else 0.0)
        if isinstance(found, ChunkSum) and not self._check_disagrees(slot, asked, found):
            return found
        self._unclaimed.give_back(asked.chunks)
        if isinstance(found, str):
            for address in slot.who[1]:
                self._cluster.evict(address, found)
        return None

    def _cancel(self) -> None:
        self._jobs.cancel()

    def _check_disagrees(self, slot: ChunkSlot, asked: ChunkRequest, found: ChunkSum) -> bool:
        """Whether two sums of a device differ and those of another one do not; it is evicted."""
        if found.again in (None, found.weights):
            return False
        workers = slot.who[1]
        others = (
            (replace(asked, spec=other.spec), other.who)
            for other in self._slots.values()
            if not {*other.who[1]} & {*workers}
        )
        second = ask_others(self._cluster, count_part, others)
        if not isinstance(second, ChunkSum) or second.again != second.weights:
            return False
        sums = f"its sums of {found.count} chunks are {found.weights} and {found.again}"
        for address in workers:
            self._cluster.evict(address, f"{sums}; another device has {second.again}")
        return True


def count_on(
    target: ClusterTarget,
    n: int,
    device: str,
    log: Path | None,
    notice: Callable[[str], None],
    progress: solutions.ShowProgress | None,
) -> solutions.Count:
    """Count the placements of ``n`` queens on all devices of a cluster. Raises ``StudyError``,
    ``DeviceUnavailable``, ``DeviceLost``, ``WrongAnswer``."""
    if n < solutions.MIN_LOGGED_N:
        return solutions.count_solutions(n, CPU, log)
    with connected(target, notice) as cluster:
        kind = wanted(cluster, device, CPU)
        counter = ClusterCounter(cluster, kind, n)
        try:
            return solutions.in_chunks(n, counter, f"{kind} on a cluster", log, progress)
        except DeviceLost as lost:
            if log is not None:
                raise
            said = str(lost).partition(";")[0]
            raise DeviceLost(f"{said}; nothing is kept of a count without --log") from lost
