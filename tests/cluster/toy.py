"""Points for a cluster whose workers may lie: the toy workload, with wrong answers on demand."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace

from nqbench.facts import DeviceFacts
from nqbench.plan import KernelPlan, Plan
from nqbench.point import Level, Point
from tests.measure.toy import Toy

LIES, NAP = "TOY_LIES", "TOY_NAP"
WRONG_N, SLOW_N = 99, 11
DEVICE = f"fake:deterministic=1,wrong={WRONG_N}"
"""Answers wrongly where plans say that N is 99."""


class Liar(Toy):
    """Answers wrongly on a worker with the variable ``TOY_LIES``; with ``TOY_NAP``, N=11 takes so
    many seconds."""

    name = "tests.cluster.toy:LIAR"

    def plan(self, factors: Mapping[str, Level], system: str | None, device: DeviceFacts) -> Plan:
        plan = super().plan(factors, system, device)
        assert isinstance(plan, KernelPlan)
        if factors["n"] == SLOW_N:
            time.sleep(float(os.environ.get(NAP, 0)))
        lies = {"n": WRONG_N} if os.environ.get(LIES) else {}
        return replace(plan, about={**plan.about, **lies})


LIAR = Liar()


def points(count: int, n: int = SLOW_N, sweep: str = "sizes") -> list[Point]:
    """Points of one size that differ in their flavour."""
    return [
        Point("toy", sweep, Liar.name, None, {"n": n, "flavour": f"{i:02}"}, {"jobs": 1})
        for i in range(count)
    ]
