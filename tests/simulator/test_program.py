"""Programs of several kernels in the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nqbench.devices.registry import SimDevice
from nqbench.errors import DeviceError, KernelFault, LaunchTimeout
from nqbench.multi_launch import ProgramContext
from nqbench.plan import Buffer, Kernel, KernelPlan, MultiLaunchPlan, Variable
from nqbench.simulator.models import TIME
from nqbench.vocabulary import COUNTERS, PROGRAM_COUNTERS, plain_name
from tests.simulator.harness import KERNELS, device, outputs

HERE = "tests.simulator.test_program"
SOURCE = KERNELS / "steps.cu"
N = 100


def kernel(entry: str, *arguments: Any, threads: int = N, **more: Any) -> Kernel:
    """A kernel of ``steps.cu`` in blocks of 32."""
    return Kernel(SOURCE, entry, arguments, (-(-threads // 32), 1, 1), (32, 1, 1), **more)


KERNELS_OF_STEPS = {
    "scale": kernel("scale", "x", "y", np.int32(N), Variable("a", "int32")),
    "add_up": kernel("total", "y", np.int32(N), "sum"),
}


def plan(
    program: str, *arguments: Any, kernels: dict[str, Kernel] | None = None, **more: Any
) -> MultiLaunchPlan:
    """x counts from 0, y is 1 everywhere; the program of this module drives the kernels."""
    buffers = (
        Buffer("x", "int32", N, np.arange(N)),
        Buffer("y", "int32", N, np.ones(N), restore=True, output=True),
        Buffer("sum", "int64", 1, per_run=True),
        Buffer("where", "int32", 8, zero=True, output=True),
    )
    return MultiLaunchPlan(
        kernels or KERNELS_OF_STEPS, buffers, program, f"{HERE}:{program}", arguments, **more
    )


def steps(context: ProgramContext, count: int) -> None:
    """y = 1 + (0 + 1 + ... + count - 1) x, then its sum."""
    context.allocate("sum")
    context.clear("sum")
    with context.phase("evaluation"):
        for a in range(count):
            context.launch("scale", a=a)
    context.launch("add_up")
    context.keep("total", context.download("sum"))
    context.free("sum")


def test_every_run_starts_anew_and_gives_the_same_counters() -> None:
    with device().prepare(plan("steps", 5)) as prepared:
        launches = [prepared.launch() for _ in range(2)]
        found, resources = prepared.fetch(), prepared.resources
    assert resources["warps_per_block"] == resources["warps_per_block@scale"] == 1
    assert resources["resident_blocks@add_up"] == 4
    assert found["y"].tolist() == (1 + 10 * np.arange(N)).tolist()
    assert int(found["total"][0]) == int((1 + 10 * np.arange(N)).sum())
    assert "sum" not in found  # freed by the program, which kept what it wanted
    assert launches[0].kernel_s is None
    assert launches[0].counters == launches[1].counters
    assert launches[0].detail == launches[1].detail


def test_counters_are_sums_over_launches_and_kernels() -> None:
    single = {}
    for count in (1, 4):
        with device().prepare(plan("steps", count)) as prepared:
            single[count] = dict(prepared.launch().counters or {})
    one, four = single[1], single[4]
    assert {plain_name(name)[0] for name in four} == {*COUNTERS, *PROGRAM_COUNTERS}
    assert four["launches"] == 5
    assert four["launches@scale"] == 4
    assert four["global_requests@scale"] == 4 * one["global_requests@scale"] == 4 * 4 * 3
    assert four["global_requests@add_up"] == one["global_requests@add_up"] == 4 * 2
    assert four["global_atomics"] == four["global_atomics@add_up"] == 4
    for name in ("warp_instructions", "thread_instructions", "global_bytes", "divergent_branches"):
        assert four[name] == four[f"{name}@scale"] + four[f"{name}@add_up"]
    assert four["lane_efficiency"] == pytest.approx(
        four["thread_instructions"] / (32 * four["warp_instructions"])
    )


def test_each_kernel_has_a_modelled_time_and_the_whole_is_their_sum() -> None:
    found = {}
    for count in (1, 4):
        with SimDevice("h100", modes=(TIME,)).prepare(plan("steps", count)) as prepared:
            found[count] = dict(prepared.launch().counters or {})
    buffers = (Buffer("y", "int32", N, np.ones(N)), Buffer("sum", "int64", 1, zero=True))
    arguments, grid = ("y", np.int32(N), "sum"), KERNELS_OF_STEPS["add_up"].grid
    alone = KernelPlan(SOURCE, "total", arguments, grid, (32, 1, 1), buffers=buffers)
    with SimDevice("h100", modes=(TIME,)).prepare(alone) as prepared:
        ms = (prepared.launch().counters or {})["modelled_ms"]
    assert found[1]["modelled_ms@add_up"] == found[4]["modelled_ms@add_up"] == ms > 0
    assert found[4]["modelled_ms@scale"] == pytest.approx(4 * found[1]["modelled_ms@scale"])
    whole = sum(found[4][f"modelled_ms@{name}"] for name in KERNELS_OF_STEPS)
    assert found[4]["modelled_ms"] == pytest.approx(whole)


def remembers(context: ProgramContext) -> None:
    for place, name in enumerate(("one", "two", "one", "two", "one")):
        context.launch(name, place=place)


def test_each_kernel_has_variables_of_its_own_that_last_for_a_run() -> None:
    kernels = {
        "one": kernel("remember", "where", Variable("place", "int32"), threads=1),
        "two": kernel("remember_too", "where", Variable("place", "int32"), threads=1),
    }
    with device().prepare(plan("remembers", kernels=kernels)) as prepared:
        for _ in range(2):
            prepared.launch()
            assert prepared.fetch()["where"].tolist() == [41, 8, 42, 9, 43, 0, 0, 0]


def moves(context: ProgramContext) -> None:
    context.upload("x", np.array([7, 8]))
    context.upload("where", np.arange(8)[::-1])
    first = context.download("x", 3)
    context.upload("x")
    context.synchronize()
    context.keep("first", first)
    context.keep("x", context.download("x"))


def test_uploads_and_downloads() -> None:
    found = outputs(plan("moves"))
    assert found["first"].tolist() == [7, 8, 2]
    assert found["x"].tolist() == list(range(N))
    assert found["where"].tolist() == list(range(8))[::-1]


def early(context: ProgramContext) -> None:
    context.launch("add_up")


def freed(context: ProgramContext) -> None:
    context.allocate("sum")
    context.free("sum")
    context.launch("add_up")


@pytest.mark.parametrize("program", ["early", "freed"])
def test_a_kernel_that_reaches_memory_not_allocated_is_at_fault(program: str) -> None:
    with (
        device().prepare(plan(program)) as prepared,
        pytest.raises(KernelFault, match=r"bytes of global memory at address .*buffer 'sum'"),
    ):
        prepared.launch()


MISTAKES: dict[str, tuple[tuple[Any, ...], str]] = {
    "no kernel": (("launch", "nothing"), "launches kernel 'nothing'; the plan has scale, add_up"),
    "no variable": (("launch", "scale"), "launched with no variables; its variables are a"),
    "another variable": (("launch", "scale", {"b": 1}), "launched with b; its variables are a"),
    "too large": (("launch", "scale", {"a": 2**31}), "a = 2147483648 does not fit its type int32"),
    "not whole": (("launch", "scale", {"a": 1.5}), "scale: a = 1.5 does not fit its type int32"),
    "no buffer": (("clear", "nothing"), "uses buffer 'nothing'; the plan has x, y, sum, where"),
    "too long": (("upload", "where", np.zeros(9)), "uploads 9 elements into buffer 'where' of 8"),
    "no data": (("upload", "where"), "uploads buffer 'where' without data, and the plan has none"),
    "too much": (("download", "where", 9), "downloads 9 elements of buffer 'where', which has 8"),
    "lasting": (("allocate", "x"), "allocates or frees buffer 'x', which is there all the time"),
    "twice": (("allocate", "sum", "sum"), "allocates buffer 'sum' twice"),
    "not there": (("download", "sum"), "uses buffer 'sum', which is not allocated at that time"),
    "never allocated": (("free", "sum"), "uses buffer 'sum', which is not allocated at that time"),
    "never freed": (("allocate", "sum"), "ends without freeing sum, which it allocated"),
}
"""What a program can do wrong on any device (a method of its context, and what it is given), and
what is then said."""


def errs(context: ProgramContext, mistake: str) -> None:
    method, *given = MISTAKES[mistake][0]
    variables = given.pop() if isinstance(given[-1], dict) else {}
    getattr(context, method)(*given, **variables)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_of_a_program_are_said(mistake: str) -> None:
    with (
        device().prepare(plan("errs", mistake)) as prepared,
        pytest.raises(DeviceError, match=MISTAKES[mistake][1]),
    ):
        prepared.launch()


def forever(context: ProgramContext) -> None:
    for _ in range(3):
        context.launch("endless")


def test_a_program_has_one_limit_for_all_its_launches() -> None:
    kernels = {"endless": kernel("endless", "where", threads=1)}
    endless = plan("forever", kernels=kernels)
    with (
        SimDevice(max_steps=1 << 14).prepare(endless) as prepared,
        pytest.raises(LaunchTimeout, match="loop iterations"),
    ):
        prepared.launch()
    with (
        SimDevice(max_steps=1 << 40).prepare(endless) as prepared,
        pytest.raises(LaunchTimeout, match=r"still running after 0\.2 s"),
    ):
        prepared.launch(timeout_s=0.2)


def test_what_cannot_be_simulated_is_refused() -> None:
    kernels = {"scale": kernel("scale", "x", "y", np.int32(N), np.int32(1), device_launch=True)}
    with pytest.raises(DeviceError, match=r"kernel scale .* dynamic parallelism is not simulated"):
        device().prepare(plan("steps", 1, kernels=kernels))
    for name in ("total", "allocate", "a@b"):
        with pytest.raises(DeviceError, match=f"calls a kernel '{name}'; take a plain word"):
            device().prepare(plan("steps", 1, kernels={name: KERNELS_OF_STEPS["scale"]}))
    with pytest.raises(DeviceError, match="cannot be loaded"):
        device().prepare(plan("no_such_function"))
    with (
        device().prepare(plan("steps", 1)) as prepared,
        pytest.raises(DeviceError, match="not run"),
    ):
        prepared.fetch()
