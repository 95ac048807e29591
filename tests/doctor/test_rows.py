"""What is said of systems made of files and answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from nqbench.doctor import facts
from nqbench.doctor.probe import ProbeResult, ProbeResults
from nqbench.doctor.report import CHECKS, FEATURES, DoctorRow, row_of
from tests.doctor.test_examine import LAPTOP

STARTS = ProbeResult({"error": 0, "cuda": [13, 0], "count": 1})
NO_LIBRARY = LAPTOP["driver"]
BROKEN = ProbeResult(failure="ImportError: undefined symbol: cuFoo")
ANSWERS = LAPTOP | {
    "pycuda": ProbeResult({"version": "2025.1", "headers": "13.0"}),
    "nvbench": ProbeResult({"version": "0.3.0"}),
    "driver": STARTS,
    "nvml": ProbeResult(failure="NVML Shared Library Not Found"),
}
GOVERNOR = "sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"
MODULE = "proc/driver/nvidia/version"
VENDOR = "sys/bus/pci/devices/0000:01:00.0/vendor"
CLASS = "sys/bus/pci/devices/0000:01:00.0/class"

NOTHING: Mapping[str, Any] = {}
Rows = Callable[..., dict[str, DoctorRow]]


def put(root: Path, path: str, text: str = "", mode: int = 0o644) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    return file


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    """The rows by name of a machine with these answers, files and environment."""

    def make(
        answers: ProbeResults = NOTHING,
        files: Mapping[str, str] = NOTHING,
        environment: Mapping[str, str] = NOTHING,
        version: tuple[int, ...] = (3, 13, 0),
        load: float = 0.0,
    ) -> dict[str, DoctorRow]:
        for path, text in files.items():
            put(tmp_path, path, text)
        known = {**ANSWERS, **answers}
        seen = {
            **facts.of_software(known, version),
            **facts.of_driver(known, tmp_path, environment),
            **facts.of_system(
                tmp_path, load, tmp_path / "cache", tmp_path / "results", environment.get("PATH")
            ),
        }
        groups = (CHECKS[name] for name in ("software", "driver", "profiler", "system"))
        found = filter(None, (row_of(check, {"device": "", **seen}) for g in groups for check in g))
        return {row.name: row for row in found}

    return make


def unmet(*packages: str) -> dict[str, ProbeResult]:
    return {"packages": ProbeResult({"unmet": list(packages), "count": 17})}


def driver(error: int = 0, count: int = 1, cuda: int = 13) -> dict[str, ProbeResult]:
    return {"driver": ProbeResult({"error": error, "cuda": [cuda, 0], "count": count})}


def visible(gpus: str) -> dict[str, Any]:
    return {"environment": {"CUDA_VISIBLE_DEVICES": gpus}}


def nvml(**found: Any) -> dict[str, Any]:
    return {"answers": {"nvml": ProbeResult(found)}}


def card(kind: str) -> dict[str, Any]:
    return {"answers": {"driver": NO_LIBRARY}, "files": {VENDOR: "0x10de\n", CLASS: f"{kind}\n"}}


def empty(form: str, *words: object) -> dict[str, Any]:
    return {"files": {form.format(word): "" for word in words}}


CASES: list[tuple[str, dict[str, Any], str, str, str]] = [
    ("Python", {"version": (3, 10, 14)}, "missing", "3.10.14", "3.11"),
    ("Python", {}, "ok", "3.13.0", ""),
    ("Python packages", {"answers": unmet("scipy>=1.12")}, "missing", "scipy>=1.12", "make setup"),
    ("Python packages", {"answers": unmet("tbb>=2021", "nvidia-x")}, "warning", "tbb", "make"),
    ("Python packages", {"answers": {"packages": BROKEN}}, "warning", "cuFoo", "make"),
    ("CUDA compiler (NVRTC)", {}, "ok", "13.0.88 for sm_75 to sm_90, cuda-bindings 13.0.1", ""),
    ("CUDA compiler (NVRTC)", {"answers": {"compiler": BROKEN}}, "missing", "cuFoo", "make setup"),
    ("CUDA device runtime", {"answers": {"linker": BROKEN}}, "missing", "cuFoo", "make setup"),
    ("llvmlite", {"answers": {"llvmlite": BROKEN}}, "missing", "cuFoo", "pip install 'llvmlite'"),
    ("numba", {"answers": {"numba": BROKEN}}, "missing", "cuFoo", "'numba' 'llvmlite'"),
    ("cuda-bench", {"answers": {"nvbench": BROKEN}}, "missing", "not installed", "'cuda-bench'"),
    ("PyCUDA", {}, "ok", "2025.1, built with CUDA 13.0 headers", ""),
    ("PyCUDA", {"answers": {"pycuda": BROKEN}}, "missing", "cuFoo", "make setup   (builds it"),
    ("PyCUDA", {"answers": {"pycuda": BROKEN, "driver": NO_LIBRARY}}, "missing", "", "the driver"),
    ("NVIDIA driver", {}, "ok", "serves CUDA up to 13.0, 1 GPU", ""),
    ("NVIDIA driver", nvml(driver="580.95"), "ok", "580.95, serves CUDA up to 13.0", ""),
    ("NVIDIA driver", {"answers": driver(100)}, "missing", "CUDA error 100", "--gpus all"),
    ("NVIDIA driver", {"answers": driver(999)}, "missing", "CUDA error 999", "nvidia-smi"),
    ("NVIDIA driver", {"answers": driver(count=0)}, "missing", "sees no GPU", "--gpus all"),
    ("NVIDIA driver", {"answers": {"driver": BROKEN}}, "missing", "cuFoo", "nvidia-smi"),
    ("NVIDIA driver", {"answers": {"driver": NO_LIBRARY}}, "missing", "no NVIDIA card", "sim"),
    ("NVIDIA driver", card("0x030200"), "missing", "NVIDIA card is in this machine", "drivers"),
    ("NVIDIA driver", card("0x040300"), "missing", "no NVIDIA card", "sim"),  # its audio function
    (
        "NVIDIA driver",
        {"answers": {"driver": NO_LIBRARY}, "files": {MODULE: "NVRM"}},
        *("missing", "is not visible here", "--gpus all"),
    ),
    ("CUDA_VISIBLE_DEVICES", visible(""), "warning", "hides every GPU", "unset"),
    ("CUDA_VISIBLE_DEVICES", visible("2,3"), "ok", "2,3: cuda:0 is the first", ""),
    ("compiler fits the GPU", {"answers": driver(cuda=12)}, "missing", "12.0", "CUDA 12 compiler"),
    (
        *("compiler fits the GPU", nvml(gpus=[{"index": 1, "capability": [7, 0]}])),
        *("missing", "sm_70 (GPU 1)", "make setup"),
    ),
    ("NVML", nvml(gpus=[{"capability": None}]), "ok", "1 GPU", ""),
    (
        "NVML",
        {"answers": {"nvml": ProbeResult(failure="pynvml is not installed")}},
        *("missing", "pynvml", "nvidia-ml-py"),
    ),
    ("NVML", {}, "missing", "NVML Shared Library Not Found", "nvidia-smi"),
    ("NVML", {"answers": {"driver": NO_LIBRARY}}, "missing", "NVML", "the driver first"),
    ("CPU cores", {}, "ok", "usable, load 0.0", ""),
    ("CPU cores", {"load": 1e3}, "warning", "other work", "top"),
    ("CPU governor", {}, "warning", "virtual machine", ""),
    (
        "CPU governor",
        {"files": {GOVERNOR.format(0): "performance\n", GOVERNOR.format(17): "powersave\n"}},
        *("warning", "performance, powersave", "cpupower"),
    ),
    ("kernel cache", {}, "ok", "/cache", ""),
    ("kernel cache", {"files": {"cache": ""}}, "warning", "cannot be written", "CACHE_DIR"),
    ("results folder", {"files": {"results": ""}}, "missing", "cannot be written", "--out"),
    ("ncu", {}, "missing", "not installed", "install NVIDIA Nsight Compute"),
    (
        *("ncu", empty("opt/nvidia/nsight-compute/{}/ncu", "2024.1", "2025.3"), "missing"),
        *("2025.3/ncu is not on the PATH", "2025.3:$PATH"),
    ),
]


@pytest.mark.parametrize(("name", "machine", "state", "found", "remedy"), CASES)
def test_rows(
    rows: Rows, name: str, machine: dict[str, Any], state: str, found: str, remedy: str
) -> None:
    row = rows(**machine)[name]
    assert row.state == state
    assert found in row.found
    assert remedy in row.remedy
    assert bool(remedy) == bool(row.remedy)
    assert row.feature in FEATURES


def test_what_does_not_apply_has_no_row(rows: Rows) -> None:
    found = rows({"compiler": BROKEN})
    assert "compiler fits the GPU" not in found, "an unknown compiler is not judged"
    assert "CUDA_VISIBLE_DEVICES" not in found


def test_an_installed_package_is_repaired_by_pip(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no Makefile next to it."""
    monkeypatch.setattr(facts, "PACKAGE", tmp_path / "nqbench")
    found = rows({"linker": BROKEN, "pycuda": BROKEN, **driver(cuda=12)})
    assert found["CUDA device runtime"].remedy.endswith("-m pip install 'nqbench'")
    assert "-m pip install 'nqbench[cuda]'" in found["PyCUDA"].remedy
    assert "-m pip install 'nqbench[cuda12]'" in found["compiler fits the GPU"].remedy


def test_a_cache_that_others_can_write(rows: Rows, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    row = rows()["kernel cache"]
    assert (row.state, "it is not used" in row.found, "CACHE_DIR" in row.remedy) == (
        "warning",
        True,
        True,
    )
