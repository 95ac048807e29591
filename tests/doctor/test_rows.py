"""Each check on machines made of files and answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nqbench.doctor import gpu, software, system
from nqbench.doctor.probe import Answer
from nqbench.doctor.report import Row

STARTS = Answer({"error": 0, "cuda": [13, 0], "count": 1})
NO_NVML = Answer(failure="NVML Shared Library Not Found")
NO_LIBRARY = Answer(failure="OSError: libcuda.so.1: cannot open shared object file")


def put(root: Path, path: str, text: str = "", mode: int = 0o644) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    return file


def test_python_too_old() -> None:
    assert software.python((3, 10, 14)).state == "missing"
    assert software.python((3, 13, 0)).state == "ok"


def test_packages_name_what_is_unmet() -> None:
    row = software.packages(Answer({"unmet": ["scipy>=1.12 (installed: 1.0)"], "count": 17}))
    assert row.state == "missing"
    assert "scipy>=1.12" in row.found
    assert software.packages(Answer({"unmet": [], "count": 17})).state == "ok"
    assert software.packages(Answer(failure="packaging is not installed")).state == "warning"


@pytest.mark.parametrize(
    ("check", "value", "words", "feature"),
    [
        (
            software.compiler,
            {"version": "13.0.88", "archs": ["sm_75", "sm_120"], "bindings": "13.0.1"},
            ("13.0.88", "sm_75 to sm_120", "13.0.1"),
            "compile",
        ),
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
    check: Callable[[Answer], Row], value: dict[str, Any], words: tuple[str, ...], feature: str
) -> None:
    there = check(Answer(value))
    assert there.state == "ok"
    assert there.feature == feature
    assert not there.remedy
    for word in words:
        assert word in there.found
    absent = check(Answer(failure="undefined symbol: x"))
    assert absent.state == "missing"
    assert absent.remedy


def test_pycuda_waits_for_the_driver() -> None:
    broken = Answer(failure="ImportError: undefined symbol: cuFoo")
    assert software.pycuda(broken, STARTS).remedy.startswith("make setup")
    assert software.pycuda(broken, NO_LIBRARY).remedy.startswith("the driver first")
    assert "cuFoo" in software.pycuda(broken, STARTS).found
    good = Answer({"version": "2025.1", "headers": "13.0"})
    assert software.pycuda(good, STARTS).state == "ok"


def test_driver_with_version() -> None:
    row = gpu.driver(STARTS, Answer({"driver": "580.95"}), Path("/nowhere"))
    assert row.state == "ok"
    assert "580.95" in row.found
    assert "13.0" in row.found


@pytest.mark.parametrize(
    ("error", "word"), [(100, "--gpus all"), (802, "fabricmanager"), (803, "reboot"), (999, "smi")]
)
def test_driver_that_does_not_start(error: int, word: str) -> None:
    answer = Answer({"error": error, "cuda": [13, 0], "count": 0})
    row = gpu.driver(answer, NO_NVML, Path("/nowhere"))
    assert row.state == "missing"
    assert f"CUDA error {error}" in row.found
    assert word in row.remedy


def test_driver_that_sees_no_gpu_without_an_error() -> None:
    row = gpu.driver(Answer({"error": 0, "cuda": [13, 0], "count": 0}), NO_NVML, Path("/"))
    assert row.state == "missing"
    assert "sees no GPU" in row.found


def test_absent_driver_tells_container_card_and_nothing_apart(tmp_path: Path) -> None:
    nothing = gpu.driver(NO_LIBRARY, NO_NVML, tmp_path)
    assert "no NVIDIA card" in nothing.found
    put(tmp_path, "sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
    put(tmp_path, "sys/bus/pci/devices/0000:01:00.0/class", "0x040300\n")  # only its sound
    assert not gpu.has_nvidia_card(tmp_path)
    put(tmp_path, "sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n")
    assert "card is in this machine" in gpu.driver(NO_LIBRARY, NO_NVML, tmp_path).found
    put(tmp_path, "proc/driver/nvidia/version", "NVRM version")
    assert "--gpus all" in gpu.driver(NO_LIBRARY, NO_NVML, tmp_path).remedy


def test_hidden_gpus_are_told() -> None:
    assert gpu.visible("").state == "warning"
    assert "unset" in gpu.visible("").remedy
    assert (gpu.visible("2,3").state, gpu.visible("2,3").found[:4]) == ("ok", "2,3:")


def test_compiler_that_is_newer_than_the_driver() -> None:
    made = Answer({"version": "13.0.88", "archs": ["sm_75", "sm_90"], "bindings": "13"})
    old = Answer({"error": 0, "cuda": [12, 8], "count": 1})
    row = gpu.compiler_fits(made, old, NO_NVML)
    assert row is not None
    assert row.state == "missing"
    assert "12.8" in row.found
    fits = gpu.compiler_fits(made, STARTS, NO_NVML)
    assert fits is not None
    assert fits.state == "ok"
    assert gpu.compiler_fits(Answer(failure="none"), STARTS, NO_NVML) is None


def test_compiler_that_does_not_know_the_gpu() -> None:
    made = Answer({"version": "13.0.88", "archs": ["sm_75", "sm_90"], "bindings": "13"})
    volta = Answer({"gpus": [{"index": 1, "capability": [7, 0]}]})
    row = gpu.compiler_fits(made, STARTS, volta)
    assert row is not None
    assert row.state == "missing"
    assert "sm_70 (GPU 1)" in row.found


def test_governor(tmp_path: Path) -> None:
    assert "virtual machine" in system.governor(tmp_path).found
    place = "sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"
    put(tmp_path, place.format(0), "performance\n")
    assert system.governor(tmp_path).state == "ok"
    put(tmp_path, place.format(17), "powersave\n")
    row = system.governor(tmp_path)
    assert row.state == "warning"
    assert row.found == "performance, powersave"
    assert "cpupower" in row.remedy


def test_load() -> None:
    assert system.load(8, 4, 0.5).state == "ok"
    assert system.load(8, 4, 0.5).found.startswith("4 of 8 usable")
    assert system.load(8, 8, 4.5).state == "warning"


def test_cache_counts_files(tmp_path: Path) -> None:
    put(tmp_path, "ab/abcd", "x" * 1024)
    put(tmp_path, "cd/cdef", "x" * 1024)
    row = system.cache(tmp_path)
    assert row.state == "ok"
    assert "2 kernels" in row.found
    assert system.cache(tmp_path / "not" / "yet").state == "ok"
    assert not (tmp_path / "not").exists()


def test_folders_that_cannot_be_written(tmp_path: Path) -> None:
    blocked = put(tmp_path, "file") / "below"  # nothing can be made inside a file, even by root
    assert system.cache(blocked).state == "warning"
    assert system.results(blocked).state == "missing"
    good = system.results(tmp_path / "results")
    assert good.state in ("ok", "warning")  # the disk may be nearly full
    assert "GiB free" in good.found
    assert not (tmp_path / "results").exists()


def test_ncu_on_the_path_or_beside_it(tmp_path: Path) -> None:
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
    assert (row.state, row.remedy) == ("missing", "nqbench run configs/ceilings.yaml")
    put(tmp_path, "local/cuda-1/ceilings/manifest.json")
    row = system.ceilings(tmp_path)
    assert (row.state, row.found) == ("ok", "measured on cuda-1")
