"""Calls: a kernel and the functions it calls as one flat kernel.

A call is replaced by the body of its function, with registers of its own. The parameters of calls
become registers. A call through a pointer becomes a choice among the functions whose address is
taken somewhere. Functions that call themselves, directly or not, stay one body: their calls jump,
and each lane keeps the registers that it still needs, and where to return, on a stack in its local
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Final

from nqbench.compiler.signature import demangled
from nqbench.simulator import cfg, liveness, ptx
from nqbench.simulator.layout import align
from nqbench.simulator.liveness import results, sources
from nqbench.simulator.ptx import Immediate, Instruction, Label, Name, Operand, PtxKernel, Register

BUILT_IN: Final = ("vprintf", "__assertfail")
"""Functions of CUDA's that the simulator executes itself."""
LAUNCHES: Final = ("cudaLaunchDevice", "cudaGetParameterBuffer", "cudaDeviceSynchronize")
FUNCTION_BASE: Final = 1 << 46
FUNCTION_STEP: Final = 16
"""Addresses of functions: no memory is there."""
MAX_INSTRUCTIONS: Final = 200_000
"""Of a kernel with all of its calls: more takes minutes to translate."""
STACK_BYTES: Final = 16384
"""Of each lane, for functions that call themselves."""
STACK: Final = "__call_stack"
MARGIN: Final = 2048
"""Bytes of the stack that the deepest frame may need."""
MAX_KEPT: Final = 64
"""Registers that a frame has room for."""

Find = Callable[[str], PtxKernel | None]


def flatten(kernel: PtxKernel, find: Find) -> None:
    """Replace the calls in ``kernel``. ``find`` gives a function's body by its name, or ``None``.

    Raises ``UnsupportedPtx`` for a function without a body."""
    if any(isinstance(i, Instruction) and i.opcode == "call" for i in kernel.body):
        _Flattening(kernel, find).run()


@dataclass(slots=True)
class _Instance:
    """One copy of a function's body: how its names are told from those of other copies."""

    function: PtxKernel
    suffix: str
    parameters: dict[str, str] = field(default_factory=dict)
    machine: _Machine | None = None

    def label(self, name: str) -> str:
        return name + self.suffix

    def register(self, register: Register) -> Register:
        return Register(register.name + self.suffix, register.width)

    def operand(self, operand: Operand) -> Operand:
        """An operand as this copy's own."""
        if isinstance(operand, Register):
            return self.register(operand)
        if isinstance(operand, ptx.Memory):
            return ptx.Memory(self.operand(operand.base), operand.offset)
        if isinstance(operand, ptx.Vector):
            return ptx.Vector(tuple(map(self.operand, operand.items)))
        if isinstance(operand, ptx.Negated):
            return ptx.Negated(self.register(operand.register))
        return operand

    def instruction(self, i: Instruction) -> Instruction:
        guard = i.guard and self.register(i.guard)
        return replace(i, operands=tuple(map(self.operand, i.operands)), guard=guard)

    def parameter(self, name: str) -> str:
        """The register that stands for a parameter of this copy, without its offset."""
        return self.parameters.get(name, name + self.suffix)


@dataclass(slots=True)
class _Machine:
    """Functions that call one another, as one piece of code with a stack."""

    suffix: str
    members: dict[str, PtxKernel]
    returns: list[str] = field(default_factory=list)

    @property
    def pointer(self) -> Register:
        return Register(f"%stack{self.suffix}", 32)

    @property
    def table(self) -> str:
        return f"returns{self.suffix}"


@dataclass(frozen=True, slots=True)
class _Call:
    """A call in a body, and the caller's names of the results and of what is passed."""

    at: _Instance
    item: Instruction
    gives: list[str]
    takes: list[str]


class _Flattening:
    def __init__(self, kernel: PtxKernel, find: Find) -> None:
        self.kernel = kernel
        self.find = find
        self.count = 0
        self.out: list[Instruction | Label] = []
        self.widths: dict[tuple[str, int], int] = {}
        self.circles: dict[str, dict[str, PtxKernel]] = {}

    def run(self) -> None:
        self.targets: dict[str, tuple[str, ...]] = {}
        self._take_addresses()
        self._body(_Instance(self.kernel, ""), end=None)
        self.kernel.body, self.kernel.targets = self.out, self.targets

    def _take_addresses(self) -> None:
        """Give an address to every function that something refers to without calling it."""
        seen: set[str] = set()
        pending = [self.kernel]
        while pending:
            body = pending.pop()
            names = [r.name for v in body.variables.values() for _, r in v.references]
            names += [o.name for o in _operands(body, "mov") if isinstance(o, Name)]
            calls = [o.name for o in _operands(body, "call") if isinstance(o, Name)]
            for name in (*names, *calls):
                function = self._function(name)
                if function is not None:
                    if name in names:
                        self._address_of(name)
                    if name not in seen:
                        seen.add(name)
                        pending.append(function)

    # bodies

    def _body(self, at: _Instance, end: str | None) -> None:
        """Write a body; returns go to ``end`` (``None``: they leave the kernel)."""
        for name, table in at.function.targets.items():
            self.targets[at.label(name)] = tuple(map(at.label, table))
        for variable in at.function.variables.values():
            if at.machine is None or variable.space != "local":
                self.kernel.variables.setdefault(variable.name, variable)
        for item in at.function.body:
            if len(self.out) > MAX_INSTRUCTIONS:
                raise ptx.UnsupportedPtx(
                    f"more than {MAX_INSTRUCTIONS} instructions in calls", ptx.Where(1)
                )
            if isinstance(item, Label):
                self.out.append(Label(at.label(item.name)))
            elif item.opcode == "call":
                self._call(at, item)
            else:
                self._plain(at, item, end)

    def _plain(self, at: _Instance, item: Instruction, end: str | None) -> None:
        i = at.instruction(item)
        if item.opcode == "ret" and at.machine is not None:
            self._return(at.machine, i)
        elif item.opcode == "ret" and end is not None:
            self.out.append(replace(i, opcode="bra", modifiers=("uni",), operands=(Name(end),)))
        elif item.opcode in ("bra", "brx"):
            operands = tuple(
                Name(at.label(o.name)) if isinstance(o, Name) else o for o in i.operands
            )
            self.out.append(replace(i, operands=operands))
        elif item.opcode in ("ld", "st") and "param" in item.spaces:
            self.out += self._parameter_access(at, item)
        else:
            self.out.append(self._named(at, i))

    def _named(self, at: _Instance, i: Instruction) -> Instruction:
        """Addresses of functions as numbers, and local memory of an activation on the stack."""
        operands = list(i.operands)
        for place, operand in enumerate(operands):
            if not isinstance(operand, Name) or i.opcode != "mov":
                continue
            variable = at.function.variables.get(operand.name)
            if at.machine is not None and variable is not None and variable.space == "local":
                return self._own_memory(at.machine, at.function, i, operand)
            if operand.name not in self.kernel.variables and self._function(operand.name):
                operands[place] = Immediate(self._address_of(operand.name))
        return replace(i, operands=tuple(operands))

    def _function(self, name: str) -> PtxKernel | None:
        return None if name.startswith("%") else self.find(name)

    def _address_of(self, name: str) -> int:
        return self.kernel.functions.setdefault(
            name, FUNCTION_BASE + FUNCTION_STEP * len(self.kernel.functions)
        )

    # parameters of calls, as registers

    def _parameter_access(self, at: _Instance, item: Instruction) -> Iterator[Instruction]:
        place = item.operands[1 if item.opcode == "ld" else 0]
        assert isinstance(place, ptx.Memory)
        if not isinstance(place.base, Name) or (
            place.base.name in self.kernel.parameters and not at.suffix
        ):
            yield at.instruction(item)
            return
        kind = item.modifiers[-1]
        value = item.operands[0 if item.opcode == "ld" else 1]
        values = value.items if isinstance(value, ptx.Vector) else (value,)
        name, step = at.parameter(place.base.name), ptx.WIDTHS[kind] // 8
        for number, one in enumerate(values):
            register = self._register(name, place.offset + number * step, kind, item)
            own = at.operand(one)
            if item.opcode == "ld":
                yield _move_from(at.instruction(item), own, register, kind)
            else:
                i = at.instruction(item)
                yield replace(i, opcode="mov", modifiers=(kind,), operands=(register, own))

    def _register(self, name: str, offset: int, kind: str, item: Instruction) -> Register:
        """The register of a parameter's part; all accesses to it must agree on its place."""
        width = max(ptx.WIDTHS[kind], 32)
        known = self.widths.setdefault((name, offset), width)
        if known != width and 64 in (known, width):
            raise ptx.UnsupportedPtx("a parameter of a call in parts of several sizes", item.where)
        return Register(f"{name}+{offset}", known)

    def _copies(self, source: str, target: str, like: Instruction) -> None:
        """Move a parameter into another, in all parts that are known by now."""
        parts = {key: width for key, width in self.widths.items() if key[0] == source}
        for (_, offset), width in parts.items():
            self.widths.setdefault((target, offset), width)
            pair = (Register(f"{target}+{offset}", width), Register(f"{source}+{offset}", width))
            self._emit(like, "mov", (f"b{width}",), *pair)

    # calls

    def _call(self, at: _Instance, item: Instruction) -> None:
        """A call under a predicate is a branch around it."""
        if item.guard is not None:
            after = self._fresh("skip")
            self._skip(at.instruction(item), after)
            self._call(at, replace(item, guard=None))
            self.out.append(Label(after))
            return
        given = [o for o in item.operands if isinstance(o, ptx.Vector)]
        callee = next(o for o in item.operands if isinstance(o, Name | Register))
        before = item.operands.index(callee)
        gives = _names(given[0]) if before else []
        call = _Call(at, item, gives, _names(given[before]) if len(given) > before else [])
        if isinstance(callee, Register):
            self._indirect(call, callee)
        elif callee.name in BUILT_IN:
            self._built_in(call, callee.name)
        else:
            self._direct(call, callee.name)

    def _built_in(self, call: _Call, name: str) -> None:
        takes, gives = (map(call.at.parameter, names) for names in (call.takes, call.gives))
        arguments = [Register(f"{take}+0", self.widths[take, 0]) for take in takes]
        result: list[Operand] = []
        for give in gives:
            self.widths.setdefault((give, 0), 32)
            result.append(Register(f"{give}+0", 32))
        operands = (*(result or [Name("_")]), Name(name), *arguments)
        self.out.append(replace(call.item, operands=operands))

    def _direct(self, call: _Call, name: str) -> None:
        at, item = call.at, call.item
        function = self.find(name)
        if function is None:
            why = "is only declared in this file (name the one that has it under `sources:`)"
            if name.startswith(LAUNCHES):
                why = "launches a kernel from a kernel, which is not simulated"
            shown = demangled(name) or name
            raise ptx.UnsupportedPtx(f"a call of {shown}, which {why},", item.where)
        self._emit(item, "call", item.modifiers)
        if at.machine is not None and name in at.machine.members:
            self._jump(call, at.machine, name)
            return
        circle = self._circle(name)
        self.count += 1
        suffix = f"#{self.count}"
        if circle:
            self._enter(call, _Machine(suffix, circle), name)
            return
        names = [*zip(function.returns, call.gives, strict=False)]
        names += zip(function.parameters, call.takes, strict=False)
        end = self._fresh("return")
        parameters = {own: at.parameter(theirs) for own, theirs in names}
        self._body(_Instance(function, suffix, parameters), end)
        self.out.append(Label(end))

    def _indirect(self, call: _Call, callee: Register) -> None:
        """One of the functions whose address is taken and that take and give as many values."""
        item, pointer = call.item, call.at.operand(callee)
        end = self._fresh("called")
        for name, address in list(self.kernel.functions.items()):
            function = self.find(name)
            assert function is not None
            wanted = len(call.gives), len(call.takes)
            if (len(function.returns), len(function.parameters)) != wanted:
                continue
            other = self._fresh("other")
            equal = Register(self._fresh("%is"), 1)
            self._emit(item, "setp", ("ne", "u64"), equal, pointer, Immediate(address))
            self.out.append(Instruction("bra", (), (Name(other),), equal, False, item.where))
            self._direct(call, name)
            self.out += [_made(item, "bra", ("uni",), Name(end)), Label(other)]
        self.out += [_made(item, "call", ("nowhere",), Name("_"), pointer), Label(end)]

    # functions that call themselves

    def _circle(self, name: str) -> dict[str, PtxKernel]:
        """The functions that call ``name`` and are called by it; empty if there are none."""
        if name not in self.circles:
            below = self._reached(name)
            self.circles[name] = {n: f for n, f in below.items() if name in self._reached(n)}
        return self.circles[name]

    def _reached(self, name: str) -> dict[str, PtxKernel]:
        """What a function calls, directly or not."""
        found: dict[str, PtxKernel] = {}
        pending = [name]
        while pending:
            function = self.find(pending.pop())
            called = _operands(function, "call") if function else []
            names = [o.name for o in called if isinstance(o, Name)]
            if any(isinstance(o, Register) for o in called):
                names += self.kernel.functions  # through a pointer: any of them
            for other in names:
                inner = self._function(other)
                if inner is not None and other not in found:
                    found[other] = inner
                    pending.append(other)
        return found

    def _enter(self, call: _Call, machine: _Machine, name: str) -> None:
        """The first call of such a function: its stack is empty."""
        item = call.item
        self.kernel.variables.setdefault(STACK, ptx.PtxVariable(STACK, "local", 16, STACK_BYTES))
        end = self._fresh("return")
        machine.returns.append(end)
        self._emit(item, "mov", ("u32",), machine.pointer, Name(STACK))
        self.out.append(_stored(item, machine.pointer, 0, Immediate(0), 32))
        self._pass(call, machine, name)
        for member, body in machine.members.items():
            self.out.append(Label(member + machine.suffix))
            # All callers share the parameters and results.
            own = {part: part + machine.suffix for part in (*body.parameters, *body.returns)}
            self._body(_Instance(body, machine.suffix + member, own, machine), None)
        self.out.append(Label(end))
        for own_name, theirs in zip(machine.members[name].returns, call.gives, strict=False):
            self._copies(own_name + machine.suffix, call.at.parameter(theirs), item)
        self.targets[machine.table] = tuple(machine.returns)

    def _pass(self, call: _Call, machine: _Machine, name: str) -> None:
        """Hand the parameters over, and jump to the function."""
        for own, theirs in zip(machine.members[name].parameters, call.takes, strict=False):
            self._copies(call.at.parameter(theirs), own + machine.suffix, call.item)
        self._emit(call.item, "bra", ("uni",), Name(name + machine.suffix))

    def _jump(self, call: _Call, machine: _Machine, name: str) -> None:
        """A further call: keep what is still needed, then jump."""
        at, item, sp = call.at, call.item, machine.pointer
        back, number = self._fresh("return"), len(machine.returns)
        machine.returns.append(back)
        kept = [at.register(r) for r in _needed(at.function, item)]
        variables = sum(align(v.nbytes, 16) for v in _local(at.function))
        size = 16 + (8 * MAX_KEPT + variables if variables else align(8 * len(kept), 16))
        for place, register in enumerate(kept):
            self._keep(item, sp, 16 + 8 * place, register)
        self._emit(item, "add", ("u32",), sp, sp, Immediate(size))
        self._emit(item, "call", ("depth",), Name("_"), sp, Name(STACK, STACK_BYTES - MARGIN))
        self.out.append(_stored(item, sp, 0, Immediate(number), 32))
        self._pass(call, machine, name)
        self.out.append(Label(back))
        self._emit(item, "sub", ("u32",), sp, sp, Immediate(size))
        for place, register in enumerate(kept):
            self._restore(item, sp, 16 + 8 * place, register)
        for own, theirs in zip(machine.members[name].returns, call.gives, strict=False):
            self._results(own + machine.suffix, at.parameter(theirs), at.function, theirs, item)

    def _results(
        self, own: str, target: str, function: PtxKernel, name: str, item: Instruction
    ) -> None:
        """A result in the parts that the caller reads: the callee may not be written yet."""
        for other in function.body:
            if isinstance(other, Instruction) and other.opcode == "ld" and "param" in other.spaces:
                place = other.operands[1]
                assert isinstance(place, ptx.Memory)
                if isinstance(place.base, Name) and place.base.name == name:
                    kind = other.modifiers[-1]
                    a = self._register(target, place.offset, kind, other)
                    b = self._register(own, place.offset, kind, other)
                    self._emit(item, "mov", (f"b{a.width}",), a, b)

    def _return(self, machine: _Machine, i: Instruction) -> None:
        after = self._fresh("stay")
        if i.guard is not None:
            self._skip(i, after)
        number = Register(self._fresh("%back"), 32)
        self.out.append(_loaded(i, number, machine.pointer, 0))
        self._emit(i, "brx", ("idx",), number, Name(machine.table))
        self.out.append(Label(after))

    def _keep(self, item: Instruction, sp: Register, offset: int, register: Register) -> None:
        if register.width == 1:
            number = Register(self._fresh("%kept"), 32)
            self._emit(item, "selp", ("u32",), number, Immediate(1), Immediate(0), register)
            register = number
        self.out.append(_stored(item, sp, offset, register, register.width))

    def _restore(self, item: Instruction, sp: Register, offset: int, register: Register) -> None:
        if register.width > 1:
            self.out.append(_loaded(item, register, sp, offset))
            return
        number = Register(self._fresh("%kept"), 32)
        self.out.append(_loaded(item, number, sp, offset))
        self._emit(item, "setp", ("ne", "u32"), register, number, Immediate(0))

    def _own_memory(
        self, machine: _Machine, function: PtxKernel, i: Instruction, name: Name
    ) -> Instruction:
        """The address of a variable of this activation: it lies at the end of its frame."""
        before = takewhile(lambda variable: variable.name != name.name, _local(function))
        start = 16 + 8 * MAX_KEPT + sum(align(v.nbytes, 16) for v in before) + name.offset
        target = i.operands[0]
        assert isinstance(target, Register)
        number = Register(self._fresh("%own"), 32)
        self._emit(i, "add", ("u32",), number, machine.pointer, Immediate(start))
        return _made(i, "cvt", (f"u{target.width}", "u32"), target, number)

    def _emit(
        self, like: Instruction, opcode: str, modifiers: tuple[str, ...], *operands: Operand
    ) -> None:
        self.out.append(_made(like, opcode, modifiers, *operands))

    def _skip(self, i: Instruction, label: str) -> None:
        """Branch to a label where the guard of an instruction does not hold."""
        self.out.append(
            Instruction("bra", (), (Name(label),), i.guard, not i.guard_negated, i.where)
        )

    def _fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}#{self.count}"


def _operands(function: PtxKernel, opcode: str) -> list[Operand]:
    """Of all instructions of one opcode."""
    body = (item for item in function.body if isinstance(item, Instruction))
    return [operand for item in body if item.opcode == opcode for operand in item.operands]


def _local(function: PtxKernel) -> list[ptx.PtxVariable]:
    return [v for v in function.variables.values() if v.space == "local"]


def _needed(function: PtxKernel, call: Instruction) -> list[Register]:
    """Registers that are read after a call and were written before."""

    def plain(i: Instruction | Label) -> Instruction | Label:
        """A call's first operand is a vector of names or the function's address, and no result."""
        if isinstance(i, Label) or i.opcode != "call":
            return i
        return replace(i, operands=(Name("_"), *i.operands))

    here = plain(call)
    blocks = cfg.build(replace(function, body=list(map(plain, function.body))))
    _, ends = liveness.live(blocks)
    needed: set[Register] = set()
    for block in blocks:
        if here in block.instructions:
            needed = ends[block.index]
            for i in reversed(block.code[block.instructions.index(here) + 1 :]):
                needed = needed - set(results(i)) | set(sources(i))
    if len(needed) > MAX_KEPT:
        raise ptx.UnsupportedPtx(
            f"a recursive call across which {len(needed)} registers live", call.where
        )
    return sorted(needed, key=lambda r: r.name)


def _names(operand: ptx.Vector) -> list[str]:
    return [item.name for item in operand.items if isinstance(item, Name)]


def _made(
    like: Instruction, opcode: str, modifiers: tuple[str, ...], *operands: Operand
) -> Instruction:
    return Instruction(opcode, modifiers, operands, None, False, like.where)


def _stored(
    like: Instruction, base: Register, offset: int, value: Operand, width: int
) -> Instruction:
    return _made(like, "st", ("local", f"u{max(width, 16)}"), ptx.Memory(base, offset), value)


def _loaded(like: Instruction, target: Register, base: Register, offset: int) -> Instruction:
    return _made(
        like, "ld", ("local", f"u{max(target.width, 16)}"), target, ptx.Memory(base, offset)
    )


def _move_from(i: Instruction, target: Operand, register: Register, kind: str) -> Instruction:
    """``ld.param`` of a register: narrow kinds take the low bits, extended as a load would."""
    narrow = ptx.WIDTHS[kind] < register.width
    if not isinstance(target, Register) or not narrow or target.width == ptx.WIDTHS[kind]:
        return replace(
            i, opcode="mov", modifiers=(f"b{ptx.WIDTHS[kind]}",), operands=(target, register)
        )
    sign = "s" if kind[0] == "s" else "u"
    to, source = f"{sign}{target.width}", f"{sign}{ptx.WIDTHS[kind]}"
    return replace(i, opcode="cvt", modifiers=(to, source), operands=(target, register))
