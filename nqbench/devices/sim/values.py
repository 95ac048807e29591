"""LLVM types and values as text. A vector has one element per lane of the warp."""

from __future__ import annotations

from dataclasses import dataclass

LANES = 32
I1, I8, I16, I32, I64, PTR = "i1", "i8", "i16", "i32", "i64", "ptr"


def vector(element: str, lanes: int = LANES) -> str:
    """Type of a vector with one element per lane."""
    return f"<{lanes} x {element}>"


MASK = vector(I1)
V8, V16, V32, V64 = vector(I8), vector(I16), vector(I32), vector(I64)


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
