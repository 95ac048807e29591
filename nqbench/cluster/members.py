"""The workers of a cluster: which of them are fit for use, and the jobs that they do.

A job goes to some workers that have what it needs. It ends with a result, or as lost once all these
workers have left, and whoever gave it decides who does it instead.
"""

from __future__ import annotations

import itertools
import math
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from nqbench.cluster import host
from nqbench.errors import DeviceLost

if TYPE_CHECKING:
    from distributed import Client, Future

LOOK_S: Final = 1.0
"""Seconds between two looks at which workers there are."""
LOST_S: Final = 20.0
"""A worker that is gone for so long does not come back: Dask's nanny replaces one in seconds."""


@dataclass(frozen=True)
class Member:
    """A worker of the cluster, as it announced itself (``host.announce``): its machine, its cores,
    its devices (``host.Offer`` as a dictionary)."""

    address: str
    host: str
    cores: int
    devices: Sequence[Mapping[str, str]] = ()

    @property
    def resources(self) -> set[str]:
        """What tasks may ask of it: its cores, and its devices."""
        return {host.CORES, *(device["resource"] for device in self.devices)}

    @property
    def label(self) -> str:
        """The worker for people."""
        return f"worker {self.address} on {self.host}"


class Cluster:
    """A connection to a cluster, and the workers that are fit for use.

    ``notice`` takes one sentence on each worker that is left out; ``run`` names this run.
    """

    def __init__(
        self, client: Client, notice: Callable[[str], object], lost_s: float = LOST_S
    ) -> None:
        self.client, self.lost_s = client, lost_s
        self.run = secrets.token_hex(8)
        self.members: dict[str, Member] = {}
        self.stopped = False
        self.notice = notice
        self.refused: dict[str, str] = {}
        self._lock = threading.RLock()
        self._looked = -math.inf

    def look(self) -> dict[str, Member]:
        """The workers now, by address. Raises ``DeviceLost`` if the scheduler is out of reach."""
        with self._lock:
            if self.stopped:
                raise DeviceLost("the run was stopped")
            if time.monotonic() - self._looked < LOOK_S:
                return self.members
            self._looked = time.monotonic()
            self.check_scheduler()
            try:
                known = self.client.scheduler_info(n_workers=-1)["workers"]
            except (OSError, TimeoutError) as error:
                raise _scheduler_lost() from error
            new = [address for address in known if address not in {**self.members, **self.refused}]
            found = {a: member for a, member in self.members.items() if a in known}
            self.members = {**found, **self._admit(new)}
            return self.members

    def evict(self, address: str, reason: str) -> None:
        """Use a worker no more whose answers cannot be trusted."""
        with self._lock:
            member = self.members.pop(address, None)
            if member is None or address in self.refused:
                return
            self.refused[address] = reason
        self.notice(f"{member.label} is taken out: {reason}")
        self.client.retire_workers([address])

    def stop(self) -> None:
        """End what this run does on the workers."""
        self.stopped = True
        with suppress(Exception):  # without a scheduler the workers end it themselves
            self.check_scheduler()
            self.client.run(host.end, self.run, on_error="ignore")

    def check_scheduler(self) -> None:
        """Raise ``DeviceLost`` without a scheduler."""
        if self.client.status != "running":
            raise _scheduler_lost()

    def _admit(self, addresses: Sequence[str]) -> dict[str, Member]:
        """Newly found workers, if they run the same software."""
        if not addresses:
            return {}
        replies = self.client.run(
            host.announce, self.run, time.monotonic(), workers=list(addresses), on_error="return"
        )
        own, found = host.software(), {}
        for address, described in replies.items():
            if isinstance(described, OSError):
                continue  # it left meanwhile
            if reason := unfit(described, own):
                self.refused[address] = reason
                self.notice(f"worker {address} is left out: {reason}")
            else:
                known = (described[name] for name in ("host", "cores", "devices"))
                found[address] = Member(address, *known)
        return found


def _scheduler_lost() -> DeviceLost:
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


Job = TypeVar("Job")
Request = TypeVar("Request")
Result = TypeVar("Result")
Who = tuple[Mapping[str, float], Sequence[str]]
"""Who may do a job: the Dask resources that it takes, and the addresses of the workers."""

WAIT_S: Final = 0.25
"""Longest wait for a result before the workers are looked at again."""

_turns = itertools.count()


class RemoteJobs(Generic[Job, Request, Result]):
    """Jobs under way, each a call of ``task``; ``in_turn``: they end in the order of submission."""

    def __init__(
        self, cluster: Cluster, task: Callable[[Request], Result], *, in_turn: bool = False
    ) -> None:
        from distributed import as_completed

        self._cluster, self._task, self._in_turn = cluster, task, in_turn
        self._flights: dict[str, tuple[Job, Future[Any], frozenset[str]]] = {}
        self._results: dict[str, Result] = {}
        self._completed = as_completed(
            loop=cluster.client.loop, with_results=True, raise_errors=False
        )

    def __len__(self) -> int:
        return len(self._flights)

    def submit(self, job: Job, request: Request, who: Who) -> None:
        """Start a job. Raises ``DeviceLost`` if the run was stopped."""
        if self._cluster.stopped:
            raise DeviceLost("the run was stopped")
        needs, workers = who
        future = self._cluster.client.submit(
            self._task,
            request,
            resources=needs,
            workers=list(workers),
            priority=-next(_turns),  # a worker takes the first ones first
            pure=False,
        )
        self._flights[str(future.key)] = job, future, frozenset(workers)
        self._completed.add(future)

    def next_ended(self) -> tuple[Job, Result | None] | None:
        """The next job that ended, with its result, ``None`` if it was lost; or ``None`` if none
        ended for a while.

        Raises ``DeviceLost`` if the cluster gives a job up, or there is no scheduler any more.
        """
        if (ended := self._ended()) is None:
            arrived = self._completed.thread_condition
            with arrived:
                if not self._completed.has_ready():
                    arrived.wait(WAIT_S)
            ended = self._ended()
        return ended

    def cancel(self) -> None:
        """Give up what is under way."""
        for _, future, _ in self._flights.values():
            with suppress(Exception):
                future.cancel()
        self._flights.clear()
        self._results.clear()

    def _ended(self) -> tuple[Job, Result | None] | None:
        for future, result in self._completed.next_batch(block=False):
            if str(future.key) in self._flights and future.status == "finished":
                self._results[str(future.key)] = result
        members = {*self._cluster.look()}
        for key, (job, future, workers) in self._flights.items():
            if future.status == "error":
                self._cluster.check_scheduler()
                error = future.exception()
                raise DeviceLost(f"the cluster gave up a measurement: {error}") from error
            if key in self._results:
                del self._flights[key]
                return job, self._results.pop(key)
            if not workers & members:
                del self._flights[key]
                with suppress(Exception):
                    future.cancel()
                return job, None
            if self._in_turn:
                break
        return None


def ask(cluster: Cluster, task: Callable[[Request], Result], request: Request, who: Who) -> Result:
    """The result of a single job. Raises ``DeviceLost`` if all who may do it leave."""
    jobs: RemoteJobs[None, Request, Result] = RemoteJobs(cluster, task)
    jobs.submit(None, request, who)
    while (ended := jobs.next_ended()) is None:
        pass
    if ended[1] is None:
        raise DeviceLost(f"worker {', '.join(who[1])} has left")
    return ended[1]


def ask_others(
    cluster: Cluster, task: Callable[[Request], Result], others: Iterable[tuple[Request, Who]]
) -> Result | None:
    """The result of the first of these that does not leave; ``None`` if all do."""
    for request, who in others:
        with suppress(DeviceLost):  # that one alone: a lost scheduler is noticed by the next look
            return ask(cluster, task, request, who)
    return None
