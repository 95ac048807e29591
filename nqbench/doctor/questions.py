"""Questions that are asked in a process of their own: ``python -m nqbench.doctor.questions NAME``.

Each answers with JSON on standard output. What goes wrong is not handled here: a crash, a hang or
the last line of a traceback is the answer then, and ``probe`` reads it.
"""

from __future__ import annotations

import ctypes
import json
import sys
import tomllib
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any, Final

from nqbench.devices.cuda.driver import LIBRARY
from nqbench.errors import DeviceUnavailable
from nqbench.system.versions import PACKAGE, installed

UNKNOWN: Final = "of unknown version"
"""A package that can be imported and has no metadata: copied, not installed."""


def packages() -> dict[str, Any]:
    """Requirements of nqbench itself that this environment does not meet."""
    from packaging.requirements import Requirement

    unmet = []
    requirements = [Requirement(text) for text in own_requirements()]
    own = [r for r in requirements if r.marker is None or r.marker.evaluate({"extra": ""})]
    for requirement in own:
        found = installed(requirement.name)
        if found is None:
            unmet.append(str(requirement))
        elif not requirement.specifier.contains(found, prereleases=True):
            unmet.append(f"{requirement} (installed: {found})")
    return {"unmet": unmet, "count": len(own)}


def own_requirements() -> list[str]:
    """What nqbench needs: as it was installed, else as the source folder that it runs from says.

    Raises ``DeviceUnavailable`` where neither is there.
    """
    try:
        return list(requires("nqbench") or ())
    except PackageNotFoundError:
        project = PACKAGE.parent / "pyproject.toml"
    try:
        with project.open("rb") as file:
            return list(tomllib.load(file)["project"]["dependencies"])
    except (OSError, ValueError, KeyError) as error:
        raise DeviceUnavailable(
            f"nqbench runs from {project.parent} without being installed, and what it needs cannot"
            f" be read in {project.name} there"
        ) from error


def driver() -> dict[str, Any]:
    """The driver's library: error of ``cuInit``, newest CUDA version, number of GPUs."""
    library = ctypes.CDLL(LIBRARY)
    version, count = ctypes.c_int(0), ctypes.c_int(0)
    error = library.cuInit(0)
    library.cuDriverGetVersion(ctypes.byref(version))
    if error == 0:
        error = library.cuDeviceGetCount(ctypes.byref(count))
    cuda = [version.value // 1000, version.value % 1000 // 10]
    return {"error": error, "cuda": cuda, "count": count.value}


def compiler() -> dict[str, Any]:
    """NVRTC: its version, the architectures it knows, and the bindings that call it."""
    from nqbench.compiler import nvrtc

    return {
        "version": nvrtc.compiler_version(),
        "archs": list(nvrtc.supported_archs()),
        "bindings": installed("cuda-bindings") or UNKNOWN,
    }


def linker() -> dict[str, Any]:
    """nvJitLink and the device runtime, which a kernel that launches kernels is linked with."""
    from nqbench.compiler import nvjitlink as linking

    return {"version": linking.linker_version(), "runtime": str(linking.device_runtime())}


def pycuda() -> dict[str, Any]:
    """PyCUDA: version, CUDA headers it was built with. Makes no context."""
    import pycuda.driver as cuda

    cuda.init()
    headers = ".".join(str(part) for part in cuda.get_version()[:2])
    return {"version": installed("pycuda") or UNKNOWN, "headers": headers}


def llvmlite() -> dict[str, Any]:
    """The simulator's code generator: version, LLVM, processor it generates code for."""
    import llvmlite as package
    from llvmlite import binding

    return {
        "version": package.__version__,
        "llvm": ".".join(str(part) for part in binding.llvm_version_info),
        "cpu": binding.get_host_cpu_name(),
    }


def numba() -> dict[str, Any]:
    """The compiler of the baselines on the processor."""
    import numba as package

    return {"version": package.__version__}


def nvbench() -> dict[str, Any]:
    """NVIDIA's own benchmark package, which only a cross-check uses."""
    return {"version": version("cuda-bench")}


def nvml() -> dict[str, Any]:
    """What NVML tells about the driver and every GPU."""
    from nqbench.doctor.nvml import describe

    return describe()


QUESTIONS: Final[Mapping[str, Callable[[], dict[str, Any]]]] = {
    question.__name__: question
    for question in (packages, driver, compiler, linker, pycuda, llvmlite, numba, nvbench, nvml)
}


def main(name: str) -> None:
    """Answer one question."""
    sys.stdout.write(json.dumps(QUESTIONS[name]()))


if __name__ == "__main__":
    main(sys.argv[1])
