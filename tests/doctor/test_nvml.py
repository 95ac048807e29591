"""What is read from NVML, and what is made of it."""

from __future__ import annotations

import json
import sys
import types
from typing import Any

import pytest

from nqbench.doctor import gpu
from nqbench.doctor.nvml import describe
from nqbench.doctor.probe import Answer
from nqbench.doctor.report import Row
from tests.doctor import fake_pynvml

UNSUPPORTED = fake_pynvml.NVMLError("Not Supported")


def described(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> dict[str, Any]:
    module = fake_pynvml.make(**changed)
    monkeypatch.setitem(sys.modules, "pynvml", module)
    found = describe()
    assert module.open == 0
    return found


def rows(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> dict[str, Row]:
    """Rows of the GPU by name, without ``GPU 0``."""
    answer = Answer(described(monkeypatch, **changed))
    return {row.name.removeprefix("GPU 0").strip(): row for row in gpu.gpus(answer)}


def test_everything_is_plain_data(monkeypatch: pytest.MonkeyPatch) -> None:
    found = described(monkeypatch)
    assert json.loads(json.dumps(found)) == found
    assert found["driver"] == "580.95.05"
    assert found["cuda"] == [13, 0]
    assert found["gpus"][0]["name"] == "Pretended H100"
    assert found["gpus"][0]["mig"] is False
    assert found["gpus"][0]["ecc"] is True


def test_what_is_not_told_is_none_and_breaks_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = {
        name: UNSUPPORTED
        for name in fake_pynvml.DEFAULTS
        if name.startswith("nvmlDeviceGet")
        and name not in ("nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex")
    }
    gpu = described(monkeypatch, **silent)["gpus"][0]
    assert {name for name, value in gpu.items() if value is not None} == {"index"}
    found = rows(monkeypatch, **silent)
    assert {row.state for row in found.values()} == {"ok", "warning"}
    assert found["clocks"].remedy == ""


def test_shuts_down_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    module = fake_pynvml.make(nvmlDeviceGetCount=UNSUPPORTED)
    monkeypatch.setitem(sys.modules, "pynvml", module)
    with pytest.raises(fake_pynvml.NVMLError):
        describe()
    assert module.open == 0


def test_older_package_names_the_reasons_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    module = fake_pynvml.make()
    del module.nvmlDeviceGetCurrentClocksEventReasons
    module.nvmlDeviceGetCurrentClocksThrottleReasons = lambda gpu: 0x2
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert describe()["gpus"][0]["clocks_set"] is True


def test_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    row = rows(monkeypatch)[""]
    assert row.state == "ok"
    for part in ("Pretended H100", "9.0", "sm_90", "80 GiB", "GPU-1234"):
        assert part in row.found


def test_prohibited_computing_makes_the_gpu_unusable(monkeypatch: pytest.MonkeyPatch) -> None:
    row = rows(monkeypatch, nvmlDeviceGetComputeMode=2)[""]
    assert (row.state, row.feature) == ("missing", "gpu")
    assert "--compute-mode=0" in row.remedy


@pytest.mark.parametrize(
    ("changed", "expected", "word"),
    [
        ({}, "warning", "no sign"),
        ({"nvmlDeviceGetCurrentClocksEventReasons": 0x2}, "ok", "fixed by a setting"),
        ({"nvmlDeviceGetApplicationsClock": 1200}, "ok", "1200 MHz"),
    ],
)
def test_clocks(
    changed: dict[str, Any], expected: str, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = rows(monkeypatch, **changed)["clocks"]
    assert row.state == expected
    assert word in row.found
    assert ("--lock-gpu-clocks=1410,1410" in row.remedy) == (expected == "warning")


@pytest.mark.parametrize(
    ("name", "question", "bad"),
    [
        ("persistence", "nvmlDeviceGetPersistenceMode", 0),
        ("MIG", "nvmlDeviceGetMigMode", [1, 1]),
    ],
)
def test_modes(name: str, question: str, bad: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rows(monkeypatch)[name].state == "ok"
    row = rows(monkeypatch, **{question: bad})[name]
    assert row.state == "warning"
    assert row.remedy.startswith("sudo nvidia-smi -i 0 ")


def test_other_processes_are_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    process = types.SimpleNamespace(pid=4711)
    row = rows(
        monkeypatch,
        nvmlDeviceGetComputeRunningProcesses=[process],
        nvmlDeviceGetGraphicsRunningProcesses=[process],
    )["other processes"]
    assert row.state == "warning"
    assert row.found == "1: 4711 python"


def test_ecc_is_told_and_never_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, word in (([1, 1], "on"), ([0, 0], "off"), (UNSUPPORTED, "not on this GPU")):
        row = rows(monkeypatch, nvmlDeviceGetEccMode=value)["ECC"]
        assert (row.state, row.found) == ("ok", word)


@pytest.mark.parametrize(
    ("failure", "driver", "remedy"),
    [
        ("pynvml is not installed", Answer({"error": 0}), "nvidia-ml-py"),
        ("pynvml.NVMLError: Driver Not Loaded", Answer({"error": 0}), "nvidia-smi"),
        ("pynvml.NVMLError: Library Not Found", Answer(failure="no"), "the driver first"),
    ],
)
def test_missing_nvml(failure: str, driver: Answer, remedy: str) -> None:
    row = gpu.telemetry(Answer(failure=failure), driver)
    assert row.state == "missing"
    assert remedy in row.remedy
