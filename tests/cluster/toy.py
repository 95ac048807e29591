"""Points for a cluster whose workers may lie: the toy workload, with wrong answers on demand."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from nqbench.facts import DeviceFacts
from nqbench.plan import KernelPlan, Plan
from nqbench.point import Level, Point
from nqbench.workloads import ExternalWorkload, register
from tests.measure.toy import ROOT, Toy

LIES = "TOY_LIES"
WRONG_N = 99
DEVICE = f"fake:deterministic=1,wrong={WRONG_N}"
"""Answers wrongly where plans say that N is 99."""


class Liar(Toy):
    """Answers wrongly on a worker with the variable ``TOY_LIES``."""

    name = "tests.cluster.toy:LIAR"

    def plan(self, factors: Mapping[str, Level], system: str | None, device: DeviceFacts) -> Plan:
        plan = super().plan(factors, system, device)
        assert isinstance(plan, KernelPlan)
        lies = {"n": WRONG_N} if os.environ.get(LIES) else {}
        return replace(plan, about={**plan.about, **lies})


LIAR = Liar()
register(ExternalWorkload("", ROOT, Liar.name))


def points(count: int, n: int = 11, sweep: str = "sizes") -> list[Point]:
    """Points of one size that differ in their flavour."""
    return [
        Point("toy", sweep, Liar.name, None, {"n": n, "flavour": f"{i:02}"}, {"jobs": 1})
        for i in range(count)
    ]
