"""Jobs on a cluster: what a sweep and a count ask of its workers, whoever is lost or wrong.

A job goes to some workers that have what it needs. It ends with a result, or as lost once all these
workers have left, and whoever gave it decides who does it instead. Where a result contradicts
itself, another device is asked the same: if that one's answer is right, the worker is evicted.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from nqbench.cluster.members import Cluster
from nqbench.errors import DeviceLost

if TYPE_CHECKING:
    from distributed import Future

Job = TypeVar("Job")
Request = TypeVar("Request")
Result = TypeVar("Result")
Who = tuple[Mapping[str, float], Sequence[str]]
"""Who may do a job: the Dask resources that it takes, and the addresses of the workers."""

WAIT_S: Final = 0.25
"""Longest wait for a result before the workers are looked at again."""

_turns = itertools.count()


@dataclass(frozen=True, slots=True)
class Flight(Generic[Job]):
    """A job under way, and the workers that may do it."""

    future: Future[Any]
    job: Job
    workers: frozenset[str]


class RemoteJobs(Generic[Job, Request, Result]):
    """Jobs under way, each a call of ``task``; ``in_turn``: they end in the order of submission."""

    def __init__(
        self, cluster: Cluster, task: Callable[[Request], Result], *, in_turn: bool = False
    ) -> None:
        from distributed import as_completed

        self._cluster, self._task, self._in_turn = cluster, task, in_turn
        self._flights: dict[str, Flight[Job]] = {}
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
        self._flights[str(future.key)] = Flight(future, job, frozenset(workers))
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
        for flight in self._flights.values():
            with suppress(Exception):
                flight.future.cancel()
        self._flights.clear()
        self._results.clear()

    def overruled(
        self,
        doubted: Iterable[str],
        others: Iterable[tuple[Request, Who]],
        right: Callable[[Result], bool],
        reason: Callable[[Result], str],
    ) -> Result | None:
        """The right answer of another device: the ``doubted`` workers are then evicted.

        ``others`` are asked until one answers; ``None`` if none does, or its answer is not right.
        """
        for request, who in others:
            try:
                second = ask(self._cluster, self._task, request, who)
            except DeviceLost:  # that one alone: a lost scheduler is noticed by the next look
                continue
            if not right(second):
                return None
            for address in doubted:
                self._cluster.evict(address, reason(second))
            return second
        return None

    def _ended(self) -> tuple[Job, Result | None] | None:
        for future, result in self._completed.next_batch(block=False):
            if str(future.key) in self._flights and future.status == "finished":
                self._results[str(future.key)] = result
        members = {*self._cluster.look()}
        for key, flight in self._flights.items():
            if flight.future.status == "error":
                self._cluster.check_scheduler()
                error = flight.future.exception()
                raise DeviceLost(f"the cluster gave up a measurement: {error}") from error
            if key in self._results:
                del self._flights[key]
                return flight.job, self._results.pop(key)
            if not flight.workers & members:
                del self._flights[key]
                with suppress(Exception):
                    flight.future.cancel()
                return flight.job, None
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
