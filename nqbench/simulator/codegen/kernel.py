"""One kernel as one LLVM function: a warp that runs its earliest non-empty block until it has
nothing left to run or its quantum of loop iterations is used up.

Every block has a 32-bit mask of the lanes that wait to run it, and a bit in a set of non-empty
blocks. Masks, the set and the registers live in the warp's state, so that a warp can be left at
any block and resumed.
"""

from __future__ import annotations

from nqbench.simulator.cfg import BasicBlock
from nqbench.simulator.codegen import barriers, floats
from nqbench.simulator.codegen.barriers import BarrierSite
from nqbench.simulator.codegen.built_in import built_in
from nqbench.simulator.codegen.collectives import COLLECTIVES, members_of
from nqbench.simulator.codegen.copies import COPIES
from nqbench.simulator.codegen.integers import BITS, INTEGER
from nqbench.simulator.codegen.memory import MEMORY
from nqbench.simulator.codegen.moves import MOVES
from nqbench.simulator.codegen.writer import Handler, KernelWriter
from nqbench.simulator.ir import I1, I32, I64, MASK, V32, Value, const, lanes_of
from nqbench.simulator.layout import CACHE_LINE, BlockSlot, Context, Fault, Step, Warp
from nqbench.simulator.liveness import CHANGING_SPECIALS, mentions
from nqbench.simulator.ptx import Instruction

HANDLERS: dict[str, Handler] = {
    **INTEGER, **BITS, **MOVES, **MEMORY, **COPIES, **COLLECTIVES, "call": built_in,
}  # fmt: skip

BLOCK_FIELDS = ("executions", "lanes", "divergent")
"""Counters of a basic block, in memory order (64-bit each)."""

BLOCK_STRIDE = 32
"""Bytes; a power of two keeps a block's counters in one cache line."""

POINTERS = (Context.GLOBAL, Context.PAGE_LOW, Context.PAGE_HIGH, Context.PARAMETERS,
            Context.THREAD_INDICES, Context.BLOCK_COUNTS, Context.SITE_COUNTS)  # fmt: skip

STRIDES = {
    Context.BLOCK_COUNTS: Context.BLOCK_COUNTS_STRIDE,
    Context.SITE_COUNTS: Context.SITE_COUNTS_STRIDE,
}
"""Bytes between the counts of two warps: 0 where all warps count together."""


class WarpFunction:
    """Writes the whole warp function."""

    def __init__(self, k: KernelWriter, blocks: list[BasicBlock]) -> None:
        self.k = k
        self.f = k.f
        self.blocks = blocks
        self.barriers: list[BarrierSite] = []
        self.words = [self.f.slot(I64) for _ in range(k.layout.words)]
        self.left = self.f.slot(I64)
        self.rest = const(I32, 0)
        self.results: dict[int, tuple[BasicBlock, BarrierSite]] = {}
        self.clocked = mentions(blocks, *CHANGING_SPECIALS)

    def run(self) -> list[BarrierSite]:
        """Write it; gives its block-wide barriers."""
        for block in self.blocks:
            if block.ending == "barrier":
                sites = barriers.sites_of(self.k, block, len(self.barriers))
                self.barriers += sites
                if sites[0].reduces:
                    self.results[sites[0].resume] = (block, sites[0])
        self._entry()
        self._dispatch()
        for block in self.blocks:
            self._block(block)
        self._leave("idle", Step.IDLE)
        self._leave("expired", Step.QUANTUM)
        self.f.label("faulted")
        self.f.ret(const(I32, Step.FAULT))
        return self.barriers

    # entry and exit

    def _entry(self) -> None:
        f, k = self.f, self.k
        f.store(f.parameters[2], self.left, 8)
        for field in POINTERS:
            address = k.number(field)
            if field in STRIDES:  # of this warp, where each warp of the grid has counts of its own
                own = f.op("mul", k.warp_number(Warp.ORDINAL), k.number(STRIDES[field]))
                address = f.add(address, own)
            k.pointers[f"Context.{field.name}"] = f.pointer(address)
        for place in (Warp.SHARED, Warp.SHADOW, Warp.SLOT):
            k.pointers[f"Warp.{place.name}"] = f.pointer(k.warp_number(place))
        for w, word in enumerate(self.words):
            f.store(k.warp_number(Warp.BITS + w), word, 8)
        f.jump("dispatch")

    def _leave(self, name: str, step: Step) -> None:
        f, k = self.f, self.k
        f.label(name)
        for w, word in enumerate(self.words):
            f.store(f.load(I64, word, 8), f.offset(k.warp, 8 * (Warp.BITS + w)), 8)
        used = f.sub(f.parameters[2], f.load(I64, self.left, 8))
        f.bump(f.offset(k.context, 8 * Context.STEPS), f.add(used, const(I64, 1)))
        f.ret(const(I32, step))

    def _dispatch(self) -> None:
        """Jump to the earliest non-empty block."""
        f = self.f
        f.label("dispatch")
        for w, word in enumerate(self.words):
            bits = f.load(I64, word, 8)
            here, other = f"pick{w}", f"word{w + 1}" if w + 1 < len(self.words) else "idle"
            f.branch(f.nonzero(bits), here, other)
            f.label(here)
            members = self.blocks[64 * w : 64 * (w + 1)]
            cases = " ".join(f"i64 {b.index - 64 * w}, label %b{b.index}" for b in members)
            f.do(f"switch {f.lowest(bits)}, label %impossible [{cases}]")
            if other != "idle":
                f.label(other)
        f.label("impossible")
        f.do("unreachable")

    # masks

    def _mask(self, block: int) -> Value:
        return self.f.offset(self.k.warp, self.k.layout.masks + 4 * block)

    def _set_bit(self, block: int, on: Value) -> None:
        """Add the block to the non-empty ones if ``on`` (i1)."""
        f, word = self.f, self.words[block // 64]
        bit = f.select(on, const(I64, 1 << block % 64), const(I64, 0))
        f.store(f.or_(f.load(I64, word, 8), bit), word, 8)

    def _send(self, target: BasicBlock, lanes: Value, some: Value) -> None:
        """Lanes wait to run ``target``; ``some`` is whether there are any. A warp that sends lanes
        to the next block jumps there: it needs no bit."""
        f, place = self.f, self._mask(target.index)
        for barrier, ways in self.k.layout.skipped.items():
            if (self.k.block.index, target.index) in ways:
                counter = f.offset(self.k.warp, self.k.layout.counter(barrier))
                gone = f.resize(f.as_lanes(lanes), 32)
                f.store(f.add(f.load(V32, counter, CACHE_LINE), gone), counter, CACHE_LINE)
        f.store(f.or_(f.load(I32, place, 4), lanes), place, 4)
        if target.index != self.k.block.index + 1 or self.k.block.ending == "switch":
            self._set_bit(target.index, some)

    # blocks

    def _block(self, block: BasicBlock) -> None:
        f, k = self.f, self.k
        f.label(f"b{block.index}")
        lanes = f.load(I32, self._mask(block.index), 4)
        word = self.words[block.index // 64]
        f.store(f.and_(f.load(I64, word, 8), const(I64, ~(1 << block.index % 64))), word, 8)
        k.begin(block, lanes)
        if block.gathers:
            k.begin(block, self._gather(block, lanes))
        f.store(const(I32, 0) if not block.gathers else self.rest, self._mask(block.index), 4)
        self._bump_block(block, "executions", const(I64, 1))
        if not block.latch:
            self._bump_block(block, "lanes", f.popcount(k.lanes))
            if self.clocked:
                f.bump(f.offset(k.warp, 8 * Warp.CLOCK), const(I64, len(block.code)))
        if block.index in self.results:
            barriers.result(self.k, *self.results[block.index])
        for instruction in block.instructions:
            self._instruction(instruction)
        self._end(block)

    def _gather(self, block: BasicBlock, lanes: Value) -> Value:
        """Only lanes whose members are all here continue; the others wait for more to come."""
        f, k = self.f, self.k
        instruction = block.instructions[0]
        members = members_of(k, instruction)
        alive = f.resize(k.warp_number(Warp.ALIVE), 32)
        own = lanes_of(V32, [1 << lane for lane in range(32)])
        stranger = f.compare("eq", f.and_(members, own), const(V32, 0))
        k.fault_if(Fault.MEMBERS, f.as_bits(f.and_(stranger, k.active)), instruction)
        missing = f.and_(members, f.splat(f.and_(alive, f.not_(lanes))))
        ready = f.and_(k.active, f.compare("eq", missing, const(V32, 0)))
        bits = f.as_bits(ready)
        self.rest = f.and_(lanes, f.not_(bits))
        go = f"b{block.index}go"
        f.branch(f.nonzero(bits), go, "dispatch")
        f.label(go)
        return bits

    def _bump_block(self, block: BasicBlock, name: str, amount: Value) -> None:
        offset = BLOCK_STRIDE * block.index + 8 * BLOCK_FIELDS.index(name)
        self.f.bump(self.f.offset(self.k.pointer(Context.BLOCK_COUNTS), offset), amount)

    def _instruction(self, i: Instruction) -> None:
        k = self.k
        exact = ".".join((i.opcode, *i.modifiers[-1:]))
        handler = floats.handler(i) or HANDLERS.get(exact) or HANDLERS.get(i.opcode)
        if handler is None:
            raise k.unsupported(i)
        try:
            with k.guarded(i):
                handler(k, i)
        except (ValueError, LookupError, AttributeError) as error:
            raise k.unsupported(i, str(error)) from error
        except TypeError as error:
            raise k.unsupported(i, "number of operands") from error

    # endings

    def _end(self, block: BasicBlock) -> None:
        if block.ending == "branch":
            self._branch(block)
        elif block.ending == "switch":
            self._switch(block)
        elif block.ending == "exit":
            self.k.end()
            self._exit()
        elif block.ending == "barrier":
            site = next(b for b in self.barriers if b.block == block.index)
            barriers.wait(self.k, block, site)
        else:
            self._jump(block)

    def _jump(self, block: BasicBlock) -> None:
        f, k = self.f, self.k
        k.end()
        target = block.targets[0]
        self._send(target, k.lanes, const(I1, 1))
        if target.index > block.index:
            f.jump(f"b{target.index}" if target.index == block.index + 1 else "dispatch")
            return
        # Only here can a warp run for ever, so only here is its quantum looked at.
        left = f.sub(f.load(I64, self.left, 8), const(I64, 1))
        f.store(left, self.left, 8)
        direct = f"b{target.index}" if block.latch and not target.gathers else "dispatch"
        f.branch(f.nonzero(left), direct, "expired", likely=True)

    def _branch(self, block: BasicBlock) -> None:
        f, k = self.f, self.k
        closing = block.closing
        assert closing is not None
        assert closing.guard is not None
        holds = f.as_bits(k.predicate(closing.guard, closing.guard_negated))
        taken = f.and_(k.lanes, holds)
        others = f.and_(k.lanes, f.not_(holds))
        k.end()
        yes, no = block.targets
        some, rest = f.nonzero(taken), f.nonzero(others)
        both = f.and_(some, rest)
        self._bump_block(block, "divergent", f.cast("zext", both, I64))
        if yes is no:
            some = rest = const(I1, 1)
            self._send(yes, k.lanes, some)
        else:
            self._send(yes, taken, some)
            self._send(no, others, rest)
        following = {yes.index: some, no.index: rest}
        at = block.index + 1
        if at in following:
            f.branch(following[at], f"b{at}", "dispatch")
        else:
            f.jump("dispatch")

    def _switch(self, block: BasicBlock) -> None:
        f, k = self.f, self.k
        assert block.closing is not None
        index = k.read(block.closing.operands[0], 32)
        count = len(block.targets)
        beyond = f.and_(f.compare("uge", index, const(V32, count)), k.active)
        k.fault_if(Fault.OUT_OF_BOUNDS, f.as_bits(beyond), block.closing, index)
        k.end()
        gone = const(I32, 0)
        for target in dict.fromkeys(block.targets):
            chosen = const(MASK, 0)
            for place, candidate in enumerate(block.targets):
                if candidate is target:
                    chosen = f.or_(chosen, f.compare("eq", index, const(V32, place)))
            lanes = f.and_(f.as_bits(chosen), k.lanes)
            self._send(target, lanes, f.nonzero(lanes))
            gone = f.add(gone, f.cast("zext", f.nonzero(lanes), I32))
        several = f.compare("ugt", gone, const(I32, 1))
        self._bump_block(block, "divergent", f.cast("zext", several, I64))
        f.jump("dispatch")

    def _exit(self) -> None:
        f, k = self.f, self.k
        place = f.offset(k.warp, 8 * Warp.ALIVE)
        alive = f.load(I64, place, 8)
        alive = f.and_(alive, f.not_(f.resize(k.lanes, 64)))
        f.store(alive, place, 8)
        barriers.left(k, self.barriers, alive)
        gone = f.resize(f.popcount(k.lanes), 64)
        f.bump(f.offset(k.pointer(Warp.SLOT), 8 * BlockSlot.ALIVE), f.sub(const(I64, 0), gone))
        # Fewer lanes are alive: lanes that wait for members may have them all now.
        for block in self.blocks:
            if block.gathers:
                self._set_bit(block.index, f.nonzero(f.load(I32, self._mask(block.index), 4)))
        f.jump("dispatch")
