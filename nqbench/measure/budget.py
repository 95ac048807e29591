"""What fits the available time: a point's own budget, and the budget of the whole run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from nqbench.measure.forecast import WORKER_START_S, TimeBook, measurement_s
from nqbench.measure.run_state import Task

if TYPE_CHECKING:
    from nqbench.study.model import Measure


SLACK: Final = 3.0
"""A prediction from another size is good to this factor: only what exceeds it is skipped."""
MIN_ROUNDS: Final = 2
"""Fewer rounds give no interval; the longest points are skipped instead."""
COMPILE_SHARE: Final = 0.5
"""Largest share of the budget for compiling: kernels that are never launched are of no use."""
RESERVE: Final = 2.0
"""Time kept free for one round while points are still verified, over its predicted time: on a busy
machine a worker's start and a measurement vary by this much."""
END_SLACK_S: Final = 3.0
"""Time a run may take beyond ``--budget`` to end its workers and write their results. Workers are
killed at the end, so this does not depend on what they do."""


@dataclass
class Budget:
    """The time limits of one run.

    ``total_s`` is ``--budget``, which counts from ``started``; ``clock`` is monotonic seconds.
    ``worker_start_s`` is what a worker takes to open the device, as this run's first one did.
    """

    measure: Measure
    total_s: float | None = None
    clock: Callable[[], float] = time.monotonic
    book: TimeBook = field(default_factory=TimeBook)
    started: float | None = None
    worker_start_s: float = WORKER_START_S

    def __post_init__(self) -> None:
        started = self.clock() if self.started is None else self.started
        self.end = math.inf if self.total_s is None else started + self.total_s
        """When the whole run's budget ends, on the clock."""
        self.compile_end = self.end - (1 - COMPILE_SHARE) * (self.total_s or 0.0)
        """When compiling must end, to leave time to measure."""
        self.share_s = self.measure.budget_s / self.measure.rounds
        self._named = f"--budget {_text(self.total_s or 0)}"
        self._committed: dict[str, float] = {}

    def left_s(self) -> float:
        """Seconds left of the whole run's budget."""
        return max(0.0, self.end - self.clock())

    @property
    def try_end(self) -> float:
        """When a first launch must end, to leave time for one round of the points before it."""
        return self.end - self._reserved_s()

    def not_compiled(self) -> str:
        """Why a kernel that was not compiled in time is skipped."""
        return (
            f"half of {self._named} went into compiling other kernels; these are kept, so run"
            " again, or raise it"
        )

    def used_up(self, when: str = "before this point") -> str:
        """Why a measurement is not started, or not finished at the end."""
        return f"{self._named} was used up {when}; run again to resume, or raise it"

    def _reserved_s(self) -> float:
        """Seconds that one round of the points verified so far will take."""
        if not self._committed:
            return 0.0
        return RESERVE * (self.worker_start_s + sum(self._committed.values()))

    def commit(self, task: Task) -> None:
        """Keep time for one measurement of a point that was verified."""
        if not task.exact:
            self._committed[task.key] = self.cost_s(task)

    def too_long_to_try(self, task: Task) -> str:
        """Why a point should not be launched at all; empty if it may."""
        left_s = self.left_s() - self._reserved_s()
        if left_s <= 0:
            return self.used_up()
        predicted = self.book.predict(task.point)
        if predicted is None:
            return ""
        launch_s, from_n = predicted
        said = f"one launch is predicted to take {_text(launch_s)} (from N={from_n}),"
        own_s = self.measure.budget_s if task.exact else self.share_s
        limit_s = min(self.measure.timeout_s, math.inf if self._may_be_long(task) else own_s)
        if launch_s > SLACK * limit_s:
            return (
                f"{said} far over the {_text(limit_s)} that a launch may take here;"
                " raise measure.budget, or lower n"
            )
        if launch_s + (0.0 if task.exact else self._measurement_s(launch_s)) > left_s:
            return (
                f"{said} for which {self._named} leaves no time after the points before it; raise"
                " it"
            )
        return ""

    def too_long_to_time(self, task: Task) -> str:
        """Why a verified point cannot be timed in every round; empty if it can."""
        launch_s = self.book.seen(task.point)
        if launch_s is None or launch_s <= self.share_s or self._may_be_long(task):
            return ""
        rounds = self.measure.rounds
        return (
            f"one launch takes {_text(launch_s)}, so {rounds} rounds need"
            f" {_text(rounds * launch_s)}, over the point's budget of"
            f" {_text(self.measure.budget_s)}; raise measure.budget, or lower n"
        )

    def _may_be_long(self, task: Task) -> bool:
        """Whether the study asks for the point regardless of the time of a launch."""
        return task.point.sweep in self.measure.long

    def plan_rounds(self, tasks: Sequence[Task]) -> tuple[int, dict[str, str]]:
        """How many rounds fit, and why some points (by key) must be skipped.

        With too little time the number of rounds is reduced first, then the longest points are
        skipped; a single round is the last resort.
        """
        rounds = self.measure.rounds
        if self.total_s is None or not tasks:
            return rounds, {}
        left_s = self.left_s()
        costs = {task.key: self.cost_s(task) for task in tasks}
        round_s = self.worker_start_s + sum(costs.values())
        if round_s * rounds <= left_s:
            return rounds, {}
        for least in (min(MIN_ROUNDS, rounds), 1):
            dropped = self._drop_longest(costs, least)
            if len(dropped) < len(costs):
                break
        round_s = self.worker_start_s + sum(s for key, s in costs.items() if key not in dropped)
        return max(least, min(rounds, int(left_s / round_s))), dropped

    def _drop_longest(self, costs: Mapping[str, float], rounds: int) -> dict[str, str]:
        """The longest points, by key, to skip so that ``rounds`` rounds of the others fit."""
        round_s = self.worker_start_s + sum(costs.values())
        dropped: dict[str, str] = {}
        if rounds * self.worker_start_s >= self.left_s():  # no point is too long: there is no time
            return dict.fromkeys(costs, self.used_up())
        for key, cost_s in sorted(costs.items(), key=lambda item: item[1], reverse=True):
            if round_s * rounds <= self.left_s():
                break
            round_s -= cost_s
            dropped[key] = (
                f"{rounds} rounds of this point take about {_text(rounds * cost_s)}, which does"
                f" not fit {self._named} with the shorter points; raise it"
            )
        return dropped

    def cost_s(self, task: Task) -> float:
        """Expected seconds of one measurement of a verified point."""
        return self._measurement_s(self.book.seen(task.point) or 0.0)

    def _measurement_s(self, launch_s: float) -> float:
        overhead_s = self.book.overhead_s()
        return measurement_s(launch_s, self.share_s, self.measure.samples, overhead_s)

    def ends_before(self, task: Task) -> str:
        """Why a measurement cannot be started any more; empty if it can."""
        return self.used_up() if self.cost_s(task) > self.left_s() else ""


def _text(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
