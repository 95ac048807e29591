"""Reads a study file: YAML, grammar, and all checks that need neither workload nor device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from nqbench.errors import StudyError
from nqbench.point import Executable
from nqbench.study import model
from nqbench.study import values as forms
from nqbench.study.own_kernel import read_kernel
from nqbench.study.packaged import find_study
from nqbench.study.report_items import (
    OPTIONS,
    REMOVED_TABLES,
    Form,
    ReportItem,
    ReportKind,
    kinds,
    values,
)
from nqbench.study.schema import MeasureFile, ProgramFile, ReportFile, StudyFile, SweepKeys
from nqbench.system.suggest import listing, shown, suggestion
from nqbench.system.yaml_marks import KeyPath, ParsedFile, fit, parse, read
from nqbench.vocabulary import is_counter
from nqbench.workloads import KERNEL, ExternalWorkload, register
from nqbench.workloads.own.kernel import OwnKernel


def load_study(given: Path | str | Mapping[str, Any] | ParsedFile) -> model.Study:
    """Read a study: a file, one that comes with nqbench by its name (``ablation``), a dictionary.

    A dictionary has the form of a file. Its mistakes are located by the keys that lead to them.
    Raises ``StudyError`` with file:line for the first mistake: unreadable file, YAML syntax, a key
    or type that the grammar does not know, an empty range, lists of unequal length under ``zip``, a
    report entry that does not exist, ... Names of factors and systems are checked by ``expand``.
    """
    if isinstance(given, Mapping):
        source = read_dict(given)
    else:
        source = given if isinstance(given, ParsedFile) else read(find_study(Path(given)))
    file = fit(source, StudyFile)
    name, own = _workload(source, file)
    sizes = forms.sizes(source, file.n, ("n",)) if file.n is not None else None
    sweeps = [_open_factors(sweep, own) for sweep in _sweeps(source, file, sizes)]
    return model.Study(
        name=file.name,
        about=file.about,
        workload=name,
        n=sizes,
        sweeps=tuple(sweeps),
        measure=_measure(source, file.measure, [sweep.name for sweep in sweeps]),
        report=tuple(
            _report_item(source, item, ("report", index), [sweep.name for sweep in sweeps])
            for index, item in enumerate(file.report)
        ),
        source=source,
        kernel=source.data.get(KERNEL),
    )


def _workload(source: ParsedFile, file: StudyFile) -> tuple[str, OwnKernel | None]:
    """The name of the study's workload, and its own kernel. One from outside is loaded here."""
    if file.kernel is None:
        if ":" in file.workload:
            with source.at(("workload",)):
                folder = str(source.path.parent.absolute())
                register(ExternalWorkload(file.name, folder, file.workload))
        return file.workload, None
    if "workload" in source.data:
        said = "'workload' and 'kernel' both say what is computed; keep one of them"
        raise source.error(said, ("workload",))
    own = read_kernel(source, file.name, file.kernel)
    return own.name, own


def _open_factors(sweep: model.Sweep, own: OwnKernel | None) -> model.Sweep:
    """The sweep with the factors of its own kernel that it leaves out: without a ``default`` all
    their levels count, as if they stood under ``matrix``."""
    if own is None or sweep.programs_only:
        return sweep
    named = sweep.given.get("system")
    names = [str(i.value) for i in named.items()] if named else [""]
    systems = [own.systems.get(name, {}) for name in names if name not in sweep.programs]
    found = {
        name: model.Axis(
            dict.fromkeys(model.KINDS, tuple(model.PlacedValue(v, place) for v in about["levels"])),
            place,
        )
        for name, about in own.block.factors.items()
        if about.get("levels")
        and name != "n"
        and name not in {**sweep.given, **own.defaults}
        and not all(name in system for system in systems)
        for place in [(KERNEL, "factors", name)]
    }
    return replace(sweep, matrix={**found, **sweep.matrix})


def _sweeps(
    source: ParsedFile, file: StudyFile, sizes: model.Axis | None
) -> tuple[model.Sweep, ...]:
    at_top = [key for key in model.SWEEP_KEYS if key in source.data]
    if file.sweeps is None:
        if not at_top and file.kernel is None:
            raise source.error(
                "the study has nothing to run: it needs 'sweeps', or one sweep's keys at top level"
                f" ({listing(model.SWEEP_KEYS)})"
            )
        return (_sweep(source, file, (), file.name, sizes),)
    if at_top:
        said = f"'{at_top[0]}' is at top level next to 'sweeps'; move it into its sweep"
        raise source.error(said, (at_top[0],))
    names = [sweep.name for sweep in file.sweeps]
    for index, name in enumerate(names):
        if name in names[:index]:
            said = f"two sweeps are called '{name}'; give each its own name"
            raise source.error(said, ("sweeps", index, "name"))
    sweeps = [
        _sweep(source, sweep, ("sweeps", index), sweep.name, sizes)
        for index, sweep in enumerate(file.sweeps)
    ]
    _check_programs(source, [program for s in sweeps for program in s.programs.values()])
    return tuple(sweeps)


def _check_programs(source: ParsedFile, found: Sequence[model.ProgramSystem]) -> None:
    """A name stands for one program in the whole study."""
    first: dict[str, model.ProgramSystem] = {}
    for one in found:
        if first.setdefault(one.name, one).program != one.program:
            said = f"two programs are called '{one.name}'; give each its own name"
            raise source.error(said, one.path)


def _sweep(
    source: ParsedFile, keys: SweepKeys, path: KeyPath, name: str, sizes: model.Axis | None
) -> model.Sweep:
    def group(key: str, read_axis: Any) -> dict[str, model.Axis]:
        values = getattr(keys, key) or {}
        return {f: read_axis(source, raw, (*path, key, f)) for f, raw in values.items()}

    def conditions(key: str) -> tuple[model.Condition, ...]:
        raw = getattr(keys, key)
        mappings = key == "exclude"
        return () if raw is None else forms.conditions(source, raw, (*path, key), mappings=mappings)

    systems, programs = _systems(source, keys, path)
    sweep = model.Sweep(
        name=name,
        path=path,
        n=forms.sizes(source, keys.n, (*path, "n")) if path and keys.n is not None else None,
        systems=systems,
        fixed=group("fixed", forms.one),
        matrix=group("matrix", forms.several),
        zip=group("zip", forms.several),
        exclude=conditions("exclude"),
        where=conditions("where"),
        infeasible=keys.infeasible,
        programs=programs,
    )
    _check_given(source, sweep, sizes)
    _check_zip(source, sweep)
    return sweep


def _systems(
    source: ParsedFile, keys: SweepKeys, path: KeyPath
) -> tuple[model.Axis | None, dict[str, model.ProgramSystem]]:
    """The axis of systems, and the external programs among them by their names."""
    at = (*path, "systems")
    if keys.system is not None and keys.systems is not None:
        raise source.error("give 'system' or 'systems', not both", at)
    if keys.system is not None:
        return forms.one(source, keys.system, (*path, "system")), {}
    if keys.systems is None:
        return None, {}
    names, found = _read_programs(source, keys.systems, at)
    axis = forms.several(source, names, at)
    _check_programs(source, found)
    return axis, {one.name: one for one in found}


def _read_programs(
    source: ParsedFile, raw: Any, path: KeyPath
) -> tuple[Any, list[model.ProgramSystem]]:
    """The value of ``systems`` with every program replaced by its name, and the programs.

    Raises ``StudyError`` at the line of a mistake.
    """
    if isinstance(raw, dict) and raw.keys() & set(model.KINDS):
        pairs = {k: _read_programs(source, v, (*path, k)) for k, v in raw.items()}
        return {k: names for k, (names, _) in pairs.items()}, [
            program for _, found in pairs.values() for program in found
        ]
    if not isinstance(raw, list):
        return raw, []
    found = {
        index: _program(source, (*path, index))
        for index, item in enumerate(raw)
        if isinstance(item, dict)
    }
    names = [found[i].name if i in found else item for i, item in enumerate(raw)]
    return names, list(found.values())


def _program(source: ParsedFile, path: KeyPath) -> model.ProgramSystem:
    file = fit(source, ProgramFile, path)
    if file.unit and not file.time:
        raise source.error("'unit' needs a time: add the pattern `time`", (*path, "unit"))
    if not str(file.command[0]).strip():
        raise source.error("the first word of 'command' names the program", (*path, "command"))
    program = Executable(
        tuple(map(str, file.command)),
        file.answer or "",
        file.time or "",
        file.unit or "",
        {name: str(word) for name, word in file.env.items()},
        tuple(map(str, file.depends or ())),
        file.device,
        str(source.path.absolute().parent),
    )
    return model.ProgramSystem(file.name, program, path)


def _check_given(source: ParsedFile, sweep: model.Sweep, sizes: model.Axis | None) -> None:
    """Every factor is given once, and there are sizes."""
    groups = {"fixed": sweep.fixed, "matrix": sweep.matrix, "zip": sweep.zip}
    if not any(groups.values()) and not sweep.systems and KERNEL not in source.data:
        said = f"the sweep '{sweep.name}' is empty: it needs system, systems, fixed, matrix or zip"
        raise source.error(said, sweep.path)
    places: dict[str, str] = {}
    if sweep.systems:
        places["system"] = "system" if (*sweep.path, "system") in source.lines else "systems"
    if sweep.n:
        places["n"] = "the sweep's own n"
    for group, factors in groups.items():
        for factor, axis in factors.items():
            if factor in places:
                said = f"'{factor}' is given under {group} and under {places[factor]}"
                raise source.error(f"{said}; keep one of them", axis.path)
            places[factor] = group
    if "system" in sweep.fixed:
        said = "write 'system' in the sweep itself, not under fixed"
        raise source.error(said, sweep.fixed["system"].path)
    if "n" not in places and sizes is None:
        said = f"the sweep '{sweep.name}' has no sizes; give n in the sweep or at top level"
        raise source.error(said, sweep.path)


def _check_zip(source: ParsedFile, sweep: model.Sweep) -> None:
    for kind in model.KINDS:
        lengths = {factor: len(axis.on(kind)) for factor, axis in sweep.zip.items()}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{factor} has {length}" for factor, length in lengths.items())
            said = f"the lists under zip run side by side, so they need equal lengths: {counts}"
            raise source.error(f"{said} on a {kind} device", (*sweep.path, "zip"))


def _measure(source: ParsedFile, file: MeasureFile, sweeps: list[str]) -> model.Measure:
    for key in ("counted", "long", "variants"):
        for index, name in enumerate(getattr(file, key)):
            if name not in sweeps:
                said = f"there is no sweep {shown(name)}; {suggestion(name, sweeps)}"
                raise source.error(said, ("measure", key, index))
    if file.counted and file.counters == "none":
        said = "'counted' needs a counter: add 'counters: ncu'"
        raise source.error(said, ("measure", "counted"))
    given = file.model_dump().items()
    made: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in given}
    return model.Measure(**made)


def _report_item(
    source: ParsedFile, file: ReportFile, path: KeyPath, sweeps: Sequence[str]
) -> ReportItem:
    """One entry. Raises ``StudyError`` for an unknown name, an unsupported or a missing option.

    Whether ``x``, ``y`` and ``series`` are factors is checked once the workload is known.
    """
    kind = _kind(source, file, path)
    _check_options(source, file, path, kind)
    if file.of is not None and file.of not in sweeps:
        said = f"'of': there is no sweep {shown(file.of)}; {suggestion(file.of, sweeps)}"
        raise source.error(said, (*path, "of"))
    of = file.of
    if of is None and not kind.every:
        if len(sweeps) > 1:
            told = f"one of the sweeps {listing(sweeps)}"
            raise source.error(f"the {kind.form} '{kind.name}' needs 'of': {told}", path)
        of = sweeps[0]
    known = (*values(), *source.data.get(KERNEL, {}).get("metrics", {}))
    if file.value is not None and file.value not in known and not is_counter(file.value):
        said = f"'value' cannot be {shown(file.value)}; {suggestion(file.value, known)}"
        raise source.error(said, (*path, "value"))
    return ReportItem.from_json(file.model_dump(exclude_none=True) | {"of": of})


def _kind(source: ParsedFile, file: ReportFile, path: KeyPath) -> ReportKind:
    if (file.table is None) == (file.figure is None):
        raise source.error("a report entry is either {table: NAME} or {figure: NAME}", path)
    form: Form = "table" if file.table is not None else "figure"
    name = file.table or file.figure or ""
    if name in kinds(form):
        return kinds(form)[name]
    if form == "table" and name in REMOVED_TABLES:
        said = f"there is no table '{name}' any more: {REMOVED_TABLES[name]}"
        raise source.error(said, (*path, form))
    hint = suggestion(name, kinds(form))
    raise source.error(f"there is no {form} '{name}'; {hint}", (*path, form))


def _check_options(source: ParsedFile, file: ReportFile, path: KeyPath, kind: ReportKind) -> None:
    given = file.model_fields_set & OPTIONS.keys()
    for option in OPTIONS:
        if option in given and option not in kind.options:
            raise source.error(
                f"the {kind.form} '{kind.name}' takes no '{option}';"
                f" it takes {listing(kind.options, 'and')}",
                (*path, option),
            )
        if option in kind.required and option not in given:
            said = f"the {kind.form} '{kind.name}' needs '{option}': {OPTIONS[option]}"
            raise source.error(said, path)


def read_dict(data: Mapping[str, Any]) -> ParsedFile:
    """Read a study from a dictionary. Raises ``StudyError`` that names the keys of a mistake."""
    name = Path("study")
    if not data:
        raise StudyError(f"the {name} is empty; it is keys with values, as in a file")
    try:
        text = yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True)
    except yaml.representer.RepresenterError as error:
        value = error.args[-1]
        raise StudyError(
            f"{name} holds {shown(repr(value))}, of type {type(value).__name__}; it takes numbers,"
            " text, lists and dictionaries"
        ) from error
    except RecursionError as error:
        raise StudyError(f"{name} is nested too deeply") from error
    try:
        return replace(parse(name, text), in_memory=True)
    except StudyError as error:
        known = {error.keys[:end]: 1 for end in range(len(error.keys) + 1)}
        place = ParsedFile(name, text, {}, known, in_memory=True).place(error.keys)
        raise StudyError(error.message, place) from error
