"""Studies to points: every combination of a sweep, resolved by the workload for one device."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from itertools import product
from math import prod
from typing import Any, Final

from nqbench import expressions, workloads
from nqbench.errors import InfeasibleError, NothingRuns, StudyError, WrongDeviceError
from nqbench.expressions import Expression
from nqbench.facts import DeviceFacts, DeviceKind
from nqbench.point import HOT, L2, PART, Executable, FactorLevels, Level, Point
from nqbench.study.check import check, is_expression
from nqbench.study.model import Condition, Given, ProgramSystem, Study, Sweep, context, plain
from nqbench.system.suggest import listing, shown
from nqbench.system.yaml_marks import KeyPath, ParsedFile, innermost
from nqbench.workloads.base import NOT_APPLICABLE, VARIANTS, Resolved, Workload

PLACE: Final = re.compile(r"\{\{|\}\}|\{(\w+)\}")
"""A factor's place in a word of a program's command; a doubled brace stands for one."""
BRACES: Final = {"{{": "{", "}}": "}"}
MAX_POINTS: Final = 20_000
"""Combinations in a study. At a tenth of a second each, over five rounds, this is three hours."""


def expand(
    study: Study,
    facts: DeviceFacts,
    *,
    workload: Workload | None = None,
    warn: Callable[[str], object] | None = None,
) -> list[Point]:
    """The points of a study on a device: sweeps in file order, then n ascending, then matrix order.

    Points that resolve to the same configuration within a sweep are merged. A point that cannot run
    is an error at the responsible line, or carries its reason in ``skip`` (``infeasible: skip``, or
    a kernel on a device without a GPU). ``warn`` is called with a sentence for a probable mistake
    (a kernel without a check). Raises ``StudyError`` with file:line, also if nothing would run.
    """
    with study.source.at(("workload",)):
        chosen = workload or workloads.register(study.external)
    name = chosen.name if workload else study.workload
    check(study, chosen)
    check_size(study, facts.kind)
    points: list[Point] = []
    if warn is not None and chosen.doubt:
        warn(f"{study.source.place((workloads.KERNEL,))}: {chosen.doubt}")
    for sweep in study.sweeps:
        points += _Expansion(study, sweep, chosen, name, facts).points()
    if all(point.skip for point in points):
        error = study.source.error(*_nothing(points, facts))
        raise NothingRuns(error.message, error.place)
    points = _variants(study, points, chosen, facts)
    return _cache_states(points, study.measure.l2, facts.kind, chosen.cpu_systems)


def _nothing(points: Sequence[Point], facts: DeviceFacts) -> tuple[str, KeyPath]:
    """Why nothing would run, and the key of the study that says so."""
    if not points:
        return (
            f"nothing would run: no sweep gives values for a device of kind '{facts.kind}';"
            f" add {facts.kind}: [...] to n, or choose another device"
        ), ("n",)
    who = f"all points ({len(points)}) are skipped, the first ({points[0].label()})"
    return f"nothing would run on {facts.name}: {who} because {points[0].skip}", ("sweeps",)


@dataclass(slots=True)
class _Expansion:
    """One sweep on one device. ``found_as`` is the name that gets the workload, ``names`` collects
    what expressions may read, over all points; ``removed`` how many combinations each
    condition left out, by its position."""

    study: Study
    sweep: Sweep
    workload: Workload
    found_as: str
    device: DeviceFacts
    names: set[str] = field(default_factory=set)
    removed: Counter[int] = field(default_factory=Counter)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return (*self.sweep.exclude, *self.sweep.where)

    def points(self) -> list[Point]:
        found: dict[str, Point] = {}
        given = combinations(self.study, self.sweep, self.device.kind)
        for combination in given:
            point = self.point(combination)
            if point is not None:
                levels = sorted((name, plain(level)) for name, level in point.factors.items())
                found.setdefault(repr((point.system, levels)), point)
        if given and not found:
            removed = sorted(self.removed.items())
            listed = [f"`{self.conditions[i]}` removes {count}" for i, count in removed]
            raise self.study.source.error(
                f"no point of the sweep '{self.sweep.name}' is left: of {len(given)},"
                f" {listing(listed, 'and')}",
                self.conditions[max(self.removed)].path,
            )
        self.check_names()
        return list(found.values())

    def point(self, given: Given) -> Point | None:
        """The point of a combination; ``None`` if a condition leaves it out.

        Conditions on values from the file alone are evaluated before the workload resolves the
        point, so that ``exclude`` can remove infeasible combinations.
        """
        source = self.study.source
        named = str(given["system"].value) if "system" in given else ""
        fixed = self.workload.systems.get(named, {})
        given = {f: i for f, i in given.items() if f not in fixed or f not in self.sweep.filled_in}
        levels = _levels(source, self.sweep, self.workload, self.device, given)
        system = levels.pop("system", None)
        assert system is None or isinstance(system, str)  # checked when the file was read
        # Resolving cannot change these.
        settled = (f for f, v in levels.items() if v != "auto" and not isinstance(v, Mapping))
        final: dict[str, Any] = {**{f: levels[f] for f in settled}, "system": system or ""}
        early = [i for i, c in enumerate(self.conditions) if c.names <= final.keys()]
        if self.is_left_out(early, final, levels, given):
            return None
        factors: FactorLevels = {**self.workload.systems.get(system or "", {}), **levels}
        derived: Mapping[str, int | float | str] = {}
        skip = ""
        own = self.sweep.programs.get(system or "")
        program: Executable | None = None
        try:
            asked = {f: level for f, level in levels.items() if level != NOT_APPLICABLE}
            if own is not None:
                resolved, program = _resolve_program(own, asked, self.workload, self.device)
            else:
                resolved = self.workload.resolve(asked, system, self.device)
        except StudyError as error:
            if error.keys:
                about = context(self.sweep, given) if source.lines else ""
                said = f"'{innermost(error.keys)}': {error.message}{about}"
                raise source.error(said, error.keys) from error
            blamed = given.get(error.factor)
            with source.at(blamed.path if blamed else own.path if own else self.sweep.path):
                raise
        except InfeasibleError as error:
            if self.sweep.infeasible == "error" and not isinstance(error, WrongDeviceError):
                raise self.infeasible(error, given) from error
            skip = str(error)
        else:
            factors, derived = resolved.factors, resolved.derived
            if own is None:
                self.check_unused(levels, factors, given)
            known = {**derived, **factors, "system": system or ""}
            self.names.update(known)
            late = [i for i in range(len(self.conditions)) if i not in early]
            if self.is_left_out(late, known, levels, given):
                return None
        names = (self.study.name, self.sweep.name, self.found_as, system)
        return Point(*names, dict(factors), dict(derived), skip, program)

    def is_left_out(
        self, which: Sequence[int], known: Mapping[str, Any], levels: FactorLevels, given: Given
    ) -> bool:
        """Whether one of these conditions leaves the point out; the first that does is counted.

        A level under ``exclude`` matches as written (``auto``) and as resolved.
        """
        for i in which:
            condition = self.conditions[i]
            if condition.expression is None:
                removes = all(
                    any(item.value in (known.get(name), levels.get(name)) for item in items)
                    for name, items in condition.match.items()
                )
            else:
                holds = self.holds(condition.expression, known, condition.path, given)
                removes = holds is (condition in self.sweep.exclude)
            if removes:
                self.removed[i] += 1
                return True
        return False

    def holds(
        self, expression: Expression, known: Mapping[str, Any], path: KeyPath, given: Given
    ) -> bool:
        """Whether the expression of a condition is true."""
        about = context(self.sweep, given)
        try:
            found = expressions.value_in_study(expression, known, self.device)
        except StudyError as error:
            raise self.study.source.error(error.message + about, path) from error
        if not isinstance(found, bool):
            raise self.study.source.error(
                f"the condition `{expression.text}` gives {shown(found)}, not true or false;"
                " compare it with something, and write several conditions as a list",
                path,
            )
        return found

    def check_unused(self, levels: FactorLevels, factors: FactorLevels, given: Given) -> None:
        """Refuse ``-`` for a factor that applies to the point."""
        for factor, level in levels.items():
            used = factors.get(factor, NOT_APPLICABLE)
            if level == NOT_APPLICABLE != used:
                raise self.study.source.error(
                    f"'{factor}' is '-' (does not apply), but it does here"
                    f"{context(self.sweep, given)}: leave it out to get {plain(used)}, or exclude"
                    " the combination",
                    given[factor].path,
                )

    def infeasible(self, error: InfeasibleError, given: Given) -> StudyError:
        """A combination that cannot run, as a mistake at the line to change: that of the factor
        that the error names, else of the system or the sweep."""
        message = str(error).rstrip(".")
        if self.study.source.lines:  # not one launch of a command
            message += context(self.sweep, given)
            message += "; `infeasible: skip` would list such points as skipped"
        item = given.get(error.factor) or given.get("system")
        path = error.keys or (item.path if item else self.sweep.path)
        return self.study.source.error(message, path)

    def check_names(self) -> None:
        """Refuse names that no point has, in parts of `and` and `or` that were never evaluated."""
        for condition in self.conditions:
            missing = condition.names - self.names if condition.expression and self.names else ()
            for name in sorted(missing):
                assert condition.expression is not None
                text = condition.expression.text
                message = expressions.unknown_name(text, name, self.names, expressions.STUDY)
                raise self.study.source.error(message, condition.path)


def _resolve_program(
    system: ProgramSystem, given: FactorLevels, workload: Workload, device: DeviceFacts
) -> tuple[Resolved, Executable]:
    """The point of a program: the factors that its command uses, and the command with them.

    A factor that the command leaves out does not apply to it. Raises ``StudyError`` for a factor
    that the sweep does not give, ``InfeasibleError`` for a level that has no text, and
    ``WrongDeviceError`` for a program that computes on a GPU where there is none.
    """
    program = system.program
    used: dict[str, Level] = {"n": given["n"]}

    def fill(text: str) -> str:
        def level(match: re.Match[str]) -> str:
            name = match[1]
            if name is None:
                return BRACES[match[0]]
            if name not in given:
                raise StudyError(
                    f"the system '{system.name}' uses {{{name}}}, which this sweep does not give;"
                    f" it gives {listing(given, 'and')} (write {{{{{name}}}}} for braces)"
                )
            if isinstance(given[name], Mapping) or given[name] == "auto":
                raise InfeasibleError(
                    f"{name} has no number that the command of {system.name} could take; give one",
                    name,
                )
            used[name] = given[name]
            return str(given[name])

        return PLACE.sub(level, text)

    filled = replace(
        program,
        command=tuple(map(fill, program.command)),
        environment={name: fill(text) for name, text in program.environment.items()},
        depends=tuple(map(fill, program.depends)),
    )
    if program.device == "gpu" and device.kind != "cuda":
        raise WrongDeviceError(
            f"{system.name} computes on a GPU (device: gpu), and {device.name} is none; use"
            " --device cuda:0"
        )
    factors = dict.fromkeys(workload.factors, NOT_APPLICABLE) | used
    if not program.answer and workload.expected({**workload.defaults, **used}) is not None:
        raise StudyError(
            f"the system '{system.name}' needs `answer`, a pattern such as '^(\\d+)': the right"
            " answer is known, and a program is not timed unchecked"
        )
    return Resolved(factors, {}), filled


def _levels(
    source: ParsedFile, sweep: Sweep, workload: Workload, device: DeviceFacts, given: Given
) -> dict[str, Level]:
    """The level of every given factor. An expression may read n, the other given factors, the
    system's own levels and ``device.*``. Raises ``StudyError`` at an expression's line."""
    system, about = given.get("system"), context(sweep, given)
    base = workload.systems.get(str(system and system.value), {})
    known = {**base, **{factor: item.value for factor, item in given.items()}}
    parsed = {
        factor: expressions.parse(str(item.value), expressions.STUDY)
        for factor, item in given.items()
        if is_expression(item.value, workload.factors.get(factor))
    }
    needs = {factor: item.names & parsed.keys() for factor, item in parsed.items()}
    try:
        order = [*TopologicalSorter(needs).static_order()]
    except CycleError as error:
        circle = error.args[1][1:]
        raise source.error(
            f"'{circle[0]}' is given in terms of itself, so it has no value; write a number"
            if len(circle) == 1
            else f"{listing(circle, 'and')} are given in terms of each other,"
            " so none has a value; give one of them as a number",
            given[circle[0]].path,
        ) from None
    for factor in order:
        text, path = parsed[factor].text, given[factor].path
        for name in sorted(parsed[factor].names - known.keys()):
            raise source.error(
                f"'{factor}': the expression `{text}` needs '{name}', which this sweep does not"
                " give; add it under fixed or matrix",
                path,
            )
        try:
            value = expressions.value_in_study(parsed[factor], known, device)
        except StudyError as error:
            raise source.error(f"'{factor}': {error.message}{about}", path) from error
        whole = isinstance(value, int | float) and not isinstance(value, bool)
        if not whole or value != value // 1:
            raise source.error(
                f"'{factor}': `{text}` gives {shown(value)}{about}, not a whole number;"
                " use //, floor or ceil",
                path,
            )
        if said := workload.factors[factor].problem(int(value), f" by `{text}`{about}"):
            raise source.error(said, path)
        known[factor] = int(value)
    return {factor: known[factor] for factor in given}


def check_size(study: Study, kind: DeviceKind) -> None:
    """Raise ``StudyError`` if the study has more than :data:`MAX_POINTS` combinations."""
    total = 0
    for sweep in study.sweeps:
        count = prod(len(axis) for axis in _axes(study, sweep, kind))
        total += count
        if total > MAX_POINTS:
            before = f" ({total:,} with those before it)" if total > count else ""
            raise study.source.error(
                f"the sweep '{sweep.name}' has {count:,} combinations{before}, but a study may have"
                f" at most {MAX_POINTS:,}; narrow its matrix or split the study",
                (*sweep.path, "matrix"),
            )


def combinations(study: Study, sweep: Sweep, kind: DeviceKind) -> list[Given]:
    """Every combination of a sweep: n ascending, otherwise in the file's order."""
    rows = product(*_axes(study, sweep, kind))
    merged = [{f: item for part in row for f, item in part.items()} for row in rows]
    return sorted(merged, key=lambda given: int(str(given["n"].value)))


def _axes(study: Study, sweep: Sweep, kind: DeviceKind) -> list[list[Given]]:
    """What varies, slowest first: n, systems, the matrix's factors, the rows of zip.

    An axis without values on this kind of device is empty, and so is the product.
    """
    axes: list[list[Given]] = []
    if "n" not in {*sweep.matrix, *sweep.zip, *sweep.fixed}:
        sizes = sweep.n or study.n
        assert sizes is not None  # checked when the file was read
        axes.append([{"n": item} for item in sizes.on(kind)])
    if sweep.systems:
        axes.append([{"system": item} for item in sweep.systems.on(kind)])
    for group in (sweep.matrix, sweep.fixed):
        axes += [[{factor: item} for item in axis.on(kind)] for factor, axis in group.items()]
    if sweep.zip:
        rows = zip(*(axis.on(kind) for axis in sweep.zip.values()), strict=True)
        axes.append([dict(zip(sweep.zip, row, strict=True)) for row in rows])
    return axes


def _cache_states(
    points: Sequence[Point], states: Sequence[str], kind: DeviceKind, on_cpu: Collection[str]
) -> list[Point]:
    """One point per state of L2, with the state as its factor ``l2``.

    Only kernels on a GPU have the choice (``on_cpu``: systems that run on the CPU). ``hot`` alone
    adds no factor: the points are those of a study that does not mention L2.
    """
    if kind != "cuda" or tuple(states) == (HOT,):
        return list(points)
    return [
        replace(point, factors={**point.factors, L2: state})
        for point in points
        # CPU baselines, external programs and instrumented kernels are not timed on the GPU.
        for state in (
            (NOT_APPLICABLE,) if point.system in on_cpu or point.program or point.probed else states
        )
    ]


def _variants(
    study: Study, points: Sequence[Point], workload: Workload, facts: DeviceFacts
) -> list[Point]:
    """Three points, by the factor ``part``, for each point of a sweep under ``measure.variants``.

    A point whose kernel has no variants is listed as skipped, with the reason. Raises
    ``StudyError`` where no kernel of the workload has any.
    """
    sweeps = study.measure.variants
    if sweeps and workload.no_variants:
        raise study.source.error(
            f"no kernel of workload {workload.name} has variants: it {workload.no_variants}; leave"
            " 'variants' out",
            ("measure", "variants"),
        )
    found: list[Point] = []
    for point in points:
        if point.sweep not in sweeps:
            found.append(point)
            continue
        skip = point.skip or _no_variants(point, workload, facts)
        found += [
            replace(point, factors={**point.factors, PART: part}, skip=skip) for part in VARIANTS
        ]
    return found


def _no_variants(point: Point, workload: Workload, facts: DeviceFacts) -> str:
    """Why a point's kernel has no variants; empty if it has."""
    if point.program is not None:
        return "only kernels of nqbench's have variants, and this system is an external program"
    if point.system in workload.cpu_systems:
        return "only kernels have variants, and this system runs on the CPU"
    try:
        workload.variant(workload.plan(point.factors, point.system, facts), "full")
    except InfeasibleError as error:
        return str(error)
    return ""
