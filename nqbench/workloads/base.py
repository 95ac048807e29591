"""The interface of a workload, so that studies, runners and reports do not depend on any one."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

from nqbench.errors import InfeasibleError, StudyError
from nqbench.facts import DeviceFacts, DeviceKind
from nqbench.plan import KernelPlan, Outputs, Plan
from nqbench.point import FactorLevels, Level
from nqbench.system.suggest import listing, nearest, shown, suggestion

NOT_APPLICABLE: Final = "-"
"""Level of a factor that has no meaning with the other levels chosen."""

KERNEL: Final = "kernel"
"""The key of a user's own kernel in a study, and what the names of such workloads begin with."""

FAULT: Final = "fault"
"""Key of a finding that explains a wrong answer; empty if the answer may be right."""

Variant = Literal["full", "math_only", "memory_only"]
VARIANTS: Final[tuple[Variant, ...]] = get_args(Variant)
"""How a kernel can be built: complete, without its memory accesses, without its arithmetic."""


@dataclass(frozen=True, slots=True)
class Factor:
    """One axis of the ablation.

    ``levels``  names of the categorical levels (empty for a pure number)
    ``number``  inclusive range if a number is accepted, else ``None``
    ``only``    the numbers accepted, where these are a list and not the whole range
    ``default`` its level where neither a sweep nor a system has one
    ``per_sm``  whether ``{per_sm: k}`` is accepted
    ``auto``    whether the word ``auto`` is accepted (resolved per point)
    ``text``    whether any text is accepted
    ``launch``  whether a system's name leaves it open: a factor of the launch, of its input, or of
                what is counted, which labels name after the system
    """

    name: str
    meaning: str
    levels: tuple[str, ...] = ()
    number: tuple[int, int] | None = None
    per_sm: bool = False
    auto: bool = False
    text: bool = False
    launch: bool = False
    only: tuple[int, ...] = ()
    default: Level | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """Its levels that are words."""
        return (*self.levels, *(("auto",) if self.auto else ()))

    def takes(self) -> list[str]:
        """Its levels by name, the other forms in words."""
        forms = [*self.words]
        if self.only:
            forms += map(str, self.only)
        elif self.number:
            forms.append(f"a whole number from {self.number[0]} to {self.number[1]}")
        if self.per_sm:
            forms.append("{per_sm: k}")
        if self.text:
            forms.append("any text")
        return forms

    def problem(self, value: Level, origin: str = "") -> str:
        """Why it does not take a level; empty if it does. ``origin`` says where that comes from."""
        taken, given = listing(self.takes()), shown(value)
        if isinstance(value, Mapping):
            shares = value.get("per_sm")
            right = self.per_sm and len(value) == 1 and isinstance(shares, int) and shares >= 1
            given = f"{{per_sm: {shares}}}"
        elif isinstance(value, int) and not isinstance(value, bool):
            if self.number:
                right = value in (self.only or range(self.number[0], self.number[1] + 1))
                return "" if right else f"'{self.name}' is {value}{origin}, but takes {taken}"
            right, given = False, f"the number {value}"
        else:
            right = self.text or value in self.words
            if close := nearest(value, self.words):
                given += f"; did you mean '{close}'?"
        return "" if right else f"'{self.name}' takes {taken}, not {given}"


def factor_table(text: str | Path, **given: object) -> dict[str, Factor]:
    """Factors by name from lines ``name word|word LEAST..MOST 1,2,4 =default flags: meaning``.

    All but name and meaning may be left out; the flags are those of ``Factor``. An indented line
    continues the one before. A file may name what is ``given`` in braces.
    """
    if isinstance(text, Path):
        text = text.read_text(encoding="utf-8").format_map(given)
    found: dict[str, Factor] = {}
    for entry in re.split(r"\n(?=\S)", text.strip()):
        head, meaning = re.split(r":\s+", entry, maxsplit=1)
        name, *words = head.split()
        known: dict[str, Any] = {}
        for word in words:
            if word in ("per_sm", "auto", "launch"):
                known[word] = True
            elif word[0] == "=":
                known["default"] = int(word[1:]) if word[1:].isdigit() else word[1:]
            elif ".." in word:
                least, _, most = word.partition("..")
                known["number"] = int(least), int(most)
            elif "," in word:
                known["only"] = tuple(map(int, word.split(",")))
                known["number"] = min(known["only"]), max(known["only"])
            else:
                known["levels"] = tuple(word.split("|"))
        found[name] = Factor(name, " ".join(meaning.split()), **known)
    return found


@dataclass(frozen=True, slots=True)
class Resolved:
    """A configuration with every factor set, and the numbers that follow from it."""

    factors: FactorLevels
    derived: Mapping[str, int | float | str]


@dataclass(frozen=True, slots=True)
class Compared:
    """Outputs compared with the right ones, element by element.

    ``right``, ``total``  how many are right, how many were compared
    ``fault``   what is wrong; empty if nothing is
    ``again``   whether some are right and hold the fill that they were given: a launch on another
                fill tells whether they were written
    ``errors``  the largest ones, by the names of ``vocabulary.ERRORS``
    """

    right: int
    total: int
    fault: str = ""
    again: bool = False
    errors: Mapping[str, float] = field(default_factory=dict)


class Workload(ABC):
    """One kind of computation: its factors, its named systems, its plans, its right answers.

    ``plan`` is required; everything else has a default. Workloads of nqbench are
    the objects ``WORKLOAD`` of the packages in ``nqbench.workloads``; any other is named
    ``package.module:object``.
    """

    name: str
    """As studies name it."""
    factors: Mapping[str, Factor] = {}
    """The levels of a factor ``probe``, other than ``none``, build instrumented kernels: these are
    counted once (``counters``) and never timed."""
    removed: Mapping[str, str] = {}
    """Former factors, and factors with fewer levels than once: what is gone, and what to use."""
    defaults: Mapping[str, Level] = {}
    """Levels of factors that a sweep leaves out."""
    systems: Mapping[str, FactorLevels] = {}
    """Named points: the levels that make a paper's system (without ``n``)."""
    cpu_systems: frozenset[str] = frozenset()
    """Systems with a ``CpuPlan`` on every device: their points run on the CPU."""
    parallel_systems: frozenset[str] = frozenset()
    """Those of them that use all cores."""

    counts: Mapping[str, Callable[[int], float]] = {}
    """Numbers that follow from the size ``n`` alone, for :meth:`count`."""
    phases: Mapping[str, str] = {}
    """Phases of its programs and CPU functions beyond ``vocabulary.PHASES``: name and meaning."""
    probe_counters: Mapping[str, str] = {}
    """What its instrumented kernels count: name and meaning."""

    core_work_per_s: float = 5e7
    """Units of ``work`` that one CPU core does in a second, within a factor of a few; for times
    predicted before the first launch."""

    include: tuple[Path, ...] = ()
    """Folders in which the files that its kernels include are searched."""

    doubt: str = ""
    """A sentence about a probable mistake in what it is made from, for whoever runs it."""
    no_variants: str = (
        "does not declare which of its instructions are arithmetic and which are memory"
    )
    """Why no kernel can be built without its arithmetic or its memory accesses, as the rest of a
    sentence that begins with the system's name; empty if ``variant`` can do it."""
    variant_n: Mapping[DeviceKind, int] = {}
    """Default size of variants by kind of device: large enough to fill it."""

    def resolve(self, given: FactorLevels, system: str | None, device: DeviceFacts) -> Resolved:
        """Fill in defaults and ``auto`` levels, and check that the configuration can run.

        ``given`` holds ``n`` and any factor, and overrides the system's own levels. Raises
        ``InfeasibleError`` with the reason and the limit. Must be fast: no input is made here.
        """
        return Resolved({**self.defaults, **(self.systems[system] if system else {}), **given}, {})

    def auto_level(self, name: str, factors: FactorLevels, system: str | None) -> Level | None:
        """The level that ``auto`` means for the factor ``name``, given the other ``factors``.

        ``None`` where it depends on the device, or the factor has no ``auto``.
        """
        return None

    @abstractmethod
    def plan(self, factors: FactorLevels, system: str | None, device: DeviceFacts) -> Plan:
        """Make the resolved configuration executable. May take time (making the input)."""

    def answer(self, plan: Plan, outputs: Outputs) -> int | None:
        """The answer from the outputs of a launch (64-bit safe); ``None`` if it has none, but
        outputs that are :meth:`compared`."""
        return None

    def expected(self, factors: FactorLevels) -> int | None:
        """The known right answer, or ``None`` if it is unknown."""
        return None

    def reference(self, factors: FactorLevels) -> FactorLevels | None:
        """The configuration whose outputs are the right ones of this one; ``None`` if there is none
        or it is this one. It is launched once, untimed, for :meth:`compared`."""
        return None

    def again(self, factors: FactorLevels, system: str | None, device: DeviceFacts) -> Plan | None:
        """The plan of a configuration with other contents in its buffers; ``None`` if there are
        none that a seed of the study gives."""
        return None

    def compared(self, plan: Plan, outputs: Outputs, reference: Outputs | None) -> Compared | None:
        """The outputs against the right ones, for workloads whose answer is an array; ``None`` for
        those with an ``answer``. ``reference``: the outputs of :meth:`reference`."""
        return None

    def work(self, factors: FactorLevels) -> float:
        """Amount of work, in units of the workload's own (see ``core_work_per_s``).

        For predictions: proportional to the time on one device. By default the same for all points.
        """
        return 1.0

    def counters(self, plan: Plan, outputs: Outputs) -> Mapping[str, int | float]:
        """What an instrumented kernel counted in one launch, by the names of ``probe_counters``."""
        return {}

    def findings(self, plan: Plan, outputs: Outputs) -> Mapping[str, int | float | str]:
        """What a launch reports in addition to the answer, for ``Record.about``.

        ``FAULT`` explains a wrong answer.
        """
        return {}

    def identity(self) -> Mapping[str, Any]:
        """What else its plans follow from, besides its modules and :meth:`files` (JSON)."""
        return {}

    def files(self) -> Sequence[Path]:
        """Files that its plans follow from, besides those in the folders of its modules."""
        return ()

    def count(self, name: str, **parameters: Any) -> Any:
        """A number that follows from the algorithm without a run; ``count`` in claims.

        By default one of ``counts``, for the size ``N``. Raises ``StudyError`` for a name, a
        parameter or a size that does not exist, ``AnalysisError`` for what would take minutes.
        """
        if name not in self.counts:
            hint = suggestion(name, self.counts) if self.counts else "the workload has none"
            raise StudyError(f"no count of {self.name} is called {name!r}; {hint}")
        if unknown := sorted(parameters.keys() - {"N"}):
            raise StudyError(f"this count takes no parameter {unknown[0]!r}, only N")
        n = parameters.get("N")
        if not isinstance(n, int) or n < 1:
            raise StudyError(f"a count needs a board size, a whole number N, not {n!r}")
        return self.counts[name](n)

    def variant(self, plan: Plan, variant: Variant) -> KernelPlan:
        """The plan's main kernel alone, built as ``variant``; ``full`` builds it unchanged.

        The kernel starts with the memory contents of its first launch in the plan. Raises
        ``InfeasibleError`` with the reason where arithmetic and memory cannot be separated.
        """
        raise InfeasibleError(f"{self.name} {self.no_variants}")

    def variant_answer(self, plan: KernelPlan, outputs: Outputs) -> int | None:
        """The answer of the ``full`` variant. The other variants have none."""
        return self.answer(plan, outputs)

    def variant_expected(self, factors: FactorLevels) -> int | None:
        """The right answer of the ``full`` variant, or ``None`` if it is unknown."""
        return self.expected(factors)


def check_variants(workload: Workload, system: str | None) -> None:
    """Refuse a workload whose kernels have no variants: ``InfeasibleError`` with the reason."""
    if workload.no_variants:
        raise InfeasibleError(
            f"{system or workload.name} {workload.no_variants}; use `counters: ncu` or the"
            " simulator's counters"
        )
