"""The CUDA libraries that cuda-bindings calls: how they are loaded, and their pip packages."""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any, Final

from nqbench.errors import NqbenchError
from nqbench.system.versions import installed

PACKAGES: Final = {"nvrtc": "nvidia-cuda-nvrtc", "nvjitlink": "nvidia-nvjitlink"}
_FILES: Final = {"nvrtc": "libnvrtc.so.", "nvjitlink": "libnvJitLink.so."}

_ROOTS: Final = ("CUDA_HOME", "CUDA_PATH")
_USUAL_ROOT: Final = Path("/usr/local/cuda")
_INCLUDES: Final = ("include", "include/cccl", "targets/*/include", "targets/*/include/cccl")


def load_bindings(name: str, first_call: str, missing: type[NqbenchError], what: str) -> Any:
    """The module ``cuda.bindings.NAME`` with its library loaded.

    Raises ``missing``: ``what`` cannot be loaded, the first line of the reason, how to install it.
    """
    try:
        if cuda_major() == 12:
            _load_cuda_12(f"{PACKAGES[name]}-cu12", _FILES[name])
        module = importlib.import_module(f"cuda.bindings.{name}")
        getattr(module, first_call)()  # the first call loads the library
    except (ImportError, RuntimeError, OSError) as error:
        reason = str(error).strip().partition("\n")[0] or repr(error)
        (package,) = requirements(PACKAGES[name])
        raise missing(
            f"{what} cannot be loaded ({reason}); install it with {sys.executable} -m pip install"
            f" '{package}'"
        ) from error
    return module


def cuda_major() -> int:
    """Major version of CUDA that the installed cuda-bindings is for; 13 without it."""
    return int((installed("cuda-bindings") or "13").partition(".")[0])


def requirements(*packages: str) -> tuple[str, ...]:
    """pip requirements for NVIDIA's ``packages`` that fit the installed cuda-bindings."""
    major = cuda_major()
    if major == 12:
        return tuple(f"{name}-cu12>=12.6,<13" for name in packages)
    return tuple(f"{name}>={major},<{major + 1}" for name in packages)


def cuda_roots() -> Iterator[Path]:
    """Folders of CUDA installations, those of pip packages first.

    These fit the compiler and the linker, which are installed in the same way.
    """
    try:
        import nvidia
    except ImportError:
        pass  # no package of NVIDIA's is installed
    else:
        for folder in map(Path, nvidia.__path__):
            if cuda_major() > 12:
                yield from sorted(folder.glob("cu[0-9]*"), reverse=True)
            yield from (folder / package for package in ("cuda_runtime", "cuda_cccl"))
    yield from (Path(os.environ[name]) for name in _ROOTS if os.environ.get(name))
    yield _USUAL_ROOT


@functools.cache
def cuda_headers() -> tuple[Path, ...]:
    """Folders with CUDA's own headers."""
    places = (
        place for root in cuda_roots() for pattern in _INCLUDES for place in root.glob(pattern)
    )
    return tuple(dict.fromkeys(place for place in places if place.is_dir()))


def _load_cuda_12(package: str, prefix: str) -> None:
    """Load the library of CUDA 12 if it is installed.

    nqbench requires that of CUDA 13, which cuda-bindings would find first, but its output does not
    run on the drivers that the extra ``cuda12`` is for. cuda-bindings uses a library that is
    already loaded.
    """
    try:
        found = [file for file in files(package) or () if file.name.startswith(prefix)]
    except PackageNotFoundError:
        return
    for file in found:
        ctypes.CDLL(str(file.locate()))
