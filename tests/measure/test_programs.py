"""Programs and host functions that tell their phases: from a point to a table."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nqbench.device import Launch
from nqbench.devices.cpu import CpuDevice
from nqbench.facts import DeviceFacts
from nqbench.measure.launch import compile_point
from nqbench.measure.measurement import phases_of, whole_run
from nqbench.measure.sampling import Policy
from nqbench.measure.variants import runs_on_cpu
from nqbench.measure.worker.messages import MeasureRequest
from nqbench.measure.worker.session import Session
from nqbench.plan import CommandPlan, CpuPlan, KernelPlan, MultiLaunchPlan
from nqbench.runs.frame import load
from tests.measure.programs import PROGRAMS, calls, point
from tests.measure.test_runner import measure

ANY_S = pytest.approx(1e-3, rel=0.999)
GPU = DeviceFacts("d", "cuda", (9, 0), 4)


def request(n: int, system: str = "sums.launched", *, timed: bool = True) -> MeasureRequest:
    """A measurement."""
    return MeasureRequest(point(n, system), 1, timed, Policy(samples=6), timeout_s=10.0)


def program(n: int) -> MultiLaunchPlan:
    plan = PROGRAMS.plan({"n": n}, "sums.launched", GPU)
    assert isinstance(plan, MultiLaunchPlan)
    return plan


def test_a_timed_program_is_one_sample_per_run_and_told_apart_once() -> None:
    found = Session("fake").measure(request(8))
    assert (found.status, found.answer) == ("ok", found.expected)
    total = found.value_s or 0.0
    assert found.phases == {
        "scale": ANY_S, "add_up": ANY_S, "transfer": ANY_S, "kernel": ANY_S, "other": ANY_S,
        "total": total,
    }  # fmt: skip
    kernel_s, transfer_s = found.phases["kernel"], found.phases["transfer"]
    assert found.phases["scale"] + found.phases["add_up"] == pytest.approx(kernel_s)
    assert found.phases["other"] == pytest.approx(total - kernel_s - transfer_s)


def test_a_host_function_may_tell_phases_and_outputs() -> None:
    assert runs_on_cpu(point(8, "sums.serial"))
    assert not runs_on_cpu(point(8))
    found = Session("fake").measure(request(8, "sums.serial"))
    assert (found.status, found.device, found.answer) == ("ok", "cpu", str(100 + 28 * 4950))
    value_s = found.value_s or 0.0
    # The function says that a fifth of its last run went into this; how long runs take is measured.
    assert found.phases == pytest.approx(
        {"kernel": value_s, "evaluation": value_s / 5, "other": 4 * value_s / 5, "total": value_s}
    )


@pytest.mark.parametrize(
    ("parts", "other"),
    [
        ({"apply": 1.0, "evaluate": 2.0, "kernel": 3.0, "allocate": 0.5}, 1.5),
        ({"apply": 1.0, "evaluate": 2.0, "kernel": 3.0, "allocate": 2.5}, 0.0),
        ({"kernel": 3.0, "other": 9.0, "total": 9.0}, 5.0),
        ({}, 5.0),
    ],
)
def test_what_no_phase_explains_is_other(parts: dict[str, float], other: float) -> None:
    found = whole_run(parts, ("evaluate", "apply"), 5.0)
    assert found == {**parts, "other": other, "total": 5.0}


def test_groups_are_sums_and_bear_no_waits_of_the_run_that_tells_them() -> None:
    """Ten in all, of which the host takes three outside; waits made the watched run twelve."""
    parts = {"apply": 4.0, "kernel": 4.0, "transfer": 2.0, "evaluation": 9.0, "total": 12.0}
    found = whole_run(parts, ("apply",), 10.0, ("evaluation",))
    assert found == {**parts, "evaluation": 7.0, "other": 4.0, "total": 10.0}
    assert whole_run(found, ("apply",), 10.0, ("evaluation",)) == found
    assert whole_run({"kernel": 1.0}, (), 10.0, ("evaluation",))["other"] == 10.0


def test_a_function_of_the_cpu_gives_an_answer_and_may_give_outputs() -> None:
    device = CpuDevice()
    with device.prepare(PROGRAMS.plan({"n": 3}, "sums.serial", GPU)) as prepared:
        assert prepared.phases() == {}
        prepared.launch()
        found = prepared.fetch()
    assert found["answer"].tolist() == found["total"].tolist() == [100 + 3 * 4950]
    plan = CpuPlan("perm", "math:perm", (3,))
    with device.prepare(plan) as prepared:
        phases = phases_of(plan, prepared, prepared.launch(), 2e-6)
    assert (phases["total"], phases["kernel"], phases["reduce"]) == (2e-6, 2e-6, 0)


@pytest.mark.parametrize(("known", "phases"), [(0.25, (0.75, 0.25, 4.0)), (None, (0.5, 0.0, 3.5))])
def test_the_phases_of_a_kernel_add_up(known: float | None, phases: tuple[float, ...]) -> None:
    """Its split is what the CPU and the kernel that makes the input take."""
    plan = KernelPlan(Path("k.cu"), "k", (), (1, 1, 1), (32, 1, 1), split_s=0.5)
    loaded: Any = SimpleNamespace(prepare_s=known, transfer_s=known)
    found = phases_of(plan, loaded, Launch(1.0), 1.0, 2.0)
    assert (found["split"], found["transfer"], found["total"]) == phases
    assert (found["kernel"], found["reduce"]) == (1.0, 2.0)
    program: Any = None
    command = CommandPlan("program", program)
    for wall_s, other_s in ((3.0, 2.0), (0.5, 0.0), (None, 0.0)):
        found = phases_of(command, loaded, Launch(1.0, wall_s=wall_s), 1.0)
        assert found == {"kernel": 1.0, "other": other_s, "total": 1.0 + other_s}


def test_phases_may_be_found_out_after_the_timed_calls() -> None:
    calls.clear()
    with CpuDevice().prepare(CpuPlan("later", "tests.measure.programs:tells_later", ())) as later:
        later.launch()
        assert not calls
        assert later.phases() == {"evaluation": 0.3}
        assert len(calls) == 1


def test_every_plan_is_warmed_up_with_its_arguments() -> None:
    calls.clear()
    device = CpuDevice()
    x = np.zeros(3)
    for warm in ((1, x), (1, x), (2, x), (2, np.zeros(4))):
        device.prepare(CpuPlan("recorded", "tests.measure.programs:recorded", (9, x), warm)).close()
    assert [(first, second.size) for first, second in calls] == [(1, 3), (1, 3), (2, 3), (2, 4)]


def test_a_study_of_programs_becomes_a_table(tmp_path: Path) -> None:
    points = [point(4), point(8), point(8, "sums.serial")]
    outcome = measure(tmp_path / "run", points, "fake:noise=0.01")
    assert outcome.counts == {"ok": 3}
    table = load(tmp_path / "run").query("round > 0")
    launched, serial = (table.query(f"system == 'sums.{s}'") for s in ("launched", "serial"))
    assert np.allclose(launched["kernel_s"], 2 * launched["transfer_s"])
    assert np.allclose(launched["scale_s"] + launched["add_up_s"], launched["kernel_s"])
    assert np.allclose(launched["total_s"], launched["value_s"])
    assert set(serial["device"]) == {"cpu"}
    assert np.allclose(serial["evaluation_s"], serial["total_s"] / 5)


def test_a_simulated_study_of_programs_becomes_a_table(tmp_path: Path) -> None:
    assert measure(tmp_path / "run", [point(4), point(8)], "sim").counts == {"ok": 2}
    counted = load(tmp_path / "run").query("status == 'ok'")
    table = counted[counted["launches"] > 0].set_index("n")
    assert table.loc[8, "launches"] == 9
    assert table.loc[8, "answer"] == str(100 + 28 * 4950)
    assert table["global_atomics"].tolist() == table["global_atomics@add_up"].tolist()
    assert set(table["warps_per_block@add_up"]) == {1}
    assert counted["value_s"].isna().all()
    assert table["launches@scale"].tolist() == [4, 8]
    assert (table["global_bytes"] > table["global_bytes@scale"]).all()


def test_every_kernel_of_a_program_is_compiled_before_the_run(tmp_path: Path) -> None:
    assert compile_point(point(8), GPU).status == "ok"
