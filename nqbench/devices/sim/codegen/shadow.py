"""The shadow that finds reads of shared memory never written.

Shared memory starts filled with one byte value. A loaded word that has that pattern asks the
shadow whether it was stored on purpose; a stored word that has it tells the shadow. Kernels that
access shared memory in parts of words keep an exact shadow byte per byte instead.
"""

from __future__ import annotations

from nqbench.devices.sim.codegen.reach import WORD, Places, Span
from nqbench.devices.sim.codegen.writer import KernelWriter
from nqbench.devices.sim.faults import Fault
from nqbench.devices.sim.layout import UNWRITTEN_BYTE, Warp
from nqbench.devices.sim.ptx import Instruction
from nqbench.devices.sim.values import I8, I32, I64, MASK, V32, V64, Value, const


def _suspicious(k: KernelWriter, values: list[Value]) -> Value:
    """Lanes (<32 x i1>) where a word has the pattern of unwritten memory."""
    pattern = int.from_bytes(bytes([UNWRITTEN_BYTE] * WORD), "little")
    found = const(MASK, 0)
    for value in values:
        words = [value]
        if value.type == V64:
            words = [k.f.resize(value, 32), k.f.resize(k.f.op("lshr", value, const(V64, 32)), 32)]
        for word in words:
            found = k.f.or_(found, k.f.compare("eq", word, const(V32, pattern)))
    return k.f.and_(found, k.active)


def check_written(
    k: KernelWriter, i: Instruction, found: Places, span: Span, values: list[Value]
) -> None:
    """Stop if a lane read shared memory that nothing was ever stored to."""
    suspects = k.lanes if k.exact_shadow else k.f.as_bits(_suspicious(k, values))
    f = k.f
    with f.when(f.nonzero(suspects), likely=False if not k.exact_shadow else None):
        bad = f.slot(I32)
        f.store(const(I32, 0), bad, 4)
        _each_shadow(k, found, span, values, suspects, bad)
        assert found.offset is not None
        k.fault_if(Fault.UNWRITTEN, f.load(I32, bad, 4), i, found.offset)


def _each_shadow(
    k: KernelWriter, found: Places, span: Span, values: list[Value], lanes: Value, bad: Value
) -> None:
    """Set the bits of ``bad`` whose lanes read an unwritten word (or byte, if exact)."""
    f = k.f
    assert found.offset is not None
    assert found.words is not None
    shadow = k.pointer(Warp.SHADOW)
    where = k.spilled(found.offset if k.exact_shadow else found.words)
    copies = [k.spilled(value) for value in values]
    pattern = int.from_bytes(bytes([UNWRITTEN_BYTE] * WORD), "little")
    with f.each_lane(lanes) as lane:
        start = f.resize(f.load(I32, f.offset(where, lane, I32), 4), 64)
        missing = const("i1", 0)
        if k.exact_shadow:
            for byte in range(span.nbytes):
                mark = f.load(I8, f.offset(shadow, f.add(start, const(I64, byte))))
                missing = f.or_(missing, f.compare("eq", mark, const(I8, 0)))
        else:
            per = span.bits // 32
            for e, copy in enumerate(copies):
                for j in range(per):
                    at = f.add(f.op("mul", lane, const(I32, per)), const(I32, j))
                    word = f.load(I32, f.offset(copy, at, I32), 4)
                    mark = f.load(I8, f.offset(shadow, f.add(start, const(I64, e * per + j))))
                    none = f.compare("eq", mark, const(I8, 0))
                    same = f.compare("eq", word, const(I32, pattern))
                    missing = f.or_(missing, f.and_(none, same))
        bit = f.op("shl", f.resize(f.cast("zext", missing, I32), 32), lane)
        f.store(f.or_(f.load(I32, bad, 4), bit), bad, 4)


def note_written(k: KernelWriter, found: Places, span: Span, values: list[Value]) -> None:
    """Tell the shadow about a store to shared memory (only of the pattern, unless exact)."""
    lanes = k.lanes if k.exact_shadow else k.f.as_bits(_suspicious(k, values))
    with k.f.when(k.f.nonzero(lanes), likely=False if not k.exact_shadow else None):
        mark_written(k, found, span, lanes)


def mark_written(k: KernelWriter, found: Places, span: Span, lanes: Value) -> None:
    """Set the shadow of what these lanes access."""
    f = k.f
    assert found.offset is not None
    assert found.words is not None
    where = k.spilled(found.offset if k.exact_shadow else found.words)
    marks = span.nbytes if k.exact_shadow else span.nbytes // WORD
    with f.each_lane(lanes) as lane:
        start = f.resize(f.load(I32, f.offset(where, lane, I32), 4), 64)
        ones = const(f"i{8 * marks}", int.from_bytes(b"\1" * marks, "little"))
        f.store(ones, f.offset(k.pointer(Warp.SHADOW), start))
