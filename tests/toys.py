"""The smallest study, the device that runs it, a workload with variants for that device; runs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from benchmarks.in_process import in_process
from nqbench.devices.registry import facts_for
from nqbench.facts import DeviceFacts
from nqbench.measure.run_state import RunOutcome
from nqbench.measure.runner import run_study
from nqbench.plan import KernelPlan, Plan
from nqbench.point import Level
from nqbench.study import Study, expand
from nqbench.workloads.ceilings import Ceilings

STUDY = """\
name: tiny
workload: counting
n: [6, 7, 8]
fixed: {memory: shared, depth: 2}
measure: {rounds: 1, budget: 1s}
"""
FAKE = "fake:noise=0.001,seed=3"


def run_here(
    study: Study, spec: str, out: Path, *, isolate: bool = False, **more: Any
) -> RunOutcome:
    """Expand a study for a device and run it, in this process if nothing else is said.

    A study that has ``points`` of its own is not expanded.
    """
    own = more.pop("points", None) or getattr(study, "points", None)
    points = own or expand(study, facts_for(spec))
    with nullcontext() if isolate else in_process():
        return run_study(study, points, spec, out, **more)


class Toy(Ceilings):
    """The ceilings, with the answer in the plan: the test device computes nothing."""

    name = "tests.toys:TOY"

    def plan(self, factors: Mapping[str, Level], system: str | None, device: DeviceFacts) -> Plan:
        plan = super().plan(factors, system, device)
        assert isinstance(plan, KernelPlan)
        return replace(plan, about={**plan.about, "answer": self.expected(factors) or 0})


TOY: Final = Toy()
