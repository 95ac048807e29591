"""Where the time of a measurement's median sample went, by phase (``Record.phases``)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from nqbench.device import Prepared
from nqbench.measure.sampling.measurement import Measurement
from nqbench.plan import CommandPlan, CpuPlan, MultiLaunchPlan, Plan

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
    (``ProgramContext.group``).
    """
    own = {name: s for name, s in parts.items() if name not in (*SUMS, *kernels, *groups)}
    inside_s = sum(own.values()) + sum(parts.get(name, 0.0) for name in kernels)
    other_s = max(0.0, total_s - inside_s)
    return {**dict(parts), **_grouped(parts, groups, total_s), "other": other_s, "total": total_s}


def _grouped(
    parts: Mapping[str, float], groups: Collection[str], total_s: float
) -> dict[str, float]:
    """The time of the groups in a run of ``total_s``: all but the CPU work outside them.

    That work is the same with and without waits, so it is taken from the run that was split, and
    the waits of that run count for none of the groups.
    """
    found = {name: parts[name] for name in groups if name in parts}
    together_s = sum(found.values())
    if not together_s:
        return found
    outside_s = max(0.0, parts.get("total", together_s) - together_s)
    scale = max(0.0, total_s - outside_s) / together_s
    return {name: seconds * scale for name, seconds in found.items()}


def phases_of(
    plan: Plan, prepared: Prepared, found: Measurement, reduce_s: float, timeout_s: float | None
) -> dict[str, float]:
    """The phases of a measurement with a time.

    A kernel's are those around its launch (``split``: making its input on CPU and GPU;
    ``reduce_s``: fetching and adding up the results). The
    time of a CPU function is that of the call alone; it may report phases itself. An external
    program with a time of its own has the wall time of its last run as its total. A program is run
    once more, split into phases; its ``split_s`` comes before the run and is not in its total.
    Raises what a launch raises.
    """
    value_s = found.value_s
    assert value_s is not None
    if isinstance(plan, MultiLaunchPlan):
        parts = prepared.phases(timeout_s)
        before = {"split": plan.split_s} if plan.split_s else {}
        return {**before, **whole_run(parts, plan.kernels, value_s, plan.groups)}
    if isinstance(plan, CommandPlan):
        total_s = max(value_s, prepared.phases()["total"]) if plan.program.time else value_s
        return {"kernel": value_s, "other": total_s - value_s, "total": total_s}
    if isinstance(plan, CpuPlan):
        reported = prepared.phases()
        if reported:
            return {"kernel": value_s, **whole_run(_scaled(reported, value_s), (), value_s)}
        return {"split": 0.0, "transfer": 0.0, "kernel": value_s, "reduce": 0.0, "total": value_s}
    split_s = plan.split_s + (prepared.prepare_s or 0.0)
    transfer_s = prepared.transfer_s or 0.0
    return {
        "split": split_s,
        "transfer": transfer_s,
        "kernel": value_s,
        "reduce": reduce_s,
        "total": split_s + transfer_s + value_s + reduce_s,
    }


def _scaled(reported: Mapping[str, float], value_s: float) -> dict[str, float]:
    """The phases of the last run as parts of the median one, if its total is reported.

    Runs differ in length; without this a phase of a slow last run could exceed the total.
    """
    whole_s = reported.get("total", 0.0)
    scale = value_s / whole_s if whole_s > 0 else 1.0
    return {name: seconds * scale for name, seconds in reported.items()}
