"""Reading and writing the engine's records from generated code."""

from __future__ import annotations

from nqbench.devices.sim.ir import Function
from nqbench.devices.sim.values import I1, I8, I64, PTR, Value, const


class Fields:
    """Reads and writes 8-byte fields of a record."""

    def __init__(self, f: Function, record: Value) -> None:
        self.f = f
        self.record = record

    def place(self, field: int) -> Value:
        return self.f.offset(self.record, 8 * field)

    def get(self, field: int) -> Value:
        return self.f.load(I64, self.place(field), 8)

    def set(self, field: int, value: Value | int) -> None:
        number = value if isinstance(value, Value) else const(I64, value)
        self.f.store(number, self.place(field), 8)

    def add(self, field: int, amount: int) -> None:
        self.f.bump(self.place(field), const(I64, amount))


def pointer(f: Function, number: Value) -> Value:
    return f.emit(PTR, f"inttoptr {number} to ptr")


def as_number(f: Function, pointer: Value) -> Value:
    return f.emit(I64, f"ptrtoint {pointer} to i64")


def fill(f: Function, place: Value, byte: int, nbytes: Value) -> None:
    f.call("void", "llvm.memset.p0.i64", place, const(I8, byte), nbytes, const(I1, 0), declare=True)


def element(f: Function, base: Value, stride: Value, index: Value) -> Value:
    return pointer(f, f.add(base, f.op("mul", stride, index)))
