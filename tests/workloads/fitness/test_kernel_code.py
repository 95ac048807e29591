"""The kernels as machine code: no spills, and the shared memory that was planned."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from nqbench.plan import Kernel, MultiLaunchPlan
from nqbench.point import Level
from nqbench.workloads.fitness import WORKLOAD
from nqbench.workloads.fitness.gpu import DYNAMIC
from tests.compiling import compile_cubin, compile_ptx
from tests.workloads.fitness.running import OWN
from tests.workloads.fitness.test_simulated import SCHEMES
from tests.workloads.running import GPU


def kernels() -> Iterator[tuple[str, Kernel]]:
    more: list[tuple[str, dict[str, Level]]] = [(f"{OWN}.histogram", {"n": 20_000})]
    for system, given in (*SCHEMES, *more):
        factors = WORKLOAD.resolve({"n": 100, **given}, system, GPU).factors
        plan = WORKLOAD.plan(factors, system, GPU)
        assert isinstance(plan, MultiLaunchPlan)
        for kernel in plan.kernels.values():
            yield kernel.entry, kernel


KERNELS = dict(kernels())


@pytest.mark.parametrize("entry", KERNELS)
def test_no_spills(entry: str) -> None:
    kernel = KERNELS[entry]
    compiled = compile_cubin(kernel.source, entry, "sm_90")
    _, _, log = compiled.log.partition(
        f"'{compiled.symbol}'"
    )  # the source's other kernels come too
    own = log.partition("Compiling entry function")[0]
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in own
    shared = re.search(r"(\d+) bytes smem", own)
    assert int(shared.group(1) if shared else 0) == kernel.static_shared_bytes


def test_the_kernel_that_launches_kernels_compiles() -> None:
    ptx = compile_ptx(DYNAMIC, "dynamic", "sm_90", ("--relocatable-device-code=true",))
    assert b"cudaCDP2LaunchDevice" in ptx.image  # a call of the device runtime
    assert ptx.image.count(b".entry") == 2  # parent and sub-kernel
