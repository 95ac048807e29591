"""Checks a study against its workload: factors, levels, systems, and names in expressions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from nqbench import expressions
from nqbench.errors import StudyError
from nqbench.point import Level
from nqbench.study.model import Axis, Condition, PlacedValue, ProgramSystem, Study, Sweep
from nqbench.study.report_items import ReportItem
from nqbench.system.suggest import shown, suggestion
from nqbench.system.yaml_marks import KeyPath, ParsedFile, innermost
from nqbench.workloads import KERNEL
from nqbench.workloads.base import NOT_APPLICABLE, Factor, Workload


def check(study: Study, workload: Workload) -> None:
    """Raise ``StudyError`` with file:line for a name or level that the workload does not have."""
    programs = {name for sweep in study.sweeps for name in sweep.programs}
    checks = _StudyChecks(study.source, workload, programs)
    for sweep in study.sweeps:
        checks.sweep(sweep)
        for condition in (*sweep.exclude, *sweep.where):
            checks.condition(condition)
    if study.kernel is not None:
        checks.kernel_runs(study)
    if study.n:
        checks.sizes(study.n)
    for index, entry in enumerate(study.report):
        checks.report(study, entry, ("report", index))


def check_level(factors: Mapping[str, Factor], name: str, value: Level, said: str = "") -> None:
    """Raise ``StudyError`` (without a place) for a factor or a level that does not exist. ``said``
    stands before the sentence."""
    if name not in factors:
        raise StudyError(f"{said}there is no factor '{name}'; {suggestion(name, factors)}")
    if why := factors[name].problem(value):
        raise StudyError(f"{said}{why}")


def is_expression(value: Level, factor: Factor | None) -> bool:
    """Whether a value is an expression to evaluate, not a level."""
    if not isinstance(value, str) or factor is None or factor.number is None or factor.text:
        return False
    return value not in (*factor.words, NOT_APPLICABLE)


def check_number(
    source: ParsedFile, text: Any, known: Collection[str], path: KeyPath, name: str = ""
) -> None:
    """Raise ``StudyError`` for an expression over numbers that is none or has an unknown name."""
    if not isinstance(text, str):
        return
    with source.at(path, f"'{name or innermost(path)}': "):
        parsed = expressions.parse(text, expressions.NUMBER)
        for unknown in sorted(parsed.names - set(known)):
            raise StudyError(expressions.unknown_name(text, unknown, known, expressions.STUDY))


@dataclass(frozen=True, slots=True)
class _StudyChecks:
    source: ParsedFile
    workload: Workload
    programs: Collection[str]

    @property
    def hint(self) -> str:
        """What a study of programs may lack."""
        alone = self.programs and not {"workload", KERNEL} & self.source.data.keys()
        return "; a study of programs alone says `workload: programs`" if alone else ""

    def sweep(self, sweep: Sweep) -> None:
        for group in ("fixed", "matrix", "zip"):
            for name, axis in getattr(sweep, group).items():
                if name not in ("n", "system"):
                    factor = self.factor(name, axis.path, group)
                    for item in axis.items():
                        self.level(factor, item)
        given = sweep.given
        if "n" in given:
            self.sizes(given["n"])
        if "system" in given:
            for item in given["system"].items():
                if item.value in sweep.programs:
                    self.program(sweep.programs[str(item.value)])
                else:
                    self.system(item)

    def factor(self, name: str, path: KeyPath, group: str) -> Factor:
        factors = self.workload.factors
        if name not in factors:
            known = [*factors, *(["system"] if group != "fixed" else [])]
            hint = self.workload.removed.get(name) or suggestion(name, known)
            said = f"unknown factor '{name}' under '{group}'; {hint}{self.hint}"
            raise self.source.error(said, path)
        return factors[name]

    def sizes(self, axis: Axis) -> None:
        factor = self.workload.factors.get("n")
        for item in axis.items():
            if factor and factor.number:
                self.level(factor, item, expression=False)

    def system(self, item: PlacedValue) -> None:
        systems = [*self.workload.systems, *self.programs]
        if item.value not in systems:
            hint = suggestion(item.value, systems)
            raise self.source.error(f"unknown system {shown(item.value)}; {hint}", item.path)

    def program(self, system: ProgramSystem) -> None:
        """The name of an external program must be its own."""
        if system.name in self.workload.systems:
            said = f"'{system.name}' is a system of {self.workload.name}; give the program a name"
            raise self.source.error(f"{said} of its own", (*system.path, "name"))

    def kernel_runs(self, study: Study) -> None:
        """A study of an own kernel runs it, and varies its factors where it does."""
        way_out = f"name the kernel too: systems: [{study.name}, ...]"
        alone = [s for s in study.sweeps if s.programs_only]
        for sweep in alone:
            for name, axis in {**sweep.matrix, **sweep.zip}.items():
                if name not in ("n", "system") and not any(
                    f"{{{name}}}" in word
                    for p in sweep.programs.values()
                    for word in (*p.program.command, *p.program.environment.values())
                ):
                    said = f"'{name}' is no part of a command of the sweep's programs; {way_out}"
                    raise self.source.error(said, axis.path)
        if len(alone) == len(study.sweeps):
            said = f"every system is an external program, so the kernel does not run; {way_out}"
            raise self.source.error(said, (*alone[0].path, "systems"))

    def level(self, factor: Factor, item: PlacedValue, *, expression: bool = True) -> None:
        """A level, a number in range or an expression."""
        value = item.value
        if value == NOT_APPLICABLE:
            return
        if expression and is_expression(value, factor):
            self.expression(factor, str(value), item.path)
        elif said := factor.problem(value):
            told = self.workload.removed.get(factor.name)
            said = f"{said}; {told}" if told else said
            raise self.source.error(f"{said}{self.hint}", item.path)

    def expression(self, factor: Factor, text: str, path: KeyPath) -> None:
        if text.isidentifier() and text not in self.workload.factors:
            raise self.source.error(factor.problem(text), path)  # a misspelt level
        check_number(self.source, text, (*self.workload.factors, "n"), path, factor.name)

    def condition(self, condition: Condition) -> None:
        for name, items in condition.match.items():
            for item in items:
                if name == "system":
                    self.system(item)
                elif name != "n":
                    factor = self.factor(name, (*condition.path, name), "exclude")
                    self.level(factor, item, expression=False)
                elif not isinstance(item.value, int):
                    said = f"n is a whole number, not {shown(item.value)}"
                    raise self.source.error(said, item.path)
        if condition.expression is None:
            return
        factors = self.workload.factors
        levels = {level for factor in factors.values() for level in factor.levels}
        for name in sorted((condition.names & levels) - factors.keys()):
            said = f"in `{condition}`, {name} is a level: write it in quotes, '{name}'"
            raise self.source.error(said, condition.path)
        for name, constant in condition.expression.comparisons():
            item = PlacedValue(constant, condition.path)
            if name == "system":
                self.system(item)
            # A factor may be compared with any number: bounds apply to levels, not to conditions.
            elif name in factors and (isinstance(constant, str) or factors[name].number is None):
                self.level(factors[name], item, expression=False)

    def report(self, study: Study, entry: ReportItem, path: KeyPath) -> None:
        """The factors that a report entry names."""
        own = (name for sweep in study.sweeps for name in sweep.given)
        names = [*dict.fromkeys((*self.workload.factors, *own, "n", "system"))]
        used: dict[str, str] = {}
        for option, name in (("x", entry.x), ("y", entry.y), ("series", entry.series)):
            if name is None:
                continue
            if name not in names:
                hint = f"and {shown(name)} is not one; {suggestion(name, names)}"
                raise self.source.error(f"'{option}' takes a factor, {hint}", (*path, option))
            if name in used:
                said = f"'{option}' is {name}, as '{used[name]}' is already; name another factor"
                raise self.source.error(said, (*path, option))
            used[name] = option
