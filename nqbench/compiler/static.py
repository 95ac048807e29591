"""What the compiler says about a kernel, without a GPU: registers, stack, spills, occupancy."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from nqbench.compiler.compile import Compiled, CompileRequest, compile_many
from nqbench.compiler.occupancy import occupancy
from nqbench.devices.models import load_model, model_names
from nqbench.errors import CompileError, StudyError
from nqbench.facts import DeviceFacts
from nqbench.plan import Kernel
from nqbench.system.suggest import suggestion

_ENTRY: Final = re.compile(r"Compiling entry function '([^']+)'")
_STACK: Final = re.compile(
    r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)
_USED: Final = re.compile(r"Used (\d+) registers")
_SHARED: Final = re.compile(r"(\d+) bytes smem")
_CUMULATIVE: Final = re.compile(r"(\d+) bytes cumulative stack size")


class Progress(Protocol):
    """Told how far a long job is."""

    def stage(self, name: str, total: int) -> None:
        """A stage of ``total`` steps begins."""

    def advanced(self) -> None:
        """One step is done."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel takes, as the assembler reports it.

    ``stack_bytes`` is local memory per thread (arrays indexed at run time, and spills);
    ``spill_store_bytes`` and ``spill_load_bytes`` count the instructions' bytes per thread, not
    executions. ``static_shared_bytes`` excludes what the driver reserves.
    """

    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    static_shared_bytes: int

    @property
    def spill_bytes(self) -> int:
        """Stores and loads together; 0 means that nothing was spilled."""
        return self.spill_store_bytes + self.spill_load_bytes


@dataclass(frozen=True, slots=True)
class StaticRow:
    """One kernel on one architecture; ``note`` says why the numbers are missing, if they are."""

    label: str
    arch: str
    block_size: int
    registers: int | None
    stack_bytes: int | None
    spill_store_bytes: int | None
    spill_load_bytes: int | None
    static_shared_bytes: int | None
    dynamic_shared_bytes: int
    blocks_per_multiprocessor: int | None
    occupancy: float | None
    limiter: str
    note: str = ""


def resources_of(compiled: Compiled) -> Resources:
    """Read the assembler's report about the kernel ``compiled.symbol`` (a cubin).

    Functions that the kernel calls without inlining add their spills. Raises ``CompileError`` if
    the log holds no such report, as for PTX.
    """
    lines = _section(compiled.log, compiled.symbol)
    text = "\n".join(lines)
    frames = [tuple(map(int, found)) for found in _STACK.findall(text)]
    used = next((line for line in lines if _USED.search(line)), "")
    if not frames or not used:
        raise CompileError(
            f"the compiler's log holds no report about kernel {compiled.symbol};"
            " compile to a cubin to get one"
        )
    stack = max(_first(_CUMULATIVE, used), frames[0][0])
    return Resources(
        registers=_first(_USED, used),
        stack_bytes=stack,
        spill_store_bytes=sum(frame[1] for frame in frames),
        spill_load_bytes=sum(frame[2] for frame in frames),
        static_shared_bytes=_first(_SHARED, used),
    )


def static_report(
    plans: Sequence[tuple[str, Kernel]],
    archs: Sequence[str],
    workers: int | None = None,
    listener: Progress | None = None,
) -> list[StaticRow]:
    """Compile ``(label, plan)`` pairs for every architecture; one row each, in that order.

    A kernel shared by several plans is compiled once. Raises ``StudyError`` for an architecture
    without a model, ``DeviceUnavailable`` without a compiler.
    """
    facts = {arch: load_model(arch).facts for arch in check_archs(archs)}
    requests = {
        request: None for arch in archs for _, plan in plans for request in (_request(plan, arch),)
    }
    wanted = list(requests)
    if listener is not None:
        listener.stage("compile", len(wanted))
    results = compile_many(wanted, workers, listener.advanced if listener else None)
    compiled = dict(zip(wanted, results, strict=True))
    return [
        _row(label, plan, facts[arch], compiled[_request(plan, arch)])
        for arch in archs
        for label, plan in plans
    ]


def _request(plan: Kernel, arch: str) -> CompileRequest:
    return CompileRequest("cubin", plan.source, plan.entry, arch, plan.options, plan.device_launch)


def _row(
    label: str, plan: Kernel, facts: DeviceFacts, result: Compiled | CompileError
) -> StaticRow:
    block_size = math.prod(plan.block)
    if isinstance(result, CompileError):
        missing = (None, None, None, None, None)
        return StaticRow(
            label, facts.arch, block_size, *missing, plan.shared_bytes, None, None, "", str(result)
        )
    taken = resources_of(result)
    shared = taken.static_shared_bytes + plan.shared_bytes
    fits = occupancy(facts, taken.registers, shared, block_size, plan.cache)
    return StaticRow(
        label=label,
        arch=facts.arch,
        block_size=block_size,
        registers=taken.registers,
        stack_bytes=taken.stack_bytes,
        spill_store_bytes=taken.spill_store_bytes,
        spill_load_bytes=taken.spill_load_bytes,
        static_shared_bytes=taken.static_shared_bytes,
        dynamic_shared_bytes=plan.shared_bytes,
        blocks_per_multiprocessor=fits.blocks_per_multiprocessor,
        occupancy=fits.fraction,
        limiter=fits.limiter,
    )


def check_archs(archs: Sequence[str]) -> list[str]:
    """Each architecture once, in the order given.

    Raises ``StudyError`` for one without a model, and if there is none at all.
    """
    known = [name for name in model_names() if name.startswith("sm_")]
    if not archs:
        raise StudyError(f"--arch names no architecture; known: {', '.join(known)}")
    for arch in archs:
        if arch not in known:
            raise StudyError(
                f"--arch: no architecture is called {arch!r}; {suggestion(arch, known)}"
            )
    return list(dict.fromkeys(archs))


def _section(log: str, symbol: str) -> list[str]:
    """The log's lines about one kernel; a source may hold several."""
    lines: list[str] = []
    inside = False
    for line in log.splitlines():
        entry = _ENTRY.search(line)
        if entry:
            inside = entry.group(1) == symbol
        if inside:
            lines.append(line)
    return lines


def _first(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    return int(found.group(1)) if found else 0
