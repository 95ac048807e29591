"""Instructions in which the lanes of a warp work together.

The block that a ``.sync`` instruction starts runs only for lanes whose members are all there (see
``kernel.py``), so ``k.lanes`` holds whole groups. Groups are served one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nqbench.simulator.codegen import barriers, watch
from nqbench.simulator.codegen.writer import Handler, KernelWriter, kinds
from nqbench.simulator.ir import I32, LANES, V32, Value, const, lanes_of
from nqbench.simulator.layout import CACHE_LINE, Fault
from nqbench.simulator.ptx import Instruction, both

LANE_IDS = lanes_of(V32, list(range(LANES)))


def members_of(k: KernelWriter, i: Instruction) -> Value:
    """Every lane's member mask (<32 x i32>)."""
    if not i.operands:
        raise k.unsupported(i, "no member mask")
    return k.read(i.operands[-1], 32)


@contextmanager
def _groups(k: KernelWriter, i: Instruction) -> Iterator[tuple[Value, Value]]:
    """Code that runs once per group: its lanes as bits and as <32 x i1>."""
    f = k.f
    members = members_of(k, i)
    with f.while_any(k.lanes) as (now, left):
        group = f.and_(f.extract(members, f.lowest(now)), now)
        f.store(f.and_(now, f.not_(group)), left, 4)
        yield group, f.as_lanes(group)


def _tell(k: KernelWriter, i: Instruction, how: int) -> None:
    """Tell the watcher which lanes meet."""
    if k.watched and "sync" in i.modifiers:
        with _groups(k, i) as (group, _):
            watch.at_barrier(k, group, 0, how)


def _converging(handler: Handler) -> Handler:
    def handle(k: KernelWriter, i: Instruction) -> None:
        _tell(k, i, watch.CONVERGE)
        handler(k, i)

    return handle


def _answered(k: KernelWriter, i: Instruction, answer: Callable[[Value, Value], Value]) -> Value:
    """What ``answer(lanes as bits, lanes)`` says for each group (i32), in its lanes."""
    f, slot = k.f, k.f.zeroed(V32)
    with _groups(k, i) as (group, lanes):
        said, old = f.splat(answer(group, lanes)), f.load(V32, slot, CACHE_LINE)
        f.store(f.select(lanes, said, old), slot, CACHE_LINE)
    return f.load(V32, slot, CACHE_LINE)


def vote(k: KernelWriter, i: Instruction) -> None:
    kinds(k, i, ("sync", "all", "any", "uni", "ballot"), allow="bp")
    if "sync" not in i.modifiers:
        raise k.unsupported(i, "only the .sync form exists since compute capability 7.0")
    f, how = k.f, i.modifiers[1]
    says = f.as_bits(k.predicate(i.operands[1]))

    def answer(group: Value, _: Value) -> Value:
        yes = f.and_(says, group)
        if how == "ballot":
            return yes
        every, none = f.compare("eq", yes, group), f.compare("eq", yes, const(I32, 0))
        truth = {"all": every, "any": f.not_(none), "uni": f.or_(every, none)}[how]
        return f.cast("zext", truth, I32)

    result = _answered(k, i, answer)
    k.write(i.operands[0], result if how == "ballot" else f.nonzero(result))


def shuffle(k: KernelWriter, i: Instruction) -> None:
    """``shfl``: the PTX ISA's rule for the source lane. Reading a lane that does not take part is a
    fault, since its value would be undefined."""
    f = k.f
    kinds(k, i, ("sync", "up", "down", "bfly", "idx"), allow="b")
    if "sync" not in i.modifiers:
        raise k.unsupported(i, "only the .sync form exists since compute capability 7.0")
    a, b, c = (k.read(operand, 32) for operand in i.operands[1:4])
    low5 = const(V32, LANES - 1)
    step, clamp = f.and_(b, low5), f.and_(c, low5)
    segment = f.and_(f.op("lshr", c, const(V32, 8)), low5)
    own = f.and_(LANE_IDS, segment)
    last = f.or_(own, f.and_(clamp, f.not_(segment)))
    if "up" in i.modifiers:
        source = f.sub(LANE_IDS, step)
        inside = f.compare("sge", source, last)
    else:
        if "down" in i.modifiers:
            source = f.add(LANE_IDS, step)
        elif "bfly" in i.modifiers:
            source = f.xor(LANE_IDS, step)
        else:
            source = f.or_(own, f.and_(step, f.not_(segment)))
        inside = f.compare("sle", source, last)
    source = f.select(inside, source, LANE_IDS)
    present = f.op("lshr", f.splat(k.lanes), source)
    absent = f.compare("eq", f.and_(present, const(V32, 1)), const(V32, 0))
    k.fault_if(Fault.INACTIVE_SOURCE, f.as_bits(f.and_(absent, k.active)), i, source)
    pointers = f.offset(f.spilled(a), f.and_(source, low5), I32)
    value = f.call(
        V32, "llvm.masked.gather.v32i32.v32p0", pointers, const(I32, 4), k.active, const(V32, 0),
    )  # fmt: skip
    _give(k, i, value, inside)


def _give(k: KernelWriter, i: Instruction, value: Value, flag: Value) -> None:
    """Write the result, and a predicate beside it where the instruction names one."""
    target, asked = both(i.operands[0])
    k.write(target, value)
    if asked is not None:
        k.write(asked, flag)


def match(k: KernelWriter, i: Instruction) -> None:
    """``any``: who of the group has my value; ``all``: the group if all have one, else nobody."""
    f = k.f
    (kind,) = kinds(k, i, ("any", "all", "sync"), allow="b")
    a = k.read(i.operands[1], kind.bits)

    def whole(group: Value, _: Value) -> Value:
        one = f.extract(a, f.lowest(group))
        same = f.and_(f.as_bits(f.compare("eq", a, f.splat(one))), group)
        return f.select(f.compare("eq", same, group), group, const(I32, 0))

    if "all" in i.modifiers:
        result = _answered(k, i, whole)
    else:
        slot = f.zeroed(V32)
        with _groups(k, i) as (group, _), f.each_lane(group) as lane:
            same = f.compare("eq", a, f.splat(f.extract(a, lane)))
            f.store(f.and_(f.as_bits(same), group), f.offset(slot, lane, I32), 4)
        result = f.load(V32, slot, CACHE_LINE)
    _give(k, i, result, f.nonzero(result))


def reduce(k: KernelWriter, i: Instruction) -> None:
    """``redux``: one value out of all lanes of the group."""
    f = k.f
    (kind,) = kinds(k, i, ("sync", "add", "min", "max", "and", "or", "xor"), allow="usb")
    how = i.modifiers[1]
    a = k.read(i.operands[1], 32)
    neutral = {
        "and": -1,
        "min": 2**31 - 1 if kind.signed else -1,
        "max": -(2**31) if kind.signed else 0,
    }.get(how, 0)
    name = ("s" if kind.signed else "u") + how if how in ("min", "max") else how
    k.write(
        i.operands[0],
        _answered(k, i, lambda _, lanes: f.reduce(name, f.select(lanes, a, const(V32, neutral)))),
    )


def active_mask(k: KernelWriter, i: Instruction) -> None:
    kinds(k, i, allow="b")
    k.write(i.operands[0], k.f.splat(k.lanes))


def warp_barrier(k: KernelWriter, i: Instruction) -> None:
    """``bar.warp.sync``: meeting was all there is to do. ``bar.arrive`` waits for nobody."""
    if "arrive" in i.modifiers:
        barriers.arrive(k, i)
    else:
        _tell(k, i, watch.MEET)


def elect(k: KernelWriter, i: Instruction) -> None:
    """``elect``: the lowest member, and whether that is the lane itself."""
    kinds(k, i, ("sync",))
    lane = k.f.intrinsic("cttz", members_of(k, i), const("i1", 0))
    _give(k, i, lane, k.f.compare("eq", lane, k.special("%laneid")))


COLLECTIVES: dict[str, Handler] = {
    "vote": _converging(vote), "shfl": _converging(shuffle), "match": _converging(match),
    "redux": _converging(reduce), "elect": _converging(elect), "activemask": active_mask,
    "bar": warp_barrier, "barrier": warp_barrier,
}  # fmt: skip
