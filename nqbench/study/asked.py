"""What words of a command line ask for: points of a system or of a study, kernels as variants.

``nqbench check`` and ``nqbench explain`` run chosen points, ``nqbench run --axis`` a study with
other levels; ``nqbench bottleneck`` measures a study that is made of its words.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import yaml

from nqbench.errors import InfeasibleError, StudyError
from nqbench.facts import DeviceFacts
from nqbench.point import FactorLevels, Level, Point, text
from nqbench.study.check import check_level, is_expression
from nqbench.study.expand import expand
from nqbench.study.load import load_study, read_dict
from nqbench.study.model import NAME_LENGTH, Study
from nqbench.study.packaged import SOURCES
from nqbench.system.suggest import listing, nearest_file, suggestion
from nqbench.system.yaml_marks import KeyPath
from nqbench.workloads import find_system, register, with_systems
from nqbench.workloads.base import KERNEL, Workload, check_variants
from nqbench.workloads.own.arrays import STANDARD

SMALL_SIZES: Final = (8, 12, 32, 128, 4096)
"""Sizes tried for a system, in this order: what goes wrong in a kernel does so at small ones."""
SYSTEM, SWEEP = "system", "sweep"
BOTTLENECK: Final = "bottleneck"
PARTS: Final = "parts"
_PER_SM: Final = re.compile(r"(\d+)/SM", re.IGNORECASE)


def sides(conditions: Sequence[str]) -> list[list[str]]:
    """The conditions of one point, or of two to put side by side: the second condition on a factor
    begins the second point. What one of them leaves out is taken from the other.

    Raises ``StudyError`` for a third.
    """
    found: list[dict[str, str]] = [{}]
    for word in conditions:
        (name,) = _conditions([word])
        if name in found[-1]:
            found.append({})
        found[-1][name] = word
    if len(found) > 2:
        said = "two points stand side by side; write FACTOR=LEVEL,LEVEL to take several"
        raise StudyError(f"--point {conditions[-1]}: {said}")
    return [list({**found[-1], **found[0], **one}.values()) for one in found]


def chosen_points(
    subject: str | Study, facts: DeviceFacts, conditions: Sequence[str] = (),
    sizes: Sequence[int] = (), warn: Callable[[str], object] | None = None,
) -> list[Point]:  # fmt: skip
    """Points of a named system, or of a study (a file, the name of a packaged one, or itself).

    ``conditions`` are ``factor=level`` words: levels of a system, or what the points of a study
    must have (``system`` and ``sweep`` too); ``factor=a,b`` takes both levels. Without ``sizes``
    (and a condition on ``n``) each configuration is taken at its smallest size.

    Raises ``StudyError`` and ``InfeasibleError``.
    """
    if isinstance(subject, str):
        named = any(subject in workload.systems for workload in with_systems())
        if named and not Path(subject).exists():
            return _of_system(subject, facts, conditions, sizes)
        study = load_study(Path(subject))
    else:
        study, subject = subject, subject.name
    points = expand(study, facts, warn=warn)
    wanted = _conditions(conditions)
    _check_conditions(subject, points, wanted, sizes)
    chosen = [
        p
        for p in points
        if (not sizes or p.n in sizes) and all(_level(p, name) in v for name, v in wanted.items())
    ]
    if not chosen:
        said = ", ".join(f"{name}={','.join(levels)}" for name, levels in wanted.items())
        raise StudyError(f"no point of {subject} has all of {said}")
    return chosen if sizes or "n" in wanted else smallest(chosen)


_ARGUMENT: Final = re.compile(r"\s*([^\W\d]\w*)\s*:\s*(\w+)\s*(?:\[([^\]]+)\])?\s*(?:=\s*(.+))?")
_PLAIN: Final = re.compile(r"-?\d+(?:\.\d*)?")


def of_kernel(
    source: Path, launch: Mapping[str, str], cooperative: bool, arguments: Sequence[str],
    include: Sequence[Path] = (),
) -> Study:  # fmt: skip
    """A study of one launch of a kernel in a file. ``launch`` has ``entry``, ``grid`` and ``block``
    (written like ``4,2``) and ``shared``, ``arguments`` are like ``x: float32[1024] = random`` and
    ``n: int32 = 1024``, ``include`` are the folders of its headers. Raises ``StudyError``.
    """
    if not source.is_file():
        close = "" if source.is_dir() else nearest_file(source, *SOURCES)
        hint = f"; did you mean {close}?" if close else ", but a folder" * source.is_dir()
        raise StudyError(f"there is no file {source}{hint}")
    if missing := [f"--{name}" for name in ("entry", "grid", "block") if not launch[name]]:
        form = "--entry NAME --grid 4 --block 128 --arg 'x: float32[1024] = random'"
        raise StudyError(f"{source}: {listing(missing, 'and')} must be given: {form}")
    taken: dict[str, dict[str, Any]] = {}
    values: dict[str, Any] = {}
    said: dict[KeyPath, str] = {
        (KERNEL, name): f"--{name} {shlex.quote(word)}" for name, word in launch.items()
    }
    for word in arguments:
        found = _ARGUMENT.fullmatch(word)
        name, dtype, extent, given = found.groups() if found else ("",) * 4
        if not (extent or (given and given not in STANDARD)):
            form = "write 'x: float32[1024] = random' for a buffer, 'n: int32 = 1024' for a number"
            raise StudyError(f"--arg '{word}' cannot be read; {form}")
        if name in taken:
            raise StudyError(f"--arg {name} is given twice")
        said |= {(KERNEL, group, name): f"--arg '{word}'" for group in ("arguments", "values")}
        if extent:
            taken[name] = {"dtype": dtype, "shape": _numbers(extent), "restore": bool(given)}
            taken[name] |= {"contents": _number(given)} if given else {}
        else:  # other expressions may read it
            taken[name] = {"dtype": dtype, "value": name}
            values[name] = _number(given)
    kernel: dict[str, object] = {"source": source.name, "entry": launch["entry"]}
    kernel |= {name: _numbers(launch[name]) for name in ("grid", "block")}
    kernel |= {"shared": _number(launch["shared"] or "0"), "cooperative": cooperative}
    folders = [str(folder.resolve()) for folder in include]
    said |= {(KERNEL, "include", i): f"--include {folder}" for i, folder in enumerate(include)}
    parts = {"arguments": taken, "values": values, "include": folders}
    kernel |= {key: part for key, part in parts.items() if part}
    study = read_dict({"name": re.sub(r"\W", "_", source.stem), "n": [1], "kernel": kernel})
    return load_study(replace(study, path=source, lines={}, words=said))


def _numbers(words: str) -> list[int | float | str]:
    return [_number(word.strip()) for word in words.split(",")]


def _number(word: str) -> int | float | str:
    """A number, or an expression as it is."""
    found: int | float | str = yaml.safe_load(word) if _PLAIN.fullmatch(word) else word
    return found


def _of_system(
    name: str, facts: DeviceFacts, conditions: Sequence[str], sizes: Sequence[int]
) -> list[Point]:
    """Every combination of the levels asked for, at the sizes given, or at the smallest that it
    takes."""
    workload = find_system(name)
    if name in workload.cpu_systems:
        raise InfeasibleError(f"{name} runs on the CPU: there is no kernel to look into")
    wanted = _conditions(conditions)
    given = [*sizes]
    for word in wanted.pop("n", ()):
        if not word.isdecimal():
            raise StudyError(f"--point n={word}: a size is a whole number")
        given.append(int(word))
    words = [[(f, _level_of(f, v, workload)) for v in vs] for f, vs in wanted.items()]
    points: list[Point] = []
    for levels in map(dict, product(*words)):
        if given:
            points += [_made(name, workload, {**levels, "n": n}, facts) for n in given]
            continue
        refusals: list[Exception] = []
        for n in SMALL_SIZES:
            try:
                points.append(_made(name, workload, {**levels, "n": n}, facts))
                break
            except (InfeasibleError, StudyError) as error:
                refusals.append(error)
        else:
            raise refusals[0]
    return points


def _made(name: str, workload: Workload, levels: FactorLevels, facts: DeviceFacts) -> Point:
    resolved = workload.resolve(levels, name, facts)
    workload.plan(resolved.factors, name, facts)
    return Point(name, SYSTEM, workload.name, name, resolved.factors, resolved.derived)


def _level_of(factor: str, word: str, workload: Workload) -> Level:
    """The level that a word stands for. Raises ``StudyError`` unless the workload has it."""
    level = _read_level(word)
    check_level(workload.factors, factor, level, f"{factor}={word}: ")
    return level


def _read_level(word: str) -> Level:
    """``2/SM``, a whole number, or a name."""
    if per_sm := _PER_SM.fullmatch(word):
        return {"per_sm": int(per_sm[1])}
    return int(word) if word.lstrip("-").isdecimal() else word


def _conditions(
    words: Sequence[str], option: str = "--point", example: str = "block_size=64"
) -> dict[str, list[str]]:
    """The levels asked for, by factor; a factor that is named again takes more of them."""
    found: dict[str, list[str]] = {}
    for word in words:
        name, equals, level = word.partition("=")
        if not equals or not name or not all(levels := level.split(",")):
            raise StudyError(f"{option} {word}: write FACTOR=LEVEL, for example {option} {example}")
        found.setdefault(name, []).extend(levels)
    return found


def _level(point: Point, name: str) -> str | None:
    if name in (SYSTEM, SWEEP):
        return point.system if name == SYSTEM else point.sweep
    return text(point.factors[name]) if name in point.factors else None


def _check_conditions(
    subject: str, points: Sequence[Point], wanted: Mapping[str, Sequence[str]], sizes: Sequence[int]
) -> None:
    """Raise ``StudyError`` for a factor, a level or a size that no point has."""
    known = list(dict.fromkeys(name for p in points for name in (SYSTEM, SWEEP, *p.factors)))
    for name, words in wanted.items():
        said = f"--point {name}={','.join(words)}"
        if name not in known:
            raise StudyError(f"{said}: no point of {subject} has {name}; {suggestion(name, known)}")
        levels = list(dict.fromkeys(found for p in points if (found := _level(p, name))))
        for level in words:
            if level not in levels:
                hint = f": each factor has its own --point: --point {level}" if "=" in level else ""
                said = f"{said}: {subject} has {name} {listing(levels)}, not {level}{hint}"
                raise StudyError(said)
    there = sorted({p.n for p in points})
    for n in sizes:
        if n not in there:
            raise StudyError(f"--n {n}: {subject} has n {listing(list(map(str, there)))}")


def smallest(points: Sequence[Point]) -> list[Point]:
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


def with_axes(config: Path, words: Sequence[str]) -> Study:
    """The study of a file with other levels: ``factor=a,b`` words, each in place of what the sweeps
    that vary or fix the factor give, or else in every sweep.

    Raises ``StudyError`` for an unknown factor or level, and one that runs side by side with others
    (``zip``).
    """
    study = load_study(config)
    asked = _conditions(words, "--axis", "n=15,16")
    axes = {name: [*map(_read_level, levels)] for name, levels in asked.items()}
    workload = register(study.external)
    data = deepcopy(dict(study.source.data))
    written = data.get("sweeps", [data])
    for name, values in axes.items():
        said = f"--axis {name}={','.join(map(text, values))}"
        for value in values:
            if name == "n" or not is_expression(value, workload.factors.get(name)):
                check_level(workload.factors, name, value, f"{said}: ")
        holders = [s for s, sweep in zip(written, study.sweeps, strict=True) if name in sweep.given]
        if beside := next((s.zip for s in study.sweeps if name in s.zip), None):
            others = listing([other for other in beside if other != name], "and")
            said = f"{said}: {name} runs side by side with {others} under zip; edit these"
            raise StudyError(said)
        for sweep in holders or written if name != "n" else ():
            sweep["matrix"] = {**sweep.get("matrix", {}), name: values}
            _drop(sweep, "fixed", name)
        if name == "n":
            for sweep in written:
                _drop(sweep, "fixed", name)
                _drop(sweep, "matrix", name)
                sweep.pop(name, None)
            data[name] = values
    return load_study(replace(study.source, data=data)) if axes else study


def _drop(sweep: dict[str, Any], group: str, name: str) -> None:
    """Leave a factor out of a group, and the group if it is the last."""
    if sweep.get(group, {}).pop(name, None) is not None and not sweep[group]:
        del sweep[group]


def variants_study(words: Sequence[str], sizes: Sequence[int] = ()) -> Study:
    """The study of a command line: names of systems of one workload, ``factor=level`` words for all
    of them. Each kernel becomes three points that differ in the factor ``part``. Without ``sizes``
    the workload proposes one for each kind of device.

    Raises ``StudyError`` for an unknown name, size or level, ``InfeasibleError`` for a system that
    runs on the CPU or whose workload cannot separate arithmetic from memory accesses.
    """
    names = list(dict.fromkeys(word for word in words if "=" not in word))
    if not names:
        raise StudyError("bottleneck needs a system; `nqbench kernels` lists them")
    if any(word.startswith("n=") for word in words):
        raise StudyError("the size is an option: write --n")
    workloads = list(map(find_system, names))
    for name, workload in zip(names, workloads, strict=True):
        if name in workload.cpu_systems:  # before a reason about kernels
            raise InfeasibleError(f"{name} runs on the CPU: only kernels have variants")
        check_variants(workload, name)
        if workload is not workloads[0]:
            first = f"{names[0]} of {workloads[0].name}"
            raise StudyError(f"{name} is of workload {workload.name}, {first}: measure them apart")
    levels = {
        factor: _level_of(factor, level, workloads[0])
        for factor, _, level in (word.partition("=") for word in words if "=" in word)
    }
    sweep = {"name": PARTS, "systems": names, **({"fixed": levels} if levels else {})}
    return load_study(
        {
            "name": "-".join((BOTTLENECK, *names))[:NAME_LENGTH],
            "about": "Kernels without arithmetic and without memory, next to the full kernel",
            "workload": workloads[0].name,
            "n": list(sizes) or dict(workloads[0].variant_n),
            "sweeps": [sweep],
            "measure": {"variants": [PARTS]},
            "report": [{"table": BOTTLENECK}, {"figure": BOTTLENECK}],
        }
    )
