"""A point's workload: found by name, and with a variant of its kernel (factor ``part``).

A variant runs at the occupancy of the full kernel. It needs fewer registers, so more of its warps
would be resident and hide more latency than in the full one. Unused dynamic shared memory keeps
them out (Brodtkorb et al., section 6.5).
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from nqbench.compiler.compiled import Occupancy, occupancy
from nqbench.errors import DeviceError
from nqbench.facts import DeviceFacts
from nqbench.plan import CommandPlan, KernelPlan, Outputs, Plan
from nqbench.point import PART, Executable, FactorLevels, Point
from nqbench.system.files import digest
from nqbench.workloads import get as find_workload
from nqbench.workloads.base import FAULT, NOT_APPLICABLE, Variant, Workload, check_variants
from nqbench.workloads.levels import number

DIGITS: Final = 16
"""Hex digits that tell two builds of a program apart in its records."""
SPARE_STEP: Final = 16
"""Step of the unused shared memory in bytes: below every allocation unit."""


def runs_on_cpu(point: Point) -> bool:
    """Whether a point runs on the CPU, whatever the device, as its workload says."""
    if point.program is not None:
        return point.program.device == "cpu"
    return point.system in find_workload(point.workload).cpu_systems


def workload_of(point: Point) -> Workload:
    """The workload as a point uses it: built as a variant, or computed by an external program."""
    workload = find_workload(point.workload)
    if point.program is not None:
        return OfProgram(workload, point.system or "", point.program)
    part = point.factors.get(PART)
    return workload if part is None else OfVariant(workload, cast(Variant, part))


@dataclass(frozen=True)
class OfVariant(Workload):
    """A workload whose kernels are built as one variant."""

    workload: Workload
    variant_built: Variant

    def plan(self, factors: FactorLevels, system: str | None, device: DeviceFacts) -> Plan:
        """The variant of the configuration's main kernel, at the full kernel's occupancy."""
        plan = self.workload.plan(factors, system, device)
        check_variants(self.workload, system)
        full = self.workload.variant(plan, "full")
        built = self.workload.variant(plan, self.variant_built)
        return built if device.kind == "sim" else matched(built, full, device)

    def answer(self, plan: Plan, outputs: Outputs) -> int | None:
        """The full kernel's answer; other variants have none."""
        if self.variant_built != "full":
            return None
        assert isinstance(plan, KernelPlan)
        return self.workload.variant_answer(plan, outputs)

    def expected(self, factors: FactorLevels) -> int | None:
        """The right answer of the full kernel."""
        return None if self.variant_built != "full" else self.workload.variant_expected(factors)


@dataclass(frozen=True)
class OfProgram(Workload):
    """A workload whose answer an external program finds."""

    workload: Workload
    system: str
    external: Executable

    def plan(self, factors: FactorLevels, system: str | None, device: DeviceFacts) -> Plan:
        """The program with the arguments of its point."""
        del system, device
        about: dict[str, int | float | str] = {
            "n": number(factors, "n"),
            "command": shlex.join(self.external.command),
        }
        about["clock"] = "printed" if self.external.time else "wall"
        about["program_sha256"] = digest(self.external.files())[:DIGITS]
        return CommandPlan(self.system, self.external, about)

    def answer(self, plan: Plan, outputs: Outputs) -> int | None:
        """The number that it printed; ``None`` where no pattern reads one."""
        del plan
        return int(outputs["answer"][0]) if "answer" in outputs else None

    def findings(self, plan: Plan, outputs: Outputs) -> Mapping[str, int | float | str]:
        """Who is to blame for a wrong answer."""
        del plan, outputs
        return {FAULT: "the program, its command or the pattern of the answer is at fault"}

    def expected(self, factors: FactorLevels) -> int | None:
        """The workload's right answer, which must follow from the levels that the program gets."""
        given = {name: level for name, level in factors.items() if level != NOT_APPLICABLE}
        try:
            return self.workload.expected({**self.workload.defaults, **given})
        except KeyError as missing:
            raise DeviceError(
                f"the right answer of {self.workload.name} depends on {missing}, which the command"
                f" of {self.system} does not have; use {{{str(missing).strip(chr(39))}}} in it"
            ) from missing


def matched(built: KernelPlan, full: KernelPlan, facts: DeviceFacts) -> KernelPlan:
    """``built`` with unused shared memory until no more of its warps are resident than of ``full``.

    Its ``about`` holds the result: ``occupancy_full``, ``occupancy_part``,
    ``spare_shared_bytes`` and ``occupancy_matched`` (1 or 0). Raises ``CompileError``.
    """
    registers, static = _taken(full, facts)
    shared = static + full.shared_bytes
    wanted = occupancy(facts, registers, shared, math.prod(full.block), full.cache)
    registers, static = _taken(built, facts)
    size = math.prod(built.block)
    room = facts.shared_per_block_optin - static - built.shared_bytes

    def fits(spare: int) -> Occupancy:
        shared = static + built.shared_bytes + spare
        return occupancy(facts, registers, shared, size, built.cache)

    spare = 0
    while fits(spare).warps > wanted.warps and spare + SPARE_STEP <= room:
        spare += SPARE_STEP
    while spare and fits(spare).warps < wanted.warps:  # no exact match: rather more than fewer
        spare -= SPARE_STEP
    found = fits(spare)
    about: dict[str, Any] = {
        "occupancy_full": wanted.fraction,
        "occupancy_part": found.fraction,
        "spare_shared_bytes": spare,
        "occupancy_matched": int(found.warps == wanted.warps),
    }
    return replace(built, shared_bytes=built.shared_bytes + spare, about={**built.about, **about})


def _taken(plan: KernelPlan, facts: DeviceFacts) -> tuple[int, int]:
    """Registers per thread and static shared bytes per block, by the compiler."""
    from nqbench.compiler.compile import compile_kernel
    from nqbench.compiler.compiled import resources_of

    found = resources_of(compile_kernel(plan, facts.arch))
    return found.registers, found.static_shared_bytes
