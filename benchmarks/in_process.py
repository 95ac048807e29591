"""A device in this process, in place of worker processes: starting those takes the longest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from unittest import mock

from nqbench.measure import runner
from nqbench.measure.worker.messages import MeasureRequest
from nqbench.measure.worker.pool import Job, Reply, WorkerPool, Workers
from nqbench.measure.worker.session import Session


class InProcess:
    """A device in this process. A crash or a hang of the device is one of the runner."""

    def __init__(self, spec: str) -> None:
        self._session = Session(spec)
        self.hello = self._session.hello()

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Reply]]:
        """Carry out jobs one after the other."""
        for job in jobs:
            assert isinstance(job.request, MeasureRequest)
            yield job, Reply(self._session.measure(job.request), self.hello.pid)

    def close(self) -> None:
        """Release the device."""
        self._session.close()


def in_process() -> AbstractContextManager[object]:
    """Runs that begin in a ``with`` statement measure in this process; processes still compile."""

    def opened(spec: str | None, size: int = 1, again: bool = False) -> Workers:
        return WorkerPool(spec, size, again) if spec is None else InProcess(spec)

    return mock.patch.object(runner, "WorkerPool", opened)
