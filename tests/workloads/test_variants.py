"""The kernels of every workload come apart: what is left without arithmetic, or without memory."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pytest

from nqbench.errors import InfeasibleError
from nqbench.plan import KernelPlan
from nqbench.workloads import get
from nqbench.workloads.base import VARIANTS, Variant
from tests.compiling import compile_ptx
from tests.workloads.running import SIM, counted


class Case(NamedTuple):
    """A point with variants.

    ``apart``  how far instructions without memory may be from all: values that stand in for loaded
               ones, and what their addresses took, are of the same order
    ``rest``   the most that is left of the instructions without arithmetic; 0: not looked at
    """

    workload: str
    system: str | None
    levels: dict[str, Any]
    apart: float = 0.25
    rest: float = 0

    def part(self, part: Variant) -> KernelPlan:
        workload = get(self.workload)
        factors = workload.resolve(self.levels, self.system, SIM.facts).factors
        return workload.variant(workload.plan(factors, self.system, SIM.facts), part)


STEPS: dict[str, Any] = {"n": 4096, "steps": 64, "block_size": 96}
BOARD: dict[str, Any] = {"n": 96}
TOUR: dict[str, Any] = {"n": 122, "iterations": 1, "block_size": 64}
COARSE, HISTOGRAM = "fitness_schemes.gpu_coarse", "fitness.histogram"
# NVRTC 13.0 takes a tenth of the instructions for addresses of tiles, 13.5 a sixteenth.
TILED = Case("local_search", None, {**TOUR, "kernel": "tiled", "tile_x": 4, "tile_y": 60}, 0.12)
CASES = [
    Case("ceilings", None, {**STEPS, "operation": "copy", "steps": 0}),
    Case("ceilings", None, {**STEPS, "operation": "read"}, 0.02),
    *(
        Case("ceilings", None, {**STEPS, "operation": operation}, 0.02, 0.2)
        for operation in ("fma", "float_add", "int_add", "logic")
    ),
    Case("fitness", "fitness_schemes.gpu_fine1", BOARD),
    Case("fitness", "fitness_schemes.gpu_fine2", BOARD),
    *(
        Case("fitness", COARSE, {**BOARD, "atomics": f"per_{each}"}, rest=0.9)
        for each in ("conflict", "thread", "warp")
    ),
    *(Case("fitness", HISTOGRAM, {**BOARD, "counters": at}) for at in ("shared", "global")),
    *(
        Case("local_search", None, {**TOUR, "blocks": 4, "mapping": mapping}, 0.08, 0.7)
        for mapping in ("quadratic", "rearranged", "rectangle")
    ),
    TILED,
]
IDS = [" ".join([case.workload, *map(str, case.levels.values())]) for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_whole_has_the_answer(case: Case) -> None:
    workload, plan = get(case.workload), case.part("full")
    factors = workload.resolve(case.levels, case.system, SIM.facts).factors
    with SIM.prepare(plan) as prepared:
        for _ in range(2):  # what a launch has counted must not add to the next
            prepared.launch()
            answer = workload.variant_answer(plan, prepared.fetch())
            assert answer == workload.variant_expected(factors) is not None


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_each_part_keeps_what_it_should(case: Case) -> None:
    full, math, memory = (counted(case.part(part)) for part in VARIANTS)
    assert math["global_requests"] == math["shared_atomics"] == 0, "guarded, and never executed"
    assert math["thread_instructions"] == pytest.approx(full["thread_instructions"], rel=case.apart)
    # The whole search looks at the best move twice, and with it at others of its warp.
    twice = 0.005 if case is TILED else 0
    assert math["float_operations"] == pytest.approx(full["float_operations"], rel=twice)
    loads, left = (one["global_requests"] - one["global_atomics"] for one in (full, memory))
    if case is TILED:  # all but what one warp takes to look at it again, and to report it
        assert left < loads <= left + 2 + 6 * case.levels["tile_x"]
    else:
        assert left == loads > 0
        if case.workload != "fitness":
            assert memory["global_sectors"] == full["global_sectors"]
    for name in ("shared_requests", "shared_atomics"):
        assert memory[name] == full[name]
    assert memory["float_operations"] <= 0.5 * full["float_operations"]
    if case.rest:
        assert memory["thread_instructions"] < case.rest * full["thread_instructions"]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_without_memory_the_code_has_no_load(case: Case) -> None:
    plan = case.part("math_only")
    compiled = compile_ptx(plan.source, plan.entry, "sm_90", plan.options)
    _, body = compiled.image.decode().split(f".entry {compiled.symbol}(")
    assert not re.search(r"\bld\.global", body.partition(".entry")[0])


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (Case("fitness", "fitness_schemes.cpu_serial", {"n": 16}), "only a GPU scheme that eval"),
        (Case("fitness", "fitness_schemes.sa_gpu", {"n": 16}), "only a GPU scheme that evaluates"),
        (Case("local_search", "brodtkorb_part1.cpu_mapped", {"n": 16}), "on the CPU has no kernel"),
        (Case("local_search", "local_search.resident", {"n": 16}), "measure local_search.fused"),
    ],
)
def test_what_is_not_taken_apart(case: Case, said: str) -> None:
    with pytest.raises(InfeasibleError, match=said):
        case.part("full")
