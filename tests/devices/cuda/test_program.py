"""Programs on the CUDA device over a pretended PyCUDA: the plan that the simulator's tests run."""

from __future__ import annotations

import dataclasses
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from nqbench.compiler.bindings import linker_version
from nqbench.devices.cuda import driver as cuda_driver
from nqbench.devices.cuda.device import CudaDevice
from nqbench.devices.cuda.program import PINNED_BYTES, CudaProgram
from nqbench.errors import DeviceError, InfeasibleError, LaunchError, LaunchTimeout
from nqbench.multi_launch import ProgramContext
from nqbench.plan import Buffer, Kernel, KernelPlan, MultiLaunchPlan
from nqbench.system.versions import PACKAGE
from tests.devices.cuda.fake_pycuda import FakeDriver, LogicError, OutOfMemory
from tests.devices.cuda.test_device import ILLEGAL, gpu
from tests.simulator.harness import device as simulator
from tests.simulator.test_program import KERNELS_OF_STEPS, MISTAKES, N, kernel
from tests.simulator.test_program import plan as simulated_plan

__all__ = ["gpu"]  # a fixture

HERE = "tests.devices.cuda.test_program"
ADDING = [*KERNELS_OF_STEPS][1]
"""The plan's name of the kernel that adds up; the other one is called ``scale``."""


def plan(program: str, *arguments: Any, **more: Any) -> MultiLaunchPlan:
    """The simulator's plan with a program of this module."""
    made = simulated_plan("steps", *arguments, **more)
    return dataclasses.replace(made, name=program, function=f"{HERE}:{program}")


def words(memory: dict[int, bytearray], address: int, dtype: str = "int32") -> Any:
    return np.frombuffer(memory[address], dtype)


@pytest.fixture
def steps(gpu: FakeDriver) -> FakeDriver:
    """A GPU that knows what the kernels of ``steps.cu`` do."""

    def scale(memory: dict[int, bytearray], x: int, y: int, n: int, a: int) -> None:
        words(memory, y)[:n] += a * words(memory, x)[:n]

    def total(memory: dict[int, bytearray], y: int, n: int, result: int) -> None:
        words(memory, result, "int64")[0] += words(memory, y)[:n].sum()

    gpu.kernels = {"scale": scale, "total": total}
    return gpu


class Clock:
    """A clock that moves by a tick when it is read, and by what programs sleep."""

    now = tick = 0.0

    def __call__(self) -> float:
        self.now += self.tick
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


CLOCK = Clock()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the host, at 0 and standing."""
    CLOCK.now = CLOCK.tick = 0.0
    monkeypatch.setattr(time, "perf_counter", CLOCK)
    return CLOCK


def prepared(made: MultiLaunchPlan) -> CudaProgram:
    found = CudaDevice(0).prepare(made)
    assert isinstance(found, CudaProgram)
    return found


def test_it_computes_what_the_simulator_computes(steps: FakeDriver) -> None:
    made = simulated_plan("steps", 5)
    with simulator().prepare(made) as elsewhere:
        elsewhere.launch()
        expected = elsewhere.fetch()
    with prepared(made) as here:
        for _ in range(3):  # y is restored, sum is the run's own
            launch = here.launch(timeout_s=60)
            found = here.fetch()
            assert found.keys() == expected.keys()
            assert all(found[name].tolist() == expected[name].tolist() for name in found)
        assert launch.kernel_s
        assert launch.counters is None
    assert steps.memory == {}


def test_order_of_a_run(steps: FakeDriver) -> None:
    with prepared(simulated_plan("steps", 2)) as program:
        steps.calls.clear()
        program.launch()
        assert steps.names() == [
            "memcpy_dtod", "memset_d8", "synchronize",  # renewed before the clock starts
            "mem_alloc", "memset_d8", "queue", "queue", "queue",
            "memcpy_dtoh_async", "record", "event_synchronize", "free",
            "record", "event_synchronize",
        ]  # fmt: skip
        queued = [call for call in steps.calls if call[0] == "queue"]
        assert [call[1] for call in queued] == ["_Z5scalePKiPiii"] * 2 + ["_Z5totalPKiiPx"]
        assert queued[0][2:] == ((4, 1, 1), (32, 1, 1), 0)


def test_the_time_is_of_the_whole_run_and_of_nothing_else(
    steps: FakeDriver, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with prepared(plan("sleeps")) as program:
        monkeypatch.setattr(program.memory, "renew", lambda: clock.sleep(0.05))
        assert program.launch().kernel_s == pytest.approx(0.01)
    assert clock.now == pytest.approx(0.06)


def sleeps(context: ProgramContext) -> None:
    context.launch("scale", a=1)
    CLOCK.sleep(0.01)


def test_small_downloads_go_through_page_locked_memory(steps: FakeDriver) -> None:
    long = PINNED_BYTES // 4 + 1
    made = plan("downloads", long)
    made = dataclasses.replace(
        made, buffers=(*made.buffers, Buffer("long", "int32", long, np.arange(long)))
    )
    with prepared(made) as program:
        steps.calls.clear()
        program.launch()
        found = program.fetch()
        assert steps.names().count("memcpy_dtoh_async") == 2
        assert found["first"].tolist() == [0, 1, 2]
        assert found["again"].tolist() == [7, 1, 2]  # another array: the first one is not reused
        assert found["all"].tolist() == list(range(long))
        assert found["none"].shape == (0,)


def downloads(context: ProgramContext, long: int) -> None:
    first = context.download("x", 3)
    context.upload("x", np.array([7]))
    context.keep("again", context.download("x", 3))
    context.keep("first", first)
    context.keep("all", context.download("long", long))
    context.keep("none", context.download("x", 0))


def test_phases_add_up_and_are_named_by_what_happened(steps: FakeDriver, clock: Clock) -> None:
    with prepared(simulated_plan("steps", 4)) as program:
        program.launch()
        clock.tick = 1e-3
        started = clock()
        phases = program.phases(timeout_s=60)
        wall_s = clock() - started
        assert int(program.fetch()["total"][0]) == int((1 + 6 * np.arange(N)).sum())
    # Four launches of one kernel and one of the other, 2.5 ms each by the pretended events.
    assert phases["scale"] == pytest.approx(4 * 2.5e-3)
    assert phases[ADDING] == pytest.approx(2.5e-3)
    assert phases["kernel"] == pytest.approx(phases["scale"] + phases[ADDING])
    assert phases.keys() == {
        *("allocate", "transfer", "evaluation", "scale", ADDING, "kernel", "reduce", "free"),
        "total",
    }
    events = ("scale", ADDING, "kernel", "total")
    assert 0 < sum(s for name, s in phases.items() if name not in events) <= phases["total"]
    assert phases["total"] < wall_s
    assert steps.names().count("block") == 4 + 1  # every launch of a loaded kernel


def test_cpu_work_and_groups_count_apart_from_the_operations_inside(
    steps: FakeDriver, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with prepared(dataclasses.replace(plan("groups"), groups=("evaluation",))) as program:
        program.launch()
        monkeypatch.setattr(program.device.cuda, "memcpy_htod", lambda *_: clock.sleep(0.03))
        phases = program.phases()
    names = ("evaluation", "outer", "inner", "transfer", "total")
    seconds = (0.12, 0.04, 0.02, 0.06, 0.14)
    assert [phases[name] for name in names] == pytest.approx(seconds)
    with prepared(plan("groups")) as program, pytest.raises(DeviceError, match="none so far"):
        program.launch()


def groups(context: ProgramContext) -> None:
    for _ in range(2):
        with context.group("evaluation"):
            with context.phase("outer"):
                CLOCK.sleep(0.01)
                with context.phase("inner"):
                    CLOCK.sleep(0.01)
                    context.upload("x")
                CLOCK.sleep(0.01)
            context.synchronize()
        CLOCK.sleep(0.01)


def test_resources_are_those_of_each_kernel_and_plainly_of_the_first(steps: FakeDriver) -> None:
    kernels = {
        "main": kernel("scale", "x", "y", np.int32(N), np.int32(1), cache="prefer_l1"),
        "second": kernel("total", "y", np.int32(N), "sum", cache="prefer_shared"),
    }
    with prepared(simulated_plan("steps", 1, kernels=kernels)) as program:
        found = program.resources
    assert found["carveout_percent"] == found["carveout_percent@main"] == 0
    assert found["carveout_percent@second"] == 100
    assert {name for name in found if "@" not in name} == {
        name.partition("@")[0] for name in found if "@" in name
    }


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_a_program_does_wrong_is_a_sentence(steps: FakeDriver, mistake: str) -> None:
    with prepared(simulated_plan("errs", mistake)) as found:
        before = steps.used()
        with pytest.raises(DeviceError, match=MISTAKES[mistake][1]) as caught:
            found.launch()
        assert not isinstance(caught.value, LaunchError | LaunchTimeout)
        assert steps.used() == before  # what the run allocated is free again
    assert steps.memory == {}


def early(context: ProgramContext) -> None:
    context.launch(ADDING)


def test_what_a_program_cannot_have_is_a_sentence(steps: FakeDriver) -> None:
    with pytest.raises(DeviceError, match="test_program:nothing cannot be loaded"):
        prepared(plan("nothing"))
    absent = pytest.raises(DeviceError, match=f"kernel {ADDING} is launched while sum is not alloc")
    with prepared(plan("early")) as program, absent:
        program.launch()
    program = prepared(simulated_plan("steps", 1))
    with pytest.raises(InfeasibleError, match="only a single kernel can start with a cold"):
        program.flush_l2()
    steps.failures["mem_alloc"] = OutOfMemory("cuMemAlloc failed: out of memory")
    with pytest.raises(DeviceError, match=r"buffer sum \(8 bytes\) does not fit"):
        program.launch()
    program.close()
    program.close()
    with pytest.raises(DeviceError, match="closed"):
        program.launch()
    assert steps.memory == {}


@pytest.mark.parametrize("stuck", ["", ILLEGAL])
def test_an_error_names_the_last_launch_and_is_fatal_if_the_context_is_stuck(
    steps: FakeDriver, monkeypatch: pytest.MonkeyPatch, stuck: str
) -> None:
    device = CudaDevice(0)
    program = device.prepare(simulated_plan("steps", 1))
    steps.failures["memcpy_dtoh_async"] = LogicError("cuMemcpyDtoHAsync failed: invalid value")
    monkeypatch.setattr(cuda_driver, "sticky_error", lambda: stuck)
    said = rf"program steps \(last launch: {ADDING}\) failed with {stuck}"
    with pytest.raises(LaunchError, match=said) as had:
        program.launch()
    assert had.value.fatal == bool(stuck)
    steps.failures.clear()
    if not stuck:
        program.launch()
    steps.calls.clear()
    program.close()
    device.close()
    if stuck:
        assert steps.names() == ["pop"]  # nothing more is freed
    else:
        assert steps.memory == {}


@pytest.mark.parametrize("program", ["waits", "goes_on"])
def test_a_run_that_outlasts_its_limit(steps: FakeDriver, clock: Clock, program: str) -> None:
    device = CudaDevice(0)
    found = device.prepare(plan(program))
    steps.polls_until_done = 3
    if program == "waits":
        steps.calls.clear()
        found.launch(timeout_s=5)
        assert "event_synchronize" not in steps.names()  # it polls, without sleeping
        assert steps.names().count("query") == 4 + 1  # the program waits, and its end
    steps.polls_until_done, clock.tick = 10**9, 1e-3
    with pytest.raises(LaunchTimeout, match=r"launch of scale\) did not end within 0\.02 s") as had:
        found.launch(timeout_s=0.02)
    assert had.value.fatal
    assert device.lost
    steps.calls.clear()
    found.close()
    assert steps.calls == []


def waits(context: ProgramContext) -> None:
    context.launch("scale", a=1)
    context.synchronize()


def goes_on(context: ProgramContext) -> None:
    while True:
        context.launch("scale", a=1)


def test_the_profiler_sees_the_first_launch_of_each_kernel(
    steps: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_driver, "profiled", steps.profiled)
    with prepared(simulated_plan("steps", 3)) as program:
        program.launch()
        assert "on" not in steps.names()
        program.profile_first_launches()
        steps.calls.clear()
        program.launch()
        assert program.profiled == ("scale", ADDING)
        shown = [n for n in steps.names() if n in ("on", "off", "queue", "event_synchronize")]
        first = ["event_synchronize", "on", "queue", "event_synchronize", "off"]
        assert shown[: len(first) + 2] == [*first, "queue", "queue"]
        assert shown.count("on") == 2


def test_a_kernel_that_launches_kernels_is_linked_and_not_blocked(
    gpu: FakeDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "nested.cu"
    source.write_text(NESTED, encoding="utf-8")
    allowed: list[int] = []
    monkeypatch.setattr(cuda_driver, "allow_pending_launches", allowed.append)
    more: dict[str, Any] = {"device_launch": True, "pending_launches": 5000}
    nested = Kernel(source, "parent", ("y",), (1, 1, 1), (32, 1, 1), **more)
    with prepared(plan("parents", kernels={"parent": nested, **KERNELS_OF_STEPS})) as program:
        assert program.resources["nvjitlink@parent"] == linker_version()
        assert "nvjitlink@scale" not in program.resources
        program.phases()
        program.phases()
        assert gpu.names().count("block") == 1  # of the second launch of "scale" alone
    assert allowed == [5000]


NESTED = """
__global__ void child(int* y) { y[threadIdx.x] = 1; }
__global__ void parent(int* y) { child<<<1, 32>>>(y); }
"""


def parents(context: ProgramContext) -> None:
    context.launch("parent")
    context.launch("scale", a=1)


def test_a_launch_costs_the_host_little(steps: FakeDriver) -> None:
    """Of nqbench's own work; what PyCUDA and the driver add is measured on a GPU."""
    steps.kernels = {"scale": lambda *_: None}
    calls = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        own = Path(frame.f_code.co_filename).is_relative_to(PACKAGE)
        calls += event == "call" and own

    with prepared(plan("many", 200, kernels={"scale": KERNELS_OF_STEPS["scale"]})) as program:
        program.launch(timeout_s=60)
        sys.setprofile(profile)
        program.launch(timeout_s=60)
        sys.setprofile(None)
    assert 200 <= calls < 6 * 200  # Python functions of nqbench's


def many(context: ProgramContext, count: int) -> None:
    for a in range(count):
        context.launch("scale", a=a)


def test_a_struct_holds_the_addresses_of_its_buffers(gpu: FakeDriver, tmp_path: Path) -> None:
    text = "struct Pair { int n; int* to; };\n__global__ void writes(Pair p) { *p.to = p.n; }"
    (tmp_path / "k.cu").write_text(text)

    def writes(memory: dict[int, bytearray], raw: bytes) -> None:
        words(memory, np.frombuffer(raw, "int64")[1])[0] = np.frombuffer(raw, "int32")[0]

    gpu.kernels = {"writes": writes}
    to = np.dtype("uint64", metadata={"points_to": "y"})
    pair = np.array([(7, 0)], np.dtype([("n", "int32"), ("to", to)], align=True))[0]
    y = Buffer("y", "int32", 1, zero=True, output=True)
    one = KernelPlan(tmp_path / "k.cu", "writes", (pair,), (1, 1, 1), (1, 1, 1), buffers=(y,))
    for made in (one, MultiLaunchPlan({"writes": one}, (y,), "once", f"{HERE}:once")):
        for place in (CudaDevice(0), simulator()):
            with place.prepare(made) as found:
                found.launch()
                assert found.fetch()["y"].tolist() == [7]


def once(context: ProgramContext) -> None:
    context.launch("writes")
