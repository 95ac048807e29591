"""What a compiled kernel uses: registers, stack and spills, read from the assembler's log; and the
sizes of its parameters, read from the cubin."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Final

from nqbench.compiler.cache import Compiled
from nqbench.errors import CompileError

_SIZED, _PARAMETER = 4, 0x17
_ENTRY: Final = re.compile(r"Compiling entry function '([^']+)'")
_STACK: Final = re.compile(
    r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)
_USED: Final = re.compile(r"Used (\d+) registers")
_SHARED: Final = re.compile(r"(\d+) bytes smem")
_CUMULATIVE: Final = re.compile(r"(\d+) bytes cumulative stack size")


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
