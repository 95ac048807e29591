"""Points and reports: what a study becomes once it is expanded."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

Level = int | str | Mapping[str, int]
"""A factor's value: a number, a level's name, or ``{"per_sm": k}``."""
FactorLevels = Mapping[str, Level]
"""Levels by the names of their factors."""

L2: Final = "l2"
"""A factor of the measurement: the state of the L2 cache when a launch starts."""
HOT: Final = "hot"
COLD: Final = "cold"
PART: Final = "part"
"""A factor of the measurement: which variant of a kernel is built, see ``bottleneck``."""
MEASURING: Final = (L2, PART)
"""The factors that every workload has: they concern the measurement, not what is computed."""


@dataclass(frozen=True, slots=True)
class Executable:
    """A system that is somebody else's program: how to start it and to read what it prints.

    ``command``      its words, the first is the program; those with a ``/`` begin at ``folder``
    ``answer``       pattern whose only group is the answer; empty: none is read
    ``time``         pattern whose only group is its own time; empty: the wall time counts
    ``unit``         of that time (``ns``, ``us``, ``ms``, ``s``); empty: as printed after it
    ``environment``  variables set for it
    ``depends``      files whose contents identify it, besides the program and its words
    ``device``       ``cpu`` or ``gpu``: what it computes on
    ``folder``       the study's, where it runs; never recorded
    """

    command: tuple[str, ...]
    answer: str = ""
    time: str = ""
    unit: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    depends: tuple[str, ...] = ()
    device: str = "cpu"
    folder: str = "."

    def files(self) -> list[Path]:
        """The program, other words that are files, and ``depends``; some may not exist."""
        folder, program = Path(self.folder), self.path()
        words = [folder / word for word in self.command[1:]]
        return [
            *([program] if program else []),
            *(file for file in words if file.is_file()),
            *(folder / name for name in self.depends),
        ]

    def path(self) -> Path | None:
        """Where the program is: from ``folder`` if its name has a ``/``, else on the PATH, if it
        is there."""
        name = self.command[0]
        if "/" in name:
            return Path(self.folder) / name
        found = shutil.which(name, path=self.environment.get("PATH"))
        return Path(found) if found else None

    def as_json(self) -> dict[str, Any]:
        """Plain form, without the folder: it names a place on the user's machine."""
        data = asdict(self) | {"command": list(self.command), "depends": list(self.depends)}
        return {name: value for name, value in data.items() if name != "folder"}


@dataclass(frozen=True, slots=True)
class Point:
    """One fully resolved configuration out of a study.

    ``factors``  every factor of the workload with its resolved level, ``n`` included; and
                 ``l2`` where a study asks for a cold cache, ``part`` where it measures variants of
                 a kernel
    ``derived``  numbers that follow from them (jobs, shared_bytes, ...)
    ``skip``     why the point cannot run on the device (``infeasible: skip``), else empty
    ``program``  the external program that the system is, with this point's levels filled in
    """

    study: str
    sweep: str
    workload: str
    system: str | None
    factors: FactorLevels
    derived: Mapping[str, int | float | str] = field(default_factory=dict)
    skip: str = ""
    program: Executable | None = None

    @property
    def n(self) -> int:
        """Problem size."""
        value = self.factors["n"]
        assert isinstance(value, int)
        return value

    @property
    def probed(self) -> bool:
        """Whether the kernel is an instrumented one: it is counted once and never timed."""
        return self.factors.get("probe", "-") not in ("-", "none")

    @property
    def configuration(self) -> dict[str, Level]:
        """The workload's own factors, without those of the measurement."""
        return {name: level for name, level in self.factors.items() if name not in MEASURING}

    def label(self) -> str:
        """Short text for people: the system, or the sweep, with n."""
        return f"{self.system or self.sweep} N={self.n}"

    def as_json(self) -> dict[str, Any]:
        """Plain form, as stored in manifests."""
        plain = ("study", "sweep", "workload", "system", "factors", "derived", "skip")
        data = {name: getattr(self, name) for name in plain}
        return data | ({"program": self.program.as_json()} if self.program else {})


def text(level: Level) -> str:
    """A level in short form: ``{per_sm: 2}`` becomes ``2/SM``."""
    return f"{level['per_sm']}/SM" if isinstance(level, Mapping) else str(level)


def varied(points: Sequence[Point]) -> list[str]:
    """Names of the factors in which the points differ (``n`` first, always)."""
    names = dict.fromkeys(name for point in points for name in point.factors if name != "n")
    return ["n", *(k for k in names if len({str(p.factors.get(k)) for p in points}) > 1)]


def distinguishing(points: Sequence[Point], launch: Collection[str]) -> list[str]:
    """Names of the factors that distinguish points of one sweep with the same ``n`` and system:
    those of ``launch`` (which a system's name leaves open), and those in which one system varies.
    """
    systems: dict[str | None, list[Point]] = {}
    for point in points:
        systems.setdefault(point.system, []).append(point)
    within = {name for alike in systems.values() for name in varied(alike)}
    named = {*launch, *MEASURING, *within}
    return [name for name in varied(points)[1:] if name in named]


def labels(points: Sequence[Point], launch: Collection[str] = ()) -> list[str]:
    """One text per point that distinguishes it from the others of its sweep.

    ``launch``  the workload's launch factors, see ``nqbench.workloads.launch_factors``
    """
    sweeps: dict[tuple[str, str | None], list[Point]] = {}
    for point in points:
        for system in {None, point.system}:
            sweeps.setdefault((point.sweep, system), []).append(point)
    varying = {key: varied(alike) for key, alike in sweeps.items()}
    found = []
    for point in points:
        # The factors that the system's name does not fix: of its launch, and those it varies in.
        named = {*launch, *MEASURING, *varying[point.sweep, point.system]}
        shown = [
            f" {name}={text(point.factors[name])}"
            for name in varying[point.sweep, None][1:]
            if name in named and point.factors.get(name) not in (None, "-")
        ]
        found.append("".join((point.label(), *shown)))
    return found
