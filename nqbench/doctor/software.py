"""Rows about Python and its packages, from the answers of the probe."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from nqbench.doctor.probe import Answer
from nqbench.doctor.report import Row
from nqbench.system.versions import PACKAGE

OLDEST_PYTHON: Final = (3, 11)
DISPENSABLE: Final = ("tbb", "nvidia-")
"""How requirements begin without which nqbench works: one scheme of one workload needs TBB, and
NVIDIA's libraries may come from a CUDA toolkit, which the rows of the compiler find out."""


def setup(extra: str = "") -> str:
    """The command that installs what nqbench requires: ``make setup`` in a checkout, else pip.

    ``make setup`` also builds PyCUDA where there is a GPU, and takes the compiler that the driver
    needs; for pip, ``extra`` names these requirements.
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
        # Unknown is not missing: a package that is really missing has its own row below.
        return Row(name, "warning", f"cannot be checked: {answer.failure}", "core", setup())
    unmet = answer.value["unmet"]
    if unmet:
        text = f"not installed or too old: {', '.join(unmet)}"
        needed = any(not requirement.startswith(DISPENSABLE) for requirement in unmet)
        return Row(name, "missing" if needed else "warning", text, "core", setup())
    return Row(name, "ok", f"all {answer.value['count']} requirements met", "core")


def compiler(answer: Answer) -> Row:
    """NVRTC and cuda-bindings, which compile every kernel."""
    known = answer.value.get("archs")
    archs = f"{known[0]} to {known[-1]}" if known else "no architecture"
    found = f"{{version}} for {archs}, cuda-bindings {{bindings}}"
    return _package("CUDA compiler (NVRTC)", answer, found, "compile", setup())


def linker(answer: Answer) -> Row:
    """nvJitLink and the device runtime, for kernels that launch kernels."""
    found = "{runtime}, linked by nvJitLink {version}"
    return _package("CUDA device runtime", answer, found, "dynamic parallelism", setup())


def llvmlite(answer: Answer) -> Row:
    """The simulator's code generator."""
    found = "{version}, LLVM {llvm}, code for {cpu}"
    return _package("llvmlite", answer, found, "sim", pip_install("llvmlite"))


def numba(answer: Answer) -> Row:
    """The compiler of the CPU baselines."""
    return _package("numba", answer, "{version}", "cpu", pip_install("numba", "llvmlite"))


def pycuda(answer: Answer, driver: Answer) -> Row:
    """PyCUDA, which launches kernels on a GPU."""
    found = "{version}, built with CUDA {headers} headers"
    remedy = f"{setup('cuda')}   (builds it; needs g++ and the Python headers)"
    if not driver.ok or driver.value.get("error"):
        remedy = f"the driver first, then {setup('cuda')}"
    return _package("PyCUDA", answer, found, "gpu", remedy)


def nvbench(answer: Answer) -> Row:
    """cuda-bench, NVIDIA's own benchmark package."""
    if not answer.ok:
        answer = Answer(failure="not installed")
    return _package("cuda-bench", answer, "{version}", "cross-check", pip_install("cuda-bench"))


def _package(name: str, answer: Answer, found: str, feature: str, remedy: str) -> Row:
    """A row that is ``ok`` where the question was answered; ``found`` is a template for it."""
    if not answer.ok:
        return Row(name, "missing", answer.failure, feature, remedy)
    return Row(name, "ok", found.format_map(answer.value), feature)
