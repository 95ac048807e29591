"""What all instruction handlers share: registers, lane masks, special registers, counting sites,
faults, and the reading of an opcode's modifiers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from nqbench.simulator import ir, ptx
from nqbench.simulator.cfg import BasicBlock
from nqbench.simulator.ir import I32, I64, LANES, V32, Function, Value, const, element, vector
from nqbench.simulator.layout import CACHE_LINE, Context, Fault, Symbols, Warp, WarpLayout
from nqbench.simulator.liveness import RegisterFile
from nqbench.simulator.ptxas import Assembled
from nqbench.simulator.rules import SectorRules

NO_LANES, NOBODY = const(I32, 0), const(ir.MASK, 0)

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
WORKSPACE = {"%envreg1": 32, "%envreg2": 0}
"""Where a driver leaves the address of the words by which the blocks of a cooperative launch wait
for one another; 0 in other launches."""
THREAD_AXES = ("%tid.x", "%tid.y", "%tid.z")
LANE_CONSTANTS = {
    "%laneid": list(range(LANES)),
    "%lanemask_eq": [1 << i for i in range(LANES)],
    "%lanemask_lt": [(1 << i) - 1 for i in range(LANES)],
    "%lanemask_le": [(2 << i) - 1 for i in range(LANES)],
    "%lanemask_ge": [(1 << LANES) - (1 << i) for i in range(LANES)],
    "%lanemask_gt": [(1 << LANES) - (2 << i) for i in range(LANES)],
}

SITE_FIELDS = ("requests", "lanes", "passes", "sectors", "lines", "from_l2", "from_memory")
"""Counters of a site, in memory order (64-bit each); ``lines`` only where times are modelled, and
with caches the requests that wait for something from L2 or beyond, and those for the memory."""

LEAST = "sectors"
"""Where sites of shared memory count the passes that accesses of their width take at least; sites
that are one pass each leave it 0."""


@dataclass(frozen=True, slots=True)
class AccessSite:
    """A place in the code with counters of its own: a memory access (one per memory space it may
    reach), or a predicated instruction (space ``""``: only ``requests`` and ``lanes``)."""

    index: int
    instruction: ptx.Instruction
    block: int
    space: str
    always: bool = False
    """Runs whenever its block does, so that requests and lanes follow from the block's counts."""


@dataclass(slots=True)
class KernelWriter:
    """Everything a handler needs to translate one instruction.

    ``lanes`` (i32) and ``active`` (<32 x i1>) are the lanes that execute it, its guard included.
    """

    f: Function
    context: Value
    warp: Value
    layout: WarpLayout
    file: RegisterFile
    symbols: Symbols
    rules: SectorRules
    exact_shadow: bool
    scatters: bool
    values: dict[ptx.Register, Value] = field(default_factory=dict)
    written: set[ptx.Register] = field(default_factory=set)
    sites: list[AccessSite] = field(default_factory=list)
    instructions: list[ptx.Instruction] = field(default_factory=list)
    block: BasicBlock = field(default_factory=BasicBlock)
    lanes: Value = NO_LANES
    active: Value = NOBODY
    pointers: dict[str, Value] = field(default_factory=dict)
    narrowed: bool = False
    watched: bool = False
    """Whether accesses and barriers call the watcher (the checked mode)."""
    retried: set[ptx.Instruction] = field(default_factory=set)
    awaited: set[ptx.Instruction] = field(default_factory=set)
    flags: set[ptx.Instruction] = field(default_factory=set)
    """In the checked mode: see ``waiting.waits``."""
    assembled: Assembled = field(default_factory=Assembled)
    """Which accesses are counted as one, and which not at all."""
    outlines: bool = False
    """Whether accesses are calls of functions: for kernels with so many that the code would take
    long to compile."""
    slots: dict[tuple[str, int], Value] = field(default_factory=dict)
    """Where such a call has its values, by their type and number."""
    caller: tuple[Value, Value] | None = None
    """In such a function, which the caller passes: the access's number and its counters."""

    # blocks

    def begin(self, block: BasicBlock, lanes: Value) -> None:
        """Start a block; registers are read from the register file again."""
        self.block = block
        self.values.clear()
        self.written.clear()
        self.lanes = lanes
        self.active = self.f.as_lanes(lanes)

    def end(self) -> None:
        """Write back what later blocks may read, in the executing lanes only."""
        for register in sorted(self.written, key=lambda r: r.name):
            if register not in self.file.live_out[self.block.index]:
                continue
            place = self._place(register)
            value = self.values[register]
            if register.width == 1:
                old = self.f.load(I32, place, 4)
                new = self.f.as_bits(value)
                kept = self.f.and_(old, self.f.not_(self.lanes))
                self.f.store(self.f.or_(kept, self.f.and_(new, self.lanes)), place, 4)
            else:
                previous = self.f.load(value.type, place, CACHE_LINE)
                self.f.store(self.f.select(self.active, value, previous), place, CACHE_LINE)

    @contextmanager
    def guarded(self, instruction: ptx.Instruction) -> Iterator[None]:
        """Narrow the lanes to those whose guard holds; counts them."""
        if instruction.guard is None:
            yield
            return
        holds = self.predicate(instruction.guard, instruction.guard_negated)
        with self.only(self.f.and_(self.active, holds)):
            self.count(self.site(instruction, ""), self.lanes)
            self.narrowed = True
            yield
            self.narrowed = False

    # registers and operands

    def _place(self, register: ptx.Register) -> Value:
        offset = self.layout.registers + self.file.slots[register]
        return self.f.offset(self.warp, offset)

    def register(self, register: ptx.Register) -> Value:
        """A register's value: <32 x iN>, or <32 x i1> for a predicate."""
        if register in self.values:
            return self.values[register]
        type_ = vector(f"i{register.width}")
        if register in self.file.remade:
            made = self.file.remade[register]
            value = (
                self.parameter(made, register.width)
                if made.opcode == "ld"
                else self.read(made.operands[1], register.width)
            )
        elif register not in self.file.slots:
            value = const(type_, 0)  # never written on any path here: any value is right
        elif register.width == 1:
            value = self.f.as_lanes(self.f.load(I32, self._place(register), 4))
        else:
            value = self.f.load(type_, self._place(register), CACHE_LINE)
        self.values[register] = value
        return value

    def parameter(self, instruction: ptx.Instruction, width: int, place: int = 0) -> Value:
        """``ld.param``, the ``place``-th element: the same scalar in every lane."""
        kind = instruction.modifiers[-1]
        if kind not in ptx.WIDTHS:
            raise self.unsupported(instruction)
        bits = ptx.WIDTHS[kind]
        source = instruction.operands[1]
        offset = self.symbols.parameter(source, place * bits // 8, bits // 8, instruction)
        base = self.pointer(Context.PARAMETERS)
        scalar = self.f.load(f"i{bits}", self.f.offset(base, offset), 1)
        return self.f.splat(self.f.resize(scalar, width, kind.startswith("s")))

    def read(self, operand: ptx.Operand, bits: int, kind: str = "") -> Value:
        """An operand as <32 x iN>; ``kind`` is the PTX type for float immediates."""
        type_ = vector(f"i{bits}")
        if isinstance(operand, ptx.Register):
            value = self.register(operand)
            if operand.width == 1:
                raise ValueError(f"predicate {operand.name} used as a number")
            return self.f.resize(value, bits)
        if isinstance(operand, ptx.Immediate):
            if operand.kind == "int" and kind in ("f32", "f64"):
                return const(type_, ptx.float_bits(float(operand.value), bits))
            if operand.kind == "f64" and bits == 32:
                import struct

                as_float = struct.unpack("<d", operand.value.to_bytes(8, "little"))[0]
                return const(type_, ptx.float_bits(as_float, 32))
            return const(type_, operand.value)
        if isinstance(operand, ptx.Name):
            address = self.symbols.address(operand)
            if address is not None:
                return const(type_, address)
            if operand.name in self.symbols.parameters:
                start = self.symbols.parameters[operand.name][0] + operand.offset
                place = self.f.add(self.number(Context.PARAMETER_COPY), const(I64, start))
                return self.f.splat(self.f.resize(place, bits))
            return self.f.resize(self.special(operand.name), bits)
        raise ValueError("operand of an unexpected form")

    def predicate(self, operand: ptx.Operand, negated: bool = False) -> Value:
        """A predicate operand as <32 x i1>."""
        if isinstance(operand, ptx.Negated):
            return self.predicate(operand.register, not negated)
        if isinstance(operand, ptx.Immediate):
            return const(ir.MASK, int(bool(operand.value)) ^ negated)
        if not isinstance(operand, ptx.Register) or operand.width != 1:
            raise ValueError("a predicate register was expected")
        value = self.register(operand)
        return self.f.not_(value) if negated else value

    def write(self, operand: ptx.Operand, value: Value, signed: bool = False) -> None:
        """Give a register its value (in the executing lanes, if guarded), fitted to its width."""
        if isinstance(operand, ptx.Name) and operand.name == "_":
            return
        if not isinstance(operand, ptx.Register):
            raise ValueError("the destination is not a register")
        if (operand.width == 1) != (element(value.type) == "i1"):
            raise ValueError(f"{operand.name} has the wrong width for this result")
        if operand in self.file.remade:
            return
        value = self.f.resize(value, operand.width, signed)
        if self.narrowed:
            value = self.f.select(self.active, value, self.register(operand))
        self.values[operand] = value
        self.written.add(operand)

    def special(self, name: str) -> Value:
        """The value of a special register in every lane; ``ValueError`` if it is not known.

        Clocks count the instructions that this warp has issued before the current basic block."""
        f = self.f
        if name in LANE_CONSTANTS:
            return ir.lanes_of(V32, LANE_CONSTANTS[name])
        if name in CONTEXT_NUMBERS:
            return f.splat(f.resize(self.number(CONTEXT_NUMBERS[name]), 32))
        if name in WARP_NUMBERS:
            return f.splat(f.resize(self.warp_number(WARP_NUMBERS[name]), 32))
        if name in ("%clock", "%clock64", "%globaltimer", "%globaltimer_lo"):
            return f.splat(self.warp_number(Warp.CLOCK))
        if name in THREAD_AXES:
            row = f.op(
                "mul", const(I64, THREAD_AXES.index(name)), self.number(Context.THREAD_STRIDE)
            )
            start = f.op("shl", self.warp_number(Warp.INDEX), const(I64, 5))
            place = f.offset(self.pointer(Context.THREAD_INDICES), f.add(row, start), I32)
            return f.load(V32, place, CACHE_LINE)
        if name in WORKSPACE:
            shift = const(I64, WORKSPACE[name])
            return f.splat(f.resize(f.op("lshr", self.number(Context.GRID_SYNC), shift), 32))
        if name == "WARP_SZ":
            return const(V32, LANES)
        if name == "%gridid":
            return const(V32, 1)
        raise ValueError(f"{name} is not a register, a variable or a known special register")

    # context

    def pointer(self, field_: Context | Warp) -> Value:
        """A pointer out of the context or the warp, loaded once at the kernel's entry."""
        if self.caller is None:
            return self.pointers[f"{type(field_).__name__}.{field_.name}"]
        number = self.number(field_) if isinstance(field_, Context) else self.warp_number(field_)
        return self.f.pointer(number)

    def number(self, field_: Context) -> Value:
        """A context field as i64."""
        return self.f.load(I64, self.f.offset(self.context, 8 * field_), 8)

    def warp_number(self, field_: int) -> Value:
        """A field of the warp (``Warp``, or behind it for those that repeat) as i64."""
        return self.f.load(I64, self.f.offset(self.warp, 8 * field_), 8)

    # counting and faults

    def site(self, instruction: ptx.Instruction, space: str, always: bool = False) -> AccessSite:
        """A new counting site."""
        site = AccessSite(len(self.sites), instruction, self.block.index, space, always)
        self.sites.append(site)
        return site

    def counter(self, site: AccessSite, name: str) -> Value:
        """Where one of the site's counters is."""
        if self.caller is not None:
            return self.f.offset(self.caller[1], 8 * SITE_FIELDS.index(name))
        offset = 8 * (len(SITE_FIELDS) * site.index + SITE_FIELDS.index(name))
        return self.f.offset(self.pointer(Context.SITE_COUNTS), offset)

    def tally(self, site: AccessSite, name: str, amount: Value) -> None:
        """Add to one of the site's counters."""
        self.f.bump(self.counter(site, name), amount)

    def count(self, site: AccessSite, lanes: Value) -> None:
        """Count one execution by these lanes (a request only if there are any)."""
        some = self.f.nonzero(lanes)
        self.tally(site, "requests", self.f.resize(some, 64))
        self.tally(site, "lanes", self.f.popcount(lanes))

    @contextmanager
    def only(self, active: Value) -> Iterator[None]:
        """Narrow the lanes for an access; results are still written as before."""
        before = self.lanes, self.active
        self.active = active
        self.lanes = self.f.as_bits(active)
        yield
        self.lanes, self.active = before

    def fault_if(
        self, fault: Fault, bad: Value, instruction: ptx.Instruction, address: Value | None = None
    ) -> None:
        """Stop the launch if any bit of ``bad`` (i32 lane mask) is set.

        ``address`` (<32 x i32> or <32 x i64>) is what each lane wanted."""
        with self.f.when(self.f.nonzero(bad), likely=False):
            where = self.place(instruction)
            arguments = (self.context, self.warp, const(I64, fault), where, bad)
            kind = "" if address is None else f"_{element(address.type)}"
            self.f.call("void", f"sim_fault{kind}", *arguments, address or const(I64, 0))
            self.f.jump("faulted")
            self.f.label(self.f.fresh("dead"))

    def place(self, instruction: ptx.Instruction) -> Value:
        """The number by which a fault names an instruction (i64)."""
        if self.caller is not None:
            return self.caller[0]
        self.instructions.append(instruction)
        return const(I64, len(self.instructions) - 1)

    def unsupported(self, instruction: ptx.Instruction, why: str = "") -> ptx.UnsupportedPtx:
        """An error that names the instruction."""
        text = instruction.full_opcode + (f" ({why})" if why else "")
        return ptx.UnsupportedPtx(f"instruction {text}", instruction.where)


Handler = Callable[[KernelWriter, ptx.Instruction], None]


@dataclass(frozen=True, slots=True)
class PtxType:
    """A PTX type such as ``s32``."""

    name: str

    @property
    def bits(self) -> int:
        return ptx.WIDTHS[self.name]

    @property
    def signed(self) -> bool:
        return self.name[0] == "s"


def kinds(
    k: KernelWriter, i: ptx.Instruction, known: Collection[str] = (), allow: str = "usb"
) -> tuple[PtxType, ...]:
    """The types among the modifiers. Any other modifier must be in ``known``, and every type must
    begin with a letter of ``allow``; otherwise the instruction is refused."""
    found = []
    for modifier in i.modifiers:
        if modifier in ptx.WIDTHS:
            if modifier[0] not in allow or "f16" in modifier:
                raise k.unsupported(i, f"type .{modifier}")
            found.append(PtxType(modifier))
        elif modifier not in known:
            raise k.unsupported(i, f"modifier .{modifier}")
    return tuple(found)
