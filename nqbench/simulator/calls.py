"""Calls: a kernel and the functions it calls as one flat kernel.

A call is replaced by the body of its function, with registers of its own. The parameters of calls
become registers. A call through a pointer becomes a choice among the functions whose address is
taken somewhere. Recursion has no such form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from nqbench.compiler.compiled import demangled
from nqbench.simulator import ptx
from nqbench.simulator.ptx import Immediate, Instruction, Label, Name, Operand, PtxKernel, Register

BUILT_IN: Final = ("vprintf", "__assertfail")
"""Functions of CUDA's that the simulator executes itself."""
LAUNCHES: Final = ("cudaLaunchDevice", "cudaGetParameterBuffer", "cudaDeviceSynchronize")
FUNCTION_BASE: Final = 1 << 46
FUNCTION_STEP: Final = 16
"""Addresses of functions: no memory is there."""
MAX_INSTRUCTIONS: Final = 200_000
"""Of a kernel with all of its calls: more takes minutes to translate."""
Find = Callable[[str], PtxKernel | None]


def flatten(kernel: PtxKernel, find: Find) -> None:
    """Replace the calls in ``kernel``. ``find`` gives a function's body by its name, or ``None``.

    Raises ``UnsupportedPtx`` for a function without a body, or one that calls itself."""
    if any(isinstance(i, Instruction) and i.opcode == "call" for i in kernel.body):
        _Flattening(kernel, find).run()


@dataclass(slots=True)
class _Instance:
    """One copy of a function's body: how its names are told from those of other copies."""

    function: PtxKernel
    suffix: str
    parameters: dict[str, str] = field(default_factory=dict)

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
        self.active: list[str] = []
        """Functions whose calls are being replaced."""

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
        if item.opcode == "ret" and end is not None:
            self.out.append(replace(i, opcode="bra", modifiers=("uni",), operands=(Name(end),)))
        elif item.opcode in ("bra", "brx"):
            operands = tuple(
                Name(at.label(o.name)) if isinstance(o, Name) else o for o in i.operands
            )
            self.out.append(replace(i, operands=operands))
        elif item.opcode in ("ld", "st") and "param" in item.spaces:
            self.out += self._parameter_access(at, item)
        else:
            named = list(i.operands)
            for place, operand in enumerate(named):
                if not isinstance(operand, Name) or i.opcode != "mov":
                    continue
                if operand.name not in self.kernel.variables and self._function(operand.name):
                    named[place] = Immediate(self._address_of(operand.name))
            self.out.append(replace(i, operands=tuple(named)))

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
            offset, width = place.offset + number * step, max(ptx.WIDTHS[kind], 32)
            known = self.widths.setdefault((name, offset), width)
            if known != width and 64 in (known, width):
                what = "a parameter of a call in parts of several sizes"
                raise ptx.UnsupportedPtx(what, item.where)
            register = Register(f"{name}+{offset}", known)
            own = at.operand(one)
            if item.opcode == "ld":
                yield _move_from(at.instruction(item), own, register, kind)
            else:
                i = at.instruction(item)
                yield replace(i, opcode="mov", modifiers=(kind,), operands=(register, own))

    # calls

    def _call(self, at: _Instance, item: Instruction) -> None:
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
        if function is None or name in self.active:
            why = "is only declared in this file (include the one that has it)"
            if name.startswith(LAUNCHES):
                why = "launches a kernel from a kernel, which is not simulated"
            elif name in ("malloc", "free"):
                why = "asks for memory of the heap (malloc, new), which is not simulated"
            elif name in self.active:
                why = "calls itself (recursion is not simulated)"
            shown = demangled(name) or name
            raise ptx.UnsupportedPtx(f"a call of {shown}, which {why},", item.where)
        self._emit(item, "call", item.modifiers)
        names = [*zip(function.returns, call.gives, strict=False)]
        names += zip(function.parameters, call.takes, strict=False)
        end = self._fresh("return")
        parameters = {own: at.parameter(theirs) for own, theirs in names}
        self.active.append(name)
        self._body(_Instance(function, self._fresh(""), parameters), end)
        self.active.pop()
        self.out.append(Label(end))

    def _indirect(self, call: _Call, callee: Register) -> None:
        """One of the functions whose address is taken and that take and give as many values."""
        item, pointer = call.item, call.at.operand(callee)
        end = self._fresh("called")
        for name, address in list(self.kernel.functions.items()):
            function = self.find(name)
            assert function is not None
            wanted = len(call.gives), len(call.takes)
            shape = len(function.returns), len(function.parameters)
            if shape != wanted or name in self.active:
                continue
            other = self._fresh("other")
            equal = Register(self._fresh("%is"), 1)
            self._emit(item, "setp", ("ne", "u64"), equal, pointer, Immediate(address))
            self.out.append(Instruction("bra", (), (Name(other),), equal, False, item.where))
            self._direct(call, name)
            self._emit(item, "bra", ("uni",), Name(end))
            self.out.append(Label(other))
        self._emit(item, "call", ("nowhere",), Name("_"), pointer)
        self.out.append(Label(end))

    def _emit(
        self, like: Instruction, opcode: str, modifiers: tuple[str, ...], *operands: Operand
    ) -> None:
        self.out.append(Instruction(opcode, modifiers, operands, None, False, like.where))

    def _fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}#{self.count}"


def _operands(function: PtxKernel, opcode: str) -> list[Operand]:
    body = (item for item in function.body if isinstance(item, Instruction))
    return [operand for item in body if item.opcode == opcode for operand in item.operands]


def _names(operand: ptx.Vector) -> list[str]:
    return [item.name for item in operand.items if isinstance(item, Name)]


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
