"""Functions of CUDA's that the simulator executes itself, and what remains of other calls."""

from __future__ import annotations

from nqbench.simulator import layout
from nqbench.simulator.codegen.writer import KernelWriter
from nqbench.simulator.ir import I32, I64, V64, Fields, Function, Module, const
from nqbench.simulator.ptx import Instruction, Name


def built_in(k: KernelWriter, i: Instruction) -> None:
    """``call``: an instruction that only counts, a check that ``calls`` put in, or a function."""
    what = next((o.name for o in i.operands[1:2] if isinstance(o, Name)), "")
    if "nowhere" in i.modifiers:
        everyone = k.f.or_(k.lanes, const(I32, 0))
        k.fault_if(layout.Fault.NOT_A_FUNCTION, everyone, i, k.read(i.operands[1], 64))
    elif what == "__assertfail":
        message = k.read(i.operands[2], 64)
        k.fault_if(layout.Fault.ASSERTION, k.f.or_(k.lanes, const(I32, 0)), i, message)
    elif what == "vprintf":
        # The address of the text and the values are stored; the engine puts them into words.
        text, values = (k.read(operand, 64) for operand in i.operands[2:4])
        offset = k.f.sub(values, const(V64, layout.LOCAL_WINDOW))
        local = k.f.offset(k.warp, k.layout.local)
        size = const(I64, k.layout.local_bytes)
        k.f.call("void", "sim_print", k.context, k.warp, k.lanes, text, offset, local, size)
        k.write(i.operands[0], const("<32 x i32>", 1))


def define_print(module: Module) -> None:
    """``sim_print``: one record per lane, as long as there is room; all are counted."""
    parameters = f"i32 lanes, {V64} text, {V64} values, ptr local, i64 local_bytes"
    f = Function(
        module, f"void sim_print(ptr context, ptr warp, {parameters}) cold noinline nounwind"
    )
    context_at, _, lanes, text, values, local, local_bytes = f.parameters
    context = Fields(f, context_at)
    with f.each_of(lanes, text, values) as (lane32, said, start):
        lane = f.resize(lane32, 64)
        number = context.get(layout.Context.PRINTED)
        context.add(layout.Context.PRINTED, 1)
        with f.when(f.compare("ult", number, context.get(layout.Context.PRINT_ROOM))):
            record = f.element(
                context.get(layout.Context.PRINTS), const(I64, layout.PRINT_RECORD), number
            )
            f.store(said, record, 8)
            with f.counted(const(I64, layout.PRINTED_BYTES // 4)) as word:
                at = f.add(start, f.op("shl", word, const(I64, 2)))
                with f.when(f.compare("ult", at, local_bytes)):
                    row = f.op("shl", f.op("lshr", at, const(I64, 2)), const(I64, 5))
                    value = f.load(I32, f.offset(local, f.add(row, lane), I32), 4)
                    f.store(value, f.offset(f.offset(record, 8), word, I32), 4)
    f.ret()
