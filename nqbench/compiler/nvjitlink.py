"""Linking a kernel that launches kernels itself with CUDA's device runtime.

nvJitLink does it, called through cuda-bindings; like NVRTC it needs no driver and no GPU. The
runtime is a static library (``libcudadevrt.a``) from a pip package or a CUDA toolkit. A missing
library is a ``CompileError``: it concerns such kernels only, and a study continues with the others.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any, Final

from nqbench.compiler.bindings import cuda_roots, load_bindings, requirements
from nqbench.errors import CompileError

LIBRARY: Final = "libcudadevrt.a"
_FOLDERS: Final = ("lib", "lib64", "targets/*/lib")  # of a pip package, or of a toolkit


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
        raise CompileError(
            f"kernel {symbol} cannot be linked with {library} for {arch} by nvJitLink"
            f" {linker_version()}: {_message_of(nvjitlink, handle) or error}"
        ) from error
    finally:
        nvjitlink.destroy(handle)


@functools.cache
def _nvjitlink() -> Any:
    what = "a kernel that launches kernels needs CUDA's linker nvJitLink, which"
    return load_bindings("nvjitlink", "version", CompileError, what)


def _message_of(nvjitlink: Any, handle: int) -> str:
    size = nvjitlink.get_error_log_size(handle)
    if size <= 1:
        return ""
    raw = bytearray(size)
    nvjitlink.get_error_log(handle, raw)
    return " ".join(bytes(raw).rstrip(b"\0").decode(errors="replace").split())
