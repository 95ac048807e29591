"""A table of what kernels use on several chips, from the compiler alone, without a GPU."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Protocol

from nqbench.compiler.cache import Compiled
from nqbench.compiler.compile import compile_many, cubin_request
from nqbench.compiler.nvrtc import ImageKind
from nqbench.compiler.occupancy import occupancy
from nqbench.compiler.resources import resources_of
from nqbench.compiler.sass import disassembler, ptx_instructions, sass_counts
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


@dataclass(frozen=True, slots=True)
class SassRow(StaticRow):
    """The same with counts of the machine code beside the PTX's. Accesses are loads and stores of
    the code, each with the bits that a thread moves: ``LDS.128 2``."""

    ptx_instructions: int | None = None
    sass_instructions: int | None = None
    sass_branches: int | None = None
    shared_accesses: str = ""
    global_accesses: str = ""
    local_accesses: str = ""


def static_report(
    plans: Sequence[tuple[str, Kernel]],
    chips: Sequence[DeviceFacts],
    listener: Progress | None = None,
    *,
    sass: bool = False,
) -> list[StaticRow]:
    """Compile ``(label, kernel)`` pairs for the architecture of each chip; one row each, by chip.

    A kernel shared by several plans is compiled once. With ``sass`` the rows are ``SassRow``.
    Raises ``DeviceUnavailable`` without a compiler, and with ``sass`` without a disassembler.
    """
    if sass:
        disassembler()
    kinds: tuple[ImageKind, ...] = ("cubin", "ptx") if sass else ("cubin",)
    wanted = list(
        dict.fromkeys(
            cubin_request(plan, chip.arch, kind)
            for chip in chips for _, plan in plans for kind in kinds
        )
    )  # fmt: skip
    if listener is not None:
        listener.stage("compiling kernels", len(wanted))
    results = compile_many(wanted, done=listener.advanced if listener else None)
    compiled = dict(zip(wanted, results, strict=True))
    rows = []
    for chip in chips:
        for label, plan in plans:
            images = [compiled[cubin_request(plan, chip.arch, kind)] for kind in kinds]
            row = _row(label, plan, chip, images[0])
            rows.append(_with_sass(row, *images) if sass else row)
    return rows


def _with_sass(
    row: StaticRow, cubin: Compiled | CompileError, ptx: Compiled | CompileError
) -> SassRow:
    if isinstance(cubin, CompileError) or isinstance(ptx, CompileError):
        return SassRow(**asdict(row))
    counts = sass_counts(cubin.image, cubin.symbol)
    shared, off_chip, local = (
        ", ".join(f"{name} {n}" for name, n in sorted(counts.accesses.items()) if name[2] == space)
        for space in "SGL"
    )
    return SassRow(
        **asdict(row),
        ptx_instructions=ptx_instructions(ptx.image.decode(), ptx.symbol),
        sass_instructions=counts.instructions,
        sass_branches=counts.branches,
        shared_accesses=shared,
        global_accesses=off_chip,
        local_accesses=local,
    )


def _row(
    label: str, plan: Kernel, facts: DeviceFacts, result: Compiled | CompileError
) -> StaticRow:
    row = StaticRow(
        label,
        facts.arch,
        facts.name.removeprefix("model of "),
        math.prod(plan.block),
        dynamic_shared_bytes=plan.shared_bytes,
    )
    if isinstance(result, CompileError):
        return replace(row, note=str(result))
    taken = resources_of(result)
    # A compiler of the chip's time would have kept to its limit, with spills.
    most = facts.max_registers_per_thread if facts.compiled_for else taken.registers
    shared = taken.static_shared_bytes + plan.shared_bytes
    fits = occupancy(facts, min(taken.registers, most), shared, row.block_size, plan.cache)
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
