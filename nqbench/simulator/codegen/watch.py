"""Calls of the watcher (``watcher.py``) in the code of the checked mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from nqbench.simulator.codegen.reach import AddressRange
from nqbench.simulator.codegen.writer import KernelWriter
from nqbench.simulator.ir import I32, I64, NULL, Function, Value, const, vector
from nqbench.simulator.layout import CACHE_LINE, Context, Warp
from nqbench.simulator.ptx import Instruction

ACCESS, BARRIER = "sim_watch_access", "sim_watch_barrier"
SPACES = ("shared", "local", "global")
LOAD, STORE, STRONG_LOAD, STRONG_STORE, ATOMIC, EXCHANGE = range(6)
"""What an access does; the strong ones do not race with one another."""
ARRIVE, RESUME, MEET, CONVERGE, STEP = range(5)
"""What happens at a barrier: a warp arrives, it continues; lanes of a warp meet, or vote. No
barrier: lanes begin a basic block."""
STRONG = frozenset({"relaxed", "acquire", "release", "mmio"})


def load_of(i: Instruction, space: str) -> int:
    """Whether a load may race: volatile ones of shared memory do, which warps once relied on."""
    strong = not STRONG.isdisjoint(i.modifiers) or (space == "global" and "volatile" in i.modifiers)
    return STRONG_LOAD if strong else LOAD


def store_of(i: Instruction, space: str) -> int:
    """The same for a store."""
    return STRONG_STORE if load_of(i, space) == STRONG_LOAD else STORE


@contextmanager
def watched(
    k: KernelWriter,
    i: Instruction,
    space: str,
    address: Value,
    span: AddressRange,
    what: int,
    values: Sequence[Value] = (),
) -> Iterator[None]:
    """Code of an access for the lanes that may do it: in the checked mode, those that the watcher
    finds inside memory. ``values`` are what each element of a store gets."""
    if not k.watched or space not in SPACES:
        yield
        return
    good = tell(k, i, space, address, span, what, values)
    with k.f.when(k.f.nonzero(good)), k.only(k.f.as_lanes(good)):
        yield


def tell(
    k: KernelWriter,
    i: Instruction,
    space: str,
    address: Value,
    span: AddressRange,
    what: int,
    values: Sequence[Value] = (),
) -> Value:
    """Tell the watcher about an access, in the checked mode; gives the lanes inside memory."""
    if not k.watched:
        return k.lanes
    f, type_ = k.f, vector(f"i{span.bits}")
    given = NULL
    if values:
        given = f.slot(type_, span.count)
        for e, value in enumerate(values):
            f.store(value, f.offset(given, e, type_), CACHE_LINE)
    memory = k.pointer(Warp.SHARED) if space == "shared" else k.pointer(Context.GLOBAL)
    numbers = (span.bits // 8, span.count, SPACES.index(space), what)
    return f.call(
        I32, ACCESS, f.pointer(k.number(Context.WATCH)), k.context, k.warp, memory, given,
        f.spilled(f.resize(address, 64)), k.lanes, k.place(i), *(const(I64, n) for n in numbers),
    )  # fmt: skip


def at_barrier(
    k: KernelWriter, lanes: Value, number: int, how: int, place: Instruction | None = None
) -> None:
    """Tell the watcher about a barrier; nothing outside the checked mode. ``place`` is the
    instruction where all threads of the block must meet."""
    if k.watched:
        where = None if place is None else k.place(place)
        call_barrier(k.f, k.context, k.warp, lanes, number, how, where)


def call_barrier(
    f: Function,
    context: Value,
    warp: Value,
    lanes: Value,
    number: int,
    how: int,
    where: Value | None = None,
) -> None:
    """The call itself."""
    state = f.pointer(f.load(I64, f.offset(context, 8 * Context.WATCH), 8))
    which = (const(I64, number), where or const(I64, -1), const(I64, how))
    f.call("void", BARRIER, state, context, warp, lanes, *which)
