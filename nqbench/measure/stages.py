"""The stages of a run: leave out, compile, count or verify, rounds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from typing import Any, Final, Protocol

from nqbench.measure.budget import Budget
from nqbench.measure.crew import Job, Workers
from nqbench.measure.events import Listener
from nqbench.measure.ledger import Ledger, Task
from nqbench.measure.predict import work_of
from nqbench.measure.sampling import Policy
from nqbench.measure.study import MeasureLike
from nqbench.record import Record

EXACT_ROUND: Final = 1
"""Round number of the only block of a point that is counted and not timed."""
MAX_CRASHES: Final = 2
"""A worker's death may have come from outside; a point in flight at two of them is left alone."""


class Crews(Protocol):
    """Makes workers."""

    def __call__(self, size: int = 1) -> Workers:
        """Fresh workers with the run's device open."""

    def compilers(self) -> Workers:
        """Workers that compile."""


class Stages:
    """Carries out the stages of one run; everything they yield goes into the ledger."""

    def __init__(
        self,
        measure: MeasureLike,
        policy: Policy,
        seed: int,
        ledger: Ledger,
        budget: Budget,
        listener: Listener,
        crews: Crews,
    ) -> None:
        self._measure = measure
        self._seed = seed
        self._ledger = ledger
        self._budget = budget
        self._listener = listener
        self._crews = crews
        self._policy = policy

    def leave_out_infeasible(self, tasks: Sequence[Task]) -> list[Task]:
        """Record the points that cannot run on this device; returns the others."""
        for task in tasks:
            if task.point.skip:
                self._ledger.skip(task, 0, task.point.skip)
        return [task for task in tasks if not task.point.skip]

    def compile(self, tasks: Sequence[Task], facts: Mapping[str, Any]) -> list[Task]:
        """Fill the compiler's cache in parallel; returns the points whose kernel compiles."""
        kernels = [t for t in tasks if t.device != "cpu" and not self._ledger.done(t, 0)]
        if not kernels:
            return list(tasks)
        self._listener.stage("compile", len(kernels))
        refused: set[str] = set()
        jobs = (
            Job({"point": task.point.as_json(), "facts": facts}, self._measure.timeout_s, task)
            for task in kernels
            if self._budget.left_s() > 0
        )
        with closing(self._crews.compilers()) as compilers:
            for job, reply in compilers.run(jobs):
                if reply.fields["status"] == "ok":
                    self._listener.advanced()
                else:
                    refused.add(job.tag.key)
                    self._ledger.add(job.tag, 0, 0, reply)
        return [task for task in tasks if task.key not in refused]

    def count(self, tasks: Sequence[Task], processes: int) -> None:
        """The only block of each point that is counted and not timed."""
        self._recall(tasks, EXACT_ROUND)
        pending = [t for t in _ascending(tasks) if not self._ledger.done(t, EXACT_ROUND)]
        if not pending:
            return
        self._listener.stage("count", len(pending))
        with closing(self._crews(min(processes, len(pending)))) as workers:
            self._run(workers, self._tries(pending, EXACT_ROUND), EXACT_ROUND)

    def verify(self, tasks: Sequence[Task], workers: Workers | None) -> list[Task]:
        """One untimed launch of each point, going up in N; returns those to be timed."""
        self._recall(tasks, 0)
        pending = [t for t in _ascending(tasks) if not self._ledger.done(t, 0)]
        if pending:
            self._listener.stage("verify", len(pending))
            if workers is not None:
                self._run(workers, self._tries(pending, 0), 0)
            else:
                with closing(self._crews()) as fresh:
                    self._run(fresh, self._tries(pending, 0), 0)
        return self._leave_out_long([t for t in tasks if self._ledger.done(t, 0)])

    def rounds(self, tasks: Sequence[Task]) -> None:
        """Time every point once per round, each round in a fresh process and a fresh order."""
        total = self._measure.rounds
        rounds, dropped = self._budget.plan_rounds(self._untimed(tasks))
        if rounds < total:
            self._listener.message(f"--budget leaves time for {rounds} of {total} rounds")
        for task in tasks:
            if task.key in dropped:
                self._ledger.skip(task, 1, dropped[task.key])
        kept = [task for task in tasks if task.key not in dropped]
        trouble: Counter[str] = Counter()
        for round_ in range(1, rounds + 1):
            order = self.order(kept, round_)
            pending = [
                (place, task)
                for place, task in enumerate(order)
                if not self._ledger.done(task, round_) and trouble[task.key] < MAX_CRASHES
            ]
            if not pending:
                continue
            self._listener.stage(f"round {round_} of {rounds}", len(pending))
            with closing(self._crews()) as workers:
                jobs = self._timed_jobs(pending, round_)
                for record in self._collect(workers, jobs, round_):
                    if record.status == "crashed":
                        trouble[record.key] += 1
                    elif record.status != "ok":
                        trouble[record.key] = MAX_CRASHES

    def order(self, tasks: Sequence[Task], round_: int) -> list[Task]:
        """The visiting order of a round: random, but the same when the run is gone on with."""
        shuffled = list(tasks)
        random.Random(f"{self._seed}:{round_}").shuffle(shuffled)
        return shuffled

    def _untimed(self, tasks: Sequence[Task]) -> list[Task]:
        """Points that still lack a block of some round."""
        every = range(1, self._measure.rounds + 1)
        return [t for t in tasks if not all(self._ledger.done(t, r) for r in every)]

    def _leave_out_long(self, tasks: Sequence[Task]) -> list[Task]:
        kept: list[Task] = []
        for task in tasks:
            reason = self._budget.too_long_to_time(task)
            if reason:
                self._ledger.skip(task, 1, reason)
            else:
                kept.append(task)
        return kept

    def _tries(self, tasks: Sequence[Task], round_: int) -> Iterator[Job]:
        """First launches; what is bound to take too long is left out when its turn comes."""
        for place, task in enumerate(tasks):
            reason = self._budget.too_long_to_try(task)
            if reason:
                self._ledger.skip(task, round_, reason)
            else:
                yield self._job(task, round_, place, timed=False)

    def _timed_jobs(self, tasks: Sequence[tuple[int, Task]], round_: int) -> Iterator[Job]:
        for place, task in tasks:
            reason = self._budget.ends_before(task)
            if not reason:
                yield self._job(task, round_, place, timed=True)
            elif round_ == 1:
                self._ledger.skip(task, round_, reason)
            else:
                self._listener.advanced()  # earlier rounds have timed it: it only has fewer blocks

    def _job(self, task: Task, round_: int, place: int, *, timed: bool) -> Job:
        request = {
            "point": task.point.as_json(),
            "round": round_,
            "timed": timed,
            "policy": asdict(self._policy),
            "timeout_s": self._measure.timeout_s,
            "expected_s": self._budget.book.seen(task.point),
        }
        return Job(request, self._measure.timeout_s, (task, place))

    def _run(self, workers: Workers, jobs: Iterable[Job], round_: int) -> None:
        for _ in self._collect(workers, jobs, round_):
            pass

    def _collect(self, workers: Workers, jobs: Iterable[Job], round_: int) -> Iterator[Record]:
        for job, reply in workers.run(jobs):
            task, place = job.tag
            record = self._ledger.add(task, round_, place, reply)
            self._note(task, reply.fields)
            yield record

    def _recall(self, tasks: Sequence[Task], round_: int) -> None:
        """Learn the launch times of an earlier run in this folder."""
        for task in tasks:
            record = self._ledger.latest(task, round_)
            if record is not None:
                self._note(task, record.as_json())

    def _note(self, task: Task, fields: Mapping[str, Any]) -> None:
        about = fields.get("about", {})
        launch_s = about.get("first_launch_s", about.get("simulation_s"))
        if fields["status"] == "timeout":
            # At least as long as it was waited for: enough to leave larger boards alone.
            launch_s = self._measure.timeout_s
        if launch_s is not None:
            self._budget.book.observe(task.point, launch_s)


def _ascending(tasks: Sequence[Task]) -> list[Task]:
    """Small boards first: they find mistakes soonest and predict the large ones."""
    return sorted(tasks, key=lambda task: (task.point.n, work_of(task.point)))
