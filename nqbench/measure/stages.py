"""The stages of a run: leave out, compile, count or verify, rounds.

Every stage gives out jobs to workers and stores the replies. A round visits every point once, in a
fresh process and a fresh random order.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from nqbench.facts import DeviceFacts
from nqbench.measure.budget import Budget, core_s
from nqbench.measure.measurement import Measurement
from nqbench.measure.run_state import Listener, RunState, Task
from nqbench.measure.sampling import Policy
from nqbench.measure.worker.messages import MeasureRequest, PrecompileRequest
from nqbench.measure.worker.pool import Job, Workers
from nqbench.record import Record
from nqbench.vocabulary import MEASURED

if TYPE_CHECKING:
    from nqbench.study.model import Measure

EXACT_ROUND: Final = 1
"""Round number of the only measurement of a point that is counted and not timed."""
MAX_CRASHES: Final = 2
"""A worker's death may come from outside; a point in flight at two of them is given up."""
MAX_REPEATS: Final = 1
"""A throttled measurement is repeated at the end of its round, after other measurements; if it is
throttled again, a third would be too."""


class WorkerFactory(Protocol):
    """Makes workers."""

    def __call__(self, size: int = 1) -> Workers:
        """Fresh workers with the run's device open."""

    def compilers(self) -> Workers:
        """Workers that compile."""


@dataclass
class Stages:
    """Carries out the stages on one device; everything goes into the run's state.

    ``seed`` is that of the random orders of the rounds.
    """

    measure: Measure
    policy: Policy
    state: RunState
    budget: Budget
    listener: Listener
    workers: WorkerFactory
    seed: int = 0

    def __post_init__(self) -> None:
        self._trouble: Counter[str] = Counter()
        """Crashes by key; ``MAX_CRASHES`` of a point that is given up."""

    def compile(self, tasks: Sequence[Task], facts: DeviceFacts) -> list[Task]:
        """Fill the compiler's cache in parallel; returns the points whose kernel compiles."""
        own = (t for t in tasks if t.device != "cpu" and not t.point.program)
        kernels = [t for t in own if not self.state.done(t, 0)]
        if not kernels:
            return list(tasks)
        self.listener.stage("compiling kernels", len(kernels))
        refused: set[str] = set()
        with closing(self.workers.compilers()) as compilers:
            for job, reply in compilers.run(self._compile_jobs(kernels, facts, refused)):
                if reply.measurement.status == "ok":
                    self.listener.advanced()
                    continue
                refused.add(job.tag.key)
                if reply.measurement.status == "skipped":
                    self.state.skip(job.tag, 0, reply.measurement.reason)
                else:
                    self.state.add(job.tag, 0, 0, reply)
        return [task for task in tasks if task.key not in refused]

    def count(self, tasks: Sequence[Task], processes: int, where: str) -> None:
        """The only measurement of each point that is counted and not timed; ``where`` it is."""
        self._try(f"counting variants {where}", tasks, EXACT_ROUND, None, processes)

    def verify(self, tasks: Sequence[Task], workers: Workers | None) -> list[Task]:
        """One untimed launch of each point, going up in N; returns those to be timed."""
        self._try("checking answers", tasks, 0, workers)
        kept: list[Task] = []
        for task in tasks:
            if not self.state.done(task, 0):
                continue
            if reason := self.budget.too_long_to_time(task):
                self.state.skip(task, 1, reason)
            else:
                kept.append(task)
        return kept

    def rounds(self, tasks: Sequence[Task]) -> None:
        """Time every point once per round: all rounds, or as many as the budget has time for."""
        if not tasks:
            return
        every = range(1, self.measure.rounds + 1)
        untimed = [t for t in tasks if not all(self.state.done(t, r) for r in every)]
        planned, dropped = self.budget.plan_rounds(untimed)
        for task in tasks:
            if task.key in dropped:
                self.state.skip(task, 1, dropped[task.key])
        kept = [task for task in tasks if task.key not in dropped]
        longest_s = 0.0
        for round_ in every:
            left_s = self.budget.left_s()
            # Predictions tend to be too long, so further rounds start while they still fit.
            if round_ > planned and longest_s >= left_s:
                of = f"{round_ - 1} of {self.measure.rounds} rounds"
                self.listener.message(f"--budget left time for {of}")
                return
            if self._round(kept, round_, max(planned, round_)):
                longest_s = max(longest_s, left_s - self.budget.left_s())

    def _round(self, tasks: Sequence[Task], round_: int, planned: int) -> bool:
        """One round of those ``planned``; returns whether anything was left to do."""
        order = list(tasks)  # random, but the same when the run is resumed
        random.Random(f"{self.seed}:{round_}").shuffle(order)
        pending = [
            (place, task)
            for place, task in enumerate(order)
            if not self.state.done(task, round_) and self._trouble[task.key] < MAX_CRASHES
        ]
        if not pending:
            return False
        self.listener.stage(f"timing, round {round_} of {self.measure.rounds}", len(pending))
        self.listener.ahead((planned - round_) * len(tasks))
        repeats: Counter[str] = Counter()
        with closing(self.workers()) as workers:
            # It grows while the jobs are given out: throttled measurements join its end.
            jobs = self._jobs(pending, round_, timed=True)
            for task, record in self._collect(workers, jobs, round_):
                if record.status == "throttled":
                    if repeats[task.key] < MAX_REPEATS:
                        repeats[task.key] += 1
                        pending.append((len(pending), task))
                elif record.status == "crashed":
                    self._trouble[task.key] += 1
                elif not record.measured and record.status != "skipped":
                    self._trouble[task.key] = MAX_CRASHES
        return True

    def _jobs(
        self, pending: Iterable[tuple[int, Task]], round_: int, *, timed: bool
    ) -> Iterator[Job]:
        """Measurements of points by their places; one that has no time left is skipped when its
        turn comes."""
        budget, limit_s = self.budget, self.measure.timeout_s
        late = budget.used_up("while this point was measured")
        for place, task in pending:
            if timed:
                reason = budget.used_up() if budget.cost_s(task) > budget.left_s() else ""
            else:
                reason = budget.too_long_to_try(task)
            if not reason:
                self.listener.started(task.point, timed=timed)
                known_s = budget.book.seen(task.point)
                request = MeasureRequest(task.point, round_, timed, self.policy, limit_s, known_s)
                # A first launch leaves time for one round of the points before it.
                end = budget.end - (0.0 if timed else budget.reserved_s())
                yield Job(request, limit_s, (task, place), end, late)
            elif not timed or (self.state.latest(task, round_) is None and round_ == 1):
                self.state.skip(task, round_, reason)
            else:
                self.listener.advanced()  # it was timed before and only has fewer measurements

    def _compile_jobs(
        self, tasks: Sequence[Task], facts: DeviceFacts, refused: set[str]
    ) -> Iterator[Job]:
        end, late = self.budget.compile_end, self.budget.not_compiled()
        for task in tasks:
            if self.budget.clock() < end:
                request = PrecompileRequest(task.point, facts)
                yield Job(request, self.measure.timeout_s, task, end, late)
            else:
                refused.add(task.key)
                self.state.skip(task, 0, late)

    def _try(
        self, stage: str, tasks: Sequence[Task], round_: int, opened: Workers | None, most: int = 1
    ) -> None:
        """Launch each unfinished point once, small boards first; learn how long launches take."""
        for task in tasks:
            if (record := self.state.latest(task, round_)) is not None:
                self._note(task, record)  # of an earlier run in this folder
        ascending = sorted(tasks, key=lambda task: (task.point.n, core_s(task.point)))
        pending = [task for task in ascending if not self.state.done(task, round_)]
        if not pending:
            return
        self.listener.stage(stage, len(pending))
        processes = min(most, len(pending))
        # Places do not depend on how many processes share the tasks.
        # Neighbours often share a kernel, which is then compiled for the second of them: no two
        # processes take neighbours at the same time, board size by board size.
        spread: list[tuple[int, Task]] = []
        for _, group in itertools.groupby(enumerate(pending), key=lambda placed: placed[1].point.n):
            board = list(group)
            size = -(-len(board) // processes)
            for first in range(size):
                spread += board[first::size]
        jobs = self._jobs(spread, round_, timed=False)
        with closing(self.workers(processes)) if opened is None else nullcontext(opened) as workers:
            for _ in self._collect(workers, jobs, round_):
                pass

    def _collect(
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

    def _note(self, task: Task, found: Measurement | Record) -> None:
        launch_s = found.about.get("first_launch_s", found.about.get("simulation_s"))
        wall_s: float | None = found.wall_s
        if found.status == "timeout":
            # At least the time limit: enough to skip larger boards.
            launch_s, wall_s = self.measure.timeout_s, None
        if launch_s is not None:
            self.budget.book.observe(task.point, launch_s, wall_s)
            if found.status in MEASURED:
                self.budget.commit(task)
