"""A mistake in a kernel: as data, and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from nqbench.simulator.global_memory import NEAR, GlobalMemory
from nqbench.simulator.layout import GLOBAL_BASE
from nqbench.simulator.liveness import readable
from nqbench.simulator.ptx import WIDTHS, Instruction, Where
from nqbench.simulator.translation import Translation

Thread = tuple[tuple[int, int, int], tuple[int, int, int]]
"""A block and a thread of it, each x, y, z."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake at one place in the code, of two where threads race.

    ``kind``     what it is (``race``, ``out of bounds``, ...), or what stopped the launch
    ``threads``  who did it the first time, and with whom
    ``does``     what these threads do, for a race: ``("writes", "read")``
    ``buffer``   what the address is in, or near to where it is out of bounds; ``element`` of it, of
                 ``dtype``, or what is known instead
    ``values``   before and after a write, or what was read
    ``count``    how often it happened
    ``message``  where an address outside of everything is near to; what a race lacks; or the
                 simulator's sentence, where that is all there is
    """

    kind: str
    place: Where
    space: str = ""
    opcode: str = ""
    other: Where | None = None
    threads: tuple[Thread, ...] = ()
    does: tuple[str, ...] = ()
    buffer: str = ""
    element: int | None = None
    dtype: str = ""
    address: int = 0
    nbytes: int = 0
    values: tuple[int | float, ...] = ()
    count: int = 1
    message: str = ""


@dataclass(frozen=True, slots=True)
class Spaces:
    """What addresses of a launch mean."""

    code: Translation
    memory: GlobalMemory
    shared_bytes: int

    def finding(
        self, kind: str, i: Instruction, space: str, address: int, size: int, **more: Any
    ) -> Finding:
        """A finding about ``size`` bytes at an address of a memory space."""
        buffer, offset, dtype = self._target(space, address)
        element = offset // size if buffer and offset % size == 0 else None
        message = ""
        if kind == "out of bounds" or (kind == "misaligned" and space == "global"):
            near, message = self._near(space, address)
            buffer = buffer or near * (kind == "out of bounds")
        return Finding(
            kind, i.where, space, i.full_opcode, buffer=buffer, element=element,
            dtype=_dtype(i, dtype, size), address=address, nbytes=size, message=message, **more,
        )  # fmt: skip

    def _near(self, space: str, address: int) -> tuple[str, str]:
        """The buffer that an address that is wrong is near to, and in words."""
        if space == "shared":
            missing = "; what is `extern __shared__` needs `shared:` (--shared)"
            return "", f"the block has {self.shared_bytes} bytes" + missing * (
                not self.shared_bytes
            )
        if space == "local":
            return "", f"a thread has {self.code.layout.local_bytes} bytes"
        return ("", "through a null pointer") if 0 <= address < NEAR else self.memory.near(address)

    def _target(self, space: str, address: int) -> tuple[str, int, str]:
        """What an address is in, the byte offset there, and its dtype if that is known."""
        if space == "global":
            for span in self.memory.spans:
                if span.low <= address - GLOBAL_BASE < span.high:
                    dtype = self.memory.dtypes.get(span.name, "")
                    name = span.name if dtype else readable(span.name)
                    return name, address - GLOBAL_BASE - span.low, dtype
            return "", 0, ""
        symbols = self.code.symbols
        for variable in self.code.kernel.variables.values():
            at = symbols.addresses.get(variable.name, -1)
            if variable.space == space and at <= address < at + variable.nbytes:
                name = readable(variable.name)
                return ("local memory" if "depot" in name else name), address - at, ""
        dynamic = space == "shared" and address >= symbols.static_shared_bytes
        name = "dynamic shared memory" if dynamic else ""
        return name, address - symbols.static_shared_bytes, ""


def _dtype(instruction: Instruction, dtype: str, size: int) -> str:
    """How to read a value: as the buffer's elements, if they have this size, or as the PTX says."""
    if dtype and np.dtype(dtype).itemsize == size:
        return dtype
    kind = next((m for m in instruction.modifiers if m in WIDTHS), "b32")
    letter = "float" if kind[0] == "f" and size >= 4 else "int" if kind[0] == "s" else "uint"
    return f"{letter}{8 * size}" if size in (1, 2, 4, 8) else f"{size} bytes"


VERBS: Final = {"ld": "reads", "st": "writes", "cp": "copies", "atom": "updates", "red": "updates"}


def who(thread: Thread) -> str:
    """``block 0, thread 5``; all three indices where more than the first are in use."""
    names = ("block", "thread")
    return ", ".join(
        f"{name} {place[0] if not any(place[1:]) else place}"
        for name, place in zip(names, thread, strict=True)
    )


def sentence(first: Finding) -> str:
    """What happened the first time, in words."""
    if not first.threads:
        return first.message
    verb = VERBS.get(first.opcode.partition(".")[0], "accesses")
    subject, what = who(first.threads[0]), _target(first)
    near = f", {first.message}" if first.message else ", near no buffer"
    if first.kind == "out of bounds":
        place = f"{first.nbytes} bytes of {first.space} memory at address {first.address:#x}"
        return f"{subject} {verb} {place}{near}"
    if first.kind == "misaligned":
        wrong = f"address {first.address:#x} is not a multiple of {first.nbytes}"
        return f"{subject} {verb} {what}: {wrong}{near if first.message else ''}"
    if first.kind == "uninitialised":
        why = " (a barrier missing?)" if first.space == "shared" else ""
        why = f": {first.message}" if first.message else why
        return f"{subject} {verb} {what}, which nothing has written{why}"
    if first.kind == "unfinished copy":
        return f"{subject} {verb} {what}, which {_other(first)}; nothing has waited for it"
    if first.kind == "divergent barrier":
        there = who(first.threads[1])
        return (
            f"{subject} waits at this barrier while {there} of the same block waits at another;"
            " every thread must reach the same one"
        )
    why = first.message or "nothing orders the two"
    return f"{subject} {_change(first, what)}, which {_other(first)}; {why}"


def _target(first: Finding) -> str:
    if not first.buffer:
        return f"{first.space} memory at {first.address:#x}"
    element = "" if first.element is None else f"[{first.element}]"
    if " " in first.buffer:
        return first.buffer + (f", element {first.element}" if element else "")
    return first.buffer + element


def _change(first: Finding, what: str) -> str:
    does = first.does[0]
    if does == "reads":
        return f"reads {what}" + (f" = {first.values[0]}" if first.values else "")
    if not first.values:
        return f"updates {what} atomically"
    before, after = first.values
    return f"writes {what} = {after} (before: {before})"


def _other(first: Finding) -> str:
    block, thread = first.threads[1]
    same = block == first.threads[0][0]
    name = who((block, thread)).partition(", ")[2] if same else who((block, thread))
    return f"{name} {first.does[1]}"
