"""The checked mode: the state behind ``watcher.py`` for one kernel, and what was found in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import DeviceError
from nqbench.simulator.codegen import watch
from nqbench.simulator.codegen.watch import Field
from nqbench.simulator.findings import Finding, Spaces
from nqbench.simulator.global_memory import GlobalMemory
from nqbench.simulator.ir import LANES
from nqbench.simulator.layout import BARRIERS, LaunchShape, place_in
from nqbench.simulator.liveness import by_register, readable, smallest_access, targets
from nqbench.simulator.ptx import ATOMICS, RESERVED, WIDTHS, Immediate, Instruction, Name, Register
from nqbench.simulator.translation import Translation

MAX_CELLS: Final = 1 << 26
"""Of global memory: 7 GB of shadow, if a kernel touches them all."""
_FENCES_MISSING: Final = (
    "the atomic that hands it over comes without a {} before",
    "it saw the atomic that hands it over, but a {} is missing between that and this",
)
CHECKED_BYTES: Final = 4 * MAX_CELLS
"""Of global memory at most, where no access is smaller than a word."""


class LaunchWatch:
    """The watcher's state for the launches of one kernel with one geometry."""

    def __init__(self, code: Translation, memory: GlobalMemory, shape: LaunchShape) -> None:
        assert memory.known is not None
        if RESERVED in code.symbols.addresses:
            said = "cooperative groups' tiles of over 32 threads run, but are not checked"
            raise DeviceError(said)
        self.code, self.memory, self.shape = code, memory, shape
        shared_bytes, slots = shape.shared_bytes, shape.resident_blocks
        self.spaces = Spaces(code, memory, shared_bytes)
        warps, blocks = shape.warps, prod(shape.grid)
        self.total = blocks * shape.threads
        cell_bytes = (smallest_access(code.blocks, space) for space in ("shared", "global"))
        shared_shift, self.global_shift = (nbytes.bit_length() - 1 for nbytes in cell_bytes)
        local = code.layout.local_bytes
        self.header = np.zeros(Field.END, np.int64)
        self.found = np.zeros((watch.MAX_FOUND, watch.Found.END), np.int64)
        self.extents = _extents(code, max(shared_bytes, code.layout.local_bytes))
        copy, copied = _copies(code)
        copies = int(copy.max(initial=-1)) + 1
        cells = (max(shared_bytes, 1) >> shared_shift) + 1
        self._arrays: dict[Field, NDArray[Any]] = {
            Field.CELLS: np.zeros(slots * cells * watch.CELL, np.int32),
            Field.GLOBAL_CELLS: self._global_cells(watch.CELL),
            Field.KNOWN: np.zeros(slots * max(shared_bytes, 1), np.uint8),
            Field.GLOBAL_KNOWN: memory.known,
            Field.LOCAL_KNOWN: np.zeros(slots * warps * LANES * max(local, 1), np.uint8),
            Field.OWNERS: np.full(slots, -1, np.int64),
            Field.EPOCHS: np.zeros(slots * warps**2, np.int32),
            Field.JOINS: np.zeros(slots * BARRIERS * warps, np.int32),
            Field.LANES: np.zeros(slots * warps * 2 * LANES**2, np.int32),
            Field.MEETINGS: np.zeros(slots * BARRIERS * 3, np.int64),
            Field.RINGS: np.zeros(self.total * watch.RING * watch.ENTRY, np.int64),
            Field.BLOCK_RINGS: np.zeros(blocks * watch.BLOCK_RING * watch.ENTRY, np.int64),
            Field.EXTENTS: self.extents,
            Field.FENCES: np.zeros(2 * self.total, np.int64),
            Field.COPY: copy,
            Field.COPIED: copied,
            Field.COPY_KNOWN: np.zeros(slots * warps * LANES * copies, np.int32),
            Field.FOUND: self.found,
        }
        numbers = {
            Field.THREADS: shape.threads,
            Field.WARPS: warps,
            Field.BLOCKS: blocks,
            Field.CELLS_PER_SLOT: cells,
            Field.LOCAL_BYTES: local,
            Field.SHARED_SHIFT: shared_shift,
            Field.GLOBAL_SHIFT: self.global_shift,
            Field.COPIES: copies,
        }
        if any(i.opcode == "cp" for i in code.instructions):
            threads = slots * warps * LANES
            self._arrays[Field.PENDING] = np.zeros(threads * watch.PENDING, np.int64)
        numbers |= {field: array.ctypes.data for field, array in self._arrays.items()}
        for field, number in numbers.items():
            self.header[field] = number

    def _global_cells(self, per_cell: int) -> NDArray[np.int32]:
        """Kernels of a program may differ in the size of a cell: each has its own."""
        count = len(self.memory.data) >> self.global_shift
        with suppress(MemoryError):
            if count <= MAX_CELLS:
                return np.zeros(count * per_cell, np.int32)
        raise DeviceError(
            f"the plan's buffers take {len(self.memory.data):,} bytes: too many for the checked"
            " mode and this computer's memory; check a smaller problem"
        )

    def begin(self) -> None:
        """A launch starts: what other launches did is ordered before it."""
        self.header[Field.FIRST] = self.memory.first_thread
        self.memory.first_thread += self.total

    def findings(self) -> Iterator[Finding]:
        """Everything found so far, one for each kind and place."""
        for row in self.found[: int(self.header[Field.FOUND_COUNT])]:
            yield self._finding(*map(int, row))

    def _finding(
        self, kind: int, where: int, other_where: int, count: int, address: int, thread: int,
        other: int, old: int, new: int, size: int, space: int,
    ) -> Finding:  # fmt: skip
        i, (name, *does) = self.code.instructions[where], watch.KINDS[kind - 1]
        more: dict[str, Any] = {
            "other": None if other_where < 0 else self.code.instructions[other_where].where,
            "threads": tuple(
                (place_in(self.shape.grid, block), place_in(self.shape.block, lane))
                for block, lane in (
                    divmod(n, self.shape.threads) for n in (thread, other) if n >= 0
                )
            ),
            "count": count,
        }
        if kind == 8:
            return Finding(name, i.where, opcode=i.full_opcode, **more)
        more["does"] = tuple(does)
        unfenced, space = divmod(space, watch.UNFENCED)
        found = self.spaces.finding(name, i, watch.SPACES[space], address, size, **more)
        if kind == 3 and old:
            return replace(found, message=f"{old} threads of the block have left before")
        low, high = map(int, self.extents[where])
        nbytes = (self.shape.shared_bytes, self.code.layout.local_bytes)
        if kind == 1 and space < 2 and 0 <= address <= nbytes[space] - size:
            shared = self.code.symbols.shared if space == 0 else ()
            names = [repr(readable(n)) for n, start, _ in shared if start == low]
            near = f"outside of {(*names, 'its array')[0]}, which has {high - low} bytes"
            inside = repr(found.buffer) if names else "another one"
            return replace(found, message=f"{near}, and inside {inside}")
        if why := unfenced % 4:
            fence = "__threadfence()" if unfenced > why else "__threadfence_block()"
            found = replace(found, message=_FENCES_MISSING[why - 1].format(fence))
        known = [] if kind < 4 or kind > 7 or i.opcode in ATOMICS else [old, new][kind == 5 :]
        return replace(found, values=tuple(_value(one, found.dtype, size) for one in known))


def _value(number: int, dtype: str, size: int) -> int | float:
    if size not in (1, 2, 4, 8):
        return number
    raw = (number & (1 << 8 * size) - 1).to_bytes(size, "little")
    value: int | float = np.frombuffer(raw, dtype)[0].item()
    return value


def _copies(code: Translation) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """``watch.Field``'s ``COPY`` and ``COPIED``: loads from local memory whose values only stores
    to local memory take, element by element, as in the copy of a struct."""
    made, taken = by_register(code.blocks)

    def values(i: Instruction, place: int) -> list[Any]:
        return list(getattr(i.operands[place], "items", (i.operands[place],)))

    def stores(i: Instruction) -> bool:
        """Whether all that it stores was loaded from local memory, as elements of one size."""
        if i.opcode != "st" or i.spaces != {"local"} or i.guard is not None:
            return False
        origins = [made.get(v, []) if isinstance(v, Register) else [] for v in values(i, 1)]
        return all(
            len(o) == 1 and o[0].opcode == "ld" and o[0].spaces == {"local"}
            and WIDTHS[o[0].modifiers[-1]] == WIDTHS[i.modifiers[-1]]
            for o in origins
        )  # fmt: skip

    loads, elements = dict[Instruction, int](), dict[Register, int]()
    for i in dict.fromkeys(code.instructions):
        if i.opcode != "ld" or i.spaces != {"local"} or i.guard is not None:
            continue
        registers = values(i, 0)
        if all(made.get(r) == [i] and all(map(stores, taken.get(r, ()))) for r in registers):
            elements |= {r: 4 * len(loads) + e for e, r in enumerate(registers)}
            loads[i] = len(loads)
    copied = np.full((len(code.instructions), 4), -1, np.int32)
    for number, i in enumerate(code.instructions):  # which has some more than once
        found = [elements.get(value, -1) for value in values(i, 1)] if stores(i) else []
        if found and -1 not in found:
            copied[number, : len(found)] = found
    copy = np.array([loads.get(i, -1) for i in code.instructions], np.int32)
    return copy, copied.reshape(-1)


def _extents(code: Translation, nbytes: int) -> NDArray[np.int64]:
    """``[instruction]``: first byte and end of the array in shared or local memory from which the
    address comes; 0 and ``nbytes`` where it may come from elsewhere, too."""
    starts, places = _local_arrays(code)
    names = {*code.kernel.variables}
    reached = targets(code.blocks, names, starts)
    places |= {name: (start, start + size) for name, start, size in code.symbols.shared}
    found = [places.get(reached.get(i, ""), (0, nbytes)) for i in code.instructions]
    return np.array(found, np.int64).reshape(-1, 2)


def _local_arrays(code: Translation) -> tuple[dict[int, str], dict[str, tuple[int, int]]]:
    """The instructions (by identity) that begin the addresses of local arrays, each with a name for
    the array, and the first byte and end of each: the compiler puts all arrays of a function into
    one variable, and adds the place of each to the variable's address once."""
    whole = {name: v for name, v in code.kernel.variables.items() if v.space == "local"}
    bases: dict[Any, str] = {}
    found: dict[int, tuple[str, int]] = {}
    for i in (i for block in code.blocks for i in block.instructions):
        source, *more = i.operands[1:] or (None,)
        if i.opcode in ("mov", "cvta"):
            name = source.name if isinstance(source, Name) else bases.get(source, "")
            if name in whole:
                bases[i.operands[0]] = name
        elif i.opcode == "add" and source in bases and isinstance(more[0], Immediate):
            found[id(i)] = bases[source], more[0].value
    places = {}
    for name, offset in found.values():
        after = [o for n, o in found.values() if n == name and o > offset]
        start = code.symbols.addresses[name]
        places[f"{name}+{offset}"] = start + offset, start + min([*after, whole[name].nbytes])
    return {one: f"{name}+{offset}" for one, (name, offset) in found.items()}, places
