"""A compiled kernel: its entry in the cache on disk (one file each, safe under concurrent writers);
what it uses, read from the assembler's log; the sizes of its parameters, read from a cubin; and how
many of its blocks fit on a multiprocessor."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from nqbench.errors import CompileError
from nqbench.facts import DeviceFacts
from nqbench.plan import CachePreference
from nqbench.system.files import keep, kept

_SIZED, _PARAMETER = 4, 0x17
_ENTRY: Final = re.compile(r"Compiling entry function '([^']+)'")
_STACK: Final = re.compile(
    r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)
_USED: Final = re.compile(r"Used (\d+) registers")
_SHARED: Final = re.compile(r"(\d+) bytes smem")
_CUMULATIVE: Final = re.compile(r"(\d+) bytes cumulative stack size")


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
        raw = part.encode() if isinstance(part, str) else part
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
        start, length = _section_at(image, f".nv.info.{compiled.symbol}")
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


def _section_at(image: bytes, name: str) -> tuple[int, int]:
    """Offset and length of an ELF file's section. Raises ``LookupError`` if there is none."""
    (table,) = struct.unpack_from("<Q", image, 0x28)
    size, count, names = struct.unpack_from("<HHH", image, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", image, table + i * size) for i in range(count)]
    for label, _, _, _, start, length in sections:
        begin = sections[names][4] + label
        if image[begin : image.index(b"\0", begin)] == name.encode():
            return start, length
    raise LookupError(name)


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
    if cache != "prefer_l1":
        return facts.shared_per_multiprocessor
    for size in facts.shared_carveouts:
        if size >= per_block:
            return size
    return facts.shared_per_multiprocessor


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
