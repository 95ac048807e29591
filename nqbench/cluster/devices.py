"""The devices of a cluster as a run sees them: workers on which ``measure`` carries out its stages.

Replies come back to the computer that started the run, which alone writes records.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from nqbench.cluster import host
from nqbench.cluster.connect import ClusterTarget, connected
from nqbench.cluster.host import CORES, TaskRequest, TaskResult
from nqbench.cluster.members import Cluster, Member, RemoteJobs, Who, ask
from nqbench.devices.registry import choose_device
from nqbench.errors import DeviceLost, DeviceUnavailable, NqbenchError
from nqbench.measure.device_threads import StudyRequest, run_on_site
from nqbench.measure.run_state import Listener, RunOutcome
from nqbench.measure.runner import MAX_COMPILERS
from nqbench.measure.worker.messages import Done, Hello, Open, Ready, Refused
from nqbench.measure.worker.pool import Job, Reply, as_error
from nqbench.runs.reading import local_folder
from nqbench.study import Study, expand

AHEAD: Final = 3
"""Requests that a device has at a time, all but one waiting: a task's way through the scheduler
takes some 10 ms (benchmarks/cluster_overhead.py), longer than a short measurement."""


@dataclass(eq=False)
class RemoteDevice:
    """A device of the cluster.

    ``resource``  what a task on it needs; ``cores`` measurements at a time
    ``pooled``    any worker will do: a deterministic device
    ``host``      the machine that it is on, or whose CPU a pooled one's CPU systems use
    ``epochs``    numbers for fresh processes; the first ones are those that said ``hello``
    """

    cluster: Cluster
    name: str
    model: str
    hello: Hello
    resource: str
    host: str
    pooled: bool = False
    epochs: Iterator[int] = field(default_factory=itertools.count)

    @property
    def cores(self) -> int:
        """How many measurements are simulated at a time."""
        if not self.pooled:
            return 1
        return sum(member.cores for member in self.cluster.look().values())

    def __call__(self, size: int = 1) -> RemoteWorkers:
        """Fresh workers with the device open, ``size`` at a time."""
        return RemoteWorkers(self, self.hello.spec, size)

    def compilers(self) -> RemoteWorkers:
        """Processes that compile on the device's machine."""
        members = self.cluster.look()
        cores = max([members[a].cores for a in self.there() if a in members] or [1])
        return RemoteWorkers(self, None, min(cores, MAX_COMPILERS))

    def there(self) -> list[str]:
        """The workers that have it now."""
        members = self.cluster.look().values()
        return [member.address for member in members if self.resource in member.resources]


class RemoteWorkers:
    """``measure.worker.pool.Workers`` on a cluster."""

    def __init__(self, device: RemoteDevice, spec: str | None, size: int) -> None:
        self._device, self._cluster, self._size = device, device.cluster, size
        self._open = Open(spec)
        self._compiles = spec is None
        self._epoch = 0 if self._compiles else next(device.epochs)
        # A device's replies come in the order in which it measured.
        self._jobs: RemoteJobs[Job, TaskRequest, TaskResult] = RemoteJobs(
            self._cluster, host.carry_out, in_turn=not (device.pooled or self._compiles)
        )
        self._lost: list[Job] = []
        self._gone_since = math.inf

    @property
    def hello(self) -> Hello:
        """What the device is."""
        return self._device.hello

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Reply]]:
        """Carry out jobs; one whose worker is lost is done again by another."""
        waiting, more = iter(jobs), True
        while more or self._under_way():
            while more and self._under_way() < self._room():
                job = next(waiting, None)
                more = job is not None
                if job is not None:
                    self._lost.append(job)
                    self._submit()
            if not self._under_way():
                continue
            self._submit()
            if (ended := self._jobs.next_ended()) is not None:
                job, result = ended
                if result is None:
                    self._lost.append(job)
                else:
                    yield job, self._reply(result)

    def close(self) -> None:
        """Give up what is under way. A device's process ends when the next one is needed."""
        self._jobs.cancel()
        self._lost.clear()

    def _under_way(self) -> int:
        return len(self._jobs) + len(self._lost)

    def _room(self) -> int:
        """How many jobs may be under way: more with every worker that joins."""
        if self._device.pooled and self._size > 1:
            return max(self._size, self._device.cores) + AHEAD - 1
        return self._size if self._compiles or self._device.pooled else AHEAD

    def _submit(self) -> None:
        """Submit the jobs that no worker has, lost ones for one. Raises ``DeviceLost`` if the
        device has been gone for too long."""
        needs, workers = self._who()
        if workers:
            self._gone_since = math.inf
            for job in self._lost:
                this = self._cluster.run, self._epoch, self._open
                request = TaskRequest(*this, job.request, job.limit_s, job.end, job.late)
                self._jobs.submit(job, request, (needs, workers))
            self._lost.clear()
        elif self._lost:
            self._gone_since = min(self._gone_since, time.monotonic())
            if time.monotonic() - self._gone_since > self._cluster.lost_s:
                raise DeviceLost(
                    f"{self._device.name} is lost: no worker has it any more; what was finished is"
                    " kept, run again to resume"
                )

    def _who(self) -> Who:
        device = self._device
        if self._compiles:
            return {}, device.there()
        if device.pooled and self._size == 1:  # one worker for the CPU systems beside the simulator
            members = self._cluster.look().values()
            return {CORES: 1}, sorted(m.address for m in members if m.host == device.host)[:1]
        return {device.resource: 1}, device.there()

    def _reply(self, result: TaskResult) -> Reply:
        message = result.reply
        if isinstance(message, Refused):
            error = as_error(message)
            if isinstance(error, DeviceUnavailable | DeviceLost):
                raise DeviceLost(f"{self._device.name} cannot be used: {error}") from error
            raise error
        assert isinstance(message, Done)
        return Reply(message.measurement, result.process)


class ClusterSite:
    """The devices that a study is measured on: ``wanted`` is ``cuda``, ``cpu`` or a spec."""

    def __init__(self, cluster: Cluster, wanted: str) -> None:
        self._cluster, self._wanted = cluster, wanted
        self._devices: dict[str, RemoteDevice] = {}
        self._broken: set[str] = set()

    def devices(self) -> Sequence[RemoteDevice]:
        """The devices now. Raises ``DeviceLost`` without a scheduler."""
        members = list(self._cluster.look().values())
        spec = self._wanted
        if pooled(spec):
            offer: Mapping[str, str] = {"spec": spec, "name": spec, "resource": CORES}
            offered = {spec: (members[0], offer)} if members else {}
        else:
            offered = {
                offer["resource"]: (member, offer)
                for member in members
                for offer in member.devices
                if spec in (offer["kind"], offer["spec"])
            }
        self._open({r: found for r, found in offered.items() if r not in self._broken})
        return [device for resource, device in self._devices.items() if resource in offered]

    def first_devices(self) -> Sequence[RemoteDevice]:
        """The devices at the start. Raises ``DeviceUnavailable`` if there are none."""
        found = self.devices()
        if not found:
            members = self._cluster.look().values()
            there = {device["name"] for m in members for device in m.devices}
            raise DeviceUnavailable(
                f"no worker has a device {self._wanted} that works; they have:"
                f" {', '.join(sorted(there)) or 'none'}"
            )
        return found

    def stop(self) -> None:
        """End what is under way."""
        self._cluster.stop()

    def _open(self, offered: dict[str, tuple[Member, Mapping[str, str]]]) -> None:
        """Let new devices introduce themselves, all at the same time."""
        new = {r: found for r, found in offered.items() if r not in self._devices}
        if not new:
            return
        with ThreadPoolExecutor(len(new)) as threads:
            asked = {
                key: threads.submit(say_hello, self._cluster, offer, member)
                for key, (member, offer) in new.items()
            }
        for key, (member, offer) in new.items():
            spec, at = offer["spec"], member.host
            name = spec if pooled(spec) else f"{spec} on {at}"
            try:
                hello = asked[key].result()
            except NqbenchError as error:
                self._broken.add(key)
                self._cluster.notice(f"{name} is left out: {error}")
                continue
            about = name, offer["name"], hello, offer["resource"], at, pooled(spec)
            self._devices[key] = RemoteDevice(self._cluster, *about)


def say_hello(cluster: Cluster, offer: Mapping[str, str], member: Member) -> Hello:
    """How a device introduces itself. Raises ``NqbenchError`` if it cannot be opened."""
    request = TaskRequest(cluster.run, 0, Open(offer["spec"]))
    who = {offer["resource"]: 1}, [member.address]
    message = ask(cluster, host.carry_out, request, who).reply
    if isinstance(message, Ready) and message.hello is not None:
        return message.hello
    assert isinstance(message, Refused)
    raise as_error(message)


def pooled(spec: str) -> bool:
    """Whether a device is deterministic and the same on every worker."""
    return spec.startswith("sim") or "deterministic=1" in spec


def wanted(cluster: Cluster, device: str, otherwise: str = "sim") -> str:
    """What ``--device`` means on a cluster: ``cuda``, ``cpu`` or the spec of a simulator.

    ``auto`` takes all GPUs, and without any ``otherwise``. Raises ``DeviceUnavailable`` if no
    worker has such a device.
    """
    offered = [device for m in cluster.look().values() for device in m.devices]
    kinds = {offer["kind"] for offer in offered}
    if device == "auto":
        if "cuda" in kinds:
            return "cuda"
        device = choose_device(otherwise).spec
        cluster.notice(f"no worker has a GPU; {device} runs on all their cores")
    kind = device.partition(":")[0]
    if kind == "sim" or pooled(device):
        return choose_device(device).spec
    if kind not in kinds:
        there = ", ".join(sorted(kinds)) or "none"
        raise DeviceUnavailable(f"no worker has a device {device!r}; their devices are: {there}")
    return device


def run_on_cluster(
    target: ClusterTarget,
    study: Study,
    device: str,
    listener: Listener,
    *,
    out: Path | None = None,
    fresh: bool = False,
    budget_s: float | None = None,
    command: Sequence[str] = (),
) -> list[RunOutcome]:
    """Measure a study on the devices of a cluster; a run for each model.

    ``device`` as in ``wanted``; ``out`` is the run folder, or holds those of several models. Raises
    what ``run_on_site`` and ``connected`` raise.
    """
    with connected(target, listener.message) as cluster:
        site = ClusterSite(cluster, wanted(cluster, device))
        several = len({found.model for found in site.first_devices()}) > 1

        def folder(model: str) -> Path:
            if out is None:
                return local_folder(study.name, model)
            return out / local_folder(study.name, model).parent.name if several else out

        points = partial(expand, study, warn=listener.message)
        request = StudyRequest(study, points, folder, fresh, budget_s, command)
        return run_on_site(request, site, listener)
