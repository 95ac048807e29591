"""A study against its workload: names of factors, levels, systems, and those in expressions."""

from __future__ import annotations

from collections.abc import Mapping

from nqbench.point import Level
from nqbench.study import expressions
from nqbench.study.model import Axis, Condition, Item, Study, Sweep
from nqbench.study.yaml_marks import KeyPath, Source
from nqbench.system.suggest import listing, nearest, shown, suggestion
from nqbench.workloads.base import NOT_APPLICABLE, Factor, Workload


def check(study: Study, workload: Workload) -> None:
    """Raise ``StudyError`` with file:line for a name or level that the workload does not have."""
    for sweep in study.sweeps:
        _check_factors(study.source, sweep, workload)
        for condition in (*sweep.exclude, *sweep.where):
            _check_condition(study.source, condition, workload)
    if study.n:
        _check_sizes(study.source, study.n, workload)
    for index in range(len(study.report)):
        _check_report(study, index, workload)


def _check_report(study: Study, index: int, workload: Workload) -> None:
    """The factors and sizes that a report entry names."""
    entry, names = study.report[index], [*workload.factors, "n", "system"]
    used: dict[str, str] = {}
    for option, name in (("x", entry.x), ("y", entry.y), ("series", entry.series)):
        if name is not None and name not in names:
            raise study.source.error(
                f"'{option}' takes a factor, and {shown(name)} is none; {suggestion(name, names)}",
                ("report", index, option),
            )
        if name is not None and name in used:
            raise study.source.error(
                f"'{option}' is {name}, as '{used[name]}' is already; name another factor",
                ("report", index, option),
            )
        if name is not None:
            used[name] = option
    drawn = [sweep for sweep in study.sweeps if entry.of in (None, sweep.name)]
    axes = [axis for sweep in drawn if (axis := sweep.given.get("n", study.n))]
    sizes = sorted({item.value for a in axes for item in a.items() if isinstance(item.value, int)})
    for n in entry.n:
        if n not in sizes:
            raise study.source.error(
                f"'n' asks for the size {n}, but the sizes here are {listing(map(str, sizes))}",
                ("report", index, "n"),
            )


def is_expression(value: Level, factor: Factor | None) -> bool:
    """Whether a value is an expression to work out, not a level of its own."""
    if not isinstance(value, str) or factor is None or factor.number is None:
        return False
    return value not in (*factor.levels, NOT_APPLICABLE) and not (factor.auto and value == "auto")


def _check_factors(source: Source, sweep: Sweep, workload: Workload) -> None:
    groups = {"fixed": sweep.fixed, "matrix": sweep.matrix, "zip": sweep.zip}
    for group, factors in groups.items():
        for name, axis in factors.items():
            if name not in ("n", "system"):
                factor = _factor(source, name, axis.path, group, workload)
                for item in axis.items():
                    check_level(source, factor, item, workload)
    given = sweep.given
    if "n" in given:
        _check_sizes(source, given["n"], workload)
    if "system" in given:
        for item in given["system"].items():
            _check_system(source, item, workload)


def _factor(source: Source, name: str, path: KeyPath, group: str, workload: Workload) -> Factor:
    if name in workload.factors:
        return workload.factors[name]
    names = [*workload.factors, *(["system"] if group != "fixed" else [])]
    raise source.error(f"unknown factor '{name}' under '{group}'; {suggestion(name, names)}", path)


def _check_sizes(source: Source, axis: Axis, workload: Workload) -> None:
    factor = workload.factors.get("n")
    if factor and factor.number:
        low, high = factor.number
        for item in axis.items():
            if not (isinstance(item.value, int) and low <= item.value <= high):
                raise source.error(
                    f"n is {item.value}, but {workload.name} takes n from {low} to {high}",
                    item.path,
                )


def _check_system(source: Source, item: Item, workload: Workload) -> None:
    if item.value not in workload.systems:
        raise source.error(
            f"unknown system {shown(item.value)}; {suggestion(item.value, workload.systems)}",
            item.path,
        )


def check_level(
    source: Source, factor: Factor, item: Item, workload: Workload, *, expression: bool = True
) -> None:
    """Raise ``StudyError`` unless ``item`` is a level, a number in range or an expression."""
    value = item.value
    if value == NOT_APPLICABLE:
        return
    if isinstance(value, Mapping):
        if not factor.per_sm:
            raise source.error(
                f"'{factor.name}' takes {takes(factor)}, not {{per_sm: {value['per_sm']}}}",
                item.path,
            )
    elif isinstance(value, int):
        check_number(source, factor, value, item.path)
    elif expression and is_expression(value, factor):
        _check_expression(source, factor, item, workload)
    elif value not in (*factor.levels, *(("auto",) if factor.auto else ())) and not factor.text:
        close = nearest(value, factor.levels)
        hint = f"; did you mean '{close}'?" if close else ""
        raise source.error(
            f"'{factor.name}' takes {takes(factor)}, not {shown(value)}{hint}", item.path
        )


def check_number(
    source: Source, factor: Factor, value: int, path: KeyPath, origin: str = ""
) -> None:
    """Raise ``StudyError`` unless the factor takes this number."""
    if factor.number is None:
        raise source.error(f"'{factor.name}' takes {takes(factor)}, not the number {value}", path)
    low, high = factor.number
    if not low <= value <= high:
        raise source.error(f"'{factor.name}' is {value}{origin}, but takes {takes(factor)}", path)


def takes(factor: Factor) -> str:
    """What a factor takes, in words."""
    forms = [*factor.levels, *(["auto"] if factor.auto else [])]
    if factor.number:
        forms.append(f"a whole number from {factor.number[0]} to {factor.number[1]}")
    if factor.per_sm:
        forms.append("{per_sm: k}")
    if factor.text:
        forms.append("the name of a file")
    return listing(forms)


def _check_expression(source: Source, factor: Factor, item: Item, workload: Workload) -> None:
    text = str(item.value)
    words = (*factor.levels, *(("auto",) if factor.auto else ()))
    close = nearest(text, words) if text.isidentifier() else None
    if text.isidentifier() and text not in workload.factors:
        hint = f"; did you mean '{close}'?" if close else ""
        raise source.error(
            f"'{factor.name}' takes {takes(factor)}, not {shown(text)}{hint}", item.path
        )
    with source.at(item.path, f"'{factor.name}': "):
        parsed = expressions.parse(text, expressions.STUDY)
    known = (*workload.factors, "n")
    for name in sorted(parsed.names - set(known)):
        said = expressions.unknown_name(text, name, known, expressions.STUDY)
        raise source.error(f"'{factor.name}': {said}", item.path)


def _check_condition(source: Source, condition: Condition, workload: Workload) -> None:
    for name, items in condition.match.items():
        for item in items:
            if name == "system":
                _check_system(source, item, workload)
            elif name == "n" and not isinstance(item.value, int):
                raise source.error(f"n is a whole number, not {shown(item.value)}", item.path)
            elif name != "n":
                factor = _factor(source, name, (*condition.path, name), "exclude", workload)
                check_level(source, factor, item, workload, expression=False)
    if condition.expression is None:
        return
    levels = {level for factor in workload.factors.values() for level in factor.levels}
    for name in sorted((condition.names & levels) - workload.factors.keys()):
        raise source.error(
            f"in `{condition.expression.text}`, {name} is a level: write it in quotes, '{name}'",
            condition.path,
        )
    for name, constant in condition.expression.comparisons():
        item = Item(constant, condition.path)
        with source.at(condition.path):
            if name == "system":
                _check_system(source, item, workload)
            elif name in workload.factors and (
                isinstance(constant, str) or not _number(name, workload)
            ):
                check_level(source, workload.factors[name], item, workload, expression=False)


def _number(name: str, workload: Workload) -> bool:
    """Whether any number may be compared with a factor (bounds are for levels, not conditions)."""
    return workload.factors[name].number is not None
