"""The two loops of ``middle.cpu`` that need vector instructions, as LLVM IR inside of numba.

Numba has no vectors. Each function here is an intrinsic of numba that writes IR for the host's
widest instructions and calls it; the code around it is portable. A path is a number of
:data:`PATHS`; an intrinsic has code for those that the host can run, and returns 0 for others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

PORTABLE: Final = 0
AVX2: Final = 1
AVX512: Final = 2
PATHS: Final[Mapping[str, int]] = {"portable": PORTABLE, "avx2": AVX2, "avx512": AVX512}

LANES: Final = (8, 4, 8)
"""64-bit words of a vector, by path."""
BITS: Final = (7, 4, 7)
"""Diagonals that one look-up takes, by path: the index of a byte in a table. ``vpermi2b`` has 128
entries, ``vpshufb`` 16."""
STEP: Final = (8, 4, 8)
"""Bits of a word from one look-up's diagonals to the next one's."""
LOOKUPS: Final = ((6, 6, 6), (8, 9, 10), (5, 5, 6))
"""Look-ups that there is code for, by path."""
BLOCKS: Final = (8, 1, 2)
"""Tables that are looked up together, each for eight half boards: 16 of AVX2's registers hold those
of one."""

_NEEDED: Final = {
    AVX2: ("avx2", "popcnt", "bmi"),
    AVX512: ("avx512bw", "avx512vl", "avx512vbmi", "avx512vpopcntdq"),
}

_I1, _I8, _I32, _I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
_POINTER: Final = ir.PointerType()


def paths() -> tuple[int, ...]:
    """Those that this CPU has, the fastest last. A CPU that numba was told to assume: portable."""
    told: Any = numba.config
    if told.CPU_NAME or told.CPU_FEATURES:
        return (PORTABLE,)
    has = llvm.get_host_cpu_features()
    return (PORTABLE, *(p for p, all_of in _NEEDED.items() if all(has.get(f) for f in all_of)))


def _word(value: int) -> Any:
    return ir.Constant(_I64, value)


def _splat(b: Any, value: Any, lanes: int) -> Any:
    vector = ir.VectorType(value.type, lanes)
    first = b.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(_I32, 0))
    zeros = ir.Constant(ir.VectorType(_I32, lanes), [0] * lanes)
    return b.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)


def _load(b: Any, kind: Any, address: Any, offset: int = 0) -> Any:
    found = b.load(b.inttoptr(b.add(address, _word(offset)), _POINTER), typ=kind)
    found.align = 1
    return found


def _external(module: Any, name: str, result: Any, *arguments: Any) -> Any:
    kind = ir.FunctionType(result, arguments)
    return module.globals.get(name) or ir.Function(module, kind, name)


def _function(module: Any, name: str, arguments: int) -> tuple[Any, dict[str, Any]]:
    function = ir.Function(module, ir.FunctionType(_I64, [_I64] * arguments), name)
    function.linkage = "internal"
    names = ("entry", "outer", "inner", "next", "done")
    return function, {k: ir.IRBuilder(function.append_basic_block(k)) for k in names}


def _tables(b: Any, path: int, lookups: int, columns: Any, block: int) -> list[tuple[Any, ...]]:
    """Of each look-up, one or two vectors of bytes: byte i is the OR of the columns in i."""
    width = 8 * LANES[path]
    vector = ir.VectorType(_I8, width)
    tables: list[tuple[Any, ...]] = []
    for j in range(lookups):
        low, high = ir.Constant(vector, [0] * width), None
        for k in range(BITS[path]):
            bit = STEP[path] * j + k
            column = _load(b, _I8, columns, 64 * block + 8 * (bit % 8) + bit // 8)
            attacked = _splat(b, column, width)
            if k == 6:
                high = b.or_(low, attacked)
            else:
                entries = [-(i >> k & 1) & 255 for i in range(width)]
                low = b.or_(low, b.and_(attacked, ir.Constant(vector, entries)))
        tables.append((low,) if high is None else (low, high))
    return tables


def _tile_pairs(module: Any, name: str, path: int, lookups: int) -> Any:
    """See :func:`tile_pairs`."""
    lanes, width = LANES[path], 8 * LANES[path]
    octet, words = ir.VectorType(_I64, 8), ir.VectorType(_I64, lanes)
    entries = ir.VectorType(_I8, width)
    function, at = _function(module, name, 5)
    planes, masks, tiles, columns, mask = function.args
    if path == AVX512:
        permute = "llvm.x86.avx512.vpermi2var.qi.512"
        table = _external(module, permute, entries, entries, entries, entries)
    else:
        table = _external(module, "llvm.x86.avx2.pshuf.b", entries, entries, entries)
    ones = _external(module, f"llvm.ctpop.v{lanes}i64", words, words)
    lowest = _external(module, "llvm.cttz.i64", _I64, _I64, _I1)
    total = _external(module, f"llvm.vector.reduce.add.v{lanes}i64", _I64, words)

    b = at["entry"]
    blocks = [_tables(b, path, lookups, columns, g) for g in range(BLOCKS[path])]
    wanted = _splat(b, mask, 8)
    b.branch(at["outer"].block)

    b = at["outer"]  # 64 tiles: those whose masks are disjoint
    first, sums = b.phi(_I64), b.phi(words)
    hits = _word(0)
    here = b.add(masks, b.mul(first, _word(8)))
    for i in range(8):
        both = b.and_(_load(b, octet, here, 64 * i), wanted)
        free = b.bitcast(b.icmp_unsigned("==", both, ir.Constant(octet, [0] * 8)), _I8)
        hits = b.or_(hits, b.shl(b.zext(free, _I64), _word(8 * i)))
    left = b.sub(tiles, first)
    tail = b.sub(b.shl(_word(1), b.and_(left, _word(63))), _word(1))
    few = b.icmp_unsigned("<", left, _word(64))
    hits = b.and_(hits, b.select(few, tail, _word(-1)))
    b.cbranch(b.icmp_unsigned("!=", hits, _word(0)), at["inner"].block, at["next"].block)

    b = at["inner"]  # one tile with all tables
    rest, found = b.phi(_I64), b.phi(words)
    tile = b.add(first, b.call(lowest, [rest, ir.Constant(_I1, 1)]))
    start = b.add(planes, b.mul(tile, _word(lookups * width)))
    indices = [_load(b, entries, start, width * j) for j in range(lookups)]
    grown = found
    for tables in blocks:
        met = None
        for index, (low, *high) in zip(indices, tables, strict=True):
            looked_up = b.call(table, [low, index, *high])
            met = looked_up if met is None else b.or_(met, looked_up)
        grown = b.add(grown, b.call(ones, [b.bitcast(b.not_(met), words)]))
    fewer = b.and_(rest, b.sub(rest, _word(1)))
    b.cbranch(b.icmp_unsigned("!=", fewer, _word(0)), b.block, at["next"].block)
    for value, begin, again in ((rest, hits, fewer), (found, sums, grown)):
        value.add_incoming(begin, at["outer"].block)
        value.add_incoming(again, b.block)

    b = at["next"]
    reached, following = b.phi(words), b.add(first, _word(64))
    reached.add_incoming(sums, at["outer"].block)
    reached.add_incoming(grown, at["inner"].block)
    b.cbranch(b.icmp_unsigned("<", following, tiles), at["outer"].block, at["done"].block)
    for value, begin, again in (
        (first, _word(0), following),
        (sums, ir.Constant(words, [0] * lanes), reached),
    ):
        value.add_incoming(begin, at["entry"].block)
        value.add_incoming(again, b.block)
    at["done"].ret(at["done"].call(total, [reached]))
    return function


def _compressed(b: Any, module: Any, path: int, values: Any, kept: Any) -> Any:
    """The values that are kept, first."""
    if path == PORTABLE:
        return values
    if path == AVX512:
        kind = values.type
        name = "llvm.x86.avx512.mask.compress.v8i64"
        function = _external(module, name, kind, kind, kind, kept.type)
        return b.call(function, [values, ir.Constant(kind, ir.Undefined), kept])
    halves = ir.VectorType(_I32, 8)
    if "compress_order" not in module.globals:
        rows = []
        for mask in range(16):
            order = [i for i in range(4) if mask >> i & 1] + [0] * 4
            rows.append(ir.Constant(halves, [2 * i + k for i in order[:4] for k in (0, 1)]))
        lists = ir.ArrayType(halves, 16)
        orders = ir.GlobalVariable(module, lists, "compress_order")
        orders.linkage, orders.global_constant = "internal", True
        orders.initializer = ir.Constant(lists, rows)
    start = b.ptrtoint(module.globals["compress_order"], _I64)
    row = b.mul(b.zext(b.bitcast(kept, ir.IntType(4)), _I64), _word(32))
    order = _load(b, halves, b.add(start, row))
    permute = _external(module, "llvm.x86.avx2.permd", halves, halves, halves)
    return b.bitcast(b.call(permute, [b.bitcast(values, halves), order]), values.type)


def _joined(module: Any, name: str, path: int) -> Any:
    """See :func:`joined`."""
    lanes = LANES[path] if path else 1
    words = ir.VectorType(_I64, lanes)
    function, at = _function(module, name, 7)
    uppers, uppers_kept, upper_count, lowers, lowers_kept, lower_count, out = function.args
    ones = _external(module, "llvm.ctpop.i64", _I64, _I64)
    counts = (upper_count, lower_count)
    some = [at["entry"].icmp_unsigned("!=", count, _word(0)) for count in counts]
    at["entry"].cbranch(at["entry"].and_(*some), at["outer"].block, at["done"].block)

    b = at["outer"]  # one upper quarter
    i, before = b.phi(_I64), b.phi(_I64)
    offset = b.mul(i, _word(8))
    upper = _splat(b, _load(b, _I64, b.add(uppers, offset)), lanes)
    upper_kept = _splat(b, _load(b, _I64, b.add(uppers_kept, offset)), lanes)
    b.branch(at["inner"].block)

    b = at["inner"]  # a vector of lower quarters
    j, count = b.phi(_I64), b.phi(_I64)
    offset = b.mul(j, _word(8))
    both = b.and_(upper, _load(b, words, b.add(lowers, offset)))
    free = b.icmp_unsigned("==", both, ir.Constant(words, [0] * lanes))
    values = b.xor(upper_kept, _load(b, words, b.add(lowers_kept, offset)))
    place = b.inttoptr(b.add(out, b.mul(count, _word(8))), _POINTER)
    b.store(_compressed(b, module, path, values, free), place).align = 1
    found = b.call(ones, [b.zext(b.bitcast(free, ir.IntType(lanes)), _I64)])
    more, further = b.add(count, found), b.add(j, _word(lanes))
    b.cbranch(b.icmp_unsigned("<", further, lower_count), b.block, at["next"].block)
    for value, begin, again in ((j, _word(0), further), (count, before, more)):
        value.add_incoming(begin, at["outer"].block)
        value.add_incoming(again, b.block)

    b = at["next"]
    following = b.add(i, _word(1))
    b.cbranch(b.icmp_unsigned("<", following, upper_count), at["outer"].block, at["done"].block)
    for value, again in ((i, following), (before, more)):
        value.add_incoming(_word(0), at["entry"].block)
        value.add_incoming(again, b.block)
    result = at["done"].phi(_I64)
    result.add_incoming(_word(0), at["entry"].block)
    result.add_incoming(more, b.block)
    at["done"].ret(result)
    return function


Call = Callable[[tuple[Any, ...]], int]


def _intrinsic(make: Callable[..., Any], keys: Callable[[], list[tuple[int, ...]]]) -> Call:
    """A function of one tuple of numbers: a key, and what the function that is made for it takes.
    Returns 0 for a key that there is no function for."""

    def typed(_typing: Any, numbers: Any) -> Any:
        def code(_context: Any, builder: Any, _signature: Any, arguments: Sequence[Any]) -> Any:
            values = [builder.extract_value(arguments[0], i) for i in range(numbers.count)]
            end = builder.append_basic_block("chosen")
            incoming = [(_word(0), builder.block)]
            cases = {key: builder.append_basic_block("case") for key in sorted({*keys()})}
            size = len(next(iter(cases)))
            number = _word(0)
            for value in values[:size]:
                number = builder.add(builder.mul(number, _word(16)), value)
            switch = builder.switch(number, end)
            for key, block in cases.items():
                switch.add_case(_word(sum(k << 4 * i for i, k in enumerate(key[::-1]))), block)
                builder.position_at_end(block)
                name = "_".join(map(str, (make.__name__, *key)))
                function = builder.module.globals.get(name) or make(builder.module, name, *key)
                incoming.append((builder.call(function, values[size:]), block))
                builder.branch(end)
            builder.position_at_end(end)
            result = builder.phi(_I64)
            for value, block in incoming:
                result.add_incoming(value, block)
            return result

        return types.int64(numbers), code

    return cast(Call, intrinsic(typed))


tile_pairs = _intrinsic(_tile_pairs, lambda: [(p, k) for p in paths()[1:] for k in LOOKUPS[p]])
"""Disjoint pairs of eight or sixteen half boards with those of all tiles of the other list.

Takes one tuple: path; look-ups; the address of each tile's indices, a vector of bytes per look-up;
that of a word per tile, the AND of its half boards, padded to 64; how many tiles; the address of
the eight or sixteen half boards, their bits transposed by eight; and the AND of these. A tile is
skipped if its AND meets this one.
"""

joined = _intrinsic(_joined, lambda: [(p,) for p in paths()])
"""Writes the XOR of the images of each disjoint pair of quarters; returns how many.

Takes one tuple: path; addresses of the words and of the images of the upper quarters; how many; the
same of the lower ones; and the address to write to. The lower ones are padded to a vector with
words that meet every upper one, and there is room to write a vector more than is found.
"""
