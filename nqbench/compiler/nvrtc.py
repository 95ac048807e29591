"""NVRTC, NVIDIA's run-time compiler, called through cuda-bindings. Needs no driver and no GPU."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from nqbench.compiler.bindings import cuda_headers, load_bindings
from nqbench.compiler.includes import FIRST, STANDINS, host_libraries, included_names
from nqbench.errors import CompileError, DeviceUnavailable
from nqbench.system.suggest import suggestion

ImageKind = Literal["ptx", "cubin"]

_TOOLS: Final = re.compile(rb"Cuda compilation tools, release [\d.]+, V([\d.]+)")
_ERROR: Final = re.compile(r"^.*(?:\berror\b|catastrophic|fatal).*$", re.IGNORECASE)
NO_MEMBER: Final = 'namespace "std" has no member|qualified name is not allowed'
_SUMMARY: Final = re.compile(r"\d+ errors? detected in the compilation of")
_PLACE: Final = re.compile(r"\s*(.+?)\((\d+)\): (?:catastrophic )?error.*")
_EXPLAINED: Final = {
    "texture is not a template": "texture references are not in CUDA 12 and later; use loads or"
    " texture objects",
    r'runtime APIs are not declared|"cuda(?:Stream|Event|Device)\w*" is undefined': "kernels"
    " that launch kernels run only as plans with device_launch, and not in the simulator",
    r'"__(?:shfl|any|all|ballot)\w*" is undefined': "gone since compute capability 7.0: write"
    " __shfl_sync(mask, ...) and the like",
    NO_MEMBER: "kernels have no std of the host: take plain arrays, or cuda::std",
}
"""What NVRTC says, and what it means."""
_KERNEL: Final = re.compile(
    r"\bnamespace\s+(\w+)\s*\{|([{}])"
    r"|\b__global__(?:[^;{}()]|\([^()]*\))*?\b(?!__launch_bounds__)(\w+)\s*\("
)
_NAME_MAP: Final = "__nv_name_map"  # NVRTC's name for the file in which it resolves entries


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """One kernel to compile. Errors and line information show the path of ``source``.

    ``device_launch``: it launches kernels itself. A cubin is then linked with CUDA's device
    runtime; PTX stays unlinked, with the runtime's functions external. ``include`` are folders to
    search for included files, ``variables`` module variables whose symbols are wanted. ``text`` is
    what to compile, ``headers`` texts that stand for files, by the name that the source includes;
    those of ``STANDINS`` are always there.
    """

    kind: ImageKind
    source: Path
    entry: str
    arch: str
    options: tuple[str, ...] = ()
    device_launch: bool = False
    include: tuple[Path, ...] = ()
    variables: tuple[str, ...] = ()
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, hash=False)


class Rejected(CompileError):
    """A source that does not compile. ``errors`` have file, line and text; ``log`` is NVRTC's."""

    errors: tuple[tuple[str, int, str], ...] = ()
    log: str = ""


@functools.cache
def _nvrtc() -> Any:
    what = "the CUDA compiler library NVRTC"
    return load_bindings("nvrtc", "nvrtcVersion", DeviceUnavailable, what)


@functools.cache
def _version() -> tuple[int, int]:
    _, major, minor = _nvrtc().nvrtcVersion()
    return major, minor


@functools.cache
def compiler_version() -> str:
    """Full version of NVRTC, e.g. ``13.0.88``. Part of every cache key and every record.

    Raises ``DeviceUnavailable`` with the command that installs it."""
    nvrtc = _nvrtc()
    major, minor = _version()
    # nvrtcVersion hides the build number, on which code generation depends; PTX names it.
    try:
        made = nvrtc.nvrtcCreateProgram(b"", b"empty.cu", 0, [], [])
        program = _checked(made, "create a program")
        _checked(nvrtc.nvrtcCompileProgram(program, 0, []), "compile an empty program")
    except CompileError as error:
        raise DeviceUnavailable(f"NVRTC is installed but does not work: {error}") from error
    found = _TOOLS.search(_image(program, "ptx"))
    nvrtc.nvrtcDestroyProgram(program)
    return found.group(1).decode() if found else f"{major}.{minor}"


@functools.cache
def supported_archs() -> tuple[str, ...]:
    """Architectures that this NVRTC compiles for, e.g. ``("sm_75", ..., "sm_120")``."""
    _, archs = _nvrtc().nvrtcGetSupportedArchs()
    return tuple(f"sm_{number}" for number in archs)


def build(program: CompileRequest) -> tuple[bytes, dict[str, str], str]:
    """Compile; returns image, the symbols of the kernel and of each variable, and the log.

    Raises ``CompileError`` with the first errors, which name the kernel's own file and line.
    """
    nvrtc = _nvrtc()
    headers = _standins(program) | dict(program.headers)
    texts, names = ([h.encode() for h in part] for part in (headers.values(), headers))
    handle = _checked(
        nvrtc.nvrtcCreateProgram(
            program.text.encode(), os.fsencode(program.source), len(names), texts, names
        ),
        "create a program",
    )
    try:
        # The address of a variable and the name of a kernel: so NVRTC tells them apart.
        wanted = {program.entry: program.entry, **{name: f"&{name}" for name in program.variables}}
        for name, expression in wanted.items():
            answer = nvrtc.nvrtcAddNameExpression(handle, expression.encode())
            _checked(answer, f"take the name {name}")
        options = [os.fsencode(option) for option in _options(program)]
        (status,) = nvrtc.nvrtcCompileProgram(handle, len(options), options)
        log = _image(handle, "log").rstrip().decode(errors="replace")
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            said = _refusal(program, status, log)
            if status.name == "NVRTC_ERROR_INVALID_OPTION":
                raise CompileError(said)
            error = Rejected(said)
            found = filter(None, map(_PLACE.match, log.splitlines()))
            error.errors = tuple((m[1], int(m[2]), m[0]) for m in found)
            error.log = log
            raise error
        symbols = {
            name: _checked(nvrtc.nvrtcGetLoweredName(handle, expression.encode()), f"find {name}")
            for name, expression in wanted.items()
        }
        return _image(handle, program.kind), {k: v.decode() for k, v in symbols.items()}, log
    finally:
        nvrtc.nvrtcDestroyProgram(handle)


def _standins(program: CompileRequest) -> dict[str, str]:
    """Those that no file of the user's and none of CUDA's goes by."""
    own = (program.source.parent, *program.include)
    hosts = dict.fromkeys(host_libraries(included_names(program.text)), "")
    return {
        name: text
        for name, text in {**STANDINS, **hosts}.items()
        if not any((folder / name).is_file() for folder in own)
        and (name in {*FIRST, *hosts} or not any((f / name).is_file() for f in cuda_headers()))
    }


def _options(program: CompileRequest) -> list[str]:
    target = program.arch if program.kind == "cubin" else program.arch.replace("sm_", "compute_", 1)
    own = ["--generate-line-info", f"--gpu-architecture={target}"]
    if not any(option.startswith(("-std", "--std")) for option in program.options):
        own.append("--std=c++17")
    folders = (program.source.parent, *program.include, *cuda_headers())
    own += [f"--include-path={folder}" for folder in folders]
    # cooperative_groups.h does not include CUDA's C++ library then: 0.3 s instead of 5.
    own.append("-D_CG_LIMIT_INCLUDED_DEPENDENCIES")
    own.append("--device-int128")  # nvcc has it anyway
    if program.kind == "cubin":
        own.append("--ptxas-options=-v")  # registers, stack and spills go to the log
        if _version() >= (12, 9):  # which keeps compiled kernels itself
            own.append("--no-cache")  # a hit in the driver's cache leaves the log empty
    return [*own, *program.options]


def _checked(answer: tuple[Any, ...], action: str) -> Any:
    """Value of a call to the bindings; ``CompileError`` if it failed."""
    status, *values = answer
    if int(status) != 0:
        raise CompileError(f"NVRTC could not {action}: {status.name}")
    return values[0] if values else None


def _image(handle: object, kind: ImageKind | Literal["log"]) -> bytes:
    nvrtc = _nvrtc()
    size_of, give = {
        "log": (nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog),
        "ptx": (nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX),
        "cubin": (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN),
    }[kind]
    size: int = _checked(size_of(handle), f"size the {kind}")
    raw = bytes(size)  # filled in place by the call
    _checked(give(handle, raw), f"give the {kind}")
    return raw if kind == "cubin" else raw.rstrip(b"\0")


def _refusal(program: CompileRequest, status: Any, log: str) -> str:
    """One readable message from NVRTC's log, with the names of files alone: it is recorded."""
    log = _without_folders(program, log)
    where = _where(program)
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
        if "cannot determine which instance" in reason:
            name = program.entry.partition("<")[0]
            said = f"write all its arguments, {name}<...>, or its type, (void (*)(int*)){name}"
            return f"{where}: it is a template or has overloads; {said}"
        if "operand types are incompatible" in reason:
            reason = f"{program.entry.partition('<')[0]} is no template"
        what = "variable" if "& " in errors[-1] else "entry"
        hint = _nearest_kernel(program) if what == "entry" else ""
        return f"{where}: no such {what} in {program.source.name}: {reason}{hint}"
    return sentence(program, errors) if errors else f"{where}: {log or status.name}"


def _nearest_kernel(program: CompileRequest) -> str:
    """Which kernel of the source may be meant: it may stand in a namespace."""
    found, inside = [], [""]
    for namespace, brace, kernel in _KERNEL.findall(re.sub(r"//.*", "", program.text)):
        if kernel:
            found.append("::".join(filter(None, (*inside, kernel))))
        elif brace == "}":
            inside = inside[:-1]
        else:
            inside.append(namespace)
    base = program.entry.partition("<")[0]
    if not found:
        return "; the file itself has no __global__ function"
    whole = next((name for name in found if name.endswith(f"::{base}")), base)
    return f"; {suggestion(whole, found)}" if base not in found else ""


def sentence(program: CompileRequest, errors: list[str]) -> str:
    """What is wrong with a program, by the first errors: an undefined name is the only one, as the
    others mostly follow from it."""
    errors = list(dict.fromkeys(_without_folders(program, line) for line in errors))
    count = 1 if re.search(f"is undefined$|{NO_MEMBER}", errors[0]) else 3  # others follow
    for text, meaning in _EXPLAINED.items():
        errors = [line + f" ({meaning})" * bool(re.search(text, line)) for line in errors]
    shown, more = "; ".join(errors[:count]), len(errors) - count
    return f"{_where(program)}: {shown}" + (f"; and {more} more errors" if more > 0 else "")


def place_of(error: str) -> tuple[str, int]:
    """File and line that an error names; an empty name if it names none."""
    found = _PLACE.match(error)
    return (found[1], int(found[2])) if found else ("", 0)


def _without_folders(program: CompileRequest, text: str) -> str:
    for folder in (program.source.parent, *program.include):
        text = text.replace(f"{folder}/", "")
    return text


def _where(program: CompileRequest) -> str:
    return f"{program.source.name}: kernel {program.entry} does not compile for {program.arch}"
