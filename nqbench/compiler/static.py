"""A table of what kernels use on several chips, from the compiler alone, without a GPU."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Protocol

from nqbench.compiler.compile import compile_many, cubin_request
from nqbench.compiler.compiled import Compiled, occupancy, resources_of
from nqbench.errors import CompileError
from nqbench.facts import DeviceFacts
from nqbench.plan import Kernel


class Progress(Protocol):
    """Follows a long job."""

    def stage(self, name: str, total: int) -> None:
        """A stage of ``total`` steps begins."""

    def advanced(self) -> None:
        """One step is done."""


@dataclass(frozen=True, slots=True)
class StaticRow:
    """One kernel on one chip. ``arch`` is what it was compiled for; ``note`` says why the numbers
    are missing, or that the chip's own architecture no longer compiles."""

    label: str
    arch: str
    chip: str
    block_size: int
    registers: int | None = None
    stack_bytes: int | None = None
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    static_shared_bytes: int | None = None
    dynamic_shared_bytes: int = 0
    blocks_per_multiprocessor: int | None = None
    occupancy: float | None = None
    limiter: str = ""
    note: str = ""


def static_report(
    plans: Sequence[tuple[str, Kernel]],
    chips: Sequence[DeviceFacts],
    listener: Progress | None = None,
) -> list[StaticRow]:
    """Compile ``(label, kernel)`` pairs for the architecture of each chip; one row each, by chip.

    A kernel shared by several plans is compiled once. Raises ``DeviceUnavailable`` without a
    compiler.
    """
    requests = (cubin_request(plan, chip.arch) for chip in chips for _, plan in plans)
    wanted = list(dict.fromkeys(requests))
    if listener is not None:
        listener.stage("compiling kernels", len(wanted))
    results = compile_many(wanted, done=listener.advanced if listener else None)
    compiled = dict(zip(wanted, results, strict=True))
    return [
        _row(label, plan, chip, compiled[cubin_request(plan, chip.arch)])
        for chip in chips
        for label, plan in plans
    ]


def _row(
    label: str, plan: Kernel, facts: DeviceFacts, result: Compiled | CompileError
) -> StaticRow:
    chip, size = facts.name.removeprefix("model of "), math.prod(plan.block)
    row = StaticRow(label, facts.arch, chip, size, dynamic_shared_bytes=plan.shared_bytes)
    if isinstance(result, CompileError):
        return replace(row, note=str(result))
    taken = resources_of(result)
    # A compiler of the chip's time would have kept to its limit, with spills.
    most = facts.max_registers_per_thread if facts.compiled_for else taken.registers
    shared = taken.static_shared_bytes + plan.shared_bytes
    fits = occupancy(facts, min(taken.registers, most), shared, size, plan.cache)
    note = f"registers of {facts.arch} code" if facts.compiled_for else ""
    if taken.registers > most:
        note += f"; {most} per thread at most"
    return replace(
        row,
        **asdict(taken),
        blocks_per_multiprocessor=fits.blocks_per_multiprocessor,
        occupancy=fits.fraction,
        limiter=fits.limiter,
        note=note,
    )


def shortened(rows: Sequence[StaticRow]) -> list[StaticRow]:
    """Rows for a terminal: without the size in their labels, each once, if kernels are the same at
    every size; without the chip if there is one for each architecture."""
    one_each = len({r.arch for r in rows}) == len({r.chip for r in rows})
    rows = [replace(r, chip="") if one_each else r for r in rows]
    short = dict.fromkeys(replace(r, label=re.sub(r" N=\d+", "", r.label)) for r in rows)
    same = len({(r.label, r.arch, r.chip) for r in short}) == len(short)
    return [*short] if same else rows
