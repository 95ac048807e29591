"""Sending measurements to workers and storing the replies, for all stages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from nqbench.measure.budget import Budget
from nqbench.measure.events import Listener
from nqbench.measure.run_state import RunState, Task
from nqbench.measure.sampling.measurement import Measurement
from nqbench.measure.sampling.sampling import Policy
from nqbench.measure.worker.messages import MeasureRequest
from nqbench.measure.worker.pool import Job, Workers
from nqbench.record import Record

if TYPE_CHECKING:
    from nqbench.study.model import Measure


class WorkerFactory(Protocol):
    """Makes workers."""

    def __call__(self, size: int = 1) -> Workers:
        """Fresh workers with the run's device open."""

    def compilers(self) -> Workers:
        """Workers that compile."""


@dataclass(frozen=True)
class Dispatch:
    """What a run's stages share; everything they yield goes into the run's state."""

    measure: Measure
    policy: Policy
    state: RunState
    budget: Budget
    listener: Listener
    workers: WorkerFactory

    def job(self, task: Task, round_: int, place: int, *, timed: bool) -> Job:
        """A measurement of a point that is now given out: a verification, or a timed one."""
        self.listener.started(task.point, timed=timed)
        request = MeasureRequest(
            point=task.point,
            round=round_,
            timed=timed,
            policy=self.policy,
            timeout_s=self.measure.timeout_s,
            expected_s=self.budget.book.seen(task.point),
        )
        limit_s, budget = self.measure.timeout_s, self.budget
        end = budget.end if timed else budget.try_end
        return Job(request, limit_s, (task, place), end, budget.cut_short())

    def run(self, workers: Workers, jobs: Iterable[Job], round_: int) -> None:
        """Carry out jobs."""
        for _ in self.collect(workers, jobs, round_):
            pass

    def collect(
        self, workers: Workers, jobs: Iterable[Job], round_: int
    ) -> Iterator[tuple[Task, Record]]:
        """Carry out jobs; yields each task with its record, which is already stored."""
        for job, reply in workers.run(jobs):
            task, place = job.tag
            found = reply.measurement
            if found.status == "skipped":
                yield task, self.state.skip(task, round_, found.reason)
                continue
            record = self.state.add(task, round_, place, reply)
            self._note(task, found)
            yield task, record

    def recall(self, tasks: Sequence[Task], round_: int) -> None:
        """Learn the launch times of an earlier run in this folder."""
        for task in tasks:
            record = self.state.latest(task, round_)
            if record is not None:
                self._note(task, record)

    def _note(self, task: Task, found: Measurement | Record) -> None:
        launch_s = found.about.get("first_launch_s", found.about.get("simulation_s"))
        wall_s: float | None = found.wall_s
        if found.status == "timeout":
            # At least the time limit: enough to skip larger boards.
            launch_s, wall_s = self.measure.timeout_s, None
        if launch_s is not None:
            self.budget.book.observe(task.point, launch_s, wall_s)
            if found.status == "ok":
                self.budget.commit(task)
