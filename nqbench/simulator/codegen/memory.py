"""Loads, stores and atomics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from nqbench.simulator import ptx
from nqbench.simulator.cfg import BasicBlock
from nqbench.simulator.codegen import formats, reach, watch, writer
from nqbench.simulator.codegen.reach import Places, SpaceAccess
from nqbench.simulator.ir import I32, V64, Function, Value, const, vector
from nqbench.simulator.layout import CACHE_LINE, GLOBAL_BASE, LOCAL_WINDOW, SHARED_WINDOW, Fault
from nqbench.simulator.ptx import Instruction, Memory, Operand, Register, Vector

QUALIFIERS = frozenset(ptx.FAMILIES["hints"])
"""Order, scope and cache hints: they change no value, since accesses happen one at a time."""


def space_of(i: Instruction) -> str:
    """The memory space that an access names, or ``generic``."""
    bases = (o.base for o in i.operands if isinstance(o, Memory))
    if "param" in i.spaces and any(isinstance(base, Register) for base in bases):
        return "const"  # an address of the parameters' copy
    return next(iter(i.spaces), "generic")


def address_of(k: writer.KernelWriter, operand: Operand) -> Value:
    """The address operand of an access in every lane."""
    if not isinstance(operand, Memory):
        raise ValueError("the address is not in brackets")
    base = operand.base
    bits = base.width if isinstance(base, Register) else 64
    value = k.read(base, bits)
    return k.f.add(value, const(value.type, operand.offset)) if operand.offset else value


def _items(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vector) else (operand,)


def visits(
    k: writer.KernelWriter, i: Instruction, operand: Operand, bits: int, count: int
) -> list[tuple[Value, SpaceAccess]]:
    """The spaces that an access may reach: the lanes that go there, and what they access."""
    f, address, space = k.f, address_of(k, operand), space_of(i)
    if space != "generic":
        return [(k.active, SpaceAccess(i, space, address, bits, count))]
    window = f.op("lshr", address, const(V64, 40))
    in_shared = f.compare("eq", window, const(V64, SHARED_WINDOW >> 40))
    in_local = f.compare("eq", window, const(V64, LOCAL_WINDOW >> 40))
    elsewhere = f.not_(f.or_(in_shared, in_local))
    found = []
    for name, lanes, start in (
        ("shared", in_shared, SHARED_WINDOW),
        ("local", in_local, LOCAL_WINDOW),
        ("global", elsewhere, 0),
    ):
        active = f.and_(k.active, lanes)
        there = f.sub(address, const(V64, start)) if start else address
        found.append((active, SpaceAccess(i, name, there, bits, count)))
    return found


def places(k: writer.KernelWriter, a: SpaceAccess, broadcast: bool = True) -> Places:
    """Check, count and locate an access by ``k.lanes`` (not empty) in one space."""
    if a.space == "const":
        return reach.global_(k, a, None)
    if a.i in k.assembled.dropped:
        return reach.shared(k, a, None)
    site = _site(k, a)
    if a.space == "shared":
        return reach.shared(k, a, site, broadcast)
    return reach.local(k, a, site) if a.space == "local" else reach.global_(k, a, site)


def _site(k: writer.KernelWriter, a: SpaceAccess) -> writer.AccessSite:
    """A counting site, counted unless the access always runs with its block."""
    always = not k.narrowed and space_of(a.i) != "generic"
    site = k.site(a.i, a.space, always)
    if not always:
        k.count(site, k.lanes)
    return site


@contextmanager
def visiting(k: writer.KernelWriter, i: Instruction, active: Value) -> Iterator[None]:
    """Code for the lanes that go to one space; skipped if there are none."""
    if not k.narrowed and space_of(i) != "generic":
        yield  # the lanes of a block are never none
        return
    with k.f.when(k.f.nonzero(k.f.as_bits(active))), k.only(active):
        yield


def load(k: writer.KernelWriter, i: Instruction) -> None:
    (kind,) = writer.kinds(k, i, QUALIFIERS | ptx.SPACES, allow="usbf")
    targets = _items(i.operands[0])
    if len(targets) != i.elements:
        raise k.unsupported(i, "number of results")
    if space_of(i) == "param":
        for place, target in enumerate(targets):
            if isinstance(target, Register) and target not in k.file.remade:
                k.write(target, k.parameter(i, target.width, place), kind.signed)
        return
    type_ = vector(f"i{kind.bits}")
    sure = not k.narrowed and not k.watched and space_of(i) != "generic"
    slots = [] if sure else [k.f.zeroed(type_) for _ in targets]
    for active, a in visits(k, i, i.operands[1], kind.bits, i.elements):
        with visiting(k, i, active), watch.watched(k, a, watch.what_of(k, i, a.space)):
            values = _called(k, a, []) if _outlined(k, a) else fetched(k, a, places(k, a))
            for slot, value in zip(slots, values, strict=not sure):
                if space_of(i) == "generic":
                    value = k.f.select(k.active, value, k.f.load(type_, slot, CACHE_LINE))
                k.f.store(value, slot, CACHE_LINE)
    found = values if sure else [k.f.load(type_, slot, CACHE_LINE) for slot in slots]
    for target, value in zip(targets, found, strict=True):
        k.write(target, value, kind.signed)


def store(k: writer.KernelWriter, i: Instruction) -> None:
    (kind,) = writer.kinds(k, i, QUALIFIERS | ptx.SPACES, allow="usbf")
    items = _items(i.operands[1])
    if len(items) != i.elements or space_of(i) in ("const", "param"):
        raise k.unsupported(i)
    values = [k.read(item, kind.bits, kind.name) for item in items]
    for active, a in visits(k, i, i.operands[0], kind.bits, i.elements):
        with visiting(k, i, active), watch.watched(k, a, watch.what_of(k, i, a.space), values):
            if _outlined(k, a):
                _called(k, a, values)
            else:
                stored(k, a, places(k, a), values)


def fetched(k: writer.KernelWriter, a: SpaceAccess, found: Places) -> list[Value]:
    """All elements, checked for memory that was never written."""
    values = [fetch(k, found, e) for e in range(a.count)]
    if a.space == "shared":
        reach.check_written(k, a, found, values)
    return values


def stored(k: writer.KernelWriter, a: SpaceAccess, found: Places, values: list[Value]) -> None:
    """Store all elements, and tell the shadow."""
    for e, value in enumerate(values):
        put(k, found, e, value)
    if a.space == "shared":
        reach.note_written(k, a, found, values)


def _outlined(k: writer.KernelWriter, a: SpaceAccess) -> bool:
    """Whether the access is a call; merged ones are counted in a way of their own."""
    merged = a.i in k.assembled.dropped or a.i in k.assembled.wide
    return k.outlines and a.space in OUTLINED and not merged


OUTLINED = ("shared", "local")
MANY_ACCESSES = 48
"""Of shared and local memory in a kernel, from which on they are calls."""


def outlines(blocks: Iterable[BasicBlock]) -> bool:
    """Whether a kernel has so many accesses that each should be a call."""
    accesses = [
        i for block in blocks for i in block.instructions
        if i.opcode in ("ld", "st") and space_of(i) in (*OUTLINED, "generic")
    ]  # fmt: skip
    return len(accesses) > MANY_ACCESSES


def _called(k: writer.KernelWriter, a: SpaceAccess, given: list[Value]) -> list[Value]:
    """The access as a call of a function of the kernel's module; a load gives its values."""
    f, type_ = k.f, vector(f"i{a.bits}")
    site = _site(k, a)
    values = k.slots.get((type_, a.count)) or f.slot(type_, a.count)
    k.slots[type_, a.count] = values
    for e, value in enumerate(given):
        f.store(value, f.offset(values, e, type_), CACHE_LINE)
    address = f.resize(a.address, 64)
    name = _function(k, a, stores=bool(given))
    where = k.place(a.i)
    counters = k.counter(site, writer.SITE_FIELDS[0])
    bad = f.call(I32, name, k.context, k.warp, k.lanes, address, where, counters, values)
    going = f.fresh("going")
    f.branch(f.nonzero(bad), "faulted", going, likely=False)
    f.label(going)
    if given:
        return []
    return [f.load(type_, f.offset(values, e, type_), CACHE_LINE) for e in range(a.count)]


def _function(k: writer.KernelWriter, a: SpaceAccess, *, stores: bool) -> str:
    """A function that does such an access; it returns 1 after a fault."""
    name = f"sim_{'store' if stores else 'load'}_{a.space}_{a.count}x{a.bits}"
    if name in k.f.module.functions:
        return name
    parameters = f"i32 lanes, {V64} addresses, i64 where, ptr counters, ptr values"
    signature = f"i32 {name}(ptr context, ptr warp, {parameters}) noinline nounwind"
    f = Function(k.f.module, signature)
    context, warp, lanes, addresses, where, counters, values = f.parameters
    inner = replace(
        k, f=f, context=context, warp=warp, lanes=lanes, active=f.as_lanes(lanes),
        narrowed=False, caller=(where, counters),
    )  # fmt: skip
    there = replace(a, address=addresses)
    site = writer.AccessSite(0, a.i, 0, a.space)
    at = (reach.shared if a.space == "shared" else reach.local)(inner, there, site)
    type_ = vector(f"i{a.bits}")
    pointers = [f.offset(values, e, type_) for e in range(a.count)]
    if stores:
        stored(inner, there, at, [f.load(type_, p, CACHE_LINE) for p in pointers])
    else:
        for pointer, value in zip(pointers, fetched(inner, there, at), strict=True):
            f.store(value, pointer, CACHE_LINE)
    f.ret(const(I32, 0))
    f.label("faulted")
    f.ret(const(I32, 1))
    return name


def fetch(k: writer.KernelWriter, found: Places, e: int) -> Value:
    """Element ``e`` in the active lanes, 0 in the others."""
    parts = [_gather(k, pointers, found.bits) for pointers in found.pieces[e]]
    if len(parts) == 1:
        return parts[0]
    low, high = (k.f.resize(part, 64) for part in parts)
    return k.f.or_(low, k.f.op("shl", high, const(V64, 32)))


def _gather(k: writer.KernelWriter, pointers: Value, bits: int) -> Value:
    type_ = vector(f"i{bits}")
    if bits < 32 or not k.scatters:
        slot = k.f.zeroed(type_)
        with k.f.each_of(k.lanes, pointers) as (lane, pointer):
            value = k.f.load(f"i{bits}", pointer)
            k.f.store(value, k.f.offset(slot, lane, f"i{bits}"))
        return k.f.load(type_, slot, CACHE_LINE)
    name, size = f"llvm.masked.gather.v32i{bits}.v32p0", const(I32, bits // 8)
    return k.f.call(type_, name, pointers, size, k.active, const(type_, 0))


def put(k: writer.KernelWriter, found: Places, e: int, value: Value) -> None:
    """Store element ``e`` in the active lanes; of lanes with the same address the highest wins."""
    f = k.f
    parts = [value]
    if len(found.pieces[e]) == 2:
        parts = [f.resize(value, 32), f.resize(f.op("lshr", value, const(V64, 32)), 32)]
    for pointers, part in zip(found.pieces[e], parts, strict=True):
        if found.bits >= 32 and k.scatters:
            name = f"llvm.masked.scatter.v32i{found.bits}.v32p0"
            size = const(I32, found.bits // 8)
            f.call("void", name, part, pointers, size, k.active)
            continue
        with f.each_of(k.lanes, pointers, part) as (_, pointer, one):
            f.store(one, pointer)


def nothing(k: writer.KernelWriter, i: Instruction) -> None:
    """Fences and prefetches: memory is consistent and has no cache here."""
    if i.opcode in ("membar", "fence") and {"proxy", "mbarrier_init"}.isdisjoint(i.modifiers):
        near = {"gl", "gpu", "sys"}.isdisjoint(i.modifiers)
        watch.at_barrier(k, k.lanes, int(near), watch.FENCE)


REDUCED = ("add", "min", "max", "and", "or", "xor")
"""Atomics on whole numbers that the assembler does once for a warp whose lanes share an address."""
OPERATIONS = ("add", "exch", "cas", "min", "max", "and", "or", "xor", "inc", "dec")


def atomic(k: writer.KernelWriter, i: Instruction) -> None:
    kind = _atomic_type(k, i)
    bits = ptx.WIDTHS[kind]
    operation = next((m for m in i.modifiers if m in OPERATIONS), "")
    floating = kind[0] == "f" or kind in formats.HALVES
    if not operation or (bits < 32 and operation != "cas" and not floating):
        raise k.unsupported(i)
    if (floating and operation not in ("add", "exch")) or space_of(i) == "local":
        raise k.unsupported(i)
    keeps = i.opcode == "atom"
    at = 1 if keeps else 0
    type_ = vector(f"i{bits}")
    given = [
        [k.read(item, bits, kind) for item in _items(operand)] for operand in i.operands[at + 1 :]
    ]
    count = len(given[0])
    result = k.f.slot(type_, count)
    for e in range(count):
        k.f.store(const(type_, 0), k.f.offset(result, e, type_), CACHE_LINE)
    for active, a in visits(k, i, i.operands[at], bits, count):
        if a.space == "local":
            k.fault_if(Fault.SPACE, k.f.as_bits(active), i, a.address)
            continue
        with visiting(k, i, active), watch.watched(k, a, watch.what_of(k, i, a.space)):
            found = places(k, a, broadcast=False)
            if a.space == "shared":
                if ptx.RESERVED not in k.symbols.addresses:
                    fetched(k, a, found)
                # Any value may come out, so the shadow of these words is always set.
                reach.mark_written(k, a, found, k.lanes)
            if a.space == "global" and k.rules.timed:
                offsets = k.f.sub(k.f.resize(a.address, 64), const(V64, GLOBAL_BASE))
                whole = const(I32, int(not floating and operation in REDUCED))
                k.f.call("void", "sim_contended", k.context, offsets, k.lanes, whole)
            for e in range(count):
                place = k.f.offset(result, e, type_)
                _turns(k, kind, operation, found.pieces[e], [v[e] for v in given], place)
    if keeps and i.operands[0] != ptx.Name("_"):
        for e, target in enumerate(_items(i.operands[0])):
            value = k.f.load(type_, k.f.offset(result, e, type_), CACHE_LINE)
            k.write(target, value, kind[0] == "s")


def _atomic_type(k: writer.KernelWriter, i: Instruction) -> str:
    known = QUALIFIERS | {"shared", "global", "noftz", "v8", *OPERATIONS}
    found = [m for m in i.modifiers if m in ptx.WIDTHS]
    strange = [m for m in i.modifiers if m not in known and m not in ptx.WIDTHS]
    if strange or len(found) != 1:
        raise k.unsupported(i, f"modifier .{strange[0]}" if strange else "")
    return found[0]


def _turns(
    k: writer.KernelWriter, kind: str, operation: str, pieces: list[Value], values: list[Value],
    result: Value,
) -> None:  # fmt: skip
    f = k.f
    scalar = f"i{ptx.WIDTHS[kind]}"
    (pointers,) = pieces
    with f.each_of(k.lanes, pointers, *values) as (lane, pointer, *operands):
        old = f.load(scalar, pointer)
        if kind in formats.HALVES and operation == "add":
            new = formats.sum_of(f, old, operands[0], kind)
        else:
            new = _combined(f, writer.PtxType(kind), operation, old, operands)
        f.store(new, pointer)
        f.store(old, f.offset(result, lane, scalar))


def _combined(
    f: Function, kind: writer.PtxType, operation: str, old: Value, new: list[Value]
) -> Value:
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
    if operation == "add" and kind.name[0] == "f":
        name = "float" if kind.bits == 32 else "double"
        x, y = (f.cast("bitcast", value, name) for value in (old, a))
        return f.cast("bitcast", f.op("fadd", x, y), old.type)
    return f.op(operation, old, a)


MEMORY: dict[str, writer.Handler] = {
    "ld": load, "ldu": load, "st": store, "atom": atomic, "red": atomic,
    "membar": nothing, "fence": nothing, "prefetch": nothing, "prefetchu": nothing,
    "nanosleep": nothing, "griddepcontrol": nothing, "pmevent": nothing,
}  # fmt: skip
