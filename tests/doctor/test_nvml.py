"""NVML as plain data, and the rows of each GPU."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Iterable
from typing import Any

import pytest

from nqbench.doctor import facts, probe
from nqbench.doctor.report import CHECKS, DoctorRow, row_of
from tests.doctor.fake_pynvml import ANSWERS, NEW_REASONS, OLD_REASONS, FakeNvml

FAILS = {name for name in ANSWERS if name.startswith("nvmlDeviceGet")}


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is asked of the GPU of such a package."""

    def described(refused: Iterable[str] = (), **changed: Any) -> dict[str, Any]:
        reasons = {} if OLD_REASONS in changed else {NEW_REASONS: 1}
        package = FakeNvml(**(reasons | changed))
        package.refused = {*refused}
        monkeypatch.setitem(sys.modules, "pynvml", package)
        try:
            found = probe.nvml()
        except package.NVMLError as error:
            raise RuntimeError from error
        finally:
            assert package.opened == 0
        assert json.loads(json.dumps(found)) == found
        assert found["driver"] == "580.65.06"
        return dict(found["gpus"][0])

    return described


def rows(gpu: dict[str, Any]) -> dict[str, DoctorRow]:
    """Rows of the GPU by name, without ``GPU 0``."""
    found = [row_of(check, facts.of_gpu(gpu)) for check in CHECKS["gpu"]]
    return {row.name.removeprefix("GPU 0").strip(): row for row in found if row}


def test_what_is_not_reported_is_none_and_breaks_no_row(gpu: Any) -> None:
    kept = ("nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex")
    silent = gpu({*FAILS, NEW_REASONS} - {*kept})
    told = {name for name, value in silent.items() if value is not None}
    assert told == {"index", "prohibited", "clocks_set"}
    found = rows(silent)
    assert {row.state for row in found.values()} == {"ok", "warning"}
    assert found["clocks"].remedy == ""
    with pytest.raises(RuntimeError):
        gpu(FAILS)


def test_an_older_package_has_another_name_for_the_reasons(gpu: Any) -> None:
    assert gpu(**{OLD_REASONS: 0x2})["clocks_set"] is True


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
        ("clocks", {}, "warning", "no sign", "--lock-gpu-clocks=1755,1755"),
        ("clocks", {NEW_REASONS: 2}, "ok", "fixed by a setting", ""),
        ("clocks", {"nvmlDeviceGetApplicationsClock": 1200}, "ok", "1200 MHz", ""),
        ("persistence", {"nvmlDeviceGetPersistenceMode": 1}, "ok", "on", ""),
        ("persistence", {}, "warning", "off", "sudo nvidia-smi"),
        ("MIG", {}, "ok", "off", ""),
        ("MIG", {"nvmlDeviceGetMigMode": [1, 1]}, "warning", "on", "sudo nvidia-smi -i 0 "),
        ("other processes", PROCESSES, "warning", "1: 4711 python", "wait"),
        ("ECC", {}, "ok", "on", ""),
        ("ECC", {"nvmlDeviceGetEccMode": [0, 0]}, "ok", "off", ""),
        ("ECC", {"refused": ["nvmlDeviceGetEccMode"]}, "ok", "not on this GPU", ""),
    ],
)
def test_rows_of_a_gpu(
    gpu: Any, name: str, changed: dict[str, Any], state: str, found: str, remedy: str
) -> None:
    row = rows(gpu(**changed))[name]
    assert (row.state, row.feature) == (state, "steadiness" if name else "gpu")
    assert found in row.found
    assert remedy in row.remedy
    assert bool(remedy) == bool(row.remedy)
