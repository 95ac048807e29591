"""What the compiler makes of the kernels: memory as planned, and no other."""

from __future__ import annotations

import re

import pytest

from nqbench.plan import KernelPlan
from nqbench.point import Level
from nqbench.workloads.counting import WORKLOAD
from nqbench.workloads.counting.systems import SYSTEMS, is_cpu
from tests.compiling import compile_ptx
from tests.workloads.counting.combinations import pairwise_cover
from tests.workloads.running import GPU, SIM

_SHARED = re.compile(r"^\s*\.shared \.align (\d+) \.([a-z]\d+) [^\[;\n]+(?:\[(\d+)\])?;", re.M)
_SIZES = {"b8": 1, "u8": 1, "b32": 4, "u32": 4, "b64": 8, "u64": 8}
_GENERIC = re.compile(r"\b(?:ld|st|atom)(?:\.volatile)?(?:\.v\d)?\.[bus]\d+\s")
_COVER = pairwise_cover(8, GPU)


def ptx_of(given: dict[str, Level], system: str | None) -> tuple[str, KernelPlan]:
    plan = WORKLOAD.plan(given, system, GPU)
    assert isinstance(plan, KernelPlan)
    compiled = compile_ptx(plan.source, plan.entry, SIM.facts.arch, plan.options)
    assert not compiled.log, compiled.log
    return compiled.image.decode(), plan


def declared_shared_bytes(ptx: str) -> int:
    total = 0
    for align, kind, length in _SHARED.findall(ptx):
        total = -(-total // int(align)) * int(align) + _SIZES[kind] * int(length or 1)
    return total


@pytest.mark.parametrize(
    ("system", "given"),
    [
        *((s, {"n": 15}) for s in SYSTEMS if not is_cpu(s) and s != "middle"),  # several kernels
        *((None, given) for given in _COVER),
    ],
)
def test_kernels_use_the_memory_they_name(system: str | None, given: dict[str, Level]) -> None:
    ptx, plan = ptx_of(given, system)
    memory = WORKLOAD.resolve(given, system, GPU).factors["memory"]
    assert declared_shared_bytes(ptx) == plan.static_shared_bytes
    assert (".extern .shared" in ptx) == (plan.shared_bytes > 0)
    assert ("__local_depot" in ptx) == (memory in ("local", "shared_stack"))
    assert not _GENERIC.search(ptx), "an access whose address space the compiler did not see"
