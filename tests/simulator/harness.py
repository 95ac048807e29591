"""Small PTX kernels for the tests: one warp, inputs by lane, results by lane."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nqbench.devices.registry import SimDevice
from nqbench.plan import Buffer, KernelPlan, MultiLaunchPlan, Outputs
from nqbench.point import Level
from nqbench.simulator.codegen.writer import SITE_FIELDS
from nqbench.simulator.engine import SimLaunch, parameter_bytes
from nqbench.simulator.global_memory import GlobalMemory
from nqbench.simulator.layout import LaunchShape, Outcome
from nqbench.simulator.ptx import Instruction
from nqbench.simulator.tally import Tally
from nqbench.simulator.translation import Translation, build
from nqbench.workloads.counting import Counting

Arrays: TypeAlias = Mapping[str, NDArray[Any] | np.generic]

KERNELS = Path(__file__).parent / "kernels"
Rules: TypeAlias = tuple[tuple[str, int | str], ...]
RULES: Rules = (("bank_bytes", 4), ("rules", "sectors"), ("sector_bytes", 32), ("shared_banks", 32))

HEAD = """.version 8.0
.target sm_90
.address_size 64
{module}
.visible .entry k({parameters})
{{
.reg .pred %p<32>;
.reg .b16 %rs<32>;
.reg .b32 %r<64>;
.reg .b64 %rd<64>;
.reg .f32 %f<32>;
.reg .f64 %fd<32>;
{variables}
"""


PLACE = """
mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [p0]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
"""
"""The beginning of a body: ``%rd1`` is the address of the thread's word of the first buffer."""


def ptx(body: str, buffers: int, variables: str = "", module: str = "") -> str:
    """A module with one kernel ``k`` whose parameters ``p0``, ``p1``, ... are pointers."""
    parameters = ", ".join(f".param .u64 p{i}" for i in range(buffers))
    head = HEAD.format(parameters=parameters, variables=variables, module=module)
    return f"{head}{body}\nret;\n}}\n"


@dataclass(frozen=True)
class Result:
    """Buffers after a launch, its counters and its counts per access and branch."""

    buffers: list[NDArray[Any]]
    counters: Mapping[str, int | float]
    lines: list[dict[str, Any]]
    program: Translation


def run(
    text: str,
    arrays: list[NDArray[Any]],
    *,
    threads: int = 32,
    blocks: int = 1,
    dynamic: int = 0,
    order: str = "round_robin",
    quantum: int = 32,
    rules: Rules = RULES,
    caches: tuple[int, int] | None = None,
) -> Result:
    """Run kernel ``k`` of a PTX module with one buffer per parameter."""
    program = build(text, "k", rules)
    buffers = tuple(
        Buffer(f"b{i}", array.dtype.name, len(array), array) for i, array in enumerate(arrays)
    )
    memory = GlobalMemory(program, buffers)
    for buffer, array in zip(buffers, arrays, strict=True):
        memory.bytes_of(buffer.name)[:] = array.view(np.uint8)
    shared = program.symbols.static_shared_bytes + dynamic
    geometry = LaunchShape(
        (blocks, 1, 1), (threads, 1, 1), shared, dynamic, min(blocks, 4), 2, order, quantum,
        caches=caches,
    )  # fmt: skip
    parameters = parameter_bytes(program, tuple(b.name for b in buffers), memory)
    launch = SimLaunch(program, memory, parameters, geometry)
    outcome = launch.go(1 << 24, None)
    assert outcome is Outcome.DONE, outcome
    tally = Tally(launch)
    after = [memory.bytes_of(b.name).view(b.dtype).copy() for b in buffers]
    return Result(after, tally.totals(), accesses(tally), program)


def accesses(tally: Tally) -> list[dict[str, Any]]:
    """The counts of each memory access and branch, in the order of the code."""
    code = tally.code
    found: list[tuple[Instruction, dict[str, Any]]] = []
    for site in (site for site in code.sites if site.space):
        counts = zip(SITE_FIELDS, map(int, tally.sites[site.index]), strict=True)
        found.append((site.instruction, {"space": site.space, **dict(counts)}))
    for block in code.blocks:
        if block.ending == "branch" and block.closing is not None:
            divergent = int(tally.divergent[block.index])
            found.append((block.closing, {"space": "", "divergent": divergent}))
    found.sort(key=lambda one: (one[0].where.line, one[1]["space"]))
    return [{"instruction": i, "opcode": i.full_opcode, **counts} for i, counts in found]


def computed(texts: Sequence[str], out: str, *columns: NDArray[Any]) -> NDArray[Any]:
    """What each instruction (or several) leaves in ``%d``, of type ``out``, shape (texts,
    elements): given are an element of each column in ``%a``, ``%b`` and ``%c``."""
    count = len(columns[0])
    arrays = [*columns, np.zeros(len(texts) * count, out)]
    body = ["mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;"]
    body.append("mad.lo.u32 %r1, %r1, %r2, %r3;")
    names = [*"abc"[: len(columns)], "d"]
    for n, (name, x) in enumerate(zip(names, arrays, strict=True)):
        bits = 8 * x.itemsize
        body.append(f".reg .b{bits} %{name}; mul.wide.u32 %rd1, %r1, {x.itemsize};")
        body.append(f"ld.param.u64 %rd2, [p{n}]; add.s64 %rd3, %rd2, %rd1;")
        body += [f"ld.global.b{bits} %{name}, [%rd3];"] if name != "d" else []
    size = arrays[-1].itemsize
    for n, text in enumerate(texts):
        body.append(f"{text.rstrip(';')}; st.global.b{8 * size} [%rd3+{size * count * n}], %d;")
    threads = min(count, 256)
    result = run(
        ptx("\n".join(body), len(arrays)), arrays, threads=threads, blocks=count // threads
    )
    return result.buffers[-1].reshape(len(texts), count)


def outputs(plan: KernelPlan | MultiLaunchPlan, launches: int = 1) -> Outputs:
    """What a plan's buffers hold after some launches by the default model."""
    with device().prepare(plan) as prepared:
        for _ in range(launches):
            prepared.launch()
        return prepared.fetch()


@functools.cache
def device(order: str = "round_robin") -> SimDevice:
    """The default model."""
    return SimDevice(order=order)


def cuda(
    source: str, entry: str, arrays: Arrays, *, grid: int = 1, block: int = 32, dynamic: int = 0
) -> KernelPlan:
    """A plan for a kernel of ``tests/simulator/kernels``; every array is an output too."""
    given = {name: array for name, array in arrays.items() if isinstance(array, np.ndarray)}
    buffers = tuple(
        Buffer(name, array.dtype.name, len(array), array, restore=True, output=True)
        for name, array in given.items()
    )
    arguments = tuple(n if isinstance(a, np.ndarray) else a for n, a in arrays.items())
    shape = ((grid, 1, 1), (block, 1, 1))
    return KernelPlan(
        KERNELS / source, entry, arguments, *shape, buffers=buffers, shared_bytes=dynamic
    )


def counting(system: str, device: SimDevice, **levels: Level) -> KernelPlan:
    """A kernel of the counting workload, of a board of 8 unless ``levels`` say otherwise."""
    workload = Counting()
    factors = workload.resolve({"n": 8, **levels}, system, device.facts).factors
    plan = workload.plan(factors, system, device.facts)
    assert isinstance(plan, KernelPlan)
    return plan
