"""What a compiled kernel uses: registers, stack and spills, read from the assembler's log."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from nqbench.compiler.compile import Compiled
from nqbench.errors import CompileError

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
    lines = _section(compiled.log, compiled.symbol)
    text = "\n".join(lines)
    frames = [tuple(map(int, found)) for found in _STACK.findall(text)]
    used = next((line for line in lines if _USED.search(line)), "")
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


def _section(log: str, symbol: str) -> list[str]:
    """The log's lines about one kernel; a source may hold several."""
    lines: list[str] = []
    inside = False
    for line in log.splitlines():
        entry = _ENTRY.search(line)
        if entry:
            inside = entry.group(1) == symbol
        if inside:
            lines.append(line)
    return lines


def _first(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    return int(found.group(1)) if found else 0
