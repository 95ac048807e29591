"""LLVM types and values as text. A vector has one element per lane of the warp."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache

LANES = 32
I1, I8, I16, I32, I64, PTR = "i1", "i8", "i16", "i32", "i64", "ptr"


def vector(element: str, lanes: int = LANES) -> str:
    """Type of a vector with one element per lane."""
    return f"<{lanes} x {element}>"


MASK = vector(I1)
V8, V16, V32, V64 = vector(I8), vector(I16), vector(I32), vector(I64)


@cache
def element(type_: str) -> str:
    """Element type of a vector type, or the type itself."""
    return type_[1:-1].split(" x ", 1)[1] if type_.startswith("<") else type_


def like(type_: str, new_element: str) -> str:
    """``type_`` with another element type."""
    if not type_.startswith("<"):
        return new_element
    return f"<{type_[1:-1].split(' x ', 1)[0]} x {new_element}>"


@dataclass(frozen=True, slots=True)
class Value:
    """An LLVM value: its type and how to write it."""

    type: str
    text: str

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


@lru_cache(maxsize=4096)
def const(type_: str, number: int) -> Value:
    """An integer constant; the same in every lane of a vector type."""
    if element(type_) == I1:
        text = "true" if number else "false"
    else:
        bits = int(element(type_)[1:])
        number &= (1 << bits) - 1
        text = str(number - (1 << bits) if number >> (bits - 1) else number)
    if type_.startswith("<"):
        return Value(type_, f"splat ({element(type_)} {text})" if number else "zeroinitializer")
    return Value(type_, text)


def number_of(value: Value) -> int | None:
    """What a constant is in every lane; nothing of other values."""
    found = re.fullmatch(r"zeroinitializer|splat \(i\d+ (-?\d+)\)", value.text)
    return int(found[1] or 0) if found else None


NULL = Value(PTR, "null")


def lanes_of(type_: str, numbers: list[int]) -> Value:
    """A constant vector."""
    inner = element(type_)
    return Value(type_, "<" + ", ".join(f"{inner} {n}" for n in numbers) + ">")


def overload(type_: str) -> str:
    """How LLVM spells a type inside an intrinsic's name."""
    if type_.startswith("<"):
        count, inner = type_[1:-1].split(" x ", 1)
        return f"v{count}{overload(inner)}"
    return {"ptr": "p0", "float": "f32", "double": "f64"}.get(type_, type_)


class Module:
    """Functions that are written, and declarations of those that they call elsewhere."""

    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}
        self.declarations: dict[str, str] = {}

    def text(self, *names: str) -> str:
        """These functions as a module in LLVM IR; without names, all."""
        names = names or (*self.functions,)
        body = "\n".join([*(self.functions[name].text() for name in names), METADATA])
        others = {n: d for n, d in self.declarations.items() if n not in names}
        return "\n".join([*(d for n, d in others.items() if f"@{n}(" in body), body])


class Function:
    """One function of a module being written. Call ``label`` to begin each block."""

    def __init__(self, module: Module, signature: str) -> None:
        """``signature``: ``i64 name(ptr a, <32 x i32> b) nounwind``."""
        head, _, self.attributes = signature.partition(") ")
        head, _, inside = head.partition("(")
        self.result, self.name = head.rsplit(" ", 1)
        parameters = (one.rsplit(" ", 1) for one in inside.split(", "))
        self.parameters = [Value(type_, f"%{name}") for type_, name in parameters]
        self.module = module
        self.lines: list[str] = []
        self.stack: list[str] = []
        self.count = 0
        module.functions[self.name] = self

    def text(self) -> str:
        """The finished function."""
        arguments = ", ".join(map(str, self.parameters))
        body = "\n".join(["entry:", *self.stack, *self.lines])
        head = f"define {self.result} @{self.name}({arguments}) {self.attributes}"
        return f"{head} {{\n{body}\n}}\n"

    def fresh(self, stem: str = "v") -> str:
        """A name that is not in use."""
        self.count += 1
        return f"{stem}{self.count}"

    def emit(self, type_: str, text: str) -> Value:
        name = f"%{self.fresh()}"
        self.lines.append(f"  {name} = {text}")
        return Value(type_, name)

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    # values

    def op(self, name: str, a: Value, b: Value) -> Value:
        return self.emit(a.type, f"{name} {a}, {b.text}")

    def add(self, a: Value, b: Value) -> Value:
        return self.op("add", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return self.op("sub", a, b)

    def and_(self, a: Value, b: Value) -> Value:
        return self.op("and", a, b)

    def or_(self, a: Value, b: Value) -> Value:
        return self.op("or", a, b)

    def xor(self, a: Value, b: Value) -> Value:
        return self.op("xor", a, b)

    def not_(self, a: Value) -> Value:
        return self.op("xor", a, const(a.type, 1 if element(a.type) == I1 else -1))

    def compare(self, how: str, a: Value, b: Value) -> Value:
        return self.emit(like(a.type, I1), f"icmp {how} {a}, {b.text}")

    def fcompare(self, how: str, a: Value, b: Value) -> Value:
        """Of floats; ``uno`` of a value and itself asks for NaN."""
        return self.emit(like(a.type, I1), f"fcmp {how} {a}, {b.text}")

    def nonzero(self, a: Value) -> Value:
        return self.compare("ne", a, const(a.type, 0))

    def select(self, c: Value, a: Value, b: Value) -> Value:
        return self.emit(a.type, f"select {c}, {a}, {b}")

    def cast(self, how: str, a: Value, type_: str) -> Value:
        return a if a.type == type_ else self.emit(type_, f"{how} {a} to {type_}")

    def resize(self, a: Value, bits: int, signed: bool = False) -> Value:
        """Truncate or extend every lane to ``bits``."""
        have = int(element(a.type)[1:])
        if have == bits:
            return a
        how = "trunc" if have > bits else "sext" if signed else "zext"
        return self.cast(how, a, like(a.type, f"i{bits}"))

    def splat(self, a: Value, lanes: int = LANES) -> Value:
        """The same scalar in every lane."""
        type_ = vector(a.type, lanes)
        one = self.emit(type_, f"insertelement {type_} poison, {a}, i32 0")
        return self.emit(
            type_, f"shufflevector {one}, {type_} poison, <{lanes} x i32> zeroinitializer"
        )

    def shuffle(self, a: Value, b: Value, places: list[int]) -> Value:
        indices = lanes_of(vector(I32, len(places)), places)
        return self.emit(vector(element(a.type), len(places)), f"shufflevector {a}, {b}, {indices}")

    def extract(self, a: Value, lane: Value) -> Value:
        return self.emit(element(a.type), f"extractelement {a}, {lane}")

    def as_bits(self, mask: Value) -> Value:
        """A lane predicate as a 32-bit mask."""
        return self.cast("bitcast", mask, I32)

    def as_lanes(self, bits: Value) -> Value:
        """A 32-bit mask as a lane predicate."""
        return self.cast("bitcast", bits, MASK)

    def call(self, result: str, name: str, *arguments: Value) -> Value:
        """Call a function of this module or another."""
        types = ", ".join(a.type for a in arguments)
        self.module.declarations[name] = f"declare {result} @{name}({types})"
        text = f"call {result} @{name}({', '.join(map(str, arguments))})"
        if result == "void":
            self.do(text)
            return Value("void", "")
        return self.emit(result, text)

    def intrinsic(self, name: str, *arguments: Value, result: str | None = None) -> Value:
        """An LLVM intrinsic overloaded on its first argument's type, e.g. ``ctpop``."""
        type_ = arguments[0].type
        return self.call(result or type_, f"llvm.{name}.{overload(type_)}", *arguments)

    def popcount(self, bits: Value) -> Value:
        return self.intrinsic("ctpop", bits)

    def lowest(self, bits: Value) -> Value:
        """Index of the lowest set bit of a non-zero scalar."""
        return self.intrinsic("cttz", bits, const(I1, 1))

    def reduce(self, how: str, a: Value) -> Value:
        """Combine all lanes (``or``, ``and``, ``add``, ``umax``, ...)."""
        return self.intrinsic(f"vector.reduce.{how}", a, result=element(a.type))

    def as_float(self, bits: Value) -> Value:
        """The bits of a 32- or 64-bit number seen as a float."""
        name = "float" if element(bits.type) == I32 else "double"
        return self.cast("bitcast", bits, like(bits.type, name))

    def as_number(self, real: Value) -> Value:
        """The inverse of :meth:`as_float`."""
        name = I32 if element(real.type) == "float" else I64
        return self.cast("bitcast", real, like(real.type, name))

    # memory

    def slot(self, type_: str, count: int = 1) -> Value:
        """Stack memory of the function, 64-byte aligned."""
        name = f"%{self.fresh('s')}"
        self.stack.append(f"  {name} = alloca {type_}, i32 {count}, align 64")
        return Value(PTR, name)

    def load(self, type_: str, pointer: Value, align: int = 1) -> Value:
        return self.emit(type_, f"load {type_}, {pointer}, align {align}")

    def store(self, value: Value, pointer: Value, align: int = 1) -> None:
        self.do(f"store {value}, {pointer}, align {align}")

    def zeroed(self, type_: str = I64) -> Value:
        """Memory that starts as 0; see :meth:`bump` for counting in it."""
        slot = self.slot(type_)
        self.store(const(type_, 0), slot, 64)
        return slot

    def spilled(self, value: Value) -> Value:
        """A vector in memory, for access by lane."""
        slot = self.slot(value.type)
        self.store(value, slot, 64)
        return slot

    def offset(self, pointer: Value, index: Value | int, type_: str = I8) -> Value:
        """``pointer + index`` elements of ``type_`` (one pointer per lane if index is a vector)."""
        where = index if isinstance(index, Value) else const(I64, index)
        result = like(where.type, PTR)
        return self.emit(result, f"getelementptr {type_}, {pointer}, {where}")

    def bump(self, pointer: Value, amount: Value) -> None:
        """``*pointer += amount`` (64-bit)."""
        old = self.load(I64, pointer, 8)
        self.store(self.add(old, self.resize(amount, 64)), pointer, 8)

    def pointer(self, number: Value) -> Value:
        """An address held as i64 as a pointer."""
        return self.emit(PTR, f"inttoptr {number} to ptr")

    def address(self, pointer: Value) -> Value:
        """The inverse of :meth:`pointer`."""
        return self.emit(I64, f"ptrtoint {pointer} to i64")

    def element(self, base: Value, stride: Value, index: Value) -> Value:
        """Pointer to an element of an array whose base and stride (bytes) are i64."""
        return self.pointer(self.add(base, self.op("mul", stride, index)))

    def fill(self, place: Value, byte: int | Value, nbytes: Value) -> None:
        """``memset``."""
        value = byte if isinstance(byte, Value) else const(I8, byte)
        self.call("void", "llvm.memset.p0.i64", place, value, nbytes, const(I1, 0))

    # control

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def jump(self, name: str) -> None:
        self.do(f"br label %{name}")

    def branch(self, condition: Value, yes: str, no: str, likely: bool | None = None) -> None:
        hint = "" if likely is None else f", !prof !{0 if likely else 1}"
        self.do(f"br {condition}, label %{yes}, label %{no}{hint}")

    def ret(self, value: Value | None = None) -> None:
        self.do("ret void" if value is None else f"ret {value}")

    @contextmanager
    def when(self, condition: Value, likely: bool | None = None) -> Iterator[None]:
        """Code that runs only if the condition holds."""
        inside, after = self.fresh("then"), self.fresh("after")
        self.branch(condition, inside, after, likely)
        self.label(inside)
        yield
        self.jump(after)
        self.label(after)

    def leave(self, value: Value | None = None) -> None:
        """Return from inside :meth:`when`."""
        self.ret(value)
        self.label(self.fresh("dead"))

    @contextmanager
    def _loop(self, type_: str, at: Value, goes_on: Callable[[Value], Value]) -> Iterator[Value]:
        """Code that runs as long as the number at a place lets it; gives the number."""
        head, body, after = self.fresh("loop"), self.fresh("body"), self.fresh("after")
        self.jump(head)
        self.label(head)
        now = self.load(type_, at, 4)
        self.branch(goes_on(now), body, after)
        self.label(body)
        yield now
        self.jump(head)
        self.label(after)

    @contextmanager
    def while_any(self, bits: Value) -> Iterator[tuple[Value, Value]]:
        """Code that runs until a lane mask is empty: gives what is left of it, and where that is
        kept, for the code to take lanes out."""
        left = self.slot(I32)
        self.store(bits, left, 4)
        with self._loop(I32, left, self.nonzero) as now:
            yield now, left

    @contextmanager
    def each_lane(self, bits: Value) -> Iterator[Value]:
        """Code that runs once per set bit of a lane mask, in lane order; gives the lane (i32)."""
        with self.while_any(bits) as (now, left):
            lane = self.lowest(now)
            self.store(self.and_(now, self.sub(now, const(I32, 1))), left, 4)
            yield lane

    @contextmanager
    def each_of(self, bits: Value, *vectors: Value) -> Iterator[tuple[Value, ...]]:
        """The same; gives the lane and its element of each vector."""
        copies = [(self.spilled(vector), element(vector.type)) for vector in vectors]
        with self.each_lane(bits) as lane:
            yield lane, *(self.load(of, self.offset(copy, lane, of)) for copy, of in copies)

    @contextmanager
    def counted(self, count: Value) -> Iterator[Value]:
        """Code that runs for 0, 1, ..., count - 1."""
        at = self.slot(count.type)
        self.store(const(count.type, 0), at, 8)
        with self._loop(count.type, at, lambda now: self.compare("ult", now, count)) as now:
            yield now
            self.store(self.add(now, const(count.type, 1)), at, 8)


class Fields:
    """Reads and writes the 8-byte fields of one of the engine's records."""

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


METADATA = (
    '!0 = !{!"branch_weights", i32 2000, i32 1}\n!1 = !{!"branch_weights", i32 1, i32 2000}\n'
)
"""Weights for ``likely=True`` and ``likely=False``."""
