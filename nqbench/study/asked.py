"""What words of a command line ask for: points of a system or of a study, kernels as variants.

``nqbench check`` and ``nqbench explain`` run chosen points. For ``nqbench bottleneck`` every kernel
becomes three points that differ in the factor ``part``; they are measured, recorded and resumed as
those of any study.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Final

from nqbench.errors import InfeasibleError, StudyError, WrongDeviceError
from nqbench.facts import DeviceFacts
from nqbench.point import PART, Level, Point, text
from nqbench.study.check import problem
from nqbench.study.expand import expand
from nqbench.study.load import load_study
from nqbench.study.model import Measure, Study
from nqbench.study.report_items import ReportItem
from nqbench.system.suggest import listing, suggestion
from nqbench.workloads import find_system, with_systems
from nqbench.workloads.base import VARIANTS, Workload, check_variants

SMALL_SIZES: Final = (8, 12, 32, 128, 4096)
"""Sizes tried for a system, in this order: what goes wrong in a kernel does so at small ones."""
SYSTEM, SWEEP = "system", "sweep"
BOTTLENECK: Final = "bottleneck"
PARTS: Final = "parts"
_PER_SM: Final = re.compile(r"(\d+)/SM", re.IGNORECASE)


def chosen_points(
    subject: str,
    facts: DeviceFacts,
    conditions: Sequence[str] = (),
    sizes: Sequence[int] = (),
    warn: Callable[[str], object] | None = None,
) -> list[Point]:
    """Points of a named system, or of a study (a file, or the name of a packaged one).

    ``conditions`` are ``factor=level`` words: levels of a system, or what the points of a study
    must have (``system`` and ``sweep`` too); ``factor=a,b`` takes both levels. Without ``sizes``
    (and a condition on ``n``) each configuration is taken at its smallest size.

    Raises ``StudyError`` and ``InfeasibleError``.
    """
    named = any(subject in workload.systems for workload in with_systems())
    if named and not Path(subject).exists():
        return _of_system(subject, facts, conditions, sizes)
    points = expand(load_study(Path(subject)), facts, warn=warn)
    wanted = dict(_condition(word) for word in conditions)
    if sizes:
        points = [point for point in points if point.n in sizes]
    chosen = [p for p in points if all(_level(p, name) in v for name, v in wanted.items())]
    if not chosen:
        raise StudyError(_nothing(subject, expand(load_study(Path(subject)), facts), wanted, sizes))
    return chosen if sizes or "n" in wanted else _smallest(chosen)


def _of_system(
    name: str, facts: DeviceFacts, conditions: Sequence[str], sizes: Sequence[int]
) -> list[Point]:
    workload, _ = find_system(name)
    if name in workload.cpu_systems:
        raise InfeasibleError(f"{name} runs on the CPU: there is no kernel to look into")
    wanted = dict(_condition(word) for word in conditions)
    given = [*sizes]
    for word in wanted.pop("n", ()):
        if not word.isdecimal():
            raise StudyError(f"--point n={word}: a size is a whole number")
        given.append(int(word))
    words = [
        [level_of(f"{factor}={v}", [(name, workload)]) for v in vs] for factor, vs in wanted.items()
    ]
    points = []
    for levels in map(dict, product(*words)):
        points += _sized(name, workload, levels, facts, given)
    return points


def _sized(
    name: str,
    workload: Workload,
    levels: Mapping[str, Level],
    facts: DeviceFacts,
    sizes: Sequence[int],
) -> list[Point]:
    """A system with these levels at the sizes given, or at the smallest that it takes."""
    if sizes:
        return [_point(name, workload, {**levels, "n": n}, facts) for n in sizes]
    refusals = []
    for n in SMALL_SIZES:
        try:
            return [_point(name, workload, {**levels, "n": n}, facts)]
        except (InfeasibleError, StudyError) as error:
            refusals.append(error)
    raise refusals[0]


def _point(name: str, workload: Workload, levels: Mapping[str, Level], facts: DeviceFacts) -> Point:
    resolved = workload.resolve(levels, name, facts)
    workload.plan(resolved.factors, name, facts)
    return Point(name, SYSTEM, workload.name, name, resolved.factors, resolved.derived)


def _condition(word: str) -> tuple[str, list[str]]:
    name, equals, level = word.partition("=")
    if not equals or not name or not level:
        raise StudyError(f"--point {word}: write FACTOR=LEVEL, for example --point block_size=64")
    return name, level.split(",")


def _level(point: Point, name: str) -> str | None:
    if name in (SYSTEM, SWEEP):
        return point.system if name == SYSTEM else point.sweep
    return text(point.factors[name]) if name in point.factors else None


def _nothing(
    subject: str, points: Sequence[Point], wanted: Mapping[str, Sequence[str]], sizes: Sequence[int]
) -> str:
    """Why no point is left: the first condition that none fulfils, or all of them together."""
    known = list(dict.fromkeys(name for p in points for name in (SYSTEM, SWEEP, *p.factors)))
    for name, wanted_levels in wanted.items():
        said = f"--point {name}={','.join(wanted_levels)}"
        if name not in known:
            return f"{said}: no point of {subject} has {name}; {suggestion(name, known)}"
        levels = list(dict.fromkeys(found for p in points if (found := _level(p, name))))
        if not set(levels).intersection(wanted_levels):
            return f"{said}: {subject} has {name} {listing(levels)}"
    if sizes:
        found_sizes = sorted({p.n for p in points})
        return f"--n {sizes[0]}: {subject} has n {listing(list(map(str, found_sizes)))}"
    said = ", ".join(f"{name}={','.join(levels)}" for name, levels in wanted.items())
    return f"no point of {subject} has all of {said}"


def _smallest(points: Sequence[Point]) -> list[Point]:
    """Of points that differ in n alone, the smallest; where points are skipped, others count.
    Factors that follow from n (one level for each n of a system) do not tell points apart."""
    families: dict[object, list[Point]] = {}
    for point in points:
        families.setdefault((point.sweep, point.system), []).append(point)
    kept = []
    for family in families.values():
        names = [name for name in family[0].factors if name != "n" and not _follows(name, family)]
        groups: dict[object, list[Point]] = {}
        for point in family:
            groups.setdefault(tuple(_level(point, name) for name in names), []).append(point)
        for group in groups.values():
            least = min(p.n for p in ([p for p in group if not p.skip] or group))
            kept += [point for point in group if point.n == least]
    return kept


def _follows(name: str, points: Sequence[Point]) -> bool:
    """Whether a factor has one level for each n."""
    levels = {(point.n, _level(point, name)) for point in points}
    return len(levels) == len({point.n for point in points})


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
        return "-".join([BOTTLENECK, *(name for name, _ in self.systems)])

    @property
    def study(self) -> Study:
        """As a study in a file would be recorded."""
        return Study.in_memory(
            self.name,
            self.measure,
            f"# made by the command {BOTTLENECK}: {', '.join(name for name, _ in self.systems)}\n",
            about="Kernels without arithmetic and without memory, next to the full kernel",
            workload=self.systems[0][1].name,
            n=list(self.sizes),
            sweeps=[{"name": PARTS, "matrix": {PART: list(VARIANTS)}, "fixed": dict(self.levels)}],
            report=(ReportItem("table", BOTTLENECK), ReportItem("figure", BOTTLENECK)),
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
                *(self.name, PARTS, workload.name, name),
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
