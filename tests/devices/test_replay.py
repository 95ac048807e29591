"""A replayed run says what the recorded one said, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nqbench.devices.replay import ReplayDevice, facts_from_json, fingerprint
from nqbench.errors import DeviceError, StoreError
from nqbench.facts import DeviceFacts
from nqbench.plan import Buffer, CpuPlan, KernelPlan
from nqbench.runs.folder import load
from tests.measure.test_runner import NOISY, measure, sizes
from tests.measure.toy import TOY, point

POINTS = [*sizes(6, 7, 8), point(5, system="cpu.power")]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with noise, and its host baseline."""
    path = tmp_path_factory.mktemp("recorded") / "run"
    measure(path, POINTS, NOISY)
    return path


def kernel(n: int) -> KernelPlan:
    """A plan of the toy workload."""
    plan = TOY.plan({"n": n}, None, DeviceFacts("d", "cuda", (9, 0), 4))
    assert isinstance(plan, KernelPlan)
    return plan


def test_a_replayed_study_has_the_recorded_values(tmp_path: Path, recorded: Path) -> None:
    outcome = measure(tmp_path / "again", POINTS, f"replay:{recorded}")
    assert outcome.counts == {"ok": 4}
    keys = ["n", "round"]
    old, new = (
        load(path).query("n > 5 and round > 0").sort_values(keys).reset_index()
        for path in (recorded, tmp_path / "again")
    )
    assert list(old["value_s"]) == list(new["value_s"])
    assert list(old["answer"]) == list(new["answer"])
    host = load(tmp_path / "again").query("system == 'cpu.power' and round > 0")
    assert set(host["device"]) == {"cpu"}
    assert host["value_s"].gt(0).all()


def test_a_replayed_simulation_stays_one(tmp_path: Path) -> None:
    measure(tmp_path / "sim", POINTS, "fake:deterministic=1")
    outcome = measure(tmp_path / "again", POINTS, f"replay:{tmp_path / 'sim'}")
    assert outcome.counts == {"ok": 4}
    old, new = (load(tmp_path / name).query("simulated") for name in ("sim", "again"))
    assert list(old["warp_instructions"]) == list(new["warp_instructions"])
    assert new["value_s"].isna().all()


def test_launches_return_the_samples_of_their_round_in_order(recorded: Path) -> None:
    device = ReplayDevice(recorded)
    table = load(recorded)
    for round_ in (3, 1):
        device.begin_round(round_)
        prepared = device.prepare(kernel(7))
        count = int(table.query("n == 7 and round == @round_")["samples"].iloc[0])
        once = [prepared.launch().kernel_s for _ in range(count)]
        assert [prepared.launch().kernel_s for _ in range(count)] == once
        median = float(table.query("n == 7 and round == @round_")["value_s"].iloc[0])
        assert float(np.median(np.array(once, dtype=float))) == median


def test_an_unknown_plan_is_refused(recorded: Path) -> None:
    with pytest.raises(DeviceError, match=r"holds no successful block of toy<11, plain>"):
        ReplayDevice(recorded).prepare(kernel(11))
    with pytest.raises(DeviceError, match=r"of power"):
        ReplayDevice(recorded).prepare(CpuPlan("power", "tests.measure.toy:power", (99,)))


def test_it_keeps_answers_not_outputs(recorded: Path) -> None:
    prepared = ReplayDevice(recorded).prepare(kernel(7))
    assert prepared.known_answer() == 128
    with pytest.raises(DeviceError, match="not its output buffers"):
        prepared.fetch()


def test_its_identity_is_the_recorded_one_marked(recorded: Path) -> None:
    device = ReplayDevice(recorded)
    assert device.identity()["name"] == "fake device (test)"
    assert device.identity()["replay"] is True
    assert device.facts.name == "fake device (test)"


def test_no_run_no_replay(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not a run folder"):
        ReplayDevice(tmp_path)


def test_a_fingerprint_tells_plans_apart_but_not_edits_of_the_source() -> None:
    plan = kernel(7)
    others = [
        kernel(8),
        replace(plan, grid=(2, 1, 1)),
        replace(plan, shared_bytes=4),
        replace(plan, cache="prefer_l1"),
        replace(plan, arguments=("out", np.int32(3))),
        replace(plan, buffers=(Buffer("out", "uint64", 2, output=True),)),
    ]
    prints = [fingerprint(p) for p in (plan, *others)]
    assert len(set(prints)) == len(prints)
    assert fingerprint(replace(plan, source=Path("elsewhere/toy.cu"))) == prints[0]
    assert fingerprint(replace(plan, split_s=9.0)) == prints[0]
    named = {fingerprint(replace(plan, about={"input": x, "jobs": 3})) for x in ("one", "other")}
    assert len(named | {prints[0]}) == 3


def test_facts_survive_the_manifest() -> None:
    facts = DeviceFacts("d", "sim", (8, 6), 12, shared_per_block_optin=101376)
    read = facts_from_json({**facts.as_dict(), "a_fact_of_tomorrow": 1})
    assert read == facts
    assert hash(read) == hash(facts)
