"""NVML as plain data, and the rows of each GPU."""

from __future__ import annotations

import json
import sys
import types
from typing import Any

import pytest

from nqbench.doctor import facts
from nqbench.doctor.probe import nvml as describe
from nqbench.doctor.report import CHECKS, DoctorRow, row_of
from tests.doctor import fake_pynvml

UNSUPPORTED = fake_pynvml.NVMLError("Not Supported")


def described(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> dict[str, Any]:
    module = fake_pynvml.make(**changed)
    monkeypatch.setitem(sys.modules, "pynvml", module)
    found = describe()
    assert module.open == 0
    return found


def rows(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> dict[str, DoctorRow]:
    """Rows of the GPU by name, without ``GPU 0``."""
    (gpu,) = described(monkeypatch, **changed)["gpus"]
    found = [row_of(check, facts.of_gpu(gpu)) for check in CHECKS["gpu"]]
    return {row.name.removeprefix("GPU 0").strip(): row for row in found if row}


def test_everything_is_plain_data(monkeypatch: pytest.MonkeyPatch) -> None:
    found = described(monkeypatch)
    assert json.loads(json.dumps(found)) == found
    assert found["driver"] == "580.95.05"
    assert found["gpus"][0]["name"] == "Pretended H100"
    assert found["gpus"][0]["mig"] is False
    assert found["gpus"][0]["ecc"] is True


def test_what_is_not_reported_is_none_and_breaks_no_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    silent = {
        name: UNSUPPORTED
        for name in fake_pynvml.DEFAULTS
        if name.startswith("nvmlDeviceGet")
        and name not in ("nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex")
    }
    gpu = described(monkeypatch, **silent)["gpus"][0]
    told = {name for name, value in gpu.items() if value is not None}
    assert told == {"index", "prohibited", "clocks_set"}
    found = rows(monkeypatch, **silent)
    assert {row.state for row in found.values()} == {"ok", "warning"}
    assert found["clocks"].remedy == ""


def test_shuts_down_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    module = fake_pynvml.make(nvmlDeviceGetCount=UNSUPPORTED)
    monkeypatch.setitem(sys.modules, "pynvml", module)
    with pytest.raises(fake_pynvml.NVMLError):
        describe()
    assert module.open == 0


def test_an_older_package_has_another_name_for_the_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    module = fake_pynvml.make()
    del module.nvmlDeviceGetCurrentClocksEventReasons
    module.nvmlDeviceGetCurrentClocksThrottleReasons = lambda gpu: 0x2
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert describe()["gpus"][0]["clocks_set"] is True


PROCESS = types.SimpleNamespace(pid=4711)
PROCESSES = {
    "nvmlDeviceGetComputeRunningProcesses": [PROCESS],
    "nvmlDeviceGetGraphicsRunningProcesses": [PROCESS],
}


@pytest.mark.parametrize(
    ("name", "changed", "state", "found", "remedy"),
    [
        ("", {}, "ok", "Pretended H100, 9.0 (sm_90), 80 GiB, GPU-1234", ""),
        ("", {"nvmlDeviceGetComputeMode": 2}, "missing", "prohibited", "--compute-mode=0"),
        ("clocks", {}, "warning", "no sign", "--lock-gpu-clocks=1410,1410"),
        ("clocks", {"nvmlDeviceGetCurrentClocksEventReasons": 2}, "ok", "fixed by a setting", ""),
        ("clocks", {"nvmlDeviceGetApplicationsClock": 1200}, "ok", "1200 MHz", ""),
        ("persistence", {}, "ok", "on", ""),
        ("persistence", {"nvmlDeviceGetPersistenceMode": 0}, "warning", "off", "sudo nvidia-smi"),
        ("MIG", {}, "ok", "off", ""),
        ("MIG", {"nvmlDeviceGetMigMode": [1, 1]}, "warning", "on", "sudo nvidia-smi -i 0 "),
        ("other processes", PROCESSES, "warning", "1: 4711 python", "wait"),
        ("ECC", {}, "ok", "on", ""),
        ("ECC", {"nvmlDeviceGetEccMode": [0, 0]}, "ok", "off", ""),
        ("ECC", {"nvmlDeviceGetEccMode": UNSUPPORTED}, "ok", "not on this GPU", ""),
    ],
)
def test_rows_of_a_gpu(
    name: str,
    changed: dict[str, Any],
    state: str,
    found: str,
    remedy: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = rows(monkeypatch, **changed)[name]
    assert row.state == state
    assert row.feature == ("steadiness" if name else "gpu")
    assert found in row.found
    assert remedy in row.remedy
    assert bool(remedy) == bool(row.remedy)
