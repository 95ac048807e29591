"""NVRTC, NVIDIA's run-time compiler, called through cuda-bindings. Needs no driver and no GPU."""

from __future__ import annotations

import functools
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from nqbench.compiler.bindings import NotLoaded, load_bindings, requirements
from nqbench.errors import CompileError, DeviceUnavailable

ImageKind = Literal["ptx", "cubin"]

_TOOLS: Final = re.compile(rb"Cuda compilation tools, release [\d.]+, V([\d.]+)")
_OWN_CACHE_SINCE: Final = (12, 9)  # NVRTC keeps compiled kernels itself from this version on
_SHOWN_ERRORS: Final = 3  # later errors are mostly consequences of the first ones
_ERROR: Final = re.compile(r"^.*(?:\berror\b|catastrophic|fatal).*$", re.IGNORECASE)
_SUMMARY: Final = re.compile(r"\d+ errors? detected in the compilation of")
_NAME_MAP: Final = "__nv_name_map"  # NVRTC's name for the file in which it resolves entries


@dataclass(frozen=True, slots=True)
class Program:
    """One compilation. ``source`` is absolute: errors and line information show it."""

    text: str
    source: Path
    entry: str
    arch: str
    options: tuple[str, ...]


@functools.cache
def _nvrtc() -> Any:
    """The bindings with their library loaded; ``DeviceUnavailable`` says how to get it."""
    try:
        return load_bindings("nvrtc", "nvrtcVersion")
    except NotLoaded as reason:
        (package,) = requirements("nvidia-cuda-nvrtc")
        raise DeviceUnavailable(
            f"the CUDA compiler library NVRTC cannot be loaded ({reason}); install it with"
            f" {sys.executable} -m pip install '{package}'"
        ) from reason


@functools.cache
def _version() -> tuple[int, int]:
    _, major, minor = _nvrtc().nvrtcVersion()
    return major, minor


@functools.cache
def compiler_version() -> str:
    """Full version of NVRTC, e.g. ``13.0.88``. Part of every cache key and every record."""
    nvrtc = _nvrtc()
    major, minor = _version()
    # nvrtcVersion hides the build number, on which code generation depends; PTX names it.
    program = _checked(nvrtc.nvrtcCreateProgram(b"", b"empty.cu", 0, [], []), "create a program")
    _checked(nvrtc.nvrtcCompileProgram(program, 0, []), "compile an empty program")
    found = _TOOLS.search(_image(program, "ptx"))
    nvrtc.nvrtcDestroyProgram(program)
    return found.group(1).decode() if found else f"{major}.{minor}"


def ensure_compiler() -> str:
    """Version of the compiler; raises ``DeviceUnavailable`` with the command that installs it."""
    try:
        return compiler_version()
    except CompileError as error:
        raise DeviceUnavailable(f"NVRTC is installed but does not work: {error}") from error


@functools.cache
def supported_archs() -> tuple[str, ...]:
    """Architectures that this NVRTC compiles for, e.g. ``("sm_75", ..., "sm_120")``."""
    _, archs = _nvrtc().nvrtcGetSupportedArchs()
    return tuple(f"sm_{number}" for number in archs)


def build(program: Program, kind: ImageKind) -> tuple[bytes, str, str]:
    """Compile; returns image, the kernel's symbol in it, and the log.

    Raises ``CompileError`` with the first errors, which name the kernel's own file and line.
    """
    nvrtc = _nvrtc()
    handle = _checked(
        nvrtc.nvrtcCreateProgram(program.text.encode(), str(program.source).encode(), 0, [], []),
        "create a program",
    )
    try:
        entry = program.entry.encode()
        _checked(nvrtc.nvrtcAddNameExpression(handle, entry), f"take the name {program.entry}")
        options = [option.encode() for option in _options(program, kind)]
        (status,) = nvrtc.nvrtcCompileProgram(handle, len(options), options)
        log = _log(handle)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompileError(_refusal(program, status, log))
        symbol: bytes = _checked(
            nvrtc.nvrtcGetLoweredName(handle, entry), f"find the kernel {program.entry}"
        )
        return _image(handle, kind), symbol.decode(), log
    finally:
        nvrtc.nvrtcDestroyProgram(handle)


def _options(program: Program, kind: ImageKind) -> list[str]:
    target = program.arch if kind == "cubin" else program.arch.replace("sm_", "compute_", 1)
    own = ["--std=c++17", "--generate-line-info", f"--gpu-architecture={target}"]
    own.append(f"--include-path={program.source.parent}")
    if kind == "cubin":
        own.append("--ptxas-options=-v")  # registers, stack and spills go to the log
        if _version() >= _OWN_CACHE_SINCE:
            own.append("--no-cache")  # a hit in the driver's cache leaves the log empty
    return [*own, *program.options]


def _checked(answer: tuple[Any, ...], action: str) -> Any:
    """Value of a call to the bindings; ``CompileError`` if it failed."""
    status, *values = answer
    if int(status) != 0:
        raise CompileError(f"NVRTC could not {action}: {status.name}")
    return values[0] if values else None


def _log(handle: object) -> str:
    nvrtc = _nvrtc()
    size: int = _checked(nvrtc.nvrtcGetProgramLogSize(handle), "size its log")
    raw = bytes(size)  # filled in place by the call
    _checked(nvrtc.nvrtcGetProgramLog(handle, raw), "give its log")
    return raw.rstrip(b"\0 \n").decode(errors="replace")


def _image(handle: object, kind: ImageKind) -> bytes:
    nvrtc = _nvrtc()
    size_of, give = {
        "ptx": (nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX),
        "cubin": (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN),
    }[kind]
    size: int = _checked(size_of(handle), f"size the {kind}")
    raw = bytes(size)
    _checked(give(handle, raw), f"give the {kind}")
    return raw.rstrip(b"\0") if kind == "ptx" else raw


def _refusal(program: Program, status: Any, log: str) -> str:
    """One readable message from NVRTC's log."""
    where = f"{program.source.name}: kernel {program.entry} does not compile for {program.arch}"
    if status.name == "NVRTC_ERROR_INVALID_OPTION":
        known = ", ".join(supported_archs())
        return (
            f"{where}: {log or status.name}; this NVRTC ({compiler_version()}) knows {known}"
            f" (options given: {' '.join(program.options) or 'none'})"
        )
    errors = [line.strip() for line in log.splitlines() if _ERROR.match(line)]
    errors = [line for line in errors if not _SUMMARY.search(line)]
    if errors and all(line.startswith(_NAME_MAP) for line in errors):
        reason = re.sub(rf"^{_NAME_MAP}\(\d+\): error: ", "", errors[0])
        return f"{where}: no such entry in {program.source.name}: {reason}"
    shown = "; ".join(errors[:_SHOWN_ERRORS]) or log or status.name
    more = len(errors) - _SHOWN_ERRORS
    return f"{where}: {shown}" + (f"; and {more} more errors" if more > 0 else "")
