"""A study as read from its file: frozen, checked, with the place of every value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

from nqbench.expressions import Expression
from nqbench.facts import DeviceKind
from nqbench.point import HOT, Executable, Level
from nqbench.study.report_items import ReportItem
from nqbench.system.files import printable
from nqbench.system.yaml_marks import KeyPath, ParsedFile
from nqbench.workloads import KERNEL, ExternalWorkload, register

NAME_LENGTH: Final = 64
NAME_PATTERN: Final = rf"^[A-Za-z0-9][A-Za-z0-9_.-]{{0,{NAME_LENGTH - 1}}}$"
NAME_RULE: Final = (
    "a name has letters, digits, '_', '-' and '.', starts with a letter or digit and has at most 64"
    " characters (it names a folder)"
)
KINDS: Final[tuple[DeviceKind, ...]] = get_args(DeviceKind)


@dataclass(frozen=True, slots=True)
class PlacedValue:
    """One value in the file, and its place."""

    value: Level
    path: KeyPath


Given = dict[str, PlacedValue]
"""A combination of a sweep: every factor that the study gives, with its value and place."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The values of one key, by kind of device.

    A kind that the file leaves out has no entry: the sweep does not run on such a device.
    """

    by_kind: Mapping[DeviceKind, tuple[PlacedValue, ...]]
    path: KeyPath

    def on(self, kind: DeviceKind) -> tuple[PlacedValue, ...]:
        """The values on a kind of device; empty where the file gives none."""
        return self.by_kind.get(kind, ())

    def items(self) -> list[PlacedValue]:
        """Every value written, for any kind of device."""
        written = (item for items in self.by_kind.values() for item in items)
        return list({(item.path, str(item.value)): item for item in written}.values())


@dataclass(frozen=True, slots=True)
class Condition:
    """One ``where`` or ``exclude`` entry: an expression, or a partial match on levels."""

    path: KeyPath
    expression: Expression | None = None
    match: Mapping[str, tuple[PlacedValue, ...]] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.expression:
            return self.expression.text
        levels = (
            f"{name}: {plain(items[0].value)}"
            if len(items) == 1
            else f"{name}: [{', '.join(plain(item.value) for item in items)}]"
            for name, items in self.match.items()
        )
        return f"{{{', '.join(levels)}}}"

    @property
    def names(self) -> frozenset[str]:
        """Names whose values it needs."""
        return self.expression.names if self.expression else frozenset(self.match)


@dataclass(frozen=True, slots=True)
class ProgramSystem:
    """A program as the study names it, its levels not yet filled in, and where it is written."""

    name: str
    program: Executable
    path: KeyPath


@dataclass(frozen=True, slots=True)
class Sweep:
    """One sweep: what is fixed, what varies, what is left out. ``systems`` is an axis of names,
    ``programs`` those among them that are external programs."""

    name: str
    path: KeyPath
    n: Axis | None = None
    systems: Axis | None = None
    fixed: Mapping[str, Axis] = field(default_factory=dict)
    matrix: Mapping[str, Axis] = field(default_factory=dict)
    zip: Mapping[str, Axis] = field(default_factory=dict)
    exclude: tuple[Condition, ...] = ()
    where: tuple[Condition, ...] = ()
    infeasible: Literal["error", "skip"] = "error"
    programs: Mapping[str, ProgramSystem] = field(default_factory=dict)

    @property
    def given(self) -> dict[str, Axis]:
        """Every factor the sweep gives, ``n`` and ``system`` included where it gives them."""
        axes = {**self.fixed, **self.matrix, **self.zip}
        if self.n:
            axes["n"] = self.n
        if self.systems:
            axes["system"] = self.systems
        return axes

    @property
    def programs_only(self) -> bool:
        """Whether every system is an external program."""
        named = self.given.get("system")
        return named is not None and all(i.value in self.programs for i in named.items())

    @property
    def filled_in(self) -> dict[str, Axis]:
        """Factors under ``matrix`` that the file leaves out: their levels stand in the block
        ``kernel``."""
        return {name: axis for name, axis in self.matrix.items() if axis.path[:1] == (KERNEL,)}


def context(sweep: Sweep, given: Given) -> str:
    """Which combination a sentence is about: the sweep, and what varies in it."""
    values = ", ".join(f"{f}={plain(i.value)}" for f, i in given.items() if f not in sweep.fixed)
    return f" (sweep '{sweep.name}', {values})"


def plain(value: Level) -> str:
    """A level as text."""
    return f"{{per_sm: {value['per_sm']}}}" if isinstance(value, Mapping) else str(value)


@dataclass(frozen=True, slots=True)
class Measure:
    """How to measure: the keys that ``schema.MeasureFile`` explains. ``target`` is a fraction,
    ``budget_s`` and ``timeout_s`` are seconds; ``counted``, ``long`` and ``variants`` are names of
    sweeps (no ``counted``: all)."""

    target: float = 0.005
    rounds: int = 5
    budget_s: float = 10.0
    samples: int = 10
    warmup: int = 1
    timeout_s: float = 60.0
    l2: tuple[str, ...] = (HOT,)
    counters: str = "none"
    counted: tuple[str, ...] = ()
    long: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain form."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Study:
    """One study file, read and checked against the grammar (not yet against a workload)."""

    name: str
    about: str
    workload: str
    n: Axis | None
    sweeps: tuple[Sweep, ...]
    measure: Measure
    report: tuple[ReportItem, ...]
    source: ParsedFile = field(repr=False, compare=False)
    kernel: Mapping[str, Any] | None = None

    @property
    def path(self) -> Path:
        """The file it came from."""
        return self.source.path

    @property
    def text(self) -> str:
        """The file's text."""
        return self.source.text

    @property
    def external(self) -> ExternalWorkload:
        """What workers need besides nqbench: the study's folder, and its own kernel."""
        folder, lines = str(self.path.parent.absolute()), {}
        for name in (self.kernel or {}).get("arguments", ()):
            place = self.source.place(("kernel", "arguments", name))
            lines[name] = f"{Path(place.path).name}:{place.line}: " if place.line else f"{place}: "
        return ExternalWorkload(self.name, folder, self.workload, self.kernel, lines)

    def device(self, asked: str) -> str:
        """The device that a command means: the CPU in place of ``auto`` where every system runs
        there, at sizes that the study gives for it."""
        if asked != "auto":
            return asked
        on_cpu = register(self.external).cpu_systems
        for sweep in self.sweeps:
            named, sizes = sweep.given.get("system"), sweep.given.get("n", self.n)
            names = [str(item.value) for item in named.items()] if named else [""]
            programs = {name: one.program for name, one in sweep.programs.items()}
            if not (sizes and sizes.on("cpu")) or not all(
                programs[name].device == "cpu" if name in programs else name in on_cpu
                for name in names
            ):
                return asked
        return "cpu"

    def as_json(self) -> dict[str, Any]:
        """Plain form, as stored in manifests: the file's own keys, defaults filled in.

        Only the file's name is kept of its path: manifests are published.
        """
        written = dict(self.source.data)
        sweeps = [*written.get("sweeps", ())] or [
            {"name": self.name} | {key: written[key] for key in SWEEP_KEYS if key in written}
        ]
        for index, sweep in enumerate(self.sweeps):
            if filled := {f: [i.value for i in a.items()] for f, a in sweep.filled_in.items()}:
                entry = sweeps[index]
                sweeps[index] = {**entry, "matrix": {**filled, **entry.get("matrix", {})}}
        return {
            "file": printable(self.path.name),
            "name": self.name,
            "about": self.about,
            "workload": self.workload,
            **({} if self.kernel is None else {"kernel": self.kernel}),
            "n": written.get("n"),
            "sweeps": sweeps,
            "measure": self.measure.as_json(),
            "report": [item.as_json() for item in self.report],
        }


SWEEP_KEYS: Final = (
    *("system", "systems", "fixed", "matrix", "zip", "exclude", "where", "infeasible"),
)
"""Keys of a sweep that a study with a single sweep may write at top level."""
