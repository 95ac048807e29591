"""Rounds: every point once, in a fresh process and a fresh random order, as often as asked for."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Final

from nqbench.measure.dispatch import Dispatch
from nqbench.measure.run_state import Task
from nqbench.measure.worker.pool import Job

MAX_CRASHES: Final = 2
"""A worker's death may come from outside; a point in flight at two of them is given up."""
MAX_REPEATS: Final = 1
"""A throttled measurement is repeated at the end of its round, after other measurements; if it is
throttled again, a third would be too."""


class Rounds:
    """Times points round by round."""

    def __init__(self, dispatch: Dispatch, seed: int) -> None:
        self._dispatch = dispatch
        self._seed = seed
        self._trouble: Counter[str] = Counter()

    def run(self, tasks: Sequence[Task]) -> None:
        """All rounds, or as many as the budget has time for."""
        if not tasks:
            return
        budget, listener = self._dispatch.budget, self._dispatch.listener
        total = self._dispatch.measure.rounds
        planned, dropped = budget.plan_rounds(self._untimed(tasks))
        for task in tasks:
            if task.key in dropped:
                self._dispatch.state.skip(task, 1, dropped[task.key])
        kept = [task for task in tasks if task.key not in dropped]
        longest_s = 0.0
        for round_ in range(1, total + 1):
            left_s = budget.left_s()
            # Predictions tend to be too long, so further rounds start while they still fit.
            if round_ > planned and longest_s >= left_s:
                listener.message(f"--budget left time for {round_ - 1} of {total} rounds")
                return
            if self._round(kept, round_, max(planned, round_)):
                longest_s = max(longest_s, left_s - budget.left_s())

    def order(self, tasks: Sequence[Task], round_: int) -> list[Task]:
        """The visiting order of a round: random, but the same when the run is resumed."""
        shuffled = list(tasks)
        random.Random(f"{self._seed}:{round_}").shuffle(shuffled)
        return shuffled

    def _round(self, tasks: Sequence[Task], round_: int, planned: int) -> bool:
        """One round of those ``planned``; returns whether anything was left to do."""
        pending = [
            (place, task)
            for place, task in enumerate(self.order(tasks, round_))
            if not self._dispatch.state.done(task, round_) and self._trouble[task.key] < MAX_CRASHES
        ]
        if not pending:
            return False
        total = self._dispatch.measure.rounds
        self._dispatch.listener.stage(f"round {round_} of {total}", len(pending))
        self._dispatch.listener.ahead((planned - round_) * len(tasks))
        repeats: Counter[str] = Counter()
        with closing(self._dispatch.workers()) as workers:
            # It grows while the jobs are given out: throttled measurements join its end.
            jobs = self._jobs(pending, round_)
            for task, record in self._dispatch.collect(workers, jobs, round_):
                if record.status == "throttled":
                    if repeats[task.key] < MAX_REPEATS:
                        repeats[task.key] += 1
                        pending.append((len(pending), task))
                elif record.status == "crashed":
                    self._trouble[task.key] += 1
                elif record.status not in ("ok", "skipped"):
                    self._trouble[task.key] = MAX_CRASHES
        return True

    def _jobs(self, pending: Sequence[tuple[int, Task]], round_: int) -> Iterator[Job]:
        state, listener = self._dispatch.state, self._dispatch.listener
        for place, task in pending:
            reason = self._dispatch.budget.ends_before(task)
            if not reason:
                yield self._dispatch.job(task, round_, place, timed=True)
            elif state.latest(task, round_) is None and round_ == 1:
                state.skip(task, round_, reason)
            else:
                listener.advanced()  # it was timed before and only has fewer measurements

    def _untimed(self, tasks: Sequence[Task]) -> list[Task]:
        """Points that still lack a measurement of some round."""
        every = range(1, self._dispatch.measure.rounds + 1)
        return [t for t in tasks if not all(self._dispatch.state.done(t, r) for r in every)]
