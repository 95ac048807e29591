"""Integer instructions against Python's unbounded integers, lane by lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.simulator.harness import computed

EDGES32 = [0, 1, 2, 31, 32, 33, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0xFFFF, 0x10000]
EDGES64 = [*EDGES32, 2**63 - 1, 2**63, 2**64 - 1, 2**32, 63, 64, 65]


def signed(value: int, bits: int = 32) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def quotient(a: int, b: int) -> int:
    """Division that rounds towards zero."""
    return -(-a // b) if (a < 0) != (b < 0) and a % b else a // b


def shift_left(a: int, n: int, bits: int) -> int:
    return a << n if n < bits else 0


def shift_right(a: int, n: int, bits: int) -> int:
    return a >> min(n, bits)


def field(a: int, pos: int, length: int, is_signed: bool) -> int:
    """``bfe`` bit by bit, from the PTX ISA's pseudocode."""
    pos, length = pos & 0xFF, length & 0xFF
    sign = 0
    if is_signed and length:
        sign = a >> min(pos + length - 1, 31) & 1
    return sum((a >> pos + i & 1 if i < length and pos + i <= 31 else sign) << i for i in range(32))


def insert(a: int, b: int, pos: int, length: int) -> int:
    pos, length = pos & 0xFF, length & 0xFF
    for i in range(length):
        if pos + i <= 31:
            b = b & ~(1 << pos + i) | (a >> i & 1) << pos + i
    return b


def permute(a: int, b: int, selector: int) -> int:
    source = (b << 32 | a).to_bytes(8, "little")
    out = 0
    for i in range(4):
        nibble = selector >> 4 * i & 15
        byte = source[nibble & 7]
        out |= ((0xFF if byte >> 7 else 0) if nibble & 8 else byte) << 8 * i
    return out


def funnel(low: int, high: int, n: int, left: bool, wrap: bool) -> int:
    n = n % 32 if wrap else min(n, 32)
    pair = high << 32 | low
    return (pair << n) >> 32 if left else pair >> n


def lop(a: int, b: int, c: int, table: int) -> int:
    bits = zip(*(f"{x:032b}" for x in (a, b, c)), strict=True)
    return int("".join(str(table >> (int(x) * 4 + int(y) * 2 + int(z)) & 1) for x, y, z in bits), 2)


Case = tuple[str, Callable[[int, int, int], int]]

WORDS: list[Case] = [
    ("add.s32 {d}, {a}, {b}", lambda a, b, c: a + b),
    ("sub.u32 {d}, {a}, {b}", lambda a, b, c: a - b),
    ("mul.lo.s32 {d}, {a}, {b}", lambda a, b, c: a * b),
    ("mul.hi.u32 {d}, {a}, {b}", lambda a, b, c: a * b >> 32),
    ("mul.hi.s32 {d}, {a}, {b}", lambda a, b, c: signed(a) * signed(b) >> 32),
    ("mad.lo.u32 {d}, {a}, {b}, {c}", lambda a, b, c: a * b + c),
    ("mad.hi.s32 {d}, {a}, {b}, {c}", lambda a, b, c: (signed(a) * signed(b) >> 32) + c),
    ("mul24.lo.u32 {d}, {a}, {b}", lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF)),
    ("neg.s32 {d}, {a}", lambda a, b, c: -a),
    ("abs.s32 {d}, {a}", lambda a, b, c: abs(signed(a))),
    ("min.s32 {d}, {a}, {b}", lambda a, b, c: min(signed(a), signed(b))),
    ("min.u32 {d}, {a}, {b}", lambda a, b, c: min(a, b)),
    ("max.s32 {d}, {a}, {b}", lambda a, b, c: max(signed(a), signed(b))),
    ("max.u32 {d}, {a}, -5", lambda a, b, c: max(a, 2**32 - 5)),
    ("sad.u32 {d}, {a}, {b}, {c}", lambda a, b, c: abs(a - b) + c),
    ("sad.s32 {d}, {a}, {b}, {c}", lambda a, b, c: abs(signed(a) - signed(b)) + c),
    ("and.b32 {d}, {a}, {b}", lambda a, b, c: a & b),
    ("or.b32 {d}, {a}, {b}", lambda a, b, c: a | b),
    ("xor.b32 {d}, {a}, {b}", lambda a, b, c: a ^ b),
    ("not.b32 {d}, {a}", lambda a, b, c: ~a),
    ("cnot.b32 {d}, {a}", lambda a, b, c: int(a == 0)),
    ("shl.b32 {d}, {a}, {b}", lambda a, b, c: shift_left(a, b, 32)),
    ("shr.u32 {d}, {a}, {b}", lambda a, b, c: shift_right(a, b, 32)),
    ("shr.s32 {d}, {a}, {b}", lambda a, b, c: shift_right(signed(a), b, 32)),
    ("shl.b32 {d}, {a}, 7", lambda a, b, c: a << 7),
    ("shf.l.wrap.b32 {d}, {a}, {b}, {c}", lambda a, b, c: funnel(a, b, c, True, True)),
    ("shf.r.wrap.b32 {d}, {a}, {b}, {c}", lambda a, b, c: funnel(a, b, c, False, True)),
    ("shf.l.clamp.b32 {d}, {a}, {b}, {c}", lambda a, b, c: funnel(a, b, c, True, False)),
    ("shf.r.clamp.b32 {d}, {a}, {b}, {c}", lambda a, b, c: funnel(a, b, c, False, False)),
    ("lop3.b32 {d}, {a}, {b}, {c}, 0xCA", lambda a, b, c: lop(a, b, c, 0xCA)),
    ("lop3.b32 {d}, {a}, {b}, {c}, 0x96", lambda a, b, c: a ^ b ^ c),
    ("lop3.b32 {d}, {a}, {b}, {c}, 0x01", lambda a, b, c: ~(a | b | c)),
    (
        "setp.lt.u32 %p9, {a}, {b}; lop3.and.b32 _|%p9, {a}, {b}, {c}, 0x80, %p9;"
        " selp.u32 {d}, 1, 0, %p9",
        lambda a, b, c: int(a & b & c != 0 and a < b),
    ),
    (
        "setp.lt.u32 %p9, {a}, {b}; lop3.or.b32 {d}|%p9, {a}, {b}, {c}, 0x96, %p9;"
        " selp.u32 {d}, {d}, 7, %p9",
        lambda a, b, c: a ^ b ^ c if a ^ b ^ c or a < b else 7,
    ),
    ("bfe.u32 {d}, {a}, {b}, {c}", lambda a, b, c: field(a, b, c, False)),
    ("bfe.s32 {d}, {a}, {b}, {c}", lambda a, b, c: field(a, b, c, True)),
    ("bfe.u32 {d}, {a}, 5, 9", lambda a, b, c: a >> 5 & 511),
    ("bfi.b32 {d}, {a}, {b}, {c}, 6", lambda a, b, c: insert(a, b, c, 6)),
    ("bfi.b32 {d}, {a}, {b}, 3, {c}", lambda a, b, c: insert(a, b, 3, c)),
    ("prmt.b32 {d}, {a}, {b}, {c}", lambda a, b, c: permute(a, b, c)),
    ("popc.b32 {d}, {a}", lambda a, b, c: a.bit_count()),
    ("clz.b32 {d}, {a}", lambda a, b, c: 32 - a.bit_length()),
    ("brev.b32 {d}, {a}", lambda a, b, c: int(f"{a:032b}"[::-1], 2)),
    ("bfind.u32 {d}, {a}", lambda a, b, c: a.bit_length() - 1),
    ("bfind.s32 {d}, {a}", lambda a, b, c: (a ^ -(a >> 31) & 2**32 - 1).bit_length() - 1),
    ("bfind.shiftamt.u32 {d}, {a}", lambda a, b, c: 32 - a.bit_length() if a else -1),
]

SAFE: list[Case] = [
    ("div.u32 {d}, {a}, {b}", lambda a, b, c: a // b),
    ("div.s32 {d}, {a}, {b}", lambda a, b, c: quotient(signed(a), signed(b))),
    ("rem.u32 {d}, {a}, {b}", lambda a, b, c: a % b),
    (
        "rem.s32 {d}, {a}, {b}",
        lambda a, b, c: signed(a) - quotient(signed(a), signed(b)) * signed(b),
    ),
]

LONG: list[Case] = [
    ("add.s64 {d}, {a}, {b}", lambda a, b, c: a + b),
    ("sub.s64 {d}, {a}, {b}", lambda a, b, c: a - b),
    ("mul.lo.s64 {d}, {a}, {b}", lambda a, b, c: a * b),
    ("mul.hi.u64 {d}, {a}, {b}", lambda a, b, c: a * b >> 64),
    ("mul.hi.s64 {d}, {a}, {b}", lambda a, b, c: signed(a, 64) * signed(b, 64) >> 64),
    ("mad.lo.s64 {d}, {a}, {b}, {c}", lambda a, b, c: a * b + c),
    ("min.s64 {d}, {a}, {b}", lambda a, b, c: min(signed(a, 64), signed(b, 64))),
    ("max.u64 {d}, {a}, {b}", lambda a, b, c: max(a, b)),
    ("abs.s64 {d}, {a}", lambda a, b, c: abs(signed(a, 64))),
    ("and.b64 {d}, {a}, {b}", lambda a, b, c: a & b),
    ("not.b64 {d}, {a}", lambda a, b, c: ~a),
    ("brev.b64 {d}, {a}", lambda a, b, c: int(f"{a:064b}"[::-1], 2)),
    ("div.u64 {d}, {a}, {b}", lambda a, b, c: a // b),
    ("div.s64 {d}, {a}, {b}", lambda a, b, c: quotient(signed(a, 64), signed(b, 64))),
    ("rem.u64 {d}, {a}, {b}", lambda a, b, c: a % b),
]


def inputs(edges: list[int], bits: int, nonzero: bool = False) -> list[list[int]]:
    """Three operands for 8 warps: edge values against edge values, then random ones."""
    draw = np.random.default_rng(7)
    count = 256
    columns = []
    for step in (1, len(edges) + 1, 5):
        column = [edges[i // step % len(edges)] for i in range(count // 2)]
        column += [int(x) for x in draw.integers(0, 2**bits, count - len(column), dtype=np.uint64)]
        columns.append([x or 3 for x in column] if nonzero else column)
    # Small amounts make shifts and fields interesting.
    columns[2][::3] = [x % 40 for x in columns[2][::3]]
    return columns


def check(
    cases: Sequence[tuple[str, Callable[..., int]]],
    columns: list[list[int]],
    given: str,
    out: str = "",
    head: str = "",
) -> None:
    """Run each case on the columns, as numbers of type ``given``; ``head`` begins each text."""
    names = {"a": "%a", "b": "%b", "c": "%c", "d": "%d", "w": "%rd6", "n": "%rd7"}
    texts = [head + text.format(**names) for text, _ in cases]
    results = computed(texts, out or given, *(np.array(column, given) for column in columns))
    mask = np.iinfo(out or given).max
    for row, (text, reference) in zip(results.tolist(), cases, strict=True):
        for got, operands in zip(row, zip(*columns, strict=True), strict=True):
            want = reference(*operands) & mask
            assert got == want, (text, [hex(x) for x in operands], hex(got), hex(want))


def parts_of(word: int, count: int, kind: str) -> list[int]:
    bits = 32 // count
    found = [word >> n * bits & ((1 << bits) - 1) for n in range(count)]
    return [signed(part, bits) for part in found] if kind == "s32" else found


OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "vadd": int.__add__,
    "vsub": int.__sub__,
    "vabsdiff": lambda x, y: abs(x - y),
    "vmin": min,
    "vmax": max,
    "vavrg": lambda x, y: (x + y + (x + y >= 0)) >> 1,
    "vset": lambda x, y: int(x < y),
}


def video(name: str, count: int, kind: str, how: str) -> Callable[..., int]:
    """A video instruction on parts of words, as the PTX manual has it."""
    low, high = (-(2 ** (32 // count - 1)), 2 ** (32 // count - 1) - 1)
    low, high = (low, high) if kind == "s32" else (0, 2 ** (32 // count) - 1)
    operation = OPERATIONS[name]

    def whole(a: int, b: int, c: int) -> int:
        pairs = zip(parts_of(a, count, kind), parts_of(b, count, kind), strict=True)
        found = [operation(x, y) for x, y in pairs]
        found = [min(max(x, low), high) for x in found] if how == ".sat" else found
        if how == ".add":
            return sum(found) + c
        bits = 32 // count
        return sum((x & ((1 << bits) - 1)) << n * bits for n, x in enumerate(found))

    return whole


VIDEO = [
    (
        f"{name}{count}.{'' if name == 'vset' else kind + '.'}{kind}.{kind}"
        f"{'.lt' if name == 'vset' else ''}{how} {{d}}, {{a}}, {{b}}, {{c}}",
        video(name, count, kind, how),
    )
    for name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vavrg", "vset")
    for count in (2, 4)
    for kind in ("s32", "u32")
    for how in ("", ".add", *((".sat",) if name in ("vadd", "vsub") else ()))
]


def test_parts_of_words() -> None:
    check(VIDEO, inputs(EDGES32, 32), "uint32")
    pairs = [
        (f"{name}.{kind}16x2 {{d}}, {{a}}, {{b}}", video(f"v{name}", 2, f"{kind}32", ""))
        for name in ("add", "min", "max")
        for kind in "su"
    ]
    check(pairs, inputs(EDGES32, 32), "uint32")


@pytest.mark.parametrize("part", [slice(0, 22), slice(22, None)], ids=["arithmetic", "bits"])
def test_32_bit(part: slice) -> None:
    check(WORDS[part], inputs(EDGES32, 32), "uint32")


def test_division_rounds_to_zero() -> None:
    check(SAFE, inputs(EDGES32, 32, nonzero=True), "uint32")


def test_64_bit() -> None:
    check(LONG, inputs(EDGES64, 64, nonzero=True), "uint64")


MIXED: list[tuple[str, Callable[[int, int], int]]] = [
    ("mul.wide.u32 {d}, {a}, {b}", lambda a, b: a * b),
    ("mul.wide.s32 {d}, {a}, {b}", lambda a, b: signed(a) * signed(b)),
    ("mad.wide.s32 {d}, {a}, {b}, {w}", lambda a, b: signed(a) * signed(b) + 2**40),
    ("cvt.u64.u32 {d}, {a}", lambda a, b: a),
    ("cvt.s64.s32 {d}, {a}", lambda a, b: signed(a)),
    ("cvt.u64.u8 {d}, {a}", lambda a, b: a & 0xFF),
    ("cvt.s64.s16 {d}, {a}", lambda a, b: signed(a, 16)),
    ("mov.b64 {d}, {{{a}, {b}}}", lambda a, b: b << 32 | a),
    ("shl.b64 {d}, {w}, {a}", lambda a, b: shift_left(2**40, a, 64)),
    ("shr.s64 {d}, {n}, {a}", lambda a, b: shift_right(-(2**50), a, 64)),
]


def test_between_widths() -> None:
    head = "mov.u64 %rd6, 1099511627776; mov.u64 %rd7, -1125899906842624; "
    check(MIXED, inputs(EDGES32, 32)[:2], "uint32", "uint64", head)


COMPARISONS: list[tuple[str, Callable[[int, int], bool]]] = [
    ("setp.eq.s32 %p1", lambda a, b: a == b),
    ("setp.ne.b32 %p1", lambda a, b: a != b),
    ("setp.lt.s32 %p1", lambda a, b: signed(a) < signed(b)),
    ("setp.lt.u32 %p1", lambda a, b: a < b),
    ("setp.le.s32 %p1", lambda a, b: signed(a) <= signed(b)),
    ("setp.gt.u32 %p1", lambda a, b: a > b),
    ("setp.ge.s32 %p1", lambda a, b: signed(a) >= signed(b)),
    ("setp.hi.u32 %p1", lambda a, b: a > b),
    ("setp.ls.u32 %p1", lambda a, b: a <= b),
    ("setp.lt.and.s32 %p1", lambda a, b: signed(a) < signed(b) and bool(a & 1)),
    ("setp.lt.or.s32 %p1", lambda a, b: signed(a) < signed(b) or bool(a & 1)),
    ("setp.eq.xor.s32 %p1|%p2", lambda a, b: (a == b) != bool(a & 1)),
]


def test_comparisons_and_combined_predicates() -> None:
    a, b, _ = inputs(EDGES32, 32)
    b[::5] = a[::5]
    cases = [
        (f"{text}, %a, %b{', %p5' if text.count('.') == 3 else ''}; selp.u32 %d, 1, 0, %p1", right)
        for text, right in COMPARISONS
    ]
    check(cases, [a, b], "uint32", head="and.b32 %r4, %a, 1; setp.ne.s32 %p5, %r4, 0; ")
