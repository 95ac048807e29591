"""Barriers of a whole block: how a warp waits and what a reducing barrier gives back."""

from __future__ import annotations

from dataclasses import dataclass

from nqbench.devices.sim.cfg import Block
from nqbench.devices.sim.codegen.types import kinds
from nqbench.devices.sim.codegen.writer import KernelWriter
from nqbench.devices.sim.layout import BARRIERS, Slot, Warp
from nqbench.devices.sim.operands import Immediate, Operand
from nqbench.devices.sim.ptx import Instruction
from nqbench.devices.sim.values import I32, I64


@dataclass(frozen=True, slots=True)
class BarrierSite:
    """A block-wide barrier in the code: where lanes go on after it."""

    index: int
    barrier: int
    resume: int
    aligned: bool
    reduces: str
    block: int


def site_of(k: KernelWriter, block: Block, index: int) -> BarrierSite:
    """What a barrier instruction says; refuses numbers that are not constant."""
    closing = block.closing
    assert closing is not None
    known = ("cta", "sync", "red", "popc", "and", "or", "aligned")
    kinds(k, closing, known, allow="up")
    reduces = next((m for m in closing.modifiers if m in ("popc", "and", "or")), "")
    operands = closing.operands[1 if reduces else 0 :]
    number = operands[0] if operands else None
    if not isinstance(number, Immediate) or not 0 <= number.value < BARRIERS:
        raise k.unsupported(closing, "the barrier must be a constant from 0 to 15")
    aligned = closing.opcode == "bar" or "aligned" in closing.modifiers
    return BarrierSite(index, number.value, block.targets[0].index, aligned, reduces, block.index)


def _count(closing: Instruction) -> Operand | None:
    reduces = "red" in closing.modifiers
    operands = closing.operands[1:-1] if reduces else closing.operands
    return operands[1] if len(operands) > 1 else None


def wait(k: KernelWriter, block: Block, site: BarrierSite) -> None:
    """Lanes arrive; they go on when the scheduler opens the barrier."""
    f = k.f
    closing = block.closing
    assert closing is not None
    slot = k.pointer(Warp.SLOT)
    if site.reduces:
        says = f.and_(f.as_bits(k.predicate(closing.operands[-1])), k.lanes)
        place = f.offset(slot, 8 * (Slot.TRUE_LANES + site.barrier))
        f.bump(place, f.popcount(says))
    count = _count(closing)
    if count is not None:
        wanted = k.f.extract(k.read(count, 32), f.lowest(k.lanes))
        place = f.offset(slot, 8 * (Slot.EXPECTED + site.barrier))
        f.store(f.resize(wanted, 64), place, 8)
    k.end()
    place = f.offset(k.warp, k.layout.waits + 4 * site.index)
    f.store(f.or_(f.load(I32, place, 4), k.lanes), place, 4)
    waiting = f.offset(k.warp, 8 * Warp.WAITING)
    f.store(f.or_(f.load(I64, waiting, 8), f.resize(k.lanes, 64)), waiting, 8)
    arrived = f.offset(slot, 8 * (Slot.ARRIVED + site.barrier))
    f.bump(arrived, f.popcount(k.lanes))
    f.jump("dispatch")


def result(k: KernelWriter, block: Block, site: BarrierSite) -> None:
    """Give the lanes behind a reducing barrier its result."""
    f = k.f
    assert block.closing is not None
    slot = k.pointer(Warp.SLOT)
    true = f.load(I64, f.offset(slot, 8 * (Slot.RESULT_TRUE + site.barrier)), 8)
    if site.reduces == "popc":
        answer = f.splat(f.resize(true, 32))
    elif site.reduces == "or":
        answer = f.splat(f.nonzero(true))
    else:
        all_ = f.load(I64, f.offset(slot, 8 * (Slot.RESULT_ALL + site.barrier)), 8)
        answer = f.splat(f.compare("eq", true, all_))
    k.write(block.closing.operands[0], answer)
