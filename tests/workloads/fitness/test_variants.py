"""The evaluation kernels come apart: what is left in each part, counted by the simulator."""

from __future__ import annotations

import re
from typing import Any

import pytest

from nqbench.errors import InfeasibleError
from nqbench.plan import KernelPlan
from nqbench.workloads.base import VARIANTS, Variant
from nqbench.workloads.fitness import WORKLOAD
from tests.compiling import compile_ptx
from tests.workloads.running import SIM, counted

PAIRWISE = ("gpu_fine1", "gpu_fine2", "gpu_coarse")
N = 96


def part(system: str, part: Variant, /, n: int = N, **more: Any) -> KernelPlan:
    factors = WORKLOAD.resolve({"n": n, **more}, system, SIM.facts).factors
    return WORKLOAD.variant(WORKLOAD.plan(factors, system, SIM.facts), part)


CASES: list[tuple[str, dict[str, Any]]] = [
    *((f"fitness_schemes.{name}", {}) for name in PAIRWISE),
    ("fitness_schemes.gpu_coarse", {"atomics": "per_warp"}),
    ("fitness_schemes.gpu_coarse", {"atomics": "per_thread"}),
    ("fitness.histogram", {"counters": "shared"}),
    ("fitness.histogram", {"counters": "global", "tally": "arrival"}),
]


@pytest.mark.parametrize(("system", "more"), CASES)
def test_the_whole_still_counts(system: str, more: dict[str, Any]) -> None:
    factors = WORKLOAD.resolve({"n": N, **more}, system, SIM.facts).factors
    plan = part(system, "full", **more)
    with SIM.prepare(plan) as prepared:
        for _ in range(2):  # what a launch has counted must not add to the next
            prepared.launch()
            outputs = prepared.fetch()
            assert WORKLOAD.variant_answer(plan, outputs) == WORKLOAD.variant_expected(factors)


@pytest.mark.parametrize(("system", "more"), CASES)
def test_math_only_reads_nothing(system: str, more: dict[str, Any]) -> None:
    plan = part(system, "math_only", **more)
    compiled = compile_ptx(plan.source, plan.entry, "sm_90", plan.options)
    _, body = compiled.image.decode().split(f".entry {compiled.symbol}(")
    assert not re.search(r"\bld\.global", body.partition(".entry")[0])
    assert counted(plan)["global_requests"] == 0


@pytest.mark.parametrize("system", [f"fitness_schemes.{name}" for name in PAIRWISE])
def test_pairwise_parts_keep_what_they_should(system: str) -> None:
    full, math, memory = (counted(part(system, p)) for p in VARIANTS)
    loads = full["global_requests"] - full["global_atomics"]
    assert memory["global_requests"] - memory["global_atomics"] == loads > 0
    # The arithmetic is about a pair's subtraction, absolute value and comparison: what stands in
    # for loaded values, and what their addresses took, are of the same order.
    assert math["thread_instructions"] == pytest.approx(full["thread_instructions"], rel=0.25)


def test_coarse_without_arithmetic_is_shorter() -> None:
    full, memory = (counted(part("fitness_schemes.gpu_coarse", p)) for p in ("full", "memory_only"))
    assert memory["thread_instructions"] < full["thread_instructions"]


def test_histogram_keeps_its_atomics() -> None:
    full, math, memory = (
        counted(part("fitness.histogram", p, counters="shared")) for p in VARIANTS
    )
    assert math["shared_atomics"] == 0
    assert memory["shared_atomics"] == full["shared_atomics"] > 0
    assert memory["global_requests"] == full["global_requests"]


@pytest.mark.parametrize(
    ("system", "more", "said"),
    [
        ("fitness_schemes.cpu_serial", {}, "only a GPU scheme that evaluates"),
        ("fitness_schemes.sa_gpu", {}, "only a GPU scheme that evaluates"),
        ("fitness.histogram", {"counters": "global", "tally": "final"}, "tally=arrival"),
    ],
)
def test_what_is_not_taken_apart(system: str, more: dict[str, Any], said: str) -> None:
    with pytest.raises(InfeasibleError, match=said):
        part(system, "full", 16, **more)
