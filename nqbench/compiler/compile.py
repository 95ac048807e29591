"""CUDA C++ to PTX or cubin, by NVRTC, cached on disk.

PTX feeds the simulator, a cubin feeds a GPU and the static report. A kernel is named by a C++ name
expression (a template instance); its source may include files beside it with ``#include "x.cuh"``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nqbench.compiler import nvjitlink as linking
from nqbench.compiler import nvrtc
from nqbench.compiler.cache import Entry, cache_key, read_entry, write_entry
from nqbench.compiler.nvrtc import ImageKind, compiler_version
from nqbench.errors import CompileError, DeviceUnavailable

__all__ = [
    "CompileRequest",
    "Compiled",
    "compile_cubin",
    "compile_many",
    "compile_ptx",
    "compiler_version",
    "ensure_compiler",
]

_INCLUDE: Final = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_ARCH: Final = re.compile(r"sm_\d{2,3}[af]?")
RELOCATABLE: Final = "--relocatable-device-code=true"
_PATH_OPTIONS: Final = ("-I", "--include-path", "--pre-include", "-include")


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled kernel.

    ``image`` is PTX text or an ELF cubin, ``symbol`` the kernel's mangled name in it, ``log`` what
    the compiler said, ``cached`` whether it came from the disk.
    """

    image: bytes
    symbol: str
    log: str
    cached: bool


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """One kernel to compile, for :func:`compile_many`.

    ``device_launch``: it launches kernels itself. A cubin is then linked with CUDA's device
    runtime; PTX stays unlinked, with the runtime's functions external.
    """

    kind: ImageKind
    source: Path
    entry: str
    arch: str
    options: tuple[str, ...] = ()
    device_launch: bool = False


def compile_ptx(source: Path, entry: str, arch: str, options: tuple[str, ...] = ()) -> Compiled:
    """Compile one kernel to PTX for the virtual architecture of ``arch`` (``sm_90``).

    Raises ``CompileError`` (file and line of the kernel) or ``DeviceUnavailable`` (no NVRTC).
    """
    return _compile(CompileRequest("ptx", source, entry, arch, options))


def compile_cubin(
    source: Path,
    entry: str,
    arch: str,
    options: tuple[str, ...] = (),
    *,
    device_launch: bool = False,
) -> Compiled:
    """Compile one kernel to machine code for ``arch``, e.g. ``sm_90``; see :func:`compile_ptx`.

    ``device_launch`` links it with CUDA's device runtime; a missing one is a ``CompileError``.
    """
    return _compile(CompileRequest("cubin", source, entry, arch, options, device_launch))


def compile_many(
    requests: Sequence[CompileRequest],
    workers: int | None = None,
    done: Callable[[], None] | None = None,
) -> list[Compiled | CompileError]:
    """Compile kernels in parallel; results in the order of the requests.

    A kernel that the compiler refuses gives its ``CompileError`` in place, so that one bad
    combination does not lose the others. ``workers`` is the number of threads (default: the usable
    processors): NVRTC runs outside Python's lock, so that threads compile as fast as processes and
    need no start-up. ``done`` is called after each kernel, for a progress display. Raises
    ``DeviceUnavailable`` if there is no compiler.
    """
    if not requests:
        return []
    ensure_compiler()
    results: list[Compiled | CompileError] = []
    with ThreadPoolExecutor(workers or len(os.sched_getaffinity(0))) as pool:
        for result in pool.map(_compile_or_error, requests):
            results.append(result)
            if done is not None:
                done()
    return results


def _compile_or_error(request: CompileRequest) -> Compiled | CompileError:
    try:
        return _compile(request)
    except CompileError as error:
        return error


def _compile(request: CompileRequest) -> Compiled:
    _check(request)
    text = _read(request.source)
    source = request.source.resolve()
    headers = dict(_headers((source.parent,), text, frozenset({source})))
    key = cache_key(
        (
            compiler_version(),
            request.kind,
            request.arch,
            request.entry,
            *request.options,
            *_linking(request),
            "source",
            str(source),  # part of the line information in the image
            text,
            *(part for item in sorted(headers.items()) for part in item),
        )
    )
    entry = read_entry(key)
    if entry is not None:
        return Compiled(entry.image, entry.symbol, entry.log, cached=True)
    options = request.options + ((RELOCATABLE,) if request.device_launch else ())
    program = nvrtc.Program(text, source, request.entry, request.arch, options)
    image, symbol, log = nvrtc.build(program, request.kind)
    if request.device_launch and request.kind == "cubin":
        image = linking.link(image, symbol, request.arch)
    write_entry(key, Entry(image, symbol, log))
    return Compiled(image, symbol, log, cached=False)


def _linking(request: CompileRequest) -> tuple[str, ...]:
    """What linking adds to the key of a compilation; nothing for a kernel that is not linked."""
    if not request.device_launch:
        return ()
    if request.kind == "ptx":
        return (RELOCATABLE,)
    runtime = linking.runtime_digest(linking.device_runtime())
    return (RELOCATABLE, linking.linker_version(), runtime)


def _check(request: CompileRequest) -> None:
    if not _ARCH.fullmatch(request.arch):
        raise CompileError(
            f"{request.source.name}: unknown architecture {request.arch!r};"
            f" architectures are written like sm_90"
        )
    for option in request.options:
        # A file found through such an option would change the kernel without changing its key.
        if option.startswith(_PATH_OPTIONS):
            raise CompileError(
                f"{request.source.name}: compiler option {option!r} is not taken; put the file"
                f' beside the kernel and include it with #include "..."'
            )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise CompileError(f"kernel source {path} cannot be read: {reason}") from error


def _headers(
    folders: tuple[Path, ...], text: str, seen: frozenset[Path]
) -> Iterator[tuple[str, str]]:
    """Files that ``text`` includes with quotes, directly or not: (path, text) pairs.

    They are looked for where NVRTC looks: beside the including file, then beside the kernel. A
    name that is not found is left to the compiler, which may not need it (``#if``) or reports the
    line that does. ``seen`` ends circles of ``#pragma once`` headers.
    """
    for name in _INCLUDE.findall(text):
        found = (path for folder in folders if (path := (folder / name).resolve()).is_file())
        path = next(found, None)
        if path is None or path in seen:
            continue
        inner = _read(path)
        yield str(path), inner
        yield from _headers((path.parent, *folders), inner, seen | {path})


def ensure_compiler() -> str:
    """Version of the compiler; raises ``DeviceUnavailable`` with the command that brings it."""
    try:
        return compiler_version()
    except CompileError as error:
        raise DeviceUnavailable(f"NVRTC is installed but does not work: {error}") from error
