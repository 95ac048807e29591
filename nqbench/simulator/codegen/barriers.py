"""Barriers of a whole block: how a warp waits, what a reduction gives back, how they open."""

from __future__ import annotations

from dataclasses import dataclass

from nqbench.simulator import layout as layouts
from nqbench.simulator.cfg import BasicBlock
from nqbench.simulator.codegen import watch
from nqbench.simulator.codegen.writer import KernelWriter, kinds
from nqbench.simulator.ir import I1, I32, I64, LANES, V32, Fields, Function, Module, Value, const
from nqbench.simulator.layout import BlockSlot, Context, Fault, Warp, WarpLayout
from nqbench.simulator.ptx import Immediate, Instruction, Operand


@dataclass(frozen=True, slots=True)
class BarrierSite:
    """A block-wide barrier in the code: where lanes continue after it; ``counted`` is one for a
    number of threads, of which each warp counts as 32."""

    index: int
    barrier: int
    resume: int
    aligned: bool
    reduces: str
    counted: bool
    block: int


def sites_of(k: KernelWriter, block: BasicBlock, index: int) -> list[BarrierSite]:
    """What a barrier instruction says, from site number ``index`` on: a site for each barrier that
    it may be."""
    closing = block.closing
    assert closing is not None
    known = ("cta", "sync", "red", "popc", "and", "or", "aligned")
    kinds(k, closing, known, allow="up")
    reduces = next((m for m in closing.modifiers if m in ("popc", "and", "or")), "")
    numbers = layouts.barrier_numbers(closing)
    if not {*numbers} <= {*range(layouts.BARRIERS)} or (reduces and len(numbers) > 1):
        raise k.unsupported(closing, "the barrier must be a constant from 0 to 15")
    aligned = closing.opcode == "bar" or "aligned" in closing.modifiers
    counted = len(closing.operands) > 1 and "red" not in closing.modifiers
    more = block.targets[0].index, aligned, reduces, counted, block.index
    return [BarrierSite(at, number, *more) for at, number in enumerate(numbers, index)]


def _number(k: KernelWriter, i: Instruction, barrier: Operand) -> Value:
    """The number of a barrier: that of every lane, from 0 to 15, or the launch stops."""
    f = k.f
    if isinstance(barrier, Immediate):
        return const(I64, barrier.value)
    numbers = k.read(barrier, 32)
    first = f.extract(numbers, f.lowest(k.lanes))
    other = f.compare("ne", numbers, f.splat(first))
    wrong = f.or_(other, f.compare("uge", numbers, const(V32, layouts.BARRIERS)))
    k.fault_if(Fault.BARRIER_NUMBER, f.as_bits(f.and_(wrong, k.active)), i, numbers)
    return f.resize(first, 64)


def _field(k: KernelWriter, field: int, number: Value) -> Value:
    """Where a block has a field of one of its barriers."""
    return k.f.offset(k.f.offset(k.pointer(Warp.SLOT), 8 * field), number, I64)


def arrive(k: KernelWriter, i: Instruction) -> None:
    """``bar.arrive``: counts at a barrier, and goes on."""
    kinds(k, i, ("cta", "arrive", "aligned"))
    number, count = (*i.operands, None)[:2]
    if number is None or count is None:
        raise k.unsupported(i, "it needs a barrier and a number of threads")
    barrier = _number(k, i, number)
    _expect(k, barrier, count)
    k.f.bump(_field(k, BlockSlot.ARRIVED, barrier), _arriving(k))
    watch.at_barrier(k, k.lanes, barrier, watch.PASS)


def _expect(k: KernelWriter, barrier: Value, count: Operand) -> None:
    """Set the number of threads that a barrier is for."""
    wanted = k.f.extract(k.read(count, 32), k.f.lowest(k.lanes))
    k.f.store(k.f.resize(wanted, 64), _field(k, BlockSlot.EXPECTED, barrier), 8)


def _arriving(k: KernelWriter) -> Value:
    """What a barrier for a number of threads counts."""
    f = k.f
    whole = f.compare("eq", f.resize(k.lanes, 64), k.warp_number(Warp.ALIVE))
    return f.select(whole, const(I32, LANES), f.popcount(k.lanes))


def wait(k: KernelWriter, block: BasicBlock, site: BarrierSite) -> None:
    """Lanes arrive at a site, the first of its barrier; they continue when the scheduler opens
    it."""
    f = k.f
    closing = block.closing
    assert closing is not None
    counted = closing.operands[1:-1] if "red" in closing.modifiers else closing.operands
    number = _number(k, closing, counted[0])
    if site.reduces:
        says = f.and_(f.as_bits(k.predicate(closing.operands[-1])), k.lanes)
        f.bump(_field(k, BlockSlot.TRUE_LANES, number), f.popcount(says))
    count = counted[1] if len(counted) > 1 else None
    if count is not None:
        _expect(k, number, count)
    k.end()
    first = 0 if isinstance(counted[0], Immediate) else number
    place = f.offset(f.offset(k.warp, k.layout.waits + 4 * site.index), first, I32)
    f.store(f.or_(f.load(I32, place, 4), k.lanes), place, 4)
    waiting = f.offset(k.warp, 8 * Warp.WAITING)
    f.store(f.or_(f.load(I64, waiting, 8), f.resize(k.lanes, 64)), waiting, 8)
    arriving = _arriving(k) if site.counted else f.popcount(k.lanes)
    f.bump(_field(k, BlockSlot.ARRIVED, number), arriving)
    all_threads = closing if count is None else None
    watch.at_barrier(k, k.lanes, number, watch.ARRIVE, all_threads)
    f.jump("dispatch")


def left(k: KernelWriter, sites: list[BarrierSite], alive: Value) -> None:
    """Lanes have left: the others of the warp may all wait at one barrier."""
    f = k.f
    for site in sites:
        if site.counted:
            waiting = f.load(I32, f.offset(k.warp, k.layout.waits + 4 * site.index), 4)
            whole = f.and_(f.nonzero(waiting), f.compare("eq", f.resize(waiting, 64), alive))
            more = f.select(whole, f.sub(const(I32, LANES), f.popcount(waiting)), const(I32, 0))
            f.bump(_field(k, BlockSlot.ARRIVED, const(I64, site.barrier)), more)


def result(k: KernelWriter, block: BasicBlock, site: BarrierSite) -> None:
    """Give the lanes behind a reducing barrier its result."""
    f = k.f
    assert block.closing is not None
    slot = k.pointer(Warp.SLOT)
    true = f.load(I64, f.offset(slot, 8 * (BlockSlot.RESULT_TRUE + site.barrier)), 8)
    if site.reduces == "popc":
        answer = f.splat(f.resize(true, 32))
    elif site.reduces == "or":
        answer = f.splat(f.nonzero(true))
    else:
        all_ = f.load(I64, f.offset(slot, 8 * (BlockSlot.RESULT_ALL + site.barrier)), 8)
        answer = f.splat(f.compare("eq", true, all_))
    k.write(block.closing.operands[0], answer)


def release(
    module: Module, layout: WarpLayout, barriers: list[BarrierSite], watched: bool = False
) -> None:
    """Open every barrier of a block that has all its threads; returns a fault kind or 0.
    ``watched``: the watcher is told which warps continue."""
    f = Function(module, "i64 sim_release(ptr context, ptr slot, i64 index) nounwind")
    context, slot = Fields(f, f.parameters[0]), Fields(f, f.parameters[1])
    warps, stride = context.get(Context.WARPS_PER_BLOCK), context.get(Context.WARP_STRIDE)
    first = f.op("mul", f.parameters[2], warps)
    for barrier in sorted({site.barrier for site in barriers}):
        arrived = slot.get(BlockSlot.ARRIVED + barrier)
        expected = slot.get(BlockSlot.EXPECTED + barrier)
        wanted = f.select(f.nonzero(expected), expected, slot.get(BlockSlot.ALIVE))
        full = f.and_(f.nonzero(arrived), f.compare("uge", arrived, wanted))
        with f.when(full):
            sites = [site for site in barriers if site.barrier == barrier]
            passed = [site for site in sites if site.block in layout.skipped]
            if passed:
                # Threads met at several barriers, and some left since while others still wait: so
                # they did not wait equally often.
                alive = slot.get(BlockSlot.MET_ALIVE)
                with f.when(f.compare("ult", slot.get(BlockSlot.ALIVE), alive), likely=False):
                    warp, lanes = slot.get(BlockSlot.MET_WARP), const(I32, -1)
                    _stop(f, context, Fault.SKIPPED, slot.get(BlockSlot.MET_SITE), warp, lanes)
            for site in passed:
                _check_skipped(f, context, slot, layout, site, first, warps)
            slot.set(BlockSlot.RESULT_TRUE + barrier, slot.get(BlockSlot.TRUE_LANES + barrier))
            slot.set(BlockSlot.RESULT_ALL + barrier, arrived)
            for field in (BlockSlot.TRUE_LANES, BlockSlot.ARRIVED, BlockSlot.EXPECTED):
                slot.set(field + barrier, 0)
            with f.counted(warps) as number:
                at = f.element(context.get(Context.WARPS), stride, f.add(first, number))
                _resume(f, context, at, layout, sites, watched)
    f.ret(const(I64, 0))


def _check_skipped(
    f: Function, context: Fields, slot_: Fields, layout: WarpLayout, site: BarrierSite,
    first: Value, warps: Value,
) -> None:  # fmt: skip
    """Stop if some lanes went past a barrier more often than those that wait at it, and left. Where
    they wait at another one, the block goes on, as on a GPU."""
    least, most, where = f.slot(I32), f.slot(I32), f.slot(I64)
    for slot, start in ((least, -1), (most, 0)):
        f.store(const(I32, start), slot, 4)
    f.store(const(I64, 0), where, 8)
    stride, base = context.get(Context.WARP_STRIDE), context.get(Context.WARPS)
    with f.counted(warps) as number:
        at = f.element(base, stride, f.add(first, number))
        counts = f.load(V32, f.offset(at, layout.counter(site.block)), layouts.CACHE_LINE)
        waiting = f.as_lanes(f.load(I32, f.offset(at, layout.waits + 4 * site.index), 4))
        low = f.reduce("umin", f.select(waiting, counts, const(V32, -1)))
        f.store(f.intrinsic("umin", f.load(I32, least, 4), low), least, 4)
        high = f.reduce("umax", counts)
        with f.when(f.compare("ugt", high, f.load(I32, most, 4))):
            f.store(high, most, 4)
            f.store(f.address(at), where, 8)
    bound = f.load(I32, least, 4)
    with f.when(f.compare("ugt", f.load(I32, most, 4), bound), likely=False):
        warp = f.load(I64, where, 8)
        place = f.offset(f.pointer(warp), layout.counter(site.block))
        gone = f.as_bits(f.compare("ugt", f.load(V32, place, layouts.CACHE_LINE), f.splat(bound)))
        waiting = f.resize(Fields(f, f.pointer(warp)).get(Warp.WAITING), 32)
        with f.when(f.nonzero(f.and_(gone, f.not_(waiting)))):
            _stop(f, context, Fault.SKIPPED, const(I64, site.index), warp, gone)
        slot_.set(BlockSlot.MET_ALIVE, slot_.get(BlockSlot.ALIVE))
        slot_.set(BlockSlot.MET_SITE, site.index)
        slot_.set(BlockSlot.MET_WARP, warp)


def _stop(
    f: Function, context: Fields, kind: Fault, site: Value, warp: Value, lanes: Value
) -> None:
    known = const(I64, kind), site, lanes, const(I64, 0)
    f.call("void", "sim_fault", context.record, f.pointer(warp), *known)
    f.leave(const(I64, kind))


def _resume(
    f: Function, context: Fields, at: Value, layout: WarpLayout, sites: list[BarrierSite],
    watched: bool,
) -> None:  # fmt: skip
    """Let a warp's waiting lanes continue behind the barrier."""
    warp = Fields(f, at)
    going, split, where = const(I32, 0), const(I1, 0), const(I64, 0)
    for site in sites:
        wait = f.offset(at, layout.waits + 4 * site.index)
        lanes = f.load(I32, wait, 4)
        f.store(const(I32, 0), wait, 4)
        mask = f.offset(at, layout.masks + 4 * site.resume)
        f.store(f.or_(f.load(I32, mask, 4), lanes), mask, 4)
        some = f.nonzero(lanes)
        field = Warp.BITS + site.resume // 64
        bit = f.select(some, const(I64, 1 << site.resume % 64), const(I64, 0))
        warp.set(field, f.or_(warp.get(field), bit))
        going = f.or_(going, lanes)
        if site.aligned:
            here = f.and_(some, f.compare("ne", f.resize(lanes, 64), warp.get(Warp.ALIVE)))
            split = f.or_(split, here)
            where = f.select(here, const(I64, site.index), where)
    with f.when(split, likely=False):
        _stop(f, context, Fault.BARRIER_SPLIT, where, f.address(at), going)
    with f.when(f.nonzero(going)):
        waiting = f.and_(warp.get(Warp.WAITING), f.not_(f.resize(going, 64)))
        warp.set(Warp.WAITING, waiting)
        warp.set(Warp.STATE, layouts.State.READY)
        if watched:
            watch.call_barrier(f, context.record, at, going, sites[0].barrier, watch.RESUME)
