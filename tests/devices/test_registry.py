"""Devices by name: the automatic choice, the list, and what a wrong name is told."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from nqbench.devices.cuda import query as cuda
from nqbench.devices.registry import choose_device, facts_for, list_devices
from nqbench.errors import DeviceError, DeviceUnavailable
from nqbench.facts import DeviceFacts
from nqbench.simulator.models import load_model


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> None:
        raise DeviceUnavailable("there is no NVIDIA driver on this machine")

    monkeypatch.setattr(cuda, "find_gpus", absent)


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {f"cuda:{i}": DeviceFacts(n, "cuda", (9, 0), 132) for i, n in enumerate(("H100", "T4"))}
    monkeypatch.setattr(cuda, "find_gpus", lambda: found)


@pytest.mark.usefixtures("no_gpu")
def test_auto_without_a_gpu_is_the_default_model_and_says_why() -> None:
    choice = choose_device("auto")
    assert choice.spec == "sim:mini"
    assert "no NVIDIA driver" in choice.why
    facts = facts_for("auto")
    assert (facts.kind, facts.multiprocessors) == ("sim", 4)


@pytest.mark.usefixtures("two_gpus")
def test_auto_takes_the_first_gpu() -> None:
    choice = choose_device()
    assert choice.spec == "cuda:0"
    assert "H100" in choice.why


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("cuda", "cuda:0"),
        ("cuda:3", "cuda:3"),
        ("sim", "sim:mini"),
        ("sim:sm_80", "sim:sm_80"),
        ("sim:mini:reverse", "sim:mini:reverse"),
        ("sim:gtx480:greedy", "sim:gtx480:greedy"),
        ("sim:mini:round_robin", "sim:mini"),
        ("cpu", "cpu"),
        ("fake:seed=1", "fake:seed=1"),
    ],
)
def test_other_specs_get_their_full_form(short: str, full: str) -> None:
    assert choose_device(short).spec == full


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("cdua:0", r"'cdua:0' \(did you mean 'cuda'"),
        ("gpu", "no device is called 'gpu'"),
        ("cuda:first", "numbered, e.g. cuda:0"),
        ("cpu:2", "nothing can follow 'cpu'"),
        ("auto:1", "nothing can follow 'auto'"),
        ("replay:x", "`nqbench report RUN`"),
        ("replay", "no longer a device"),
        ("sim:sm_99", "'sm_99'"),
        ("sim:mini:revers", "'revers' is neither an order of warps .* did you mean 'reverse'"),
    ],
)
def test_a_wrong_spec_is_one_sentence(spec: str, said: str) -> None:
    with pytest.raises(DeviceUnavailable, match=said) as caught:
        facts_for(spec)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("no_gpu")
def test_the_list_names_what_is_absent() -> None:
    rows = list_devices()
    (gpu,) = [row for row in rows if row.kind == "cuda"]
    assert not gpu.available
    assert "no NVIDIA driver" in gpu.note
    sims = [row.spec for row in rows if row.kind == "sim"]
    assert sims[0] == "sim:mini"
    assert len(sims) == 19
    notes = {row.spec: row.note for row in rows}
    assert notes["sim:gtx480"].endswith("PTX for sm_75, limits and memory rules of 2.0")
    assert notes["sim:h100"].endswith("sm_90 (also sim:sm_90)")
    assert all(row.available for row in rows if row.kind in ("sim", "cpu"))


def test_a_model_tells_its_facts_with_their_sources() -> None:
    stated = load_model("gtx480").stated
    assert stated["shared_carveouts"].as_json()["value"] == "16384, 49152"
    assert "F.4.1" in stated["shared_carveouts"].source
    assert stated["l2_latency"].source.startswith("assumed: ")
    assert choose_device("sim:gtx480").remark.startswith("PTX for sm_75")
    assert choose_device("sim:h100").remark == ""


@pytest.mark.usefixtures("two_gpus")
def test_the_list_starts_with_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    absence = Mock(side_effect=DeviceError("NVRTC is missing; install it"))
    monkeypatch.setattr("nqbench.compiler.nvrtc.compiler_version", absence)
    rows = list_devices()
    assert [row.spec for row in rows[:2]] == ["cuda:0", "cuda:1"]
    assert {row.note for row in rows if row.kind == "sim"} == {"NVRTC is missing; install it"}
    assert {row.kind for row in rows if not row.available} == {"sim"}
