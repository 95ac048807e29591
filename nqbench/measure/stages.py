"""The stages of a run: leave out, compile, count or verify, rounds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from typing import Final

from nqbench.facts import DeviceFacts
from nqbench.measure.dispatch import Dispatch
from nqbench.measure.forecast import core_s
from nqbench.measure.rounds import Rounds
from nqbench.measure.run_state import Task
from nqbench.measure.worker.messages import CompileRequest
from nqbench.measure.worker.pool import Job, Workers

EXACT_ROUND: Final = 1
"""Round number of the only measurement of a point that is counted and not timed."""


class Stages:
    """Carries out the stages of one run."""

    def __init__(self, dispatch: Dispatch, seed: int) -> None:
        self._dispatch = dispatch
        self._state = dispatch.state
        self._budget = dispatch.budget
        self._rounds = Rounds(dispatch, seed)

    def leave_out_infeasible(self, tasks: Sequence[Task]) -> list[Task]:
        """Record the points that cannot run on this device; returns the others."""
        for task in tasks:
            if task.point.skip:
                self._state.skip(task, 0, task.point.skip)
        return [task for task in tasks if not task.point.skip]

    def compile(self, tasks: Sequence[Task], facts: DeviceFacts) -> list[Task]:
        """Fill the compiler's cache in parallel; returns the points whose kernel compiles."""
        kernels = [
            t
            for t in tasks
            if t.device != "cpu" and not t.point.program and not self._state.done(t, 0)
        ]
        if not kernels:
            return list(tasks)
        self._dispatch.listener.stage("compile", len(kernels))
        refused: set[str] = set()
        with closing(self._dispatch.workers.compilers()) as compilers:
            for job, reply in compilers.run(self._compile_jobs(kernels, facts, refused)):
                if reply.measurement.status == "ok":
                    self._dispatch.listener.advanced()
                    continue
                refused.add(job.tag.key)
                if reply.measurement.status == "skipped":
                    self._state.skip(job.tag, 0, reply.measurement.reason)
                else:
                    self._state.add(job.tag, 0, 0, reply)
        return [task for task in tasks if task.key not in refused]

    def count(self, tasks: Sequence[Task], processes: int) -> None:
        """The only measurement of each point that is counted and not timed."""
        self._dispatch.recall(tasks, EXACT_ROUND)
        pending = [t for t in _ascending(tasks) if not self._state.done(t, EXACT_ROUND)]
        if not pending:
            return
        self._dispatch.listener.stage("count", len(pending))
        processes = min(processes, len(pending))
        order = {task.key: place for place, task in enumerate(pending)}
        pending = _spread(pending, processes)
        with closing(self._dispatch.workers(processes)) as workers:
            self._dispatch.run(workers, self._tries(pending, EXACT_ROUND, order), EXACT_ROUND)

    def verify(self, tasks: Sequence[Task], workers: Workers | None) -> list[Task]:
        """One untimed launch of each point, going up in N; returns those to be timed."""
        self._dispatch.recall(tasks, 0)
        pending = [t for t in _ascending(tasks) if not self._state.done(t, 0)]
        if pending:
            self._dispatch.listener.stage("verify", len(pending))
            order = {task.key: place for place, task in enumerate(pending)}
            with (
                closing(self._dispatch.workers()) if workers is None else nullcontext(workers) as w
            ):
                self._dispatch.run(w, self._tries(pending, 0, order), 0)
        return self._leave_out_long([t for t in tasks if self._state.done(t, 0)])

    def rounds(self, tasks: Sequence[Task]) -> None:
        """Time every point once per round, each round in a fresh process and a fresh order."""
        self._rounds.run(tasks)

    def _compile_jobs(
        self, tasks: Sequence[Task], facts: DeviceFacts, refused: set[str]
    ) -> Iterator[Job]:
        budget = self._budget
        for task in tasks:
            if not budget.may_compile():
                refused.add(task.key)
                self._state.skip(task, 0, budget.not_compiled())
                continue
            request = CompileRequest(task.point, facts)
            limit_s = self._dispatch.measure.timeout_s
            yield Job(request, limit_s, task, budget.compile_end, budget.not_compiled())

    def _leave_out_long(self, tasks: Sequence[Task]) -> list[Task]:
        kept: list[Task] = []
        for task in tasks:
            reason = self._budget.too_long_to_time(task)
            if reason:
                self._state.skip(task, 1, reason)
            else:
                kept.append(task)
        return kept

    def _tries(self, tasks: Sequence[Task], round_: int, order: Mapping[str, int]) -> Iterator[Job]:
        """First launches; a point that would take too long is skipped when its turn comes.

        ``order`` has the places by key: they do not depend on how many processes share the tasks.
        """
        for task in tasks:
            reason = self._budget.too_long_to_try(task)
            if reason:
                self._state.skip(task, round_, reason)
            else:
                yield self._dispatch.job(task, round_, order[task.key], timed=False)


def _ascending(tasks: Sequence[Task]) -> list[Task]:
    """Small boards first: they find mistakes sooner and predict the large ones."""
    return sorted(tasks, key=lambda task: (task.point.n, core_s(task.point)))


def _spread(tasks: Sequence[Task], workers: int) -> list[Task]:
    """Keep two workers from taking neighbours at the same time, board size by board size.

    Neighbours often share a kernel, which is then compiled for the second of them.
    """
    ordered: list[Task] = []
    for _, group in itertools.groupby(tasks, key=lambda task: task.point.n):
        board = list(group)
        size = -(-len(board) // workers)
        stretches = [board[i : i + size] for i in range(0, len(board), size)]
        rows = itertools.zip_longest(*stretches)
        ordered += [task for row in rows for task in row if task is not None]
    return ordered
