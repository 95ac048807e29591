"""A compiled kernel: its entry in the cache on disk (one file each, safe under concurrent writers);
what it uses, read from the assembler's log, and how many of its blocks fit on a multiprocessor; its
parameters against the arguments of a study, before a launch.

A GPU takes whatever bytes it is given. The compiler's symbol says what each parameter is (a C++
name; of ``extern "C"`` the source does), the code how many bytes it has. Only what is certainly
wrong is refused: structs, templates, enumerations, ``void*`` and raw bytes take anything.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Literal

import numpy as np

from nqbench.errors import CompileError
from nqbench.facts import DeviceFacts
from nqbench.plan import CachePreference, Kernel
from nqbench.system.files import keep, kept
from nqbench.system.suggest import many

_SIZED, _PARAMETER = 4, 0x17
_ENTRY: Final = re.compile(r"Compiling entry function '([^']+)'")
_STACK: Final = re.compile(
    r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)
_USED: Final = re.compile(r"Used (\d+) registers")
_SHARED: Final = re.compile(r"(\d+) bytes smem")
_CUMULATIVE: Final = re.compile(r"(\d+) bytes cumulative stack size")
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_QUALIFIER: Final = re.compile(r"\b(?:const|volatile|restrict|__restrict(?:__)?)\b")
_FORMS: Final = {
    **{"float": "f4", "double": "f8", "__half": "f2", "half": "f2", "bool": "i1", "char": "i1"},
    **{"short": "i2", "unsigned short": "i2", "int": "i4", "unsigned": "i4", "unsigned int": "i4"},
    **{"long": "i8", "unsigned long": "i8", "long long": "i8", "unsigned long long": "i8"},
    **{"signed char": "i1", "unsigned char": "i1", "size_t": "i8"},
    **{f"{sign}int{bits}_t": f"i{bits // 8}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
"""Kind and bytes of C++'s types; signed and unsigned are one kind."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled kernel.

    ``image`` is PTX text or an ELF cubin, ``symbol`` the kernel's mangled name in it, ``log`` the
    compiler's messages, ``variables`` the mangled name of each module variable asked for,
    ``cached`` whether it came from the disk.
    """

    image: bytes
    symbol: str
    log: str
    variables: Mapping[str, str] = field(default_factory=dict)
    cached: bool = field(default=False, compare=False)


def cache_key(parts: Iterable[bytes | str]) -> str:
    """Name of the entry for these parts; their boundaries are part of it."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode(errors="surrogateescape") if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.hexdigest()


def read_entry(key: str) -> Compiled | None:
    """The stored entry, or ``None`` if it is missing or damaged."""
    body = kept(f"kernels/{key[:2]}/{key}")
    if body is None:
        return None
    line, _, image = body.partition(b"\n")
    about = json.loads(line)
    return Compiled(image, about["symbol"], about["log"], about.get("variables", {}), cached=True)


def write_entry(key: str, entry: Compiled) -> bool:
    """Store an entry; ``False`` if the folder cannot be written (compiling works without)."""
    about = {"symbol": entry.symbol, "log": entry.log, "variables": dict(entry.variables)}
    return keep(f"kernels/{key[:2]}/{key}", json.dumps(about).encode() + b"\n" + entry.image)


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel uses, as the assembler reports it.

    ``stack_bytes`` is local memory per thread (arrays indexed at run time, and spills);
    ``spill_store_bytes`` and ``spill_load_bytes`` count the instructions' bytes per thread, not
    executions. ``static_shared_bytes`` excludes what the driver reserves.
    """

    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    static_shared_bytes: int

    @property
    def spill_bytes(self) -> int:
        """Stores and loads together; 0 means that nothing was spilled."""
        return self.spill_store_bytes + self.spill_load_bytes


def resources_of(compiled: Compiled) -> Resources:
    """Read the assembler's report about the kernel ``compiled.symbol`` (a cubin).

    Functions that the kernel calls without inlining add their spills. Raises ``CompileError`` if
    the log holds no such report, as for PTX.
    """
    _, *parts = _ENTRY.split(compiled.log)  # a source may hold several kernels
    text = dict(zip(parts[::2], parts[1::2], strict=True)).get(compiled.symbol, "")
    frames = [tuple(map(int, found)) for found in _STACK.findall(text)]
    used = next((line for line in text.splitlines() if _USED.search(line)), "")
    if not frames or not used:
        raise CompileError(
            f"the compiler's log holds no report about kernel {compiled.symbol};"
            " compile to a cubin to get one"
        )
    stack = max(_first(_CUMULATIVE, used), frames[0][0])
    return Resources(
        registers=_first(_USED, used),
        stack_bytes=stack,
        spill_store_bytes=sum(frame[1] for frame in frames),
        spill_load_bytes=sum(frame[2] for frame in frames),
        static_shared_bytes=_first(_SHARED, used),
    )


def _first(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    return int(found.group(1)) if found else 0


def parameter_sizes(compiled: Compiled) -> tuple[int, ...] | None:
    """Bytes of each parameter of a cubin's kernel; ``None`` if the cubin does not say.

    The section ``.nv.info.KERNEL`` is a list of attributes: a byte of form, a byte of kind, and 2
    bytes, which in form 4 are the length of the value. A parameter's value has its number in bytes
    4 and 5, and its size in the upper 14 bits of the last word.
    """
    image = compiled.image
    try:
        start, length = section_at(image, f".nv.info.{compiled.symbol}")
        found: dict[int, int] = {}
        at, end = start, start + length
        while at < end:
            form, kind, size = struct.unpack_from("<BBH", image, at)
            at += 4
            if (form, kind) == (_SIZED, _PARAMETER):
                _, number, _, flags = struct.unpack_from("<IHHI", image, at)
                found[number] = flags >> 18
            at += size if form == _SIZED else 0
        return tuple(found[number] for number in range(len(found)))
    except (struct.error, ValueError, LookupError):
        return None


def section_at(image: bytes, name: str) -> tuple[int, int]:
    """Offset and length of an ELF file's section. Raises ``LookupError`` if there is none."""
    (table,) = struct.unpack_from("<Q", image, 0x28)
    size, count, names = struct.unpack_from("<HHH", image, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", image, table + i * size) for i in range(count)]
    for label, _, _, _, start, length in sections:
        begin = sections[names][4] + label
        if image[begin : image.index(b"\0", begin)] == name.encode():
            return start, length
    raise LookupError(name)


def check_arguments(
    kernel: Kernel, symbol: str, sizes: Sequence[int] | None, dtypes: Mapping[str, str]
) -> None:
    """Refuse arguments that do not fit the parameters.

    ``sizes``: bytes of each parameter, ``None`` if unknown; ``dtypes`` of buffers by name. Raises
    ``CompileError`` with the argument's name and place where ``kernel.names`` has them.
    """
    if sizes is None:
        return
    types = parameter_types(kernel, symbol) if kernel.names else ()
    types = types if len(types) == len(sizes) else ()
    takes, gives = len(sizes), len(kernel.arguments)
    where = f"{kernel.source.name}: kernel {kernel.entry}"
    listed = f" ({', '.join(map(_readable, types))})" if types else ""
    if takes != gives:
        names = ", ".join(name.rpartition(" ")[2] for name in kernel.names)
        given = f"{gives} {'is' if gives == 1 else 'are'} given" + (f": {names}" if names else "")
        raise CompileError(f"{where} takes {many(takes, 'argument')}{listed}, but {given}")
    faults = []
    for number, one in enumerate(kernel.arguments):
        is_buffer = isinstance(one, str)
        dtype = np.dtype(dtypes.get(one, "V1") if isinstance(one, str) else one.dtype)
        has = 8 if is_buffer else dtype.itemsize
        wanted, size = types[number] if types else "", sizes[number]
        if has == size and _fits(wanted, dtype, is_buffer=is_buffer):
            continue
        if not kernel.names:
            said = f"argument {number + 1} has {has} bytes, but the kernel's parameter has {size}"
            raise CompileError(f"{where}: {said}")
        says = {(True, False): "a buffer of ", (False, True): "one "}
        given = f"{says.get((is_buffer, '*' in wanted), '')}{dtype}"
        if wanted and "*" not in wanted and wanted not in _FORMS and dtype.kind != "V":
            given += " (a struct by value: `fields` in YAML, nqbench init)"
        takes_what = _readable(wanted) or f"{size} bytes"
        faults.append(f"{kernel.names[number]}: the kernel takes {takes_what}, not {given}")
    if faults:
        more = f"; {where} takes{listed}, in this order" if len(faults) > 1 and listed else ""
        raise CompileError("; ".join(faults) + more)


def parameter_types(kernel: Kernel, symbol: str) -> tuple[str, ...]:
    """The types of a kernel's parameters as C++ has them; empty if nothing tells."""
    from nqbench.compiler.includes import read_source

    if symbol.startswith("_Z"):
        shown = demangled(symbol)
    else:
        text = _COMMENT.sub(" ", read_source(kernel.source))
        found = re.findall(rf"__global__[^;{{}}]*?\b{re.escape(symbol)}(\s*\([^()]*\))", text)
        # Several may be cases of #if: which one was compiled is not known.
        name = r"\s*\w+\s*(\[\s*\])?\s*(?=[,)])"  # with brackets it is a pointer
        shown = re.sub(name, lambda match: "*" if match[1] else "", *found[:1] or ("",))
        shown = shown if len(found) == 1 and "#" not in shown else ""
    if not shown.endswith(")"):
        return ()
    depth, start = 0, len(shown)
    while start and (depth or start == len(shown)):
        start -= 1
        depth += {")": 1, "(": -1}.get(shown[start], 0)
    parts, depth = [""], 0
    for letter in shown[start + 1 : -1]:
        depth += (letter in "<([") - (letter in ">)]")
        parts += [""] if letter == "," and not depth else []
        parts[-1] += "" if letter == "," and not depth else letter
    return tuple(part.strip() for part in parts if part.strip() not in ("", "void"))


@cache
def demangled(symbol: str) -> str:
    """A symbol as C++ writes it; empty where no C++ library is at hand."""
    try:
        demangle = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    except (OSError, AttributeError):
        return ""
    demangle.restype = ctypes.c_void_p
    room = ctypes.c_size_t(0)
    found = demangle(symbol.encode(), None, ctypes.byref(room), None)  # some hundred bytes, kept
    return ctypes.string_at(found).decode(errors="replace") if found else ""


def _fits(wanted: str, dtype: np.dtype[np.generic], *, is_buffer: bool) -> bool:
    """Whether an argument may be what a parameter takes: yes, unless it certainly is not."""
    form = _FORMS.get(" ".join(_QUALIFIER.sub(" ", wanted).replace("*", " ").split()))
    pointers = wanted.count("*")
    if is_buffer is not (pointers > 0):  # a pointer may be 0, and a number may be an address
        return form in (None, "i8") if is_buffer else pointers == 0 or dtype.kind != "f"
    if form is None or pointers > 1 or dtype.kind not in "biuf":
        return True
    size = int(form[1])
    if 1 in (size, dtype.itemsize) and dtype.kind != "b":
        return True  # raw bytes; the size of a scalar was compared
    return size == dtype.itemsize and (size <= 2 or (form[0] == "f") is (dtype.kind == "f"))


def _readable(text: str) -> str:
    """``float const*`` as people write it."""
    return re.sub(r"^([\w: ]+?) const\b", r"const \1", re.sub(r"\s+\*", "*", text))


Limiter = Literal["warps", "blocks", "registers", "shared"]


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What fits on one multiprocessor.

    ``blocks_per_multiprocessor`` is 0 if not even one block fits. ``fraction`` is ``warps`` over
    the most that the multiprocessor can hold. ``limiter`` names what allows the fewest blocks: of
    equal limits the first of warps, blocks, registers, shared.
    """

    blocks_per_multiprocessor: int
    warps: int
    fraction: float
    limiter: Limiter


def occupancy(
    facts: DeviceFacts,
    registers: int,
    shared_bytes: int,
    block_size: int,
    cache: CachePreference = "default",
) -> Occupancy:
    """Occupancy of a kernel that uses ``registers`` per thread: how many of its blocks fit on one
    multiprocessor, and what limits it.

    The rules are those of NVIDIA's occupancy calculator: warps, blocks, registers and shared memory
    (allocated per block in units, out of the part of the L1 cache given to shared memory).
    Registers are allocated per warp in units, within the multiprocessor's partitions; on compute
    capability 1.x per block, whose warps are first rounded up (CUDA C Programming Guide 4.2, 4.2).
    ``shared_bytes`` is static plus dynamic shared memory per block, without what the driver
    reserves. ``cache`` matters where the L1 cache and shared memory share their storage:
    ``prefer_l1`` leaves shared memory the smallest share that still holds one block.
    """
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}; it must be at least 1")
    warps_per_block = -(-block_size // facts.warp_size)
    fits = block_size <= facts.max_threads_per_block
    limits: dict[Limiter, int | None] = {
        "warps": facts.max_warps_per_multiprocessor // warps_per_block if fits else 0,
        "blocks": facts.max_blocks_per_multiprocessor,
        "registers": _by_registers(facts, registers, warps_per_block),
        "shared": _by_shared(facts, shared_bytes, cache),
    }
    bounded = {name: limit for name, limit in limits.items() if limit is not None}
    limiter = min(bounded, key=lambda name: bounded[name])
    blocks = bounded[limiter]
    warps = blocks * warps_per_block
    return Occupancy(blocks, warps, warps / facts.max_warps_per_multiprocessor, limiter)


def _by_registers(facts: DeviceFacts, registers: int, warps_per_block: int) -> int | None:
    if registers == 0:
        return None
    partitions = facts.warp_allocation_granularity
    if registers > facts.max_registers_per_thread:
        return 0
    if facts.register_allocation == "block":
        threads = facts.warp_size * _round_up(warps_per_block, partitions)
        per_block = _round_up(registers * threads, facts.register_allocation_unit)
        return facts.registers_per_multiprocessor // per_block
    per_warp = _round_up(registers * facts.warp_size, facts.register_allocation_unit)
    # The launch check counts a block's warps as if they filled every partition evenly.
    checked = per_warp * _round_up(warps_per_block, partitions)
    if checked > facts.registers_per_block:
        return 0
    per_partition = facts.registers_per_multiprocessor // partitions // per_warp
    return per_partition * partitions // warps_per_block


def _by_shared(facts: DeviceFacts, shared_bytes: int, cache: CachePreference) -> int | None:
    """Blocks by shared memory; ``None`` where a block takes none at all."""
    if shared_bytes > facts.shared_per_block_optin:
        return 0
    per_block = _round_up(
        shared_bytes + facts.shared_reserved_per_block, facts.shared_allocation_unit
    )
    if per_block == 0:
        return None
    return shared_storage(facts, per_block, cache) // per_block


def shared_storage(facts: DeviceFacts, per_block: int, cache: CachePreference) -> int:
    """Shared memory that a multiprocessor is given, for blocks that allocate ``per_block``."""
    sizes = facts.shared_carveouts if cache == "prefer_l1" else ()
    return next((size for size in sizes if size >= per_block), facts.shared_per_multiprocessor)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
