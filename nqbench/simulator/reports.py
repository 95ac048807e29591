"""What went wrong in a launch, as one sentence for a person."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import KernelFault
from nqbench.simulator import layout
from nqbench.simulator.cfg import BasicBlock
from nqbench.simulator.codegen.writer import WORKSPACE
from nqbench.simulator.engine import SimLaunch
from nqbench.simulator.findings import Finding, Spaces, sentence
from nqbench.simulator.ir import LANES
from nqbench.simulator.layout import Context, Fault, Warp
from nqbench.simulator.ptx import WIDTHS, Instruction, Where

TEXT = {
    Fault.DIVISION: "integer division by zero",
    Fault.BARRIER_SPLIT: "the lanes of a warp do not wait at the same bar.sync",
    Fault.SKIPPED: "some threads went past a barrier at which others of the block wait",
    Fault.BARRIER_NUMBER: "a barrier's number must be from 0 to 15, the same in each lane of a warp"
    " (here {address})",
    Fault.MEMBERS: "a lane is not in the member mask of its own .sync instruction",
    Fault.INACTIVE_SOURCE: "reads a lane that does not take part (source lane {address})",
    Fault.TRAP: "trap",
    Fault.SPACE: "an atomic on local memory",
    Fault.ASSERTION: "assertion failed: {text}",
    Fault.NOT_A_FUNCTION: "call of an address that is no function's, or of a caller ({address:#x})",
}


def fault(run: SimLaunch, entry: str) -> KernelFault:
    """The fault that the context records."""
    kind = Fault(int(run.context[Context.FAULT_KIND]))
    start = int(run.context[Context.FAULT_WARP]) - run.warps.ctypes.data
    state = run.warps[start : start + run.code.layout.nbytes].view(np.int64)
    block, warp = _block(state), int(state[Warp.INDEX])
    if kind in (Fault.BARRIER_SPLIT, Fault.SKIPPED):
        lanes = int(run.context[Context.FAULT_LANES])
        site = run.code.barriers[int(run.context[Context.FAULT_INSTRUCTION])]
        closing = run.code.blocks[site.block].closing
        assert closing is not None
        rule = f", {_where(closing)}; every lane of a warp must reach the same one"
        if kind is Fault.SKIPPED:
            rule = f", {_where(closing)}; every thread of the block must reach it, or none"
        said = f"{TEXT[kind]} (block {block}, warp {warp}, lanes {lanes:#010x}){rule}"
        return _stopped(entry, said, Finding("divergent barrier", closing.where))
    lane = int(run.context[Context.FAULT_LANE])
    instruction = run.code.instructions[int(run.context[Context.FAULT_INSTRUCTION])]
    address = int(run.context[Context.FAULT_ADDRESS])
    thread = layout.place_in(run.geometry.block, warp * LANES + lane)
    finding = Finding("fault", instruction.where)
    if instruction.opcode == "brx":
        said = f"jump outside the table of a switch (index {address})"
    elif kind in (Fault.OUT_OF_BOUNDS, Fault.UNWRITTEN):
        size = next((WIDTHS[m] for m in instruction.modifiers if m in WIDTHS), 8) // 8
        what, space = "uninitialised", "shared"
        if kind is Fault.OUT_OF_BOUNDS:
            space = next(iter(instruction.spaces - {"param", "const"}), "global")
            size *= instruction.elements
            what = "misaligned" if address % size else "out of bounds"
        spaces = Spaces(run.code, run.memory, run.geometry.shared_bytes)
        finding = spaces.finding(what, instruction, space, address, size)
        said = sentence(replace(finding, threads=((block, thread),)))
    else:
        said = TEXT[kind].format(address=address, text=_text(run, address))
    if kind is Fault.TRAP and not run.geometry.cooperative and run.code.mentions(*WORKSPACE):
        said += " (a grid sync in a launch that is not cooperative; give `cooperative`)"
    who = f"block {block}, thread {thread}, warp {warp}, lane {lane}"
    return _stopped(entry, f"{said}; {who}; {_where(instruction)}", finding)


def _stopped(entry: str, said: str, finding: Finding) -> KernelFault:
    error = KernelFault(f"kernel {entry}: {said}")
    error.finding = replace(finding, message=str(error))
    return error


Words = NDArray[np.uint32]


def _resident(run: SimLaunch) -> Iterator[tuple[NDArray[np.int64], Words, Words]]:
    """Of each resident warp: its fields, the lanes that are to run each basic block, and those that
    wait at each barrier."""
    places = run.code.layout
    for memory in run.warps.reshape(-1, places.nbytes):
        waits = memory[places.waits : places.waits + 4 * len(run.code.barriers)]
        masks = memory[places.masks : places.waits].view(np.uint32)
        yield memory[: places.masks].view(np.int64), masks, waits.view(np.uint32)


def deadlock(run: SimLaunch, entry: str) -> KernelFault:
    """Who waits for what when nothing can run any more."""
    blocks = run.code.blocks
    for state, masks, _ in _resident(run):
        for block in blocks:
            if block.gathers and masks[block.index] and state[Warp.ALIVE]:
                first, lanes = block.instructions[0], masks[block.index]
                said = f"lanes {lanes:#010x} of {_warp(state)} wait at {_where(first)} for members"
                finding = Finding("deadlock", first.where)
                return _stopped(entry, f"deadlock: {said} that never come", finding)
    for state, _, waits in _resident(run):
        for site in run.code.barriers:
            closing = blocks[site.block].closing
            if waits[site.index] and closing is not None:
                said = f"block {_block(state)} waits at barrier {site.barrier} ({_where(closing)})"
                finding = Finding("divergent barrier", closing.where)
                return _stopped(entry, f"deadlock: {said} for threads that never come", finding)
    return _stopped(entry, "deadlock: no warp can run", Finding("deadlock", Where(0)))


def printed(run: SimLaunch) -> list[str]:
    """What the lanes of a launch printed, in the order in which they did."""
    context = run.context
    count = min(int(context[Context.PRINTED]), int(context[Context.PRINT_ROOM]))
    records = run.prints.reshape(-1, layout.PRINT_RECORD)[:count] if count else ()
    return [
        _formatted(run, _text(run, int(record[:8].view(np.int64)[0])), record[8:].tobytes())
        for record in records
    ]


_CONVERSION = re.compile(
    r"%([-+ #0]*\*?\d*(?:\.(?:\*|\d*))?)(hh|h|ll|l|z|j|t|L)?([diouxXeEfFgGaAcsp%])"
)


def _formatted(run: SimLaunch, text: str, values: bytes) -> str:
    """The text of a ``printf``; each value lies at a multiple of its size."""
    at = 0

    def take(kind: str, nbytes: int) -> Any:
        nonlocal at
        at = -(-at // nbytes) * nbytes + nbytes
        return struct.unpack_from(kind, values.ljust(at, b"\0"), at - nbytes)[0]

    def one(match: re.Match[str]) -> str:
        flags, size, kind = match.groups()
        if kind == "%":
            return "%"
        while "*" in flags:
            flags = flags.replace("*", str(take("<i", 4)), 1)
        if kind in "eEfFgGaA":
            value = float(take("<d", 8))
            return value.hex() if kind in "aA" else f"%{flags}{kind}" % value
        if kind == "s":
            return f"%{flags}s" % _text(run, take("<Q", 8))
        if kind == "p":
            return f"{take('<Q', 8):#x}"
        long = size in ("l", "ll", "z", "j", "t")
        letter = "q" if long else "i"
        number = take("<" + (letter if kind in "dic" else letter.upper()), 8 if long else 4)
        return f"%{flags}{kind}" % (chr(number & 0xFF) if kind == "c" else number)

    return _CONVERSION.sub(one, text)


def _text(run: SimLaunch, address: int) -> str:
    """The text that ends with a zero byte at an address in global memory."""
    start = address - layout.GLOBAL_BASE
    data = run.memory.data[max(start, 0) : start + 4096] if start >= 0 else b""
    return bytes(data).partition(b"\0")[0].decode(errors="replace")


def standing(run: SimLaunch) -> tuple[str, Where]:
    """Where the first warp that can run, or waits, stands: ``; block (0, 0, 0), warp 1 ...``. Of
    its lanes those whose turn it is."""
    code = run.code
    for wanted in (layout.State.READY, layout.State.PARKED):
        for state, masks, waits in _resident(run):
            if int(state[Warp.STATE]) != wanted:
                continue
            places = [(int(masks[b.index]), _first(b)) for b in code.blocks]
            places += [(int(waits[b.index]), code.blocks[b.block].closing) for b in code.barriers]
            for lanes, at in places:
                if lanes and at is not None:
                    said = f"; lanes {lanes:#010x} of {_warp(state)} are at {_where(at)}"
                    return said, at.where
    return "", Where(0)


def _first(block: BasicBlock) -> Instruction | None:
    """The first instruction from a block on; a latch has none of its own."""
    while block.latch:
        block = block.targets[0]
    return block.instructions[0] if block.instructions else block.closing


def _where(instruction: Instruction) -> str:
    return f"{instruction.full_opcode} at {instruction.where}"


def _block(state: NDArray[np.int64]) -> tuple[int, int, int]:
    x, y, z = (int(state[field]) for field in (Warp.CTAID_X, Warp.CTAID_Y, Warp.CTAID_Z))
    return x, y, z


def _warp(state: NDArray[np.int64]) -> str:
    return f"block {_block(state)}, warp {int(state[Warp.INDEX])}"
