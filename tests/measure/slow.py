"""A toy workload that takes for ever to make the plan of size 13, for limits of time."""

from __future__ import annotations

import time
from collections.abc import Mapping

from nqbench.facts import DeviceFacts
from nqbench.plan import Plan
from nqbench.point import Level, Point
from tests.measure.toy import Toy

NAME = "tests.measure.slow:SLOW"


class Slow(Toy):
    """As the toy workload, but for size 13."""

    name = NAME

    def plan(self, factors: Mapping[str, Level], system: str | None, device: DeviceFacts) -> Plan:
        if factors["n"] == 13:
            time.sleep(600)
        return super().plan(factors, system, device)


SLOW = Slow()


def slow_point(n: int) -> Point:
    """One point of the workload."""
    return Point("toy", "sizes", NAME, None, {"n": n}, {"jobs": 1})
