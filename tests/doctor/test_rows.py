"""Each check on systems made of files and answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from nqbench.doctor import gpu, software, system
from nqbench.doctor.probe import Answer
from nqbench.doctor.report import Row

STARTS = Answer({"error": 0, "cuda": [13, 0], "count": 1})
OLD_DRIVER = Answer({"error": 0, "cuda": [12, 8], "count": 1})
NO_NVML = Answer(failure="NVML Shared Library Not Found")
NO_LIBRARY = Answer(failure="OSError: libcuda.so.1: cannot open shared object file")
BROKEN = Answer(failure="ImportError: undefined symbol: cuFoo")
COMPILER = Answer({"version": "13.0.88", "archs": ["sm_75", "sm_90"], "bindings": "13.0.1"})
VOLTA = Answer({"gpus": [{"index": 1, "capability": [7, 0]}]})
NOWHERE = Path("/nowhere")


def put(root: Path, path: str, text: str = "", mode: int = 0o644) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    return file


def driver(error: int, count: int = 0, nvml: Answer = NO_NVML) -> Row:
    return gpu.driver(Answer({"error": error, "cuda": [13, 0], "count": count}), nvml, NOWHERE)


@pytest.mark.parametrize(
    ("row", "state", "found", "remedy"),
    [
        (software.python((3, 10, 14)), "missing", "3.10.14", "3.11"),
        (software.python((3, 13, 0)), "ok", "3.13.0", ""),
        (
            software.packages(Answer({"unmet": ["scipy>=1.12 (installed: 1.0)"], "count": 17})),
            "missing",
            "scipy>=1.12",
            "make setup",
        ),
        (
            software.packages(
                Answer({"unmet": ["tbb>=2021.6", "nvidia-nvjitlink>=13"], "count": 9})
            ),
            "warning",
            "tbb>=2021.6",
            "make setup",
        ),
        (software.packages(Answer({"unmet": [], "count": 17})), "ok", "17 requirements", ""),
        (software.packages(Answer(failure="no packaging")), "warning", "no packaging", "make"),
        (software.pycuda(BROKEN, STARTS), "missing", "cuFoo", "make setup"),
        (software.pycuda(BROKEN, NO_LIBRARY), "missing", "cuFoo", "the driver first"),
        (software.pycuda(Answer({"version": "2025.1", "headers": "13.0"}), STARTS), "ok", "13", ""),
        (driver(0, 1, Answer({"driver": "580.95"})), "ok", "580.95, serves CUDA up to 13.0", ""),
        (driver(100), "missing", "CUDA error 100", "--gpus all"),
        (driver(802), "missing", "CUDA error 802", "fabricmanager"),
        (driver(803), "missing", "CUDA error 803", "reboot"),
        (driver(999), "missing", "CUDA error 999", "nvidia-smi"),
        (driver(0, count=0), "missing", "sees no GPU", "--gpus all"),
        (gpu.visible(""), "warning", "hides every GPU", "unset"),
        (gpu.visible("2,3"), "ok", "2,3:", ""),
        (gpu.compiler_fits(COMPILER, OLD_DRIVER, NO_NVML), "missing", "12.8", "CUDA 12 compiler"),
        (gpu.compiler_fits(COMPILER, STARTS, VOLTA), "missing", "sm_70 (GPU 1)", "make setup"),
        (gpu.compiler_fits(COMPILER, STARTS, NO_NVML), "ok", "13.0.88", ""),
        (system.load(8, 4, 0.5), "ok", "4 of 8 usable", ""),
        (system.load(8, 8, 4.5), "warning", "other work", "top"),
    ],
)
def test_rows(row: Row, state: str, found: str, remedy: str) -> None:
    assert row.state == state
    assert found in row.found
    assert remedy in row.remedy
    assert bool(remedy) == bool(row.remedy)


def test_an_unknown_compiler_is_not_judged() -> None:
    assert gpu.compiler_fits(Answer(failure="none"), STARTS, NO_NVML) is None


@pytest.mark.parametrize(
    ("check", "value", "words", "feature"),
    [
        (software.compiler, COMPILER.value, ("13.0.88", "sm_75 to sm_90", "13.0.1"), "compile"),
        (
            software.linker,
            {"version": "13.0", "runtime": "/opt/libcudadevrt.a"},
            ("/opt/libcudadevrt.a", "nvJitLink 13.0"),
            "dynamic parallelism",
        ),
        (software.llvmlite, {"version": "0.45", "llvm": "20.1", "cpu": "zen4"}, ("zen4",), "sim"),
        (software.numba, {"version": "0.62"}, ("0.62",), "cpu"),
        (software.nvbench, {"version": "0.3.0"}, ("0.3.0",), "cross-check"),
    ],
)
def test_package_rows(
    check: Callable[[Answer], Row], value: Mapping[str, Any], words: tuple[str, ...], feature: str
) -> None:
    there = check(Answer(value))
    assert (there.state, there.feature, there.remedy) == ("ok", feature, "")
    for word in words:
        assert word in there.found
    absent = check(Answer(failure="undefined symbol: x"))
    assert absent.state == "missing"
    assert absent.remedy


def test_an_installed_package_is_repaired_by_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no Makefile next to it."""
    monkeypatch.setattr(software, "PACKAGE", tmp_path / "nqbench")
    assert software.setup().endswith("-m pip install 'nqbench'")
    assert software.setup("cuda12").endswith("-m pip install 'nqbench[cuda12]'")


def test_a_missing_driver_with_a_container_a_card_or_neither(tmp_path: Path) -> None:
    nothing = gpu.driver(NO_LIBRARY, NO_NVML, tmp_path)
    assert "no NVIDIA card" in nothing.found
    put(tmp_path, "sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
    put(tmp_path, "sys/bus/pci/devices/0000:01:00.0/class", "0x040300\n")  # its audio function
    assert not gpu.has_nvidia_card(tmp_path)
    put(tmp_path, "sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n")
    assert "card is in this machine" in gpu.driver(NO_LIBRARY, NO_NVML, tmp_path).found
    put(tmp_path, "proc/driver/nvidia/version", "NVRM version")
    assert "--gpus all" in gpu.driver(NO_LIBRARY, NO_NVML, tmp_path).remedy


def test_governor(tmp_path: Path) -> None:
    assert "virtual machine" in system.governor(tmp_path).found
    place = "sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"
    put(tmp_path, place.format(0), "performance\n")
    assert system.governor(tmp_path).state == "ok"
    put(tmp_path, place.format(17), "powersave\n")
    row = system.governor(tmp_path)
    assert (row.state, row.found) == ("warning", "performance, powersave")
    assert "cpupower" in row.remedy


def test_folders(tmp_path: Path) -> None:
    """Nothing is created by looking."""
    put(tmp_path, "cache/ab/abcd", "x" * 1024)
    put(tmp_path, "cache/cd/cdef", "x" * 1024)
    row = system.cache(tmp_path / "cache")
    assert row.state == "ok"
    assert "2 kernels" in row.found
    assert system.cache(tmp_path / "not" / "yet").state == "ok"
    good = system.results(tmp_path / "results")
    assert good.state in ("ok", "warning")  # the disk may be nearly full
    assert "GiB free" in good.found
    assert {path.name for path in tmp_path.iterdir()} == {"cache"}
    blocked = put(tmp_path, "file") / "below"  # nothing can be made inside a file, even by root
    assert system.cache(blocked).state == "warning"
    assert system.results(blocked).state == "missing"


def test_ncu_on_the_path_or_elsewhere(tmp_path: Path) -> None:
    assert gpu.ncu(tmp_path, None).remedy.startswith("install NVIDIA Nsight Compute")
    put(tmp_path, "opt/nvidia/nsight-compute/2024.1.0/ncu", mode=0o755)
    newest = put(tmp_path, "opt/nvidia/nsight-compute/2025.3.1/ncu", mode=0o755)
    row = gpu.ncu(tmp_path, "")
    assert row.state == "missing"
    assert str(newest.parent) in row.remedy
    found = gpu.ncu(tmp_path, str(newest.parent))
    assert (found.state, found.found) == ("ok", str(newest))


@pytest.mark.parametrize(
    ("parameter", "held", "expected"),
    [
        ("RmProfilingAdminOnly: 0\n", "0000000000000000", "ok"),
        ("RmProfilingAdminOnly: 1\n", "0000000000000000", "missing"),
        ("RmProfilingAdminOnly: 1\n", "0000000000200000", "ok"),  # CAP_SYS_ADMIN
        ("RmProfilingAdminOnly: 1\n", "0000004000000000", "ok"),  # CAP_PERFMON
        ("RmProfilingAdminOnly: 1\n", "00000000a80425fb", "missing"),  # root in a container
        ("Other: 1\n", "0000000000200000", "warning"),
    ],
)
def test_counter_permission(parameter: str, held: str, expected: str, tmp_path: Path) -> None:
    put(tmp_path, "proc/driver/nvidia/params", f"Mobile: 0\n{parameter}")
    put(tmp_path, "proc/self/status", f"Name: x\nCapEff:\t{held}\n")
    row = gpu.permission(tmp_path)
    assert row.state == expected
    assert bool(row.remedy) == (expected != "ok")


def test_ceilings_are_those_of_gpus(tmp_path: Path) -> None:
    put(tmp_path, "local/sim-mini/ceilings/manifest.json")
    row = system.ceilings(tmp_path)
    assert (row.state, row.remedy) == ("missing", "nqbench run ceilings")
    put(tmp_path, "local/cuda-1/ceilings/manifest.json")
    row = system.ceilings(tmp_path)
    assert (row.state, row.found) == ("ok", "measured on cuda-1")
