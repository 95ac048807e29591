"""Addresses of a kernel's variables and offsets of its parameters."""

from __future__ import annotations

from dataclasses import dataclass

from nqbench.devices.sim.layout import GLOBAL_BASE, PAGE_BITS, align
from nqbench.devices.sim.operands import Memory, Name, Operand
from nqbench.devices.sim.ptx import Instruction, Kernel, UnsupportedPtx, Variable


@dataclass(frozen=True, slots=True)
class Symbols:
    """``addresses`` are offsets in shared and local memory, and simulated addresses of global and
    constant variables; ``module`` lists the latter in address order."""

    addresses: dict[str, int]
    parameters: dict[str, tuple[int, int]]
    static_shared_bytes: int
    local_bytes: int
    module: tuple[Variable, ...]
    shared: tuple[tuple[str, int, int], ...]
    """Static shared variables: name, offset, size."""

    def address(self, name: Name) -> int | None:
        """Address of a variable, or ``None`` if the name is not one."""
        base = self.addresses.get(name.name)
        return None if base is None else base + name.offset

    def parameter(self, source: Operand, extra: int, nbytes: int, instruction: Instruction) -> int:
        """Byte offset of a parameter access; raises ``UnsupportedPtx`` if it is not plain."""
        if isinstance(source, Memory) and isinstance(source.base, Name):
            place = self.parameters.get(source.base.name)
            if place is not None and 0 <= source.offset + extra <= place[1] - nbytes:
                return place[0] + source.offset + extra
        raise UnsupportedPtx(
            "a parameter access that is not inside one parameter", instruction.where
        )


def assign(kernel: Kernel) -> Symbols:
    """Place every variable. Dynamic shared memory (``extern``) follows the static variables."""
    addresses: dict[str, int] = {}
    ends = {"shared": 0, "local": 0}
    shared = []
    dynamic = [v for v in kernel.variables.values() if v.space == "shared" and not v.nbytes]
    for variable in kernel.variables.values():
        if variable.space in ends and variable not in dynamic:
            offset = align(ends[variable.space], variable.align)
            addresses[variable.name] = offset
            ends[variable.space] = offset + variable.nbytes
            if variable.space == "shared":
                shared.append((variable.name, offset, variable.nbytes))
    # Its alignment counts as static memory, as it does on a GPU.
    static = align(ends["shared"], max([v.align for v in dynamic], default=1))
    addresses.update((v.name, static) for v in dynamic)
    module = tuple(v for v in kernel.variables.values() if v.space in ("global", "const"))
    page = 1
    for variable in module:
        addresses[variable.name] = GLOBAL_BASE + (page << PAGE_BITS)
        page += pages(variable.nbytes)
    return Symbols(addresses, kernel.parameters, static, ends["local"], module, tuple(shared))


def pages(nbytes: int) -> int:
    """Pages that a buffer takes, the empty one behind it included."""
    return -(-max(nbytes, 1) // (1 << PAGE_BITS)) + 1
