"""The ceilings' kernels compute what they should, and come apart as they should."""

from __future__ import annotations

import re

import pytest

from nqbench.errors import InfeasibleError
from nqbench.plan import KernelPlan
from nqbench.point import Level
from nqbench.workloads.base import VARIANTS, Variant
from nqbench.workloads.ceilings import OPERATIONS, WORKLOAD
from tests.compiling import compile_ptx
from tests.workloads.running import SIM, counted

N = 4096


def plan_of(operation: str, steps: int, part: Variant = "full", n: int = N) -> KernelPlan:
    given: dict[str, Level] = {"n": n, "operation": operation, "steps": steps, "block_size": 96}
    factors = WORKLOAD.resolve(given, None, SIM.facts).factors
    return WORKLOAD.variant(WORKLOAD.plan(factors, None, SIM.facts), part)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("n", [4, 64, 1024])
def test_answers(operation: str, n: int) -> None:
    steps = 0 if operation == "copy" else 37
    plan = plan_of(operation, steps, n=n)
    factors: dict[str, Level] = {"n": n, "operation": operation, "steps": steps}
    with SIM.prepare(plan) as prepared:
        prepared.launch()
        outputs = prepared.fetch()
    assert WORKLOAD.answer(plan, outputs) == WORKLOAD.expected(factors)
    assert WORKLOAD.variant_answer(plan, outputs) == WORKLOAD.variant_expected(factors)


def test_every_step_matters() -> None:
    for operation in OPERATIONS[1:]:
        expected = [
            WORKLOAD.expected({"n": N, "operation": operation, "steps": k}) for k in (36, 37, 38)
        ]
        assert len(set(expected)) == 3, operation


@pytest.mark.parametrize("operation", OPERATIONS)
def test_math_only_has_no_global_access_left(operation: str) -> None:
    plan = plan_of(operation, 0 if operation == "copy" else 64, "math_only")
    text = compile_ptx(plan.source, plan.entry, "sm_90", plan.options).image.decode()
    assert not re.search(r"\bld\.global", text)
    counters = counted(plan)
    assert counters["global_requests"] == 0, "the guarded stores are never executed"


@pytest.mark.parametrize("operation", ["fma", "float_add", "int_add", "logic"])
def test_math_only_keeps_the_arithmetic(operation: str) -> None:
    """Within 2%: an address more or less, and the guard of the store."""
    full, math = (counted(plan_of(operation, 256, part)) for part in ("full", "math_only"))
    assert math["thread_instructions"] == pytest.approx(full["thread_instructions"], rel=0.02)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_memory_only_keeps_every_access(operation: str) -> None:
    steps = 0 if operation == "copy" else 64
    full, memory = (counted(plan_of(operation, steps, part)) for part in ("full", "memory_only"))
    for name in ("global_requests", "global_sectors", "global_bytes"):
        assert memory[name] == full[name] > 0
    if operation not in ("copy", "read"):
        assert memory["thread_instructions"] < full["thread_instructions"] / 5


def test_full_is_the_plan_itself() -> None:
    factors = WORKLOAD.resolve({"n": N}, "ceilings.fma", SIM.facts).factors
    plan = WORKLOAD.plan(factors, "ceilings.fma", SIM.facts)
    assert isinstance(plan, KernelPlan)
    entries = [WORKLOAD.variant(plan, part).entry for part in VARIANTS]
    assert entries[0] == plan.entry
    assert len(set(entries)) == 3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n": 6}, "not a multiple of 4"),
        ({"n": 12, "operation": "read"}, "not a power of two"),
        ({"n": 16, "operation": "read", "steps": 4097}, "over 4096"),
        ({"n": 16, "operation": "copy", "steps": 2}, "copy has none"),
    ],
)
def test_what_cannot_run(given: dict[str, Level], said: str) -> None:
    with pytest.raises(InfeasibleError, match=said):
        WORKLOAD.resolve(given, None, SIM.facts)
