"""Opening the barriers of a block, as generated code."""

from __future__ import annotations

from nqbench.devices.sim.codegen.barriers import BarrierSite
from nqbench.devices.sim.codegen.records import Fields, as_number, element
from nqbench.devices.sim.faults import Fault
from nqbench.devices.sim.ir import Declarations, Function
from nqbench.devices.sim.layout import Context, Slot, State, Warp, WarpLayout
from nqbench.devices.sim.values import I32, I64, PTR, Value, const


def release(declarations: Declarations, layout: WarpLayout, barriers: list[BarrierSite]) -> str:
    """Open every barrier of a block that has all its threads; returns a fault kind or 0."""
    f = Function(
        "sim_release", I64, [(PTR, "context"), (PTR, "slot"), (I64, "index")], declarations,
        "nounwind",
    )  # fmt: skip
    context, slot = Fields(f, f.parameters[0]), Fields(f, f.parameters[1])
    warps, stride = context.get(Context.WARPS_PER_BLOCK), context.get(Context.WARP_STRIDE)
    first = f.op("mul", f.parameters[2], warps)
    for barrier in sorted({site.barrier for site in barriers}):
        arrived = slot.get(Slot.ARRIVED + barrier)
        expected = slot.get(Slot.EXPECTED + barrier)
        wanted = f.select(f.nonzero(expected), expected, slot.get(Slot.ALIVE))
        full = f.and_(f.nonzero(arrived), f.compare("uge", arrived, wanted))
        with f.when(full):
            slot.set(Slot.RESULT_TRUE + barrier, slot.get(Slot.TRUE_LANES + barrier))
            slot.set(Slot.RESULT_ALL + barrier, arrived)
            for field in (Slot.TRUE_LANES, Slot.ARRIVED, Slot.EXPECTED):
                slot.set(field + barrier, 0)
            sites = [site for site in barriers if site.barrier == barrier]
            with f.counted(warps) as number:
                at = element(f, context.get(Context.WARPS), stride, f.add(first, number))
                _resume(f, context, at, layout, sites)
    f.ret(const(I64, 0))
    return f.text()


def _resume(
    f: Function, context: Fields, at: Value, layout: WarpLayout, sites: list[BarrierSite]
) -> None:
    """Let a warp's waiting lanes go on behind the barrier."""
    warp = Fields(f, at)
    going, several = const(I32, 0), const(I32, 0)
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
            several = f.add(several, f.cast("zext", some, I32))
    with f.when(f.compare("ugt", several, const(I32, 1)), likely=False):
        context.set(Context.FAULT_KIND, Fault.BARRIER_SPLIT)
        context.set(Context.FAULT_WARP, as_number(f, at))
        context.set(Context.FAULT_LANES, f.resize(going, 64))
        f.ret(const(I64, Fault.BARRIER_SPLIT))
        f.label(f.fresh("dead"))
    with f.when(f.nonzero(going)):
        waiting = f.and_(warp.get(Warp.WAITING), f.not_(f.resize(going, 64)))
        warp.set(Warp.WAITING, waiting)
        warp.set(Warp.STATE, State.READY)
