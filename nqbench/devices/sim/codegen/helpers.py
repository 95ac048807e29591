"""Functions that the generated kernel calls on its rare paths."""

from __future__ import annotations

from nqbench.devices.sim.ir import Declarations, Function
from nqbench.devices.sim.layout import GLOBAL_BASE, PAGE_BITS, Context
from nqbench.devices.sim.values import I32, I64, PTR, V64, Value, const


def fault_recorder(declarations: Declarations) -> str:
    """``sim_fault``: store what is known about a fault in the context."""
    parameters = [(PTR, "context"), (PTR, "warp"), (I64, "kind"), (I64, "where")]
    parameters += [(I32, "lanes"), (I32, "lane"), (I64, "address")]
    f = Function("sim_fault", "void", parameters, declarations, "cold noinline nounwind")
    context, warp, kind, where, lanes, lane, address = f.parameters
    for field_, value in (
        (Context.FAULT_KIND, kind),
        (Context.FAULT_INSTRUCTION, where),
        (Context.FAULT_LANE, f.resize(lane, 64)),
        (Context.FAULT_LANES, f.resize(lanes, 64)),
        (Context.FAULT_ADDRESS, address),
        (Context.FAULT_WARP, f.emit(I64, f"ptrtoint {warp} to i64")),
    ):
        f.store(value, f.offset(context, 8 * field_), 8)
    f.ret()
    return f.text()


def outside(declarations: Declarations) -> str:
    """``sim_outside``: which of the lanes are not inside a buffer or not aligned, one by one."""
    f = Function(
        "sim_outside",
        I32,
        [("ptr", "context"), (V64, "addresses"), (I32, "lanes"), (I64, "size")],
        declarations,
        "noinline nounwind",
    )
    context, addresses, lanes, size = f.parameters

    def number(field: Context) -> Value:
        return f.load(I64, f.offset(context, 8 * field), 8)

    pages = number(Context.PAGES)
    lows, highs = (
        f.emit("ptr", f"inttoptr {number(field)} to ptr")
        for field in (Context.PAGE_LOW, Context.PAGE_HIGH)
    )
    copy = f.slot(V64)
    f.store(addresses, copy, 64)
    result = f.slot(I32)
    f.store(const(I32, 0), result, 4)
    with f.each_lane(lanes) as lane:
        address = f.load(I64, f.offset(copy, f.resize(lane, 64), I64), 8)
        inside = f.sub(address, const(I64, GLOBAL_BASE))
        page = f.op("lshr", inside, const(I64, PAGE_BITS))
        page = f.select(f.compare("ult", page, pages), page, const(I64, 0))
        low = f.load(I64, f.offset(lows, page, I64), 8)
        high = f.load(I64, f.offset(highs, page, I64), 8)
        at = f.sub(inside, low)
        length = f.sub(high, low)
        short = f.or_(f.compare("ult", length, size), f.compare("ugt", at, f.sub(length, size)))
        askew = f.nonzero(f.and_(at, f.sub(size, const(I64, 1))))
        bit = f.op("shl", const(I32, 1), lane)
        old = f.load(I32, result, 4)
        f.store(f.select(f.or_(short, askew), f.or_(old, bit), old), result, 4)
    f.ret(f.load(I32, result, 4))
    return f.text()
