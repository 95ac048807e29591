"""A worker's side of a cluster: the devices of its machine, and the measurements on them.

A Dask task carries one request. The host hands it to a measuring process (``measure.worker``), as a
run without a cluster does, so that crashes and hangs have the same meaning.
"""

from __future__ import annotations

import asyncio
import getpass
import hashlib
import math
import os
import platform
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from filelock import FileLock

from nqbench.errors import DeviceError, DeviceUnavailable, NqbenchError
from nqbench.measure.manifest import PACKAGES, source_hash, versions
from nqbench.measure.variants import runs_on_cpu
from nqbench.measure.worker.messages import Done, MeasureRequest, Open, Ready, Refused, WorkRequest
from nqbench.measure.worker.pool import Job, WorkerPool
from nqbench.system.files import others_write
from nqbench.system.machine import cpu_count
from nqbench.system.versions import __version__
from nqbench.workloads import register

if TYPE_CHECKING:
    from distributed import Worker

DEVICES: Final = "NQBENCH_DEVICES"
"""Variable with the devices of a worker, separated by ``;``. Without it a worker has them all."""
OWN_CORES: Final = "NQBENCH_CORES"
"""Variable with the cores of a worker that shares its machine with others."""
CORES: Final = "cores"
"""The Dask resource of what any core can do: simulated launches."""
Kept = TypeVar("Kept")
ProcessKey = tuple[str, str | None, int]
"""Run, device (``None``: it compiles) and epoch of a measuring process."""
IDLE_S: Final = 60.0
"""After so long without a request a process ends, and with it its memory and its hold on a GPU: all
is compiled, or the computer that started the run is gone."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A device that one request at a time may use. ``resource`` is its name among Dask's
    resources, ``uuid`` that of a GPU."""

    spec: str
    kind: str
    name: str
    uuid: str
    resource: str


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """What a task asks of a host.

    ``run``      a run has its own processes
    ``epoch``    so has each of its rounds: those of earlier epochs end
    ``open``     how to open the device
    ``request``  ``None``: only say what the device is
    ``end``      when to give up, by the clock of who asks (see ``announce``)
    """

    run: str
    epoch: int
    open: Open
    request: WorkRequest | None = None
    limit_s: float = 0.0
    end: float = float("inf")
    late: str = ""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The reply of a host, and the measuring process that gave it."""

    reply: Ready | Done | Refused
    process: int


def software() -> dict[str, str]:
    """Everything that must be equal on all machines of a run: it enters the keys of records."""
    own = {"nqbench": __version__, "Python": platform.python_version(), "sources": source_hash()}
    return {**own, **versions(PACKAGES)}


@cache
def offers() -> tuple[Offer, ...]:
    """The devices of this worker that serve one request at a time."""
    wanted = os.environ.get(DEVICES)
    specs = ["cpu"] if wanted is None else wanted.split(";")
    if wanted is None:
        from nqbench.devices.cuda.query import find_gpus

        with suppress(DeviceUnavailable):
            specs = [*find_gpus(), "cpu"]
    return tuple(_offer(spec) for spec in specs if spec and not spec.startswith("sim"))


def carry_out(task: TaskRequest) -> TaskResult:
    """A Dask task: one request on a device of this worker. Never raises an error of nqbench's."""
    return here().carry_out(task)


def end(run: str) -> None:
    """End the processes of a run on this worker, busy ones too."""
    here().end(run)


async def announce(run: str, now: float, dask_worker: Worker) -> dict[str, Any]:
    """The machine, software and devices of a worker (JSON), and to the scheduler its resources: its
    cores, and one of each device. One that ``nqbench worker`` started has told them. ``now`` is the
    monotonic clock of who asks for a run: no two machines need the same time of day."""
    here().later[run] = time.monotonic() - now
    found = await asyncio.to_thread(offers)
    cores = int(os.environ.get(OWN_CORES) or cpu_count())
    resources = {CORES: cores, **{offer.resource: 1 for offer in found}}
    if not resources.items() <= dask_worker.state.total_resources.items():
        await dask_worker.set_resources(**resources)
    return {
        "host": platform.node(),
        "cores": cores,
        "software": await asyncio.to_thread(software),
        "devices": [asdict(offer) for offer in found],
    }


class Host:
    """The measuring processes of one worker."""

    def __init__(self) -> None:
        from dask import config

        # What a plain Dask worker's nanny sets for its process (``OMP_NUM_THREADS=1``, ...): a CPU
        # system or a program would otherwise be measured on one core.
        for kind in ("pre-spawn-environ", "environ"):
            for name, value in (config.get(f"distributed.nanny.{kind}", None) or {}).items():
                if os.environ.get(name) == str(value):
                    del os.environ[name]
        self._lock = threading.Lock()
        self._idle: list[tuple[ProcessKey, float, WorkerPool]] = []
        self._busy: dict[int, tuple[str, WorkerPool]] = {}
        self._kept: dict[tuple[str, str], Any] = {}
        self._ended: set[str] = set()
        self.later: dict[str, float] = {}
        """By run, what this machine's clock shows more than that of who started it."""

    def carry_out(self, task: TaskRequest) -> TaskResult:
        """One request, on an idle process or a new one."""
        spec, asked, process = task.open.spec, task.request, 0
        said: Ready | Done | Refused
        try:
            for workload in task.open.workloads:
                register(workload)
            with self._process(task, spec) as pool:
                if asked is None:
                    said, process = Ready(pool.hello), pool.hello.pid
                else:
                    end = task.end + self.later.get(task.run, math.inf)
                    job = Job(asked, task.limit_s, end=end, late=task.late)
                    on_cpu = isinstance(asked, MeasureRequest) and runs_on_cpu(asked.point)
                    with alone(gpu=spec or "", cpu=on_cpu):
                        ((_, reply),) = pool.run([job])
                    said, process = Done(reply.measurement), reply.worker
        except NqbenchError as error:
            said = Refused(type(error).__name__, str(error))
        return TaskResult(said, process)

    def kept(self, run: str, name: str, make: Callable[[], Kept]) -> Kept:
        """Something that a run makes once on this worker and that is closed with it."""
        with self._lock:
            self._check_run(run)
            if (run, name) not in self._kept:
                self._kept[run, name] = make()
            kept: Kept = self._kept[run, name]
            return kept

    def end(self, run: str) -> None:
        """End a run's processes, busy ones too, and what was kept for it."""
        with self._lock:
            self._ended.add(run)
            ended: list[Any] = self._pop_idle(lambda key, _: key[0] == run)
            ended += [self._kept.pop(key) for key in list(self._kept) if key[0] == run]
            busy = [pool for name, pool in self._busy.values() if name == run]
        for pool in busy:
            for pid in pool.pids():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for closable in ended:
            closable.close()

    @contextmanager
    def _process(self, task: TaskRequest, spec: str | None) -> Iterator[WorkerPool]:
        """A process of the task's epoch, an idle one or a new one; those of earlier epochs end."""
        key = (task.run, spec, task.epoch)
        with self._lock:
            self._check_run(task.run)
            earlier = self._pop_idle(lambda k, _: k[:2] == key[:2] and k[2] < key[2])
            same = [entry for entry in self._idle if entry[0] == key][-1:]
            self._idle = [entry for entry in self._idle if entry not in same]
        pool = same[0][2] if same else None
        for old in earlier:
            old.close()
        keep = False
        try:
            pool = pool or WorkerPool(spec)
            with self._lock:
                self._check_run(task.run)
                self._busy[id(pool)] = (task.run, pool)
            yield pool
            keep = True
        finally:
            with self._lock:
                self._busy.pop(id(pool), None)
                keep = keep and task.run not in self._ended
                if keep and pool is not None:
                    self._idle.append((key, time.monotonic(), pool))
            if keep:
                timer = threading.Timer(IDLE_S, self._close_idle)
                timer.daemon = True
                timer.start()
            elif pool is not None:
                pool.close()

    def _check_run(self, run: str) -> None:
        if run in self._ended:
            raise DeviceError("this run has ended")

    def _pop_idle(self, chosen: Callable[[ProcessKey, float], bool]) -> list[WorkerPool]:
        """Idle processes by their keys and since when they are idle; the caller closes them."""
        found = [entry for entry in self._idle if chosen(*entry[:2])]
        self._idle = [entry for entry in self._idle if entry not in found]
        return [pool for _, _, pool in found]

    def _close_idle(self) -> None:
        with self._lock:
            pools = self._pop_idle(lambda _, since: time.monotonic() - since > IDLE_S - 1)
        for pool in pools:
            pool.close()


@cache
def here() -> Host:
    """The host of this worker."""
    return Host()


@contextmanager
def alone(*, gpu: str = "", cpu: bool = False) -> Iterator[None]:
    """Hold what no other measurement on this machine may use: a GPU, or the cores for a CPU system.

    Dask's resources see to it for the workers of one scheduler; there may be several.
    """
    locks = [offer.resource for offer in offers() if offer.spec == gpu and offer.kind == "cuda"]
    locks += ["nqbench-cpu"] if cpu else []
    folder = Path(tempfile.gettempdir()) / f"nqbench-{getpass.getuser()}"
    with ExitStack() as stack:
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            if others_write(folder):
                raise OSError("it belongs to somebody else, or others can write there")
            for name in locks:
                stack.enter_context(FileLock(folder / f"{name}.lock"))
        except OSError as error:
            raise DeviceError(
                f"{folder}, whose locks keep two measurements apart, cannot be used: {error};"
                " remove it, or name another folder for temporary files in TMPDIR"
            ) from error
        yield


def _offer(spec: str) -> Offer:
    from nqbench.devices.registry import choose_device, facts_for

    spec = choose_device(spec).spec
    kind = spec.partition(":")[0]
    uuid = ""
    if kind == "cuda":
        from nqbench.devices.cuda.query import gpu_identity

        uuid = str(gpu_identity(int(spec.partition(":")[2]))["uuid"] or "")
    own = uuid or f"{platform.node()} {spec}"
    name = hashlib.sha256(own.encode()).hexdigest()[:12]
    return Offer(spec, kind, facts_for(spec).name, uuid, f"nqbench-{kind}-{name}")
