"""The devices of a cluster as a run sees them: workers on which ``measure`` carries out its stages.

Jobs become Dask tasks that need a resource: one device, or one core for a simulated launch. Their
replies come back to the computer that started the run, which alone writes records.
"""

from __future__ import annotations

import itertools
import math
import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from nqbench.cluster import host
from nqbench.cluster.host import CORES, Answer, Order
from nqbench.devices.registry import choose_device
from nqbench.errors import DeviceLost, DeviceUnavailable, NqbenchError, StudyError
from nqbench.measure.runner import MAX_COMPILERS
from nqbench.measure.worker.messages import (
    Done,
    Hello,
    MeasureRequest,
    Open,
    Ready,
    Refused,
    decode,
    encode,
)
from nqbench.measure.worker.pool import Job, Reply
from nqbench.measure.worker.process import as_error
from nqbench.workloads import brought

if TYPE_CHECKING:
    from distributed import Client, Future

LOOK_S: Final = 1.0
"""Seconds between two looks at which workers there are."""
LOST_S: Final = 20.0
"""A worker that is gone for so long does not come back: Dask's nanny replaces one in seconds."""
FETCH_S: Final = 5.0
"""A finished measurement that cannot be fetched for so long died with its worker; it is a message
of a few kilobytes. It is measured again."""
FETCHERS: Final = 8
"""Threads that fetch results: each waits some 5 ms for one, with little to compute."""
AHEAD: Final = 3
"""Requests that a device has at a time, all but one waiting: a task's way through the scheduler
takes some 10 ms (benchmarks/cluster_overhead.py), longer than a short measurement."""


Fetched = tuple[str, Any]
"""A task's key, and its result: ``None`` if it was lost, or the error that the cluster gave up."""


@dataclass(frozen=True)
class Member:
    """A worker of the cluster, as it announced itself (``host.describe``)."""

    address: str
    described: dict[str, Any]

    @property
    def host(self) -> str:
        """Name of its machine."""
        return str(self.described["host"])

    @property
    def label(self) -> str:
        """The worker for people."""
        return f"worker {self.address} on {self.host}"


class Cluster:
    """A connection to a cluster, and the workers that are fit for use.

    ``notice`` takes one sentence on each worker that is left out.
    """

    def __init__(self, client: Client, notice: Any, lost_s: float = LOST_S) -> None:
        self.client, self.lost_s = client, lost_s
        self.run = secrets.token_hex(8)
        self.members: dict[str, Member] = {}
        self.stopped = False
        self.notice = notice
        self.refused: dict[str, str] = {}
        self._lock = threading.RLock()
        self._turns = itertools.count()
        self._fetching = ThreadPoolExecutor(FETCHERS)
        self._looked = -math.inf

    def look(self) -> dict[str, Member]:
        """The workers now, by address. Raises ``DeviceLost`` if the scheduler is out of reach."""
        with self._lock:
            if self.stopped:
                raise DeviceLost("the run was stopped")
            if time.monotonic() - self._looked < LOOK_S:
                return self.members
            self._looked = time.monotonic()
            self._check_scheduler()
            try:
                known = self.client.scheduler_info(n_workers=-1)["workers"]
            except (OSError, TimeoutError) as error:
                raise self._gone() from error
            new = [address for address in known if address not in {**self.members, **self.refused}]
            found = {a: member for a, member in self.members.items() if a in known}
            self.members = {**found, **self._welcome(new)}
            return self.members

    def take_out(self, address: str, reason: str) -> None:
        """A worker whose answers cannot be trusted serves nobody any more."""
        with self._lock:
            member = self.members.pop(address, None)
            if member is None or address in self.refused:
                return
            self.refused[address] = reason
        self.notice(f"{member.label} is taken out: {reason}")
        self.client.retire_workers([address])

    def submit(
        self,
        task: Callable[[Any], Any],
        order: Any,
        needs: dict[str, float],
        at: Sequence[str] = (),
    ) -> Future[Any]:
        """Start a task. ``at`` are the only workers that may do it."""
        if self.stopped:
            raise DeviceLost("the run was stopped")
        where = {"workers": list(at), "allow_other_workers": False} if at else {}
        turn = -next(self._turns)  # a worker takes the first ones first
        return self.client.submit(task, order, resources=needs, priority=turn, pure=False, **where)

    def when_done(self, future: Future[Any], put: Callable[[Fetched], None]) -> None:
        """Fetch the result once there is one, and put it with its task, several at a time."""

        def fetch(finished: Future[Any]) -> None:
            try:
                found = self.fetch(finished)
            except NqbenchError as error:
                found = error
            put((str(finished.key), found))

        def done(finished: Future[Any]) -> None:
            with suppress(RuntimeError):  # the run has ended
                self._fetching.submit(fetch, finished)

        future.add_done_callback(done)

    def fetch(self, future: Future[Any]) -> Any:
        """The result of a finished task; ``None`` if its worker died before it was fetched.

        Raises ``DeviceLost`` if the cluster gives it up.
        """
        try:
            return future.result(timeout=FETCH_S)
        except TimeoutError:
            future.cancel()
            return None
        except Exception as error:  # whatever Dask raises, KilledWorker for one
            self._check_scheduler()
            raise DeviceLost(f"the cluster gave up a measurement: {error}") from error

    def ask(
        self, task: Callable[[Any], Any], order: Any, needs: dict[str, float], at: Sequence[str]
    ) -> Any:
        """The answer of one of the workers ``at``. Raises ``DeviceLost`` if they all leave."""
        future = self.submit(task, order, needs, at)
        while not future.done():
            with suppress(TimeoutError):
                future.result(timeout=LOOK_S)
            if not {*at} & {*self.look()}:
                break
        if future.done() and (answer := self.fetch(future)) is not None:
            return answer
        future.cancel()
        raise DeviceLost(f"worker {', '.join(at)} has left")

    def hello(self, spec: str, needs: dict[str, float], at: Sequence[str]) -> Hello:
        """How a device introduces itself. Raises ``NqbenchError`` if it cannot be opened."""
        order = Order(self.run, 0, encode(Open(spec, brought())))
        message = decode(self.ask(host.carry_out, order, needs, at).reply)
        if isinstance(message, Ready) and message.hello is not None:
            return message.hello
        assert isinstance(message, Refused)
        raise as_error(message)

    def end_compilers(self, addresses: Sequence[str]) -> None:
        """End the processes that compile on some workers: they take much memory."""
        with suppress(OSError):
            self.client.run(host.end_compilers, self.run, workers=list(addresses))

    def stop(self) -> None:
        """End what this run does on the workers."""
        self.stopped = True
        self._fetching.shutdown(wait=False, cancel_futures=True)
        with suppress(Exception):  # without a scheduler the workers end it themselves
            self._check_scheduler()
            self.client.run(host.end_run, self.run, on_error="ignore")

    def _welcome(self, addresses: Sequence[str]) -> dict[str, Member]:
        """Newly found workers, if they run the same software."""
        if not addresses:
            return {}
        replies = self.client.run(host.announce, workers=list(addresses), on_error="return")
        own, found = host.software(), {}
        for address, described in replies.items():
            if isinstance(described, OSError):
                continue  # it left meanwhile
            if reason := unfit(described, own):
                self.refused[address] = reason
                self.notice(f"worker {address} is left out: {reason}")
            else:
                found[address] = Member(address, described)
        return found

    def _check_scheduler(self) -> None:
        if self.client.status != "running":
            raise self._gone()

    def _gone(self) -> DeviceLost:
        return DeviceLost(
            "the scheduler of the cluster is lost; what was finished is kept, run again to resume"
        )


def unfit(described: Any, own: dict[str, str]) -> str:
    """Why a worker cannot take part; empty if it can."""
    if isinstance(described, BaseException):
        return f"it cannot say what it has ({described}); install nqbench[cluster] there"
    theirs = described["software"]
    names = [n for n in {**own, **theirs} if own.get(n) != theirs.get(n)]
    if not names:
        return ""
    listed = ", ".join(
        f"{n} {theirs.get(n) or 'nothing'} instead of {own.get(n) or 'nothing'}" for n in names[:3]
    )
    return (
        f"{described['host']} has {listed}, and records must not depend on where a point ran;"
        " install the same there"
    )


@dataclass(eq=False)
class RemotePlace:
    """A device of the cluster.

    ``resource``  what a task on it needs; ``cores`` measurements at a time
    ``pooled``    any worker will do: a deterministic device
    ``host``      the machine that it is on, or whose CPU a pooled one's CPU systems use
    ``others``    further devices of the model, asked for a second opinion
    """

    cluster: Cluster
    name: str
    model: str
    hello: Hello
    resource: str
    host: str
    pooled: bool = False
    others: list[RemotePlace] = field(default_factory=list)
    _epochs: Iterator[int] = field(default_factory=itertools.count)

    def epoch(self) -> int:
        """A number for fresh processes. The first ones are those that said ``hello``."""
        return next(self._epochs)

    @property
    def cores(self) -> int:
        """How many measurements are simulated at a time."""
        if not self.pooled:
            return 1
        return sum(int(m.described["cores"]) for m in self.cluster.look().values())

    @property
    def workers(self) -> RemoteFactory:
        """Makes workers on this device."""
        return RemoteFactory(self)

    def there(self) -> list[str]:
        """The workers that have it now."""
        members = self.cluster.look().values()
        if self.pooled:
            return [member.address for member in members]
        return [
            member.address
            for member in members
            if self.resource in (device["resource"] for device in member.described["devices"])
        ]

    def home(self) -> list[str]:
        """The one worker for the CPU systems beside a simulated device."""
        here = [m.address for m in self.cluster.look().values() if m.host == self.host]
        return sorted(here)[:1]

    def lost(self) -> DeviceLost:
        """The error that it is no longer there."""
        return DeviceLost(
            f"{self.name} is lost: no worker has it any more; what was finished is kept, run again"
            " to resume"
        )


@dataclass(frozen=True)
class RemoteFactory:
    """Makes the workers of one device."""

    place: RemotePlace

    def __call__(self, size: int = 1) -> RemoteWorkers:
        """Fresh workers with the device open, ``size`` at a time."""
        return RemoteWorkers(self.place, self.place.hello.spec, size)

    def compilers(self) -> RemoteWorkers:
        """Processes that compile on the device's machine."""
        there = self.place.there()
        members = self.place.cluster.look()
        cores = max([int(members[a].described["cores"]) for a in there if a in members] or [1])
        return RemoteWorkers(self.place, None, min(cores, MAX_COMPILERS))


@dataclass(frozen=True, slots=True)
class Flight:
    """A job under way, and the workers that could take it when it was submitted."""

    future: Future[Any]
    job: Job
    workers: frozenset[str]


class RemoteWorkers:
    """``measure.worker.pool.Workers`` on a cluster."""

    def __init__(self, place: RemotePlace, spec: str | None, size: int) -> None:
        self._place, self._cluster, self._size = place, place.cluster, size
        self._open = encode(Open(spec, brought()))
        self._compiles = spec is None
        self._epoch = 0 if self._compiles else place.epoch()
        self._flying: dict[str, Flight] = {}
        self._done: queue.SimpleQueue[Fetched] = queue.SimpleQueue()
        self._ready: dict[str, Any] = {}

    @property
    def hello(self) -> Hello:
        """What the device is."""
        return self._place.hello

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Reply]]:
        """Carry out jobs; one whose worker is lost is done again by another."""
        waiting, more = iter(jobs), True
        while True:
            while more and len(self._flying) < self._room():
                job = next(waiting, None)
                more = job is not None
                if job is not None:
                    self._submit(job)
            if not self._flying:
                if not more:
                    return
                continue
            if (fetched := self._next()) is not None:
                key, answer = fetched
                job = self._flying.pop(key).job
                if answer is None:
                    self._submit(job)
                else:
                    yield job, self._reply(job, answer)

    def close(self) -> None:
        """Give up what is under way. A device's process ends when the next one is needed."""
        for flight in self._flying.values():
            with suppress(Exception):
                flight.future.cancel()
        self._flying.clear()
        if self._compiles and not self._cluster.stopped:
            self._cluster.end_compilers(self._place.there())

    def _room(self) -> int:
        """How many jobs may be under way: more with every worker that joins."""
        if self._place.pooled and self._size > 1:
            return max(self._size, self._place.cores) + AHEAD - 1
        return self._size if self._compiles or self._place.pooled else AHEAD

    def _submit(self, job: Job) -> None:
        future = self._cluster.submit(host.carry_out, self._order(job), *self._where())
        self._flying[str(future.key)] = Flight(future, job, frozenset(self._place.there()))
        self._cluster.when_done(future, self._done.put)

    def _where(self) -> tuple[dict[str, float], Sequence[str]]:
        """The resources of a task, and the only workers for it."""
        place = self._place
        if self._compiles:
            return {}, place.there()
        if place.pooled:
            return {CORES: 1}, (place.home() if self._size == 1 else ())
        return {place.resource: 1}, ()

    def _order(self, job: Job) -> Order:
        end = math.inf if job.end == math.inf else time.time() + job.end - time.monotonic()
        line = encode(job.request)
        run, epoch = self._cluster.run, self._epoch
        return Order(run, epoch, self._open, line, job.limit_s, end, job.late)

    def _next(self) -> Fetched | None:
        """The next finished task, or ``None`` after a while. Raises ``DeviceLost``."""
        gone_since: float | None = None
        if (ready := self._first_ready()) is not None:
            return ready
        while True:
            with suppress(queue.Empty):
                key, answer = self._done.get(timeout=LOOK_S / 4)
                if isinstance(answer, NqbenchError):
                    raise answer
                if key in self._flying:
                    self._ready[key] = answer
                return self._first_ready()
            if there := frozenset(self._place.there()):
                self._submit_again(there)
                return None
            gone_since = gone_since or time.monotonic()
            if time.monotonic() - gone_since > self._cluster.lost_s:
                raise self._place.lost()

    def _first_ready(self) -> Fetched | None:
        """A result; of one device in the order in which it measured, whichever came first."""
        in_turn = not (self._place.pooled or self._compiles)
        for key in self._flying:
            if key in self._ready:
                return key, self._ready.pop(key)
            if in_turn:
                break
        return None

    def _submit_again(self, there: frozenset[str]) -> None:
        """Dask gives a task whose workers all left to no worker that announces itself later."""
        stranded = [
            key
            for key, flight in self._flying.items()
            if key not in self._ready and not flight.workers & there
        ]
        for flight in [self._flying.pop(key) for key in stranded]:
            with suppress(Exception):
                flight.future.cancel()
            self._submit(flight.job)

    def _reply(self, job: Job, answer: Answer) -> Reply:
        message = decode(answer.reply)
        if isinstance(message, Refused):
            error = as_error(message)
            if isinstance(error, DeviceUnavailable | DeviceLost):
                raise DeviceLost(f"{self._place.name} cannot be used: {error}") from error
            raise error
        assert isinstance(message, Done)
        if message.measurement.status == "wrong" and isinstance(job.request, MeasureRequest):
            return self._second_opinion(job, answer, message)
        return Reply(message.measurement, answer.process)

    def _second_opinion(self, job: Job, answer: Answer, first: Done) -> Reply:
        """A wrong answer is the worker's fault if another worker gives the right one."""
        found = Reply(first.measurement, answer.process)
        asked = self._elsewhere(answer.address)
        if asked is None:
            return found
        spec, needs, at = asked
        order = self._order(job)
        run, line = f"{order.run} check", encode(Open(spec, brought()))
        order = replace(order, run=run, open=line)  # the processes of that worker's own round stay
        try:
            second = self._cluster.ask(host.carry_out, order, needs, at)
        except DeviceLost:
            return found
        message = decode(second.reply)
        if not isinstance(message, Done) or message.measurement.status in ("wrong", "skipped"):
            return found
        reason = f"{first.measurement.reason}; another worker's answer is right"
        self._cluster.take_out(answer.address, reason)
        if not self._place.pooled:
            raise DeviceLost(f"{self._place.name} is taken out: {reason}")
        return Reply(message.measurement, second.process)

    def _elsewhere(self, address: str) -> tuple[str, dict[str, float], Sequence[str]] | None:
        """Another worker with such a device: spec, resource and address."""
        place = self._place
        if place.pooled:
            others = [a for a in place.there() if a != address]
            return (place.hello.spec, {CORES: 1}, others) if others else None
        for other in place.others:
            if other.there() and address not in other.there():
                return other.hello.spec, {other.resource: 1}, other.there()
        return None


class ClusterSite:
    """The devices that a study is measured on: ``wanted`` is ``cuda``, ``cpu`` or a spec."""

    def __init__(self, cluster: Cluster, wanted: str, model: str = "") -> None:
        """``model``: only devices whose names contain it."""
        self._cluster, self._wanted, self._model = cluster, wanted, model.lower()
        self._places: dict[str, RemotePlace] = {}
        self._broken: set[str] = set()

    def places(self) -> Sequence[RemotePlace]:
        """The devices now. Raises ``DeviceLost`` without a scheduler."""
        members = list(self._cluster.look().values())
        if pooled(self._wanted):
            return self._pool(members)
        offered = {
            device["resource"]: (member, device)
            for member in members
            for device in member.described["devices"]
            if self._wanted in (device["kind"], device["spec"])
            and self._model in device["name"].lower()
        }
        self._open({r: found for r, found in offered.items() if r not in self._broken})
        return [place for resource, place in self._places.items() if resource in offered]

    def first_places(self) -> Sequence[RemotePlace]:
        """The devices at the start. Raises ``DeviceUnavailable`` if there are none."""
        found = self.places()
        if not found:
            members = self._cluster.look().values()
            there = {device["name"] for m in members for device in m.described["devices"]}
            raise DeviceUnavailable(
                f"no worker has a device {self._wanted} called {self._model or 'anything'} that"
                f" works; they have: {', '.join(sorted(there)) or 'none'}"
            )
        return found

    def stop(self) -> None:
        """End what is under way."""
        self._cluster.stop()

    def _pool(self, members: Sequence[Member]) -> Sequence[RemotePlace]:
        spec = self._wanted
        if not self._places and members:
            hello = self._cluster.hello(spec, {CORES: 1}, [members[0].address])
            host = members[0].host
            self._places[spec] = RemotePlace(self._cluster, spec, spec, hello, CORES, host, True)
        return list(self._places.values()) if members else ()

    def _open(self, offered: dict[str, tuple[Member, dict[str, str]]]) -> None:
        """Let new devices introduce themselves, all at the same time."""
        new = {r: found for r, found in offered.items() if r not in self._places}
        if not new:
            return
        with ThreadPoolExecutor(len(new)) as threads:
            asked = {
                resource: threads.submit(
                    self._cluster.hello, device["spec"], {resource: 1}, [member.address]
                )
                for resource, (member, device) in new.items()
            }
        for resource, (member, device) in new.items():
            name = f"{device['spec']} on {member.host}"
            try:
                hello = asked[resource].result()
            except NqbenchError as error:
                self._broken.add(resource)
                self._cluster.notice(f"{name} is left out: {error}")
                continue
            model = device["name"]
            place = RemotePlace(self._cluster, name, model, hello, resource, member.host)
            for other in self._places.values():
                if other.model == model:
                    other.others.append(place)
                    place.others.append(other)
            self._places[resource] = place


def pooled(spec: str) -> bool:
    """Whether a device is deterministic and the same on every worker."""
    return spec.startswith("sim") or "deterministic=1" in spec


def wanted(cluster: Cluster, device: str, otherwise: str = "sim") -> str:
    """What ``--device`` means on a cluster: ``cuda``, ``cpu`` or the spec of a simulator.

    ``auto`` takes all GPUs, and without any ``otherwise``. Raises ``DeviceUnavailable`` if no
    worker has such a device.
    """
    offered = [device for m in cluster.look().values() for device in m.described["devices"]]
    kinds = {offer["kind"] for offer in offered}
    if device == "auto":
        if "cuda" in kinds:
            return "cuda"
        device = choose_device(otherwise).spec
        cluster.notice(f"no worker has a GPU; {device} runs on all their cores")
    kind = device.partition(":")[0]
    if kind == "cuda" and device != "cuda":
        raise StudyError(
            f"--device {device} is a GPU of this computer; in a cluster, say cuda for all, and"
            " --gpus 0,1 for some of this computer"
        )
    if kind == "sim" or pooled(device):
        return choose_device(device).spec
    if kind not in kinds:
        there = ", ".join(sorted(kinds)) or "none"
        raise DeviceUnavailable(f"no worker has a device {device!r}; their devices are: {there}")
    return device
