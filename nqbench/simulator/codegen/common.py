"""What is the same for every kernel, as generated code: the scheduler around the warps with its
resident blocks and turns, and the functions that kernels call on their rare paths.

It is a module of its own, compiled once for a CPU and linked to every kernel. A kernel's module
gives ``sim_warp`` (one turn of a warp) and ``sim_release`` (opens barriers).
"""

from __future__ import annotations

from nqbench.simulator import layout
from nqbench.simulator.codegen.built_in import define_print
from nqbench.simulator.codegen.caches import define_caches, define_contended
from nqbench.simulator.codegen.reach import define_global, define_outside
from nqbench.simulator.ir import I32, I64, LANES, V32, V64, Fields, Function, Module, Value, const
from nqbench.simulator.ir import element as scalar_of
from nqbench.simulator.layout import BlockSlot, Context, Outcome, State, Step, Warp
from nqbench.simulator.rules import SectorRules


def common_module(rules: SectorRules) -> str:
    """``sim_start(context)`` fills the slots; ``sim_run(context, steps)`` runs for about so many
    steps and returns an ``Outcome``. Both are pure functions of the context's memory."""
    module = Module()
    rules.define(module)
    if rules.caches:
        define_caches(module, rules)
    if rules.timed:
        define_contended(module)
    define_global(module, rules)
    for write in (_fault_recorders, define_outside, define_print):
        write(module)
    for write in (_begin_block, _start, _run):
        write(module)
    return module.text()


FAULT_PARAMETERS = "ptr context, ptr warp, i64 kind, i64 where, i32 lanes"


def _fault_recorders(module: Module) -> None:
    """``sim_fault``: store what is known about a fault in the context. The others find the address
    of the lowest lane first; kernels would have that code once per access."""
    f = Function(module, f"void sim_fault({FAULT_PARAMETERS}, i64 address) cold noinline nounwind")
    context, warp, kind, where, lanes, address = f.parameters
    for field_, value in (
        (Context.FAULT_KIND, kind),
        (Context.FAULT_INSTRUCTION, where),
        (Context.FAULT_LANE, f.resize(f.lowest(lanes), 64)),
        (Context.FAULT_LANES, f.resize(lanes, 64)),
        (Context.FAULT_ADDRESS, address),
        (Context.FAULT_WARP, f.address(warp)),
    ):
        f.store(value, f.offset(context, 8 * field_), 8)
    f.ret()
    for type_ in (V32, V64):
        parameters = f"{FAULT_PARAMETERS}, {type_} addresses"
        name = f"sim_fault_{scalar_of(type_)}"
        f = Function(module, f"void {name}({parameters}) cold noinline nounwind")
        *known, addresses = f.parameters
        first = f.extract(addresses, f.lowest(known[-1]))
        f.call("void", "sim_fault", *known, f.resize(first, 64))
        f.ret()


def _begin_block(module: Module) -> None:
    """Put the next block of the grid into a slot."""
    f = Function(module, "void sim_begin_block(ptr context, i64 index) nounwind")
    context, index = Fields(f, f.parameters[0]), f.parameters[1]
    block = context.get(Context.NEXT_BLOCK)
    context.add(Context.NEXT_BLOCK, 1)
    wide, high = context.get(Context.GRID_X), context.get(Context.GRID_Y)
    rows = f.op("udiv", block, wide)
    place = (f.op("urem", block, wide), f.op("urem", rows, high), f.op("udiv", rows, high))
    shared_stride = context.get(Context.SHARED_STRIDE)
    shared = f.element(context.get(Context.SHARED), shared_stride, index)
    half = f.op("lshr", shared_stride, const(I64, 1))
    shadow = f.offset(shared, half)
    f.fill(shared, f.resize(context.get(Context.SHARED_FILL), 8), half)
    f.fill(shadow, f.resize(context.get(Context.SHADOW_FILL), 8), half)
    slot_at = f.element(context.get(Context.SLOTS), context.get(Context.SLOT_STRIDE), index)
    f.fill(slot_at, 0, const(I64, 8 * BlockSlot.END))
    slot = Fields(f, slot_at)
    threads, warps = context.get(Context.THREADS_PER_BLOCK), context.get(Context.WARPS_PER_BLOCK)
    slot.set(BlockSlot.ALIVE, threads)
    slot.set(BlockSlot.WARPS_LEFT, warps)
    stride = context.get(Context.WARP_STRIDE)
    local, masks = context.get(Context.WARP_LOCAL), context.get(Context.WARP_MASKS)
    local_bytes = context.get(Context.WARP_LOCAL_BYTES)
    first = f.op("mul", index, warps)
    crew, slots = context.get(Context.MULTIPROCESSORS), context.get(Context.SLOT_COUNT)
    smid, turn = f.op("urem", index, crew), f.op("udiv", index, crew)
    most = f.add(f.op("udiv", f.sub(slots, const(I64, 1)), crew), const(I64, 1))
    own = f.add(f.op("mul", smid, most), turn)
    with f.counted(warps) as number:
        at = f.element(context.get(Context.WARPS), stride, f.add(first, number))
        f.fill(at, 0, local)
        f.fill(f.offset(at, local), layout.UNWRITTEN_BYTE, local_bytes)
        warp = Fields(f, at)
        left = f.sub(threads, f.op("mul", number, const(I64, LANES)))
        partial = f.sub(f.op("shl", const(I64, 1), left), const(I64, 1))
        full = f.compare("uge", left, const(I64, LANES))
        # A shift by more than 63 gives poison, which select does not pass on for full warps.
        lanes = f.select(full, const(I64, (1 << LANES) - 1), partial)
        warp.set(Warp.STATE, State.READY)
        warp.set(Warp.ALIVE, lanes)
        warp.set(Warp.SLOT, f.address(slot_at))
        warp.set(Warp.SHARED, f.address(shared))
        warp.set(Warp.SHADOW, f.address(shadow))
        warp.set(Warp.INDEX, number)
        warp.set(Warp.NUMBER, f.add(f.op("mul", own, warps), number))
        warp.set(Warp.ORDINAL, f.add(f.op("mul", block, warps), number))
        for field, value in zip((Warp.CTAID_X, Warp.CTAID_Y, Warp.CTAID_Z), place, strict=True):
            warp.set(field, value)
        warp.set(Warp.SMID, smid)
        warp.set(Warp.BITS, 1)
        f.store(f.resize(lanes, 32), f.offset(at, masks), 4)
    f.ret()


def _start(module: Module) -> None:
    f = Function(module, "void sim_start(ptr context) nounwind")
    context = Fields(f, f.parameters[0])
    with f.counted(context.get(Context.SLOT_COUNT)) as index:
        more = f.compare("ult", context.get(Context.NEXT_BLOCK), context.get(Context.TOTAL_BLOCKS))
        with f.when(more):
            f.call("void", "sim_begin_block", f.parameters[0], index)
            context.add(Context.LIVE_SLOTS, 1)
    f.ret()


def _run(module: Module) -> None:
    f = Function(module, "i32 sim_run(ptr context, i64 steps) nounwind")
    context = Fields(f, f.parameters[0])
    end = f.add(context.get(Context.STEPS), f.parameters[1])
    ran = f.slot(I64)
    f.jump("round")
    f.label("round")
    f.store(const(I64, 0), ran, 8)
    context.add(Context.ROUND, 1)
    per = context.get(Context.WARPS_PER_BLOCK)
    total = f.op("mul", context.get(Context.SLOT_COUNT), per)
    with f.counted(total) as turn:
        last = f.sub(f.sub(total, const(I64, 1)), turn)
        number = f.select(f.nonzero(context.get(Context.REVERSE)), last, turn)
        at = f.element(context.get(Context.WARPS), context.get(Context.WARP_STRIDE), number)
        warp = Fields(f, at)
        with f.when(f.compare("eq", warp.get(Warp.STATE), const(I64, State.READY))):
            f.store(const(I64, 1), ran, 8)
            step = f.call(I32, "sim_warp", f.parameters[0], at, context.get(Context.QUANTUM))
            with f.when(f.nonzero(step)):
                with f.when(f.compare("eq", step, const(I32, Step.FAULT)), likely=False):
                    f.leave(const(I32, Outcome.FAULT))
                _idle(f, context, warp, f.op("udiv", number, per))
    for answer, test in (
        (Outcome.DONE, f.compare("eq", context.get(Context.LIVE_SLOTS), const(I64, 0))),
        (Outcome.DEADLOCK, f.compare("eq", f.load(I64, ran, 8), const(I64, 0))),
        (Outcome.PAUSE, f.compare("uge", context.get(Context.STEPS), end)),
    ):
        with f.when(test):
            f.leave(const(I32, answer))
    f.jump("round")


def _idle(f: Function, context: Fields, warp: Fields, index: Value) -> None:
    """A warp has nothing to run: it has ended, waits at a barrier, or is stuck."""
    slot = f.pointer(warp.get(Warp.SLOT))
    fields = Fields(f, slot)
    ended, waits, after = f.fresh("ended"), f.fresh("waits"), f.fresh("checked")
    f.branch(f.compare("eq", warp.get(Warp.ALIVE), const(I64, 0)), ended, waits)
    f.label(ended)
    warp.set(Warp.STATE, State.DONE)
    fields.add(BlockSlot.WARPS_LEFT, -1)
    last = f.compare("eq", fields.get(BlockSlot.WARPS_LEFT), const(I64, 0))
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
        f.leave(const(I32, Outcome.DEADLOCK))
    warp.set(Warp.STATE, State.PARKED)
    f.jump(f"{after}release")
    f.label(f"{after}release")
    fault = f.call(I64, "sim_release", context.record, slot, index)
    with f.when(f.nonzero(fault), likely=False):
        f.leave(const(I32, Outcome.FAULT))
    f.jump(after)
    f.label(after)
