"""The study of ``nqbench bottleneck``: kernels and their variants, made in memory.

Every kernel becomes three points that differ in the factor ``part``. They are measured, recorded
and resumed as those of any study.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nqbench.errors import InfeasibleError, StudyError, WrongDeviceError
from nqbench.facts import DeviceFacts
from nqbench.point import PART, Level, Point
from nqbench.study.check import problem
from nqbench.study.model import Measure, Study
from nqbench.study.report_items import ReportItem
from nqbench.system.suggest import suggestion
from nqbench.workloads import find_system
from nqbench.workloads.base import VARIANTS, Workload, check_variants

NAME: Final = "bottleneck"
SWEEP: Final = "parts"
_PER_SM: Final = re.compile(r"(\d+)/SM", re.IGNORECASE)


@dataclass(frozen=True)
class VariantsStudy:
    """What to build as variants: systems of any workload, sizes, and levels for all of them.

    ``sizes`` is empty for what each workload proposes (``variant_n``).
    """

    systems: tuple[tuple[str, Workload], ...]
    sizes: tuple[int, ...] = ()
    levels: Mapping[str, Level] = field(default_factory=dict)
    measure: Measure = field(default_factory=Measure)

    @property
    def name(self) -> str:
        """One run folder for each choice of systems."""
        return "-".join([NAME, *(name for name, _ in self.systems)])

    @property
    def study(self) -> Study:
        """As a study in a file would be recorded."""
        return Study.in_memory(
            self.name,
            self.measure,
            f"# made by the command {NAME}: {', '.join(name for name, _ in self.systems)}\n",
            about="Kernels without arithmetic and without memory, next to the full kernel",
            workload=self.systems[0][1].name,
            n=list(self.sizes),
            sweeps=[{"name": SWEEP, "matrix": {PART: list(VARIANTS)}, "fixed": dict(self.levels)}],
            report=(ReportItem("table", NAME), ReportItem("figure", NAME)),
        )

    def points(self, facts: DeviceFacts) -> list[Point]:
        """Three points for each system and size.

        Raises ``InfeasibleError`` with the reason for a system without variants, and
        ``StudyError`` for a size or level that is not one.
        """
        return [
            point
            for name, workload in self.systems
            for n in self.sizes or _proposed(name, workload, facts)
            for point in self._points(name, workload, n, facts)
        ]

    def _points(self, name: str, workload: Workload, n: int, facts: DeviceFacts) -> list[Point]:
        resolved = workload.resolve({**self.levels, "n": n}, name, facts)
        plan = workload.plan(resolved.factors, name, facts)
        check_variants(workload, name)
        workload.variant(plan, "full")
        return [
            Point(
                *(self.name, SWEEP, workload.name, name),
                {**resolved.factors, PART: part},
                resolved.derived,
            )
            for part in VARIANTS
        ]


def variants_study(words: Sequence[str], sizes: Sequence[int] = ()) -> VariantsStudy:
    """The study of a command line: names of systems, and ``factor=level`` words for all of them.

    Raises ``StudyError`` for an unknown name, ``InfeasibleError`` for a system that runs on the CPU
    or whose workload cannot separate arithmetic from memory accesses.
    """
    names = [word for word in words if "=" not in word]
    if not names:
        raise StudyError("bottleneck needs a system; `nqbench kernels` lists them")
    systems = []
    for name in dict.fromkeys(names):
        workload, _ = find_system(name)
        if name in workload.cpu_systems:  # before a reason about kernels
            raise InfeasibleError(f"{name} runs on the CPU: only kernels have variants")
        check_variants(workload, name)
        systems.append((name, workload))
    if any(word.startswith("n=") for word in words):
        raise StudyError("the size is an option: write --n")
    if wrong := [size for size in sizes if size < 1]:
        raise StudyError(f"--n {wrong[0]}: a size is a whole number from 1")
    levels = dict(level_of(word, systems) for word in words if "=" in word)
    return VariantsStudy(tuple(systems), tuple(sizes), levels)


def _proposed(name: str, workload: Workload, facts: DeviceFacts) -> tuple[int, ...]:
    """The size at which the workload's kernels fill such a device."""
    check_variants(workload, name)
    sizes = workload.variant_n
    if facts.kind not in sizes:
        raise WrongDeviceError(
            f"bottleneck times variants of GPU kernels, which device {facts.name} cannot run; use"
            " --device sim or cuda:0"
        )
    return (sizes[facts.kind],)


def level_of(word: str, systems: Sequence[tuple[str, Workload]]) -> tuple[str, Level]:
    """``factor=level`` as a study has it. Raises ``StudyError`` unless all workloads take it."""
    name, _, text = word.partition("=")
    per_sm = _PER_SM.fullmatch(text)
    level: Level = text
    if per_sm:
        level = {"per_sm": int(per_sm[1])}
    elif text.lstrip("-").isdecimal():
        level = int(text)
    for system, workload in systems:
        if name not in workload.factors:
            hint = suggestion(name, workload.factors)
            raise StudyError(f"{word}: {system} has no factor {name!r}; {hint}")
        if said := problem(workload.factors[name], level):
            raise StudyError(f"{word}: {said}")
    return name, level
