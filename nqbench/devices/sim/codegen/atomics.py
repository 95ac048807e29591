"""Atomic instructions. Lanes take their turn in lane order."""

from __future__ import annotations

from nqbench.devices.sim.codegen.memory import (
    QUALIFIERS,
    address_of,
    fetch,
    is_sink,
    places,
    space_of,
    visiting,
    visits,
)
from nqbench.devices.sim.codegen.reach import Places, Span
from nqbench.devices.sim.codegen.shadow import check_written, mark_written
from nqbench.devices.sim.codegen.types import Handler, Kind, kinds
from nqbench.devices.sim.codegen.writer import KernelWriter
from nqbench.devices.sim.faults import Fault
from nqbench.devices.sim.ir import Function
from nqbench.devices.sim.layout import CACHE_LINE
from nqbench.devices.sim.ptx import Instruction
from nqbench.devices.sim.values import Value, const, vector

OPERATIONS = ("add", "exch", "cas", "min", "max", "and", "or", "xor", "inc", "dec")


def atomic(k: KernelWriter, i: Instruction) -> None:
    known = QUALIFIERS | {"shared", "global", *OPERATIONS}
    (kind,) = kinds(k, i, known, allow="usbf")
    operation = next((m for m in i.modifiers if m in OPERATIONS), "")
    if kind.bits < 32 or not operation or (kind.float and operation not in ("add", "exch")):
        raise k.unsupported(i)
    if "v2" in i.modifiers or "v4" in i.modifiers or space_of(i) == "local":
        raise k.unsupported(i)
    keeps = i.opcode == "atom"
    at = 1 if keeps else 0
    type_ = vector(f"i{kind.bits}")
    values = [k.read(operand, kind.bits, kind.name) for operand in i.operands[at + 1 :]]
    result = k.f.slot(type_)
    k.f.store(const(type_, 0), result, CACHE_LINE)
    with visits(k, i, address_of(k, i.operands[at])) as spaces:
        for space, active, address in spaces:
            if space == "local":
                k.fault_if(Fault.SPACE, k.f.as_bits(active), i, address)
                continue
            with visiting(k, i, active):
                span = Span(kind.bits, 1)
                found = places(k, i, space, address, span, broadcast=False)
                if space == "shared":
                    check_written(k, i, found, span, [fetch(k, found, 0)])
                    # Any value may come out, so the shadow of these words is always set.
                    mark_written(k, found, span, k.lanes)
                _turns(k, kind, operation, found, values, result)
    if keeps and not is_sink(i.operands[0]):
        k.write(i.operands[0], k.f.load(type_, result, CACHE_LINE), kind.signed)


def _turns(
    k: KernelWriter, kind: Kind, operation: str, found: Places, values: list[Value], result: Value
) -> None:
    f = k.f
    scalar = f"i{kind.bits}"
    (pointers,) = found.pieces[0]
    places_ = k.spilled(pointers)
    copies = [k.spilled(value) for value in values]
    with f.each_lane(k.lanes) as lane:
        pointer = f.load("ptr", f.offset(places_, lane, "ptr"), 8)
        old = f.load(scalar, pointer)
        operands = [f.load(scalar, f.offset(copy, lane, scalar)) for copy in copies]
        f.store(_combined(f, kind, operation, old, operands), pointer)
        f.store(old, f.offset(result, lane, scalar))


def _combined(f: Function, kind: Kind, operation: str, old: Value, new: list[Value]) -> Value:
    """What the atomic leaves in memory."""
    a = new[0]
    if operation == "exch":
        return a
    if operation == "cas":
        return f.select(f.compare("eq", old, a), new[1], old)
    if operation in ("min", "max"):
        return f.intrinsic(("s" if kind.signed else "u") + operation, old, a)
    one, zero = const(a.type, 1), const(a.type, 0)
    if operation == "inc":
        return f.select(f.compare("uge", old, a), zero, f.add(old, one))
    if operation == "dec":
        wraps = f.or_(f.compare("eq", old, zero), f.compare("ugt", old, a))
        return f.select(wraps, a, f.sub(old, one))
    if operation == "add" and kind.float:
        name = "float" if kind.bits == 32 else "double"
        x, y = (f.cast("bitcast", value, name) for value in (old, a))
        return f.cast("bitcast", f.op("fadd", x, y), old.type)
    return f.op(operation, old, a)


ATOMICS: dict[str, Handler] = {"atom": atomic, "red": atomic}
