"""Studies to points: every combination of a sweep, resolved by the workload for one device."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nqbench.errors import InfeasibleError, NothingRuns, StudyError, WrongDeviceError
from nqbench.facts import DeviceFacts
from nqbench.point import Level, Point
from nqbench.study import expressions
from nqbench.study.check import NOT_APPLICABLE, check
from nqbench.study.combine import Given, check_size, combinations, context, plain
from nqbench.study.measured import apart, measured_points
from nqbench.study.model import Condition, Study, Sweep
from nqbench.study.resolve import Settling
from nqbench.study.yaml_marks import KeyPath
from nqbench.system.suggest import shown
from nqbench.workloads.base import Workload


def expand(study: Study, facts: DeviceFacts, *, workload: Workload | None = None) -> list[Point]:
    """The points of a study on a device: sweeps in file order, then n ascending, then matrix order.

    Points that resolve to the same configuration within a sweep are merged. A point that cannot run
    is an error at the responsible line, or carries its reason in ``skip`` (``infeasible: skip``, or
    a kernel on a device without a GPU). Raises ``StudyError`` with file:line, also if nothing
    would run.
    """
    chosen = workload or _workload(study)
    check(study, chosen)
    check_size(study, facts.kind)
    points: list[Point] = []
    for sweep in study.sweeps:
        points += _Expansion(study, sweep, chosen, facts).points()
    if not points:
        raise _nothing(
            study,
            f"nothing would run: no sweep gives values for a device of kind '{facts.kind}';"
            f" add {facts.kind}: [...] to n, or choose another device",
            "n",
        )
    if all(point.skip for point in points):
        raise _nothing(
            study,
            f"nothing would run on {facts.name}: all {len(points)} points are skipped,"
            f" the first ({points[0].label()}) because {points[0].skip}",
            "sweeps",
        )
    points = apart(study, points, chosen, facts)
    return measured_points(points, study.measure.l2, facts.kind, chosen.cpu_systems)


def _nothing(study: Study, message: str, key: str) -> NothingRuns:
    error = study.source.error(message, (key,))
    return NothingRuns(error.message, error.place)


def _workload(study: Study) -> Workload:
    from nqbench import workloads

    with study.source.at(("workload",)):
        found: Workload = workloads.get(study.workload)
    return found


@dataclass(slots=True)
class _Expansion:
    """One sweep on one device. ``names`` collects what expressions may read, over all points."""

    study: Study
    sweep: Sweep
    workload: Workload
    device: DeviceFacts
    names: set[str] = field(default_factory=set)

    def points(self) -> list[Point]:
        found: dict[str, Point] = {}
        given = combinations(self.study, self.sweep, self.device.kind)
        for combination in given:
            point = self.point(combination)
            if point is not None:
                found.setdefault(_identity(point), point)
        if given and not found:
            key = "where" if self.sweep.where else "exclude"
            raise self.study.source.error(
                f"no point of the sweep '{self.sweep.name}' is left: its conditions remove all"
                f" {len(given)}",
                (*self.sweep.path, key),
            )
        self.check_names()
        return list(found.values())

    def point(self, given: Given) -> Point | None:
        """The point of a combination; ``None`` if a condition leaves it out.

        Conditions that need only what the file gives are judged before the workload resolves the
        point, so that ``exclude`` can remove what would be infeasible.
        """
        source = self.study.source
        levels = Settling(source, self.sweep, self.workload, self.device, given).levels()
        system = levels.pop("system", None)
        assert system is None or isinstance(system, str)  # checked when the file was read
        told: dict[str, Any] = {f: v for f, v in levels.items() if _settled(v)}
        told["system"] = system or ""
        conditions = (*self.sweep.exclude, *self.sweep.where)
        early = [c for c in conditions if c.names <= told.keys()]
        if any(self.removes(c, told, levels, given) for c in early):
            return None
        factors: Mapping[str, Level] = {**self.workload.systems.get(system or "", {}), **levels}
        derived: Mapping[str, int | float | str] = {}
        skip = ""
        try:
            asked = {f: level for f, level in levels.items() if level != NOT_APPLICABLE}
            resolved = self.workload.resolve(asked, system, self.device)
        except StudyError as error:
            blamed = given.get(error.factor)
            with source.at(blamed.path if blamed else self.sweep.path):
                raise
        except InfeasibleError as error:
            if self.sweep.infeasible == "error" and not isinstance(error, WrongDeviceError):
                raise self.infeasible(error, given) from error
            skip = str(error)
        else:
            factors, derived = resolved.factors, resolved.derived
            self.check_unused(levels, factors, given)
            known = {**derived, **factors, "system": system or ""}
            self.names.update(known)
            late = [c for c in conditions if c not in early]
            if any(self.removes(c, known, levels, given) for c in late):
                return None
        names = (self.study.name, self.sweep.name, self.workload.name, system)
        return Point(*names, dict(factors), dict(derived), skip)

    def removes(
        self,
        condition: Condition,
        known: Mapping[str, Any],
        levels: Mapping[str, Level],
        given: Given,
    ) -> bool:
        """Whether a condition leaves the point out.

        A level under ``exclude`` matches as written (``auto``) and as resolved.
        """
        if condition.expression is None:
            return all(
                any(item.value in (known.get(name), levels.get(name)) for item in items)
                for name, items in condition.match.items()
            )
        source, about = self.study.source, context(self.sweep, given)
        try:
            value = expressions.value_in_study(condition.expression, known, self.device)
        except StudyError as error:
            raise source.error(error.message + about, condition.path) from error
        if not isinstance(value, bool):
            raise source.error(
                f"the condition `{condition.expression.text}` gives {shown(value)}, not true or"
                " false; compare it with something, and write several conditions as a list",
                condition.path,
            )
        return value is (condition in self.sweep.exclude)

    def check_unused(
        self, levels: Mapping[str, Level], factors: Mapping[str, Level], given: Given
    ) -> None:
        """Refuse ``-`` for a factor that the point has a use for."""
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
        """A combination that cannot run, as a mistake at the line to change."""
        message = str(error).rstrip(".") + context(self.sweep, given)
        return self.study.source.error(
            f"{message}; `infeasible: skip` would list such points as skipped",
            self.blame(error, given),
        )

    def blame(self, error: InfeasibleError, given: Given) -> KeyPath:
        """The key to change: the factor that the error names, else the one it speaks about.

        A factor beside its own value counts most. ``memory``, ``rows`` or ``n`` alone may be plain
        words, so an underscore counts more, and a bare ``n`` not at all.
        """
        if error.factor in given:
            return given[error.factor].path
        mentions: list[tuple[bool, bool, int, KeyPath]] = []
        for factor, item in given.items():
            name = "[Nn]" if factor == "n" else re.escape(factor).replace("_", "[ _-]")
            value = rf"\W+(?:is )?['`]?{re.escape(plain(item.value))}"
            for pattern, loose in ((name + value, False), (name, True)):
                match = re.search(rf"(?<![\w.])(?:{pattern})(?![\w.])", str(error))
                if match and not (loose and factor == "n"):
                    mentions.append((loose, "_" not in factor, match.start(), item.path))
        if mentions:
            return min(mentions, key=lambda mention: mention[:3])[3]
        return given["system"].path if "system" in given else self.sweep.path

    def check_names(self) -> None:
        """Names that no point has, hidden behind an `and` or `or` that never asked for them."""
        for condition in (*self.sweep.exclude, *self.sweep.where):
            missing = condition.names - self.names if condition.expression and self.names else ()
            for name in sorted(missing):
                assert condition.expression is not None
                message = expressions.unknown_name(
                    condition.expression.text, name, self.names, expressions.STUDY
                )
                raise self.study.source.error(message, condition.path)


def _settled(value: Level) -> bool:
    """Whether resolving can leave a given level only as it is."""
    return value != "auto" and not isinstance(value, Mapping)


def _identity(point: Point) -> str:
    """Equal for points that are the same configuration."""
    return repr((point.system, sorted((name, plain(v)) for name, v in point.factors.items())))
