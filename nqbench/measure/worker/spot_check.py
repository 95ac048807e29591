"""One of the timed launches, chosen at random, on other contents: what it leaves is checked too.

Outputs hold another fill, and buffers that the study fills from a seed what another seed gives. A
kernel that keeps the results of an earlier launch, or leaves elements to it, is wrong there.
"""

from __future__ import annotations

import random
from typing import Final

from nqbench.device import Prepared
from nqbench.measure.sampling import Timer
from nqbench.plan import KernelPlan, MultiLaunchPlan, Outputs, Plan, apart

ROUND: Final = 1
"""The round whose measurements have one; each is a fresh process, so that no launch can know."""


class SpotCheck:
    """The check of one launch among the first ``count``.

    ``plan`` is the one with the other contents, ``number`` says which launch it is, from 1;
    ``outputs`` are what it left, ``answer`` what it found on the test device.
    """

    def __init__(
        self, plan: KernelPlan | MultiLaunchPlan, other: Plan | None, prepared: Prepared, count: int
    ) -> None:
        assert other is None or not other.on_cpu
        self.plan = other or plan
        self.number = random.randint(1, count)
        self.outputs: Outputs | None = None
        self.answer: int | None = None
        self._prepared, self._launches = prepared, 0
        self._other, self._first = apart(plan, self.plan)

    def launch(self, timer: Timer) -> float:
        """Seconds of the next launch, which may be the one."""
        self._launches += 1
        chosen = self._launches == self.number and self._prepared.refill(self._other)
        launch_s = timer.kernel_s()
        if chosen:
            self._keep(timer)
        return launch_s

    def finish(self, timer: Timer) -> None:
        """Check one more launch, untimed, if the timed ones ended before it was its turn."""
        if self._launches < self.number and self._prepared.refill(self._other):
            self.number = self._launches + 1
            timer.launch()
            self._keep(timer)

    def _keep(self, timer: Timer) -> None:
        """Keep what the launch left; the next one finds contents and caches as those before did."""
        self.answer = self._prepared.known_answer()
        self.outputs = {} if self.answer is not None else self._prepared.fetch()
        self._prepared.refill(self._first, again=False)
        blocked = timer.blocked
        timer.launch()
        timer.blocked = blocked  # it is no sample
