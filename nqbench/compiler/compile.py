"""CUDA C++ to PTX or cubin, by NVRTC, cached on disk.

PTX feeds the simulator, a cubin feeds a GPU and the static report. A kernel is named by a C++ name
expression (a template instance); its source may include files beside it with ``#include "x.cuh"``.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

from nqbench.compiler import bindings, nvrtc
from nqbench.compiler.compiled import Compiled, cache_key, read_entry, write_entry
from nqbench.compiler.host import DevicePart
from nqbench.compiler.includes import STANDINS, find_headers, read_source
from nqbench.compiler.nvrtc import CompileRequest, ImageKind, compiler_version
from nqbench.errors import CompileError
from nqbench.plan import Kernel
from nqbench.system.machine import cpu_count
from nqbench.system.versions import PACKAGE, installed

_CUDA_HEADERS: Final = (
    *("nvidia-cuda-runtime", "nvidia-cuda-cccl"),
    *("nvidia-cuda-runtime-cu12", "nvidia-cuda-cccl-cu12"),
)
RELOCATABLE: Final = "--relocatable-device-code=true"
OF_FILES: Final = (
    *("I", "include", "pre-include"),
    *("pch", "create-pch", "use-pch", "time", "fdevice-time-trace"),
)
"""Options with a path: what they read would change a kernel without its key; some write files."""


def compile_kernel(kernel: Kernel, arch: str, kind: ImageKind = "cubin") -> Compiled:
    """Compile a plan's kernel for ``arch`` (``sm_90``); see :func:`compile_request`."""
    return compile_request(cubin_request(kernel, arch, kind))


def cubin_request(kernel: Kernel, arch: str, kind: ImageKind = "cubin") -> CompileRequest:
    """The request for a plan's kernel as machine code (or PTX) for ``arch``."""
    return CompileRequest(
        kind,
        kernel.source,
        kernel.entry,
        arch,
        kernel.options,
        kernel.device_launch,
        tuple(Path(folder).resolve() for folder in kernel.include),
        tuple(sorted(kernel.symbols)),
    )


def compile_many(
    requests: Sequence[CompileRequest], done: Callable[[], None] | None = None
) -> list[Compiled | CompileError]:
    """Compile kernels in parallel; results in the order of the requests.

    A kernel that does not compile gives its ``CompileError`` in place, so one bad combination does
    not lose the others. A thread on each usable core: NVRTC releases Python's lock. ``done`` is
    called after each kernel, for a progress display. Raises ``DeviceUnavailable`` if there is no
    compiler.
    """
    if not requests:
        return []
    compiler_version()
    results: list[Compiled | CompileError] = []

    def compiled(request: CompileRequest) -> Compiled | CompileError:
        try:
            return compile_request(request)
        except CompileError as error:
            return error

    with ThreadPoolExecutor(cpu_count()) as pool:
        for result in pool.map(compiled, requests):
            results.append(result)
            if done is not None:
                done()
    return results


def compile_request(request: CompileRequest) -> Compiled:
    """Compile one kernel, or find it in the cache.

    Raises ``CompileError`` (file and line of the kernel; a missing device runtime of a kernel that
    launches kernels) or ``DeviceUnavailable`` (no NVRTC).
    """
    _check(request)
    text = read_source(request.source)
    source = request.source.resolve()
    headers = find_headers(source, text, folders=request.include)
    key = cache_key(
        (
            compiler_version(),
            request.kind,
            request.arch,
            request.entry,
            *request.options,
            *_linking(request),
            *_surroundings(),
            *("variables", *request.variables),
            "source",
            str(source),  # part of the line information in the image
            text,
            *(part for h in headers for part in (h.name, str(h.path), h.text)),
        )
    )
    if found := read_entry(key):
        return found
    options = request.options + ((RELOCATABLE,) if request.device_launch else ())
    program = replace(request, text=text, source=source, options=options)
    try:
        image, symbols, log = nvrtc.build(program)
    except nvrtc.Rejected as error:
        if source.is_relative_to(PACKAGE):
            raise  # they compile as they stand: what does not is a mistake
        image, symbols, log = DevicePart(program, headers).build(error)
    symbol = symbols.pop(request.entry)
    start = f".text.{symbol}" if request.kind == "cubin" else f".entry {symbol}("
    if start.encode() not in image:
        said = f"kernel {request.entry} is only declared there; name the file that has its body"
        raise CompileError(f"{source.name}: {said}")
    if request.device_launch and request.kind == "cubin":
        image = bindings.link(image, symbol, request.arch)
    made = Compiled(image, symbol, log, symbols)
    write_entry(key, made)
    return made


@functools.cache
def _surroundings() -> tuple[str, ...]:
    standins = cache_key(part for item in STANDINS.items() for part in item)
    versions = (installed(name) or "" for name in _CUDA_HEADERS)
    return ("headers", standins, *map(str, bindings.cuda_headers()), *versions)


def _linking(request: CompileRequest) -> tuple[str, ...]:
    """What linking adds to the key of a compilation; empty for a kernel that is not linked."""
    if not request.device_launch:
        return ()
    if request.kind == "ptx":
        return (RELOCATABLE,)
    runtime = hashlib.sha256(bindings.device_runtime().read_bytes()).hexdigest()
    return (RELOCATABLE, bindings.linker_version(), runtime)


def _check(request: CompileRequest) -> None:
    if not re.fullmatch(r"sm_\d{2,3}[af]?", request.arch):
        raise CompileError(
            f"{request.source.name}: unknown architecture {request.arch!r};"
            f" architectures are written like sm_90"
        )
    for option in request.options:
        if option.lstrip("-").startswith(OF_FILES):
            raise CompileError(
                f"{request.source.name}: compiler option {option!r} is not accepted; name the"
                " folder under include, or put the file beside the kernel"
            )
