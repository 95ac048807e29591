"""The CUDA libraries that cuda-bindings calls: loading them, their pip packages, and linking.

A kernel that launches kernels itself is linked with CUDA's device runtime by nvJitLink, which like
NVRTC needs no driver and no GPU. The runtime is a static library (``libcudadevrt.a``) from a pip
package or a CUDA toolkit. A missing library is a ``CompileError``: it concerns such kernels only,
and a study continues with the others.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any, Final

from nqbench.errors import CompileError, NqbenchError
from nqbench.system.versions import installed

PACKAGES: Final = {"nvrtc": "nvidia-cuda-nvrtc", "nvjitlink": "nvidia-nvjitlink"}
_FILES: Final = {"nvrtc": "libnvrtc.so.", "nvjitlink": "libnvJitLink.so."}

_ROOTS: Final = ("CUDA_HOME", "CUDA_PATH")
_USUAL_ROOT: Final = Path("/usr/local/cuda")
_INCLUDES: Final = ("include", "include/cccl", "targets/*/include", "targets/*/include/cccl")
LIBRARY: Final = "libcudadevrt.a"
_FOLDERS: Final = ("lib", "lib64", "targets/*/lib")  # of a pip package, or of a toolkit


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
    with suppress(ImportError):  # no package of NVIDIA's is installed
        import nvidia

        for folder in map(Path, nvidia.__path__):
            if cuda_major() > 12:
                yield from sorted(folder.glob("cu[0-9]*"), reverse=True)
            yield from (folder / package for package in ("cuda_runtime", "cuda_cccl"))
    yield from (Path(os.environ[name]) for name in _ROOTS if os.environ.get(name))
    yield _USUAL_ROOT


@functools.cache
def cuda_headers() -> tuple[Path, ...]:
    """Folders with CUDA's own headers."""
    found = (root.glob(pattern) for root in cuda_roots() for pattern in _INCLUDES)
    return tuple(dict.fromkeys(place for places in found for place in places if place.is_dir()))


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


def device_runtime() -> Path:
    """The device runtime's library. Raises ``CompileError`` with how to install it."""
    places = (root.glob(f"{name}/{LIBRARY}") for root in cuda_roots() for name in _FOLDERS)
    found = next((path for found in places for path in sorted(found)), None)
    if found is None:
        (package,) = requirements("nvidia-cuda-runtime")
        raise CompileError(
            f"a kernel that launches kernels needs CUDA's device runtime ({LIBRARY}), which is not"
            f" here; install it with {sys.executable} -m pip install '{package}', or set CUDA_HOME"
            " to a CUDA toolkit"
        )
    return found


@functools.cache
def linker_version() -> str:
    """Version of nvJitLink, e.g. ``13.0``. Raises ``CompileError`` if it is not installed."""
    major, minor = _nvjitlink().version()
    return f"{major}.{minor}"


def link(image: bytes, symbol: str, arch: str) -> bytes:
    """Link a relocatable cubin with the device runtime; an executable cubin comes back.

    ``arch`` is written like ``sm_90``. Raises ``CompileError`` with the linker's message, or with
    how to install the linker or the library if one is missing.
    """
    nvjitlink, library = _nvjitlink(), device_runtime()
    handle = nvjitlink.create(1, [f"-arch={arch}"])
    try:
        nvjitlink.add_data(handle, nvjitlink.InputType.CUBIN, image, len(image), symbol)
        nvjitlink.add_file(handle, nvjitlink.InputType.LIBRARY, str(library))
        nvjitlink.complete(handle)
        linked = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, linked)
        return bytes(linked)
    except nvjitlink.nvJitLinkError as error:
        log = bytearray(max(1, nvjitlink.get_error_log_size(handle)))
        nvjitlink.get_error_log(handle, log)
        said = " ".join(log.rstrip(b"\0").decode(errors="replace").split()) or error
        by = f"for {arch} by nvJitLink {linker_version()}: {said}"
        raise CompileError(f"kernel {symbol} cannot be linked with {library} {by}") from error
    finally:
        nvjitlink.destroy(handle)


@functools.cache
def _nvjitlink() -> Any:
    what = "a kernel that launches kernels needs CUDA's linker nvJitLink, which"
    return load_bindings("nvjitlink", "version", CompileError, what)
