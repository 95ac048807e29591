"""The GPU half of set-up: what driver is here, which packages fit it, PyCUDA without a toolkit.

PyCUDA is published as source only. It needs g++ and the Python headers of the machine; CUDA's own
headers come from pip packages, and the driver's library is what it links with.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Install = Callable[[Path, list[str], dict[str, str] | None], None]

LIBRARY = "libcuda.so.1"
FIRST_CUDA_13_CAPABILITY = (7, 5)  # CUDA 13 compiles for Turing and later
OLDEST_CUDA = (12, 0)
CAPABILITY_ATTRIBUTES = (75, 76)  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR


@dataclass(frozen=True)
class Driver:
    """An NVIDIA driver.

    ``cuda`` is the newest CUDA version it serves, ``capability`` the lowest compute capability
    of its GPUs; ``problem`` says why it cannot be used, if so.
    """

    path: str
    cuda: tuple[int, int]
    capability: tuple[int, int]
    problem: str = ""


def find_driver() -> Driver | None:
    """The machine's driver; ``None`` if there is none (then nothing of this file is needed)."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return None
    path = loaded_from()
    status = library.cuInit(0)
    version, count = ctypes.c_int(0), ctypes.c_int(0)
    library.cuDriverGetVersion(ctypes.byref(version))
    cuda = (version.value // 1000, version.value % 1000 // 10)
    if status == 0:
        status = library.cuDeviceGetCount(ctypes.byref(count))
    if status != 0 or count.value == 0:
        problem = f"the NVIDIA driver finds no working GPU (CUDA error {status})"
        return Driver(path, cuda, (0, 0), problem)
    lowest = min(capability(library, index) for index in range(count.value))
    if cuda < OLDEST_CUDA:
        problem = (
            f"the NVIDIA driver serves CUDA {cuda[0]}.{cuda[1]} at most and nqbench needs 12.0:"
            " install driver 525 or later"
        )
        return Driver(path, cuda, lowest, problem)
    return Driver(path, cuda, lowest)


def capability(library: ctypes.CDLL, index: int) -> tuple[int, int]:
    """Compute capability of one GPU."""
    device, value = ctypes.c_int(0), ctypes.c_int(0)
    library.cuDeviceGet(ctypes.byref(device), index)
    parts = []
    for attribute in CAPABILITY_ATTRIBUTES:
        library.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        parts.append(value.value)
    return parts[0], parts[1]


def loaded_from() -> str:
    """File of the driver library that this process has loaded."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        path = line.partition("/")[2]
        if "libcuda.so" in path:
            return f"/{path}"
    return LIBRARY


def compiler_extra(driver: Driver | None) -> str:
    """Extra of pyproject.toml for a driver or GPU older than CUDA 13; empty if none is needed."""
    if driver is None or driver.cuda == (0, 0):
        return ""
    if driver.cuda < (13, 0) or (0, 0) < driver.capability < FIRST_CUDA_13_CAPABILITY:
        return "cuda12"
    return ""


def lacking() -> str:
    """A sentence naming what the build of PyCUDA lacks; empty if nothing."""
    missing = []
    if shutil.which(os.environ.get("CXX", "g++").split()[0]) is None:
        missing.append("g++")
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        missing.append("the Python headers (python3-dev)")
    if not missing:
        return ""
    return f"PyCUDA needs {' and '.join(missing)}; install and run make again"


def pycuda_fault(venv: Path) -> str:
    """Why the environment's PyCUDA does not start with this driver; empty if it does."""
    code = "import pycuda.driver as driver; driver.init()"
    command = [str(venv / "bin" / "python"), "-c", code]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode == 0:
        return ""
    lines = [line for line in run.stderr.splitlines() if line.strip()]
    return lines[-1] if lines else f"exit code {run.returncode}"


def header_packages(driver: Driver) -> list[str]:
    """Requirements of CUDA's headers, not newer than the driver: it must know every function."""
    major, minor = driver.cuda
    suffix = ""
    if compiler_extra(driver) == "cuda12":
        suffix = "-cu12"
        major, minor = min(driver.cuda, (12, 99))
    limits = f">={major}.0,<{major}.{minor + 1}"
    names = ("nvidia-cuda-runtime", "nvidia-cuda-profiler-api")
    return [f"{name}{suffix}{limits}" for name in names]


def build_pycuda(venv: Path, driver: Driver, pyproject: Path, install: Install) -> None:
    """Build and install PyCUDA against headers from pip. Raises what ``install`` raises."""
    with tempfile.TemporaryDirectory(prefix="nqbench-pycuda-") as name:
        folder = Path(name)
        headers = folder / "headers"
        target = ["--target", str(headers), "--no-deps", *header_packages(driver)]
        install(venv, target, None)
        wanted = pycuda_requirement(pyproject)
        # No cache and no mercy for what is installed: a wheel built for another driver imports
        # with undefined symbols.
        fresh = ["--no-cache-dir", "--force-reinstall", "--no-deps", *wanted]
        install(venv, fresh, build_environment(folder, headers, driver))
        install(venv, wanted, None)  # what it depends on


def pycuda_requirement(pyproject: Path) -> list[str]:
    """What the extra ``cuda`` of pyproject.toml asks for."""
    import tomllib  # from Python 3.11; older ones stop before this, with a sentence

    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    return list(project["optional-dependencies"]["cuda"])


def build_environment(folder: Path, headers: Path, driver: Driver) -> dict[str, str]:
    """Environment in which PyCUDA builds without a CUDA toolkit."""
    # cuRAND comes only with a toolkit; PyCUDA reads this file from the home folder.
    (folder / ".aksetup-defaults.py").write_text("CUDA_ENABLE_CURAND = False\n", encoding="utf-8")
    # The linker asks for libcuda.so, which drivers do not install.
    links = folder / "lib"
    links.mkdir()
    (links / "libcuda.so").symlink_to(driver.path)
    includes = sorted({str(path.parent) for path in headers.glob("nvidia/*/include/*.h")})
    # A toolkit on the PATH would put its own headers, perhaps newer than the driver, first.
    paths = os.environ.get("PATH", "").split(os.pathsep)
    paths = [path for path in paths if not (Path(path) / "nvcc").exists()]
    home = Path.home()
    environment = dict(os.environ)
    # pip keeps its settings and cache where they are, in spite of the other home folder.
    environment.setdefault("XDG_CONFIG_HOME", str(home / ".config"))
    environment.setdefault("XDG_CACHE_HOME", str(home / ".cache"))
    if (home / ".netrc").exists():
        environment.setdefault("NETRC", str(home / ".netrc"))
    environment.update(
        HOME=str(folder),
        PATH=os.pathsep.join(paths),
        CPATH=joined(includes, environment.get("CPATH")),
        LIBRARY_PATH=joined([str(links)], environment.get("LIBRARY_PATH")),
        # -O1: launching takes microseconds either way, and the build half the time.
        CFLAGS="-O1 -g0 -w",
    )
    environment.setdefault("CC", "gcc")
    environment.setdefault("CXX", "g++")
    return environment


def joined(folders: list[str], more: str | None) -> str:
    """Folders as a search path, before those already there."""
    return os.pathsep.join([*folders, *([more] if more else [])])
