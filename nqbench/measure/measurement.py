"""One measurement in a worker: the fields of a record, and where the time went."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from nqbench.device import Device, Launch, Prepared
from nqbench.plan import CommandPlan, CpuPlan, KernelPlan, MultiLaunchPlan, Outputs, Plan
from nqbench.point import FactorLevels
from nqbench.vocabulary import Status
from nqbench.workloads.base import Workload

PRINTED: Final = "printed"
"""In ``telemetry``: what a kernel's printf gave, its first ``MAX_PRINTED`` characters."""
MAX_PRINTED: Final = 2000
PROFILED: Final = "profiled"
"""In a request: a profiler is attached. In ``about``: the kernels it saw, in order."""


@dataclass
class Measurement:
    """The fields of a record that a worker fills in; ``device`` is empty where none was used.

    ``fatal``: the worker can launch nothing more and must be replaced.
    """

    device: str = ""
    status: Status = "ok"
    reason: str = ""
    answer: str | None = None
    expected: str | None = None
    value_s: float | None = None
    samples_s: tuple[float, ...] = ()
    phases: dict[str, float] = field(default_factory=dict)
    counters: dict[str, Any] = field(default_factory=dict)
    resources: dict[str, Any] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    telemetry: dict[str, Any] = field(default_factory=dict)
    spent_s: dict[str, float] = field(default_factory=dict)
    ended_by: str = ""
    started: str = ""
    wall_s: float = 0.0
    fatal: bool = False

    def fail(self, status: Status, reason: str) -> None:
        """End without a time: a failed measurement keeps no samples, which would be misleading."""
        self.status, self.reason = status, reason
        self.value_s, self.samples_s, self.phases, self.counters = None, (), {}, {}

    @contextmanager
    def spending(self, on: str) -> Iterator[None]:
        """Count the seconds of a ``with`` statement as spent on one of ``vocabulary.SPENT``."""
        started = time.perf_counter()
        try:
            yield
        finally:
            passed_s = time.perf_counter() - started
            self.spent_s[on] = self.spent_s.get(on, 0.0) + passed_s


def scalars(detail: Mapping[str, Any]) -> dict[str, Any]:
    """The short part of a launch's details; breakdowns per line are too long for a record."""
    kinds = (int, float, str, bool, np.generic)
    found = {k: v for k, v in detail.items() if isinstance(v, kinds)}
    if lines := detail.get(PRINTED):
        found[PRINTED] = "".join(lines)[:MAX_PRINTED]
    return found


def plain(value: Any) -> Any:
    """A value as JSON data: numpy scalars become numbers, tuples lists."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def outputs_of(
    workload: Workload, factors: FactorLevels, device: Device, timeout_s: float | None = None
) -> Outputs:
    """The outputs of one launch of a configuration, which are right for another one."""
    with device.prepare(workload.plan(factors, None, device.facts)) as prepared:
        prepared.launch(timeout_s)
        return prepared.fetch()


SUMS = ("kernel", "total", "other")
"""Phases that follow from the others; a sum over phases leaves them out."""


def whole_run(
    parts: Mapping[str, float],
    kernels: Collection[str],
    total_s: float,
    groups: Collection[str] = (),
) -> dict[str, float]:
    """The phases of a run that was timed as a whole, ``other`` (not below 0) and ``total`` added.

    ``parts`` are seconds of one run that was split into phases, the kernels' under their own names
    and together as ``kernel``; ``total_s`` is the sampled median. Waiting after every operation
    takes time too, so the parts of a short run may exceed its total. ``groups`` are sums as well
    (``ProgramContext.group``): the CPU work outside them is the same with and without waits, so it
    is taken from the run that was split, and the waits of that run count for none of the groups.
    """
    own = {name: s for name, s in parts.items() if name not in (*SUMS, *kernels, *groups)}
    inside_s = sum(own.values()) + sum(parts.get(name, 0.0) for name in kernels)
    grouped = {name: parts[name] for name in groups if name in parts}
    if together_s := sum(grouped.values()):
        outside_s = max(0.0, parts.get("total", together_s) - together_s)
        scale = max(0.0, total_s - outside_s) / together_s
        grouped = {name: seconds * scale for name, seconds in grouped.items()}
    other_s = max(0.0, total_s - inside_s)
    return {**parts, **grouped, "other": other_s, "total": total_s}


def phases_of(
    plan: Plan,
    prepared: Prepared,
    last: Launch,
    value_s: float,
    reduce_s: float = 0.0,
    timeout_s: float | None = None,
) -> dict[str, float]:
    """The phases of a measurement whose median sample is ``value_s`` (``Record.phases``).

    A kernel's are those around its launch (``split``: making its input on CPU and GPU;
    ``reduce_s``: fetching and combining the results). The time of a CPU function is that of the
    call alone; it may report phases itself. An external program with a time of its own has the wall
    time of its ``last`` run as its total. Several launches are run once more, split into phases;
    their ``split_s`` comes before the run and is not in its total. Raises what a launch raises.
    """
    match plan:
        case MultiLaunchPlan():
            parts = prepared.phases(timeout_s)
            before = {"split": plan.split_s} if plan.split_s else {}
            return {**before, **whole_run(parts, plan.kernels, value_s, plan.groups)}
        case CommandPlan():
            total_s = max(value_s, last.wall_s or value_s)
            return {"kernel": value_s, "other": total_s - value_s, "total": total_s}
        case CpuPlan():
            if reported := prepared.phases():
                # Runs differ in length: of a slow last run a phase could exceed the median's total.
                whole_s = reported.get("total", 0.0)
                scale = value_s / whole_s if whole_s > 0 else 1.0
                parts = {name: seconds * scale for name, seconds in reported.items()}
                return {"kernel": value_s, **whole_run(parts, (), value_s)}
            split_s = transfer_s = 0.0
        case KernelPlan():
            split_s = plan.split_s + (prepared.prepare_s or 0.0)
            transfer_s = prepared.transfer_s or 0.0
    return {
        "split": split_s,
        "transfer": transfer_s,
        "kernel": value_s,
        "reduce": reduce_s,
        "total": split_s + transfer_s + value_s + reduce_s,
    }
