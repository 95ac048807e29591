"""Special registers."""

from __future__ import annotations

from nqbench.devices.sim.codegen.writer import KernelWriter
from nqbench.devices.sim.layout import CACHE_LINE, Context, Warp
from nqbench.devices.sim.values import I32, I64, LANES, V32, Value, const, lanes_of

CONTEXT_NUMBERS = {
    "%ntid.x": Context.BLOCK_X, "%ntid.y": Context.BLOCK_Y, "%ntid.z": Context.BLOCK_Z,
    "%nctaid.x": Context.GRID_X, "%nctaid.y": Context.GRID_Y, "%nctaid.z": Context.GRID_Z,
    "%nwarpid": Context.WARPS_PER_BLOCK, "%nsmid": Context.MULTIPROCESSORS,
    "%dynamic_smem_size": Context.DYNAMIC_SHARED_BYTES, "%total_smem_size": Context.SHARED_BYTES,
}  # fmt: skip
WARP_NUMBERS = {
    "%ctaid.x": Warp.CTAID_X, "%ctaid.y": Warp.CTAID_Y, "%ctaid.z": Warp.CTAID_Z,
    "%warpid": Warp.INDEX, "%smid": Warp.SMID,
}  # fmt: skip
CLOCKS = ("%clock", "%clock64", "%globaltimer", "%globaltimer_lo")
THREAD_AXES = ("%tid.x", "%tid.y", "%tid.z")
LANE_CONSTANTS = {
    "%laneid": list(range(LANES)),
    "%lanemask_eq": [1 << i for i in range(LANES)],
    "%lanemask_lt": [(1 << i) - 1 for i in range(LANES)],
    "%lanemask_le": [(2 << i) - 1 for i in range(LANES)],
    "%lanemask_ge": [(1 << LANES) - (1 << i) for i in range(LANES)],
    "%lanemask_gt": [(1 << LANES) - (2 << i) for i in range(LANES)],
}


def special(k: KernelWriter, name: str) -> Value:
    """The value of a special register in every lane; ``ValueError`` if it is not known.

    Clocks count the instructions that this warp has issued before the current basic block."""
    f = k.f
    if name in LANE_CONSTANTS:
        return lanes_of(V32, LANE_CONSTANTS[name])
    if name in CONTEXT_NUMBERS:
        return f.splat(f.resize(k.number(CONTEXT_NUMBERS[name]), 32))
    if name in WARP_NUMBERS:
        return f.splat(f.resize(k.warp_number(WARP_NUMBERS[name]), 32))
    if name in CLOCKS:
        return f.splat(k.warp_number(Warp.CLOCK))
    if name in THREAD_AXES:
        row = f.op("mul", const(I64, THREAD_AXES.index(name)), k.number(Context.THREAD_STRIDE))
        start = f.op("shl", k.warp_number(Warp.INDEX), const(I64, 5))
        place = f.offset(k.pointer(Context.THREAD_INDICES), f.add(row, start), I32)
        return f.load(V32, place, CACHE_LINE)
    if name == "%gridid":
        return const(V32, 1)
    raise ValueError(f"{name} is not a register, a variable or a known special register")
