"""The smallest study, the device that runs it, a workload with variants for that device; studies of
given points, runs and their listener."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from benchmarks.in_process import in_process
from nqbench.devices.registry import facts_for
from nqbench.facts import DeviceFacts
from nqbench.measure.run_state import Listener, RunOutcome
from nqbench.measure.runner import run_study
from nqbench.plan import KernelPlan, Plan
from nqbench.point import FactorLevels, Point
from nqbench.study import Measure, Study, expand
from nqbench.system.yaml_marks import ParsedFile
from nqbench.workloads.ceilings import Ceilings

STUDY = """\
name: tiny
workload: counting
n: [6, 7, 8]
fixed: {memory: shared, depth: 2}
measure: {rounds: 1, budget: 1s}
"""
FAKE = "fake:noise=0.001,seed=3"
HOW = Measure(rounds=3, samples=5, budget_s=3.0)


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

    def plan(self, factors: FactorLevels, system: str | None, device: DeviceFacts) -> Plan:
        plan = super().plan(factors, system, device)
        assert isinstance(plan, KernelPlan)
        return replace(plan, about={**plan.about, "answer": self.expected(factors) or 0})


TOY: Final = Toy()


class ToyStudy(Study):
    """A study over given points, without a file."""

    points: list[Point]

    def __init__(
        self, points: Sequence[Point], measure: Measure = HOW, name: str = "toy", text: str = ""
    ) -> None:
        source = ParsedFile(Path(name), text or f"name: {name}\n", {}, {(): 1})
        super().__init__(name, "", "counting", None, (), measure, (), source)
        object.__setattr__(self, "points", list(points))


class Recorder(Listener):
    """A listener that keeps what it was told."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, int]] = []
        self.messages: list[str] = []
        self.records: list[Any] = []

    def stage(self, name: str, total: int) -> None:
        self.stages.append((name, total))

    def advanced(self, record: Any = None) -> None:
        self.records.append(record)

    def message(self, text: str) -> None:
        self.messages.append(text)
