"""The scheduler around the warps, as generated code: resident blocks, turns, barriers."""

from __future__ import annotations

from nqbench.devices.sim.codegen.barriers import BarrierSite
from nqbench.devices.sim.codegen.records import Fields, as_number, element, fill, pointer
from nqbench.devices.sim.codegen.release import release
from nqbench.devices.sim.faults import Fault
from nqbench.devices.sim.ir import Declarations, Function
from nqbench.devices.sim.layout import (
    UNWRITTEN_BYTE,
    Context,
    Outcome,
    Slot,
    State,
    Step,
    Warp,
    WarpLayout,
)
from nqbench.devices.sim.values import I32, I64, PTR, Value, const

WARP_SIZE = 32


def scheduler(
    declarations: Declarations, layout: WarpLayout, barriers: list[BarrierSite]
) -> list[str]:
    """``sim_start(context)`` fills the slots; ``sim_run(context, steps)`` runs for about so many
    steps and returns an ``Outcome``. Both are pure functions of the context's memory."""
    return [
        _begin_block(declarations, layout),
        _start(declarations),
        release(declarations, layout, barriers),
        _run(declarations),
    ]


def _begin_block(declarations: Declarations, layout: WarpLayout) -> str:
    """Put the next block of the grid into a slot."""
    f = Function(
        "sim_begin_block", "void", [(PTR, "context"), (I64, "index")], declarations, "nounwind"
    )
    context, index = Fields(f, f.parameters[0]), f.parameters[1]
    block = context.get(Context.NEXT_BLOCK)
    context.add(Context.NEXT_BLOCK, 1)
    wide, high = context.get(Context.GRID_X), context.get(Context.GRID_Y)
    rows = f.op("udiv", block, wide)
    place = (f.op("urem", block, wide), f.op("urem", rows, high), f.op("udiv", rows, high))
    shared_stride = context.get(Context.SHARED_STRIDE)
    shared = element(f, context.get(Context.SHARED), shared_stride, index)
    half = f.op("lshr", shared_stride, const(I64, 1))
    shadow = f.offset(shared, half)
    fill(f, shared, UNWRITTEN_BYTE, half)
    fill(f, shadow, 0, half)
    slot_at = element(f, context.get(Context.SLOTS), context.get(Context.SLOT_STRIDE), index)
    fill(f, slot_at, 0, const(I64, 8 * Slot.END))
    slot = Fields(f, slot_at)
    threads, warps = context.get(Context.THREADS_PER_BLOCK), context.get(Context.WARPS_PER_BLOCK)
    slot.set(Slot.ALIVE, threads)
    slot.set(Slot.WARPS_LEFT, warps)
    stride = context.get(Context.WARP_STRIDE)
    first = f.op("mul", index, warps)
    with f.counted(warps) as number:
        at = element(f, context.get(Context.WARPS), stride, f.add(first, number))
        fill(f, at, 0, const(I64, layout.local))
        fill(f, f.offset(at, layout.local), UNWRITTEN_BYTE, const(I64, 32 * layout.local_bytes))
        warp = Fields(f, at)
        left = f.sub(threads, f.op("mul", number, const(I64, WARP_SIZE)))
        partial = f.sub(f.op("shl", const(I64, 1), left), const(I64, 1))
        full = f.compare("uge", left, const(I64, WARP_SIZE))
        # A shift by more than 63 gives poison, which select does not pass on for full warps.
        lanes = f.select(full, const(I64, (1 << WARP_SIZE) - 1), partial)
        warp.set(Warp.STATE, State.READY)
        warp.set(Warp.ALIVE, lanes)
        warp.set(Warp.SLOT, as_number(f, slot_at))
        warp.set(Warp.SHARED, as_number(f, shared))
        warp.set(Warp.SHADOW, as_number(f, shadow))
        warp.set(Warp.INDEX, number)
        for field, value in zip((Warp.CTAID_X, Warp.CTAID_Y, Warp.CTAID_Z), place, strict=True):
            warp.set(field, value)
        warp.set(Warp.SMID, f.op("urem", index, context.get(Context.MULTIPROCESSORS)))
        warp.set(Warp.BITS, 1)
        f.store(f.resize(lanes, 32), f.offset(at, layout.masks), 4)
    f.ret()
    return f.text()


def _start(declarations: Declarations) -> str:
    f = Function("sim_start", "void", [(PTR, "context")], declarations, "nounwind")
    context = Fields(f, f.parameters[0])
    with f.counted(context.get(Context.SLOT_COUNT)) as index:
        more = f.compare("ult", context.get(Context.NEXT_BLOCK), context.get(Context.TOTAL_BLOCKS))
        with f.when(more):
            f.call("void", "sim_begin_block", f.parameters[0], index)
            context.add(Context.LIVE_SLOTS, 1)
    f.ret()
    return f.text(exported=True)


def _run(declarations: Declarations) -> str:
    f = Function("sim_run", I32, [(PTR, "context"), (I64, "steps")], declarations, "nounwind")
    context = Fields(f, f.parameters[0])
    end = f.add(context.get(Context.STEPS), f.parameters[1])
    ran = f.slot(I64)
    f.jump("round")
    f.label("round")
    f.store(const(I64, 0), ran, 8)
    per = context.get(Context.WARPS_PER_BLOCK)
    total = f.op("mul", context.get(Context.SLOT_COUNT), per)
    with f.counted(total) as turn:
        last = f.sub(f.sub(total, const(I64, 1)), turn)
        number = f.select(f.nonzero(context.get(Context.REVERSE)), last, turn)
        at = element(f, context.get(Context.WARPS), context.get(Context.WARP_STRIDE), number)
        warp = Fields(f, at)
        with f.when(f.compare("eq", warp.get(Warp.STATE), const(I64, State.READY))):
            f.store(const(I64, 1), ran, 8)
            step = f.call(I32, "sim_warp", f.parameters[0], at, context.get(Context.QUANTUM))
            with f.when(f.nonzero(step)):
                with f.when(f.compare("eq", step, const(I32, Step.FAULT)), likely=False):
                    _give_up(f, Outcome.FAULT)
                _idle(f, context, at, warp, f.op("udiv", number, per))
    for answer, test in (
        (Outcome.DONE, f.compare("eq", context.get(Context.LIVE_SLOTS), const(I64, 0))),
        (Outcome.DEADLOCK, f.compare("eq", f.load(I64, ran, 8), const(I64, 0))),
        (Outcome.PAUSE, f.compare("uge", context.get(Context.STEPS), end)),
    ):
        with f.when(test):
            _give_up(f, answer)
    f.jump("round")
    return f.text(exported=True)


def _give_up(f: Function, outcome: Outcome) -> None:
    f.ret(const(I32, outcome))
    f.label(f.fresh("dead"))


def _idle(f: Function, context: Fields, at: Value, warp: Fields, index: Value) -> None:
    """A warp has nothing to run: it has ended, waits at a barrier, or is stuck."""
    slot = pointer(f, warp.get(Warp.SLOT))
    fields = Fields(f, slot)
    ended, waits, after = f.fresh("ended"), f.fresh("waits"), f.fresh("checked")
    f.branch(f.compare("eq", warp.get(Warp.ALIVE), const(I64, 0)), ended, waits)
    f.label(ended)
    warp.set(Warp.STATE, State.DONE)
    fields.add(Slot.WARPS_LEFT, -1)
    last = f.compare("eq", fields.get(Slot.WARPS_LEFT), const(I64, 0))
    with f.when(last):
        more = f.compare("ult", context.get(Context.NEXT_BLOCK), context.get(Context.TOTAL_BLOCKS))
        again, over = f.fresh("again"), f.fresh("over")
        f.branch(more, again, over)
        f.label(again)
        f.call("void", "sim_begin_block", context.record, index)
        f.jump(after)
        f.label(over)
        context.add(Context.LIVE_SLOTS, -1)
        f.jump(after)
        f.label(f.fresh("dead"))
    f.jump(f"{after}release")
    f.label(waits)
    with f.when(f.compare("eq", warp.get(Warp.WAITING), const(I64, 0)), likely=False):
        context.set(Context.FAULT_KIND, Fault.STUCK)
        context.set(Context.FAULT_WARP, as_number(f, at))
        _give_up(f, Outcome.DEADLOCK)
    warp.set(Warp.STATE, State.PARKED)
    f.jump(f"{after}release")
    f.label(f"{after}release")
    fault = f.call(I64, "sim_release", context.record, slot, index)
    with f.when(f.nonzero(fault), likely=False):
        _give_up(f, Outcome.FAULT)
    f.jump(after)
    f.label(after)
