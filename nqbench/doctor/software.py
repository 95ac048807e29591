"""Rows about Python and its packages, from the answers of the probe."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from nqbench.doctor.probe import Answer
from nqbench.doctor.report import Row
from nqbench.system.versions import PACKAGE

OLDEST_PYTHON: Final = (3, 11)


def setup(extra: str = "") -> str:
    """The command that brings what nqbench requires: in a checkout, or as it is installed.

    In a checkout it also builds PyCUDA where there is a GPU, and takes the compiler that the driver
    needs; elsewhere ``extra`` names those requirements.
    """
    if (PACKAGE.parent / "Makefile").is_file():
        return "make setup"
    return pip_install(f"nqbench[{extra}]" if extra else "nqbench")


def pip_install(*requirements: str) -> str:
    """The command that installs packages into the environment that is running."""
    quoted = " ".join(f"'{requirement}'" for requirement in requirements)
    return f"{sys.executable} -m pip install {quoted}"


def python(version: tuple[int, int, int]) -> Row:
    """The interpreter."""
    found = f"{'.'.join(str(part) for part in version)} in {Path(sys.prefix)}"
    if version < OLDEST_PYTHON:
        return Row("Python", "missing", found, "core", "install Python 3.11 or later")
    return Row("Python", "ok", found, "core")


def packages(answer: Answer) -> Row:
    """Requirements of nqbench itself."""
    name = "Python packages"
    if not answer.ok:
        # Unknown is not absent: whatever is really lacking has a row of its own below.
        return Row(name, "warning", f"cannot be checked: {answer.failure}", "core", setup())
    unmet = answer.value["unmet"]
    if unmet:
        text = f"not installed or too old: {', '.join(unmet)}"
        return Row(name, "missing", text, "core", setup())
    return Row(name, "ok", f"all {answer.value['count']} requirements met", "core")


def compiler(answer: Answer) -> Row:
    """NVRTC and cuda-bindings, which compile every kernel."""
    name = "CUDA compiler (NVRTC)"
    if not answer.ok:
        return Row(name, "missing", answer.failure, "compile", setup())
    value = answer.value
    archs = f"{value['archs'][0]} to {value['archs'][-1]}" if value["archs"] else "no architecture"
    found = f"{value['version']} for {archs}, cuda-bindings {value['bindings']}"
    return Row(name, "ok", found, "compile")


def linker(answer: Answer) -> Row:
    """nvJitLink and the device runtime, for kernels that launch kernels."""
    name, feature = "CUDA device runtime", "dynamic parallelism"
    if not answer.ok:
        return Row(name, "missing", answer.failure, feature, setup())
    value = answer.value
    found = f"{value['runtime']}, linked by nvJitLink {value['version']}"
    return Row(name, "ok", found, feature)


def llvmlite(answer: Answer) -> Row:
    """The simulator's code generator."""
    if not answer.ok:
        return Row("llvmlite", "missing", answer.failure, "sim", pip_install("llvmlite"))
    value = answer.value
    found = f"{value['version']}, LLVM {value['llvm']}, code for {value['cpu']}"
    return Row("llvmlite", "ok", found, "sim")


def numba(answer: Answer) -> Row:
    """The compiler of the CPU baselines."""
    if not answer.ok:
        return Row("numba", "missing", answer.failure, "cpu", pip_install("numba", "llvmlite"))
    return Row("numba", "ok", str(answer.value["version"]), "cpu")


def pycuda(answer: Answer, driver: Answer) -> Row:
    """PyCUDA, which launches kernels on a GPU."""
    name = "PyCUDA"
    if answer.ok:
        value = answer.value
        found = f"{value['version']}, built with CUDA {value['headers']} headers"
        return Row(name, "ok", found, "gpu")
    remedy = f"{setup('cuda')}   (builds it; needs g++ and the Python headers)"
    if not driver.ok or driver.value.get("error"):
        remedy = f"the driver first, then {setup('cuda')}"
    return Row(name, "missing", answer.failure, "gpu", remedy)


def nvbench(answer: Answer) -> Row:
    """cuda-bench, NVIDIA's own benchmark package."""
    if not answer.ok:
        remedy = pip_install("cuda-bench")
        return Row("cuda-bench", "missing", "not installed", "cross-check", remedy)
    return Row("cuda-bench", "ok", str(answer.value["version"]), "cross-check")
