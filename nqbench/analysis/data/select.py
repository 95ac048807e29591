"""Which points of a run a claim, or a table of a paper, is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.quantities import TIME
from nqbench.errors import AnalysisError
from nqbench.papers.load import paper_names
from nqbench.point import PART

_NOT_LAUNCH: Final = ("probe", "seed", "board")
"""The input, and what is counted: the same for all points that are compared."""
APART: Final = ("filled", "scaled")
"""Sweeps of a launch that is not the paper's: only a formula that names them sees them."""


class NotMeasured(AnalysisError):
    """The run lacks something: ``what`` and why, and the ``command`` that would measure it."""

    def __init__(self, what: str, command: str = "") -> None:
        super().__init__(f"{what}; `{command}` measures it" if command else what)
        self.what, self.command = what, command


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked about: the configurations of a system at a size with the given levels.

    ``levels``  of factors; that of ``sweep`` is the name of the only sweep to look in
    ``run``     the index of the run among those of a claim

    What the run lacks raises :class:`NotMeasured`.
    """

    data: Dataset
    system: str
    n: int
    levels: Mapping[str, Any] = field(default_factory=dict)
    run: int = 0

    def __str__(self) -> str:
        words = "".join(f" {name}={level}" for name, level in self.levels.items())
        return f"{self.system} N={self.n}{words}"

    def key(self, *what: Any) -> tuple[Any, ...]:
        """What tells it from every other question of a claim."""
        return (*what, self.run, self.system, self.n, *sorted(self.levels.items()))

    def configurations(self) -> list[PointResult]:
        """Each once: of several sweeps that have the same point the first in the order of the study
        counts. Variants of a kernel are left out unless ``levels`` asks for one."""
        wanted = {name: str(level) for name, level in self.levels.items()}
        found: dict[frozenset[tuple[str, object]], PointResult] = {}
        own = [p for p in self.data.points if p.system == self.system]
        if "sweep" not in wanted:
            lent = self._borrowed
            own = [p for p in own if not p.sweep.startswith(APART) and p.borrowed >= lent]
        for point in own:
            if point.n != self.n or (PART in point.levels) != (PART in wanted):
                continue
            sweep = {"sweep": point.sweep}
            if all(str(sweep.get(k, point.level(k))) == level for k, level in wanted.items()):
                found.setdefault(frozenset(point.levels.items()), point)
        if not found:
            whose = "baseline of the CPU programs" if self._borrowed else "run"
            known = ", ".join(map(str, sorted({p.n for p in own}))) or "none"
            raise NotMeasured(f"the {whose} has no {self} (sizes: {known})", self.remedy())
        return list(found.values())

    def finished(self, of: Sequence[PointResult] | None = None) -> list[PointResult]:
        """Of these points (default: all) those that finished; if none did, raises why the first."""
        points = of or self.configurations()
        ok = [p for p in points if p.ok]
        if not ok:
            one = points[0]
            levels = {k: v for k, v in one.levels.items() if k in ("depth", "block_size")}
            # What was skipped would be skipped again; the reason says what to change.
            command = "" if one.status == "skipped" else self.data.command
            said = Asked(self.data, one.system, one.n, levels)
            raise NotMeasured(f"{said}: {one.status}: {one.reason}", command)
        return ok

    def main(self) -> PointResult:
        """The one of the study's first sweep that has some; several are refused."""
        found = self.configurations()
        first = [p for p in found if p.sweep == found[0].sweep]
        if len(first) > 1:
            names = dict.fromkeys((*self.data.launch, *(name for p in first for name in p.levels)))
            varied = [f for f in names if len({p.level(f) for p in first}) > 1]
            raise NotMeasured(
                f"{self} has {len(first)} configurations in sweep {first[0].sweep}: say which"
                f" {', '.join(varied) or 'one'}, or take best(...)"
            )
        return self.finished(first)[0]

    def timed(self) -> list[PointResult]:
        """All that finished and have a time."""
        self.check_timed()
        timed = [p for p in self.finished() if p.values(TIME)]
        if not timed:
            raise NotMeasured(f"the run has no time of {self.system} N={self.n}", self.data.command)
        return timed

    def best(self) -> PointResult:
        """The fastest that was timed."""
        return min(self.timed(), key=lambda point: point.value(TIME))

    def check_timed(self) -> None:
        """Refuse a kernel's time in a simulated run: only CPU programs are timed there."""
        own = (p for p in self.data.points if p.system == self.system)
        if self.data.simulated and not any(p.cpu or p.timed for p in own):
            raise NotMeasured(no_time(self.data, self.system))

    def remedy(self) -> str:
        """The command that measures what the run lacks; empty if no paper's study is known to.

        It is the run's own if its study may have the point; another study, or the simulator's
        smaller boards, would lack it again. What comes from a baseline, no other run would change.
        """
        if self._borrowed:
            return ""
        data = self.data
        there = not data.simulated or any(p.n == self.n for p in data.points)
        return data.command if data.name in paper_names() and there else _on_gpu(data, self.system)

    @property
    def _borrowed(self) -> bool:
        return any(p.borrowed for p in self.data.points if p.system == self.system)


def no_time(data: Dataset, system: str = "") -> str:
    """Why a simulated run says nothing about times."""
    command = _on_gpu(data, system)
    needs = f"this needs a GPU: {command}" if command else "this needs a GPU"
    return f"{data.device_short} counts and does not time; {needs}"


def _on_gpu(data: Dataset, system: str) -> str:
    """The command that measures a system's paper on a GPU; empty where it has none."""
    paper = paper_of(data, system)
    return f"nqbench reproduce {paper} --device cuda:0" if paper in paper_names() else ""


def paper_of(data: Dataset, system: str) -> str:
    """The paper whose study has a system: the run's own, else the one that the system is named
    after (a run of any study can be asked for a paper's claims)."""
    names = paper_names()
    family = system.partition(".")[0]
    return family if data.name not in names and family in names else data.name


def launch_text(data: Dataset, point: PointResult) -> str:
    """The launch of a point: what its system's name leaves open, and ``auto`` as it came out."""
    shown = []
    for name in data.launch:
        level = point.level(name)
        if name not in _NOT_LAUNCH and level not in ("-", "from_jobs", "from_jobs_plus_one"):
            used = point.detail(f"{name}_used") if level == "auto" else None
            shown.append(f"{name} {level if used is None else f'auto ({int(used)})'}")
    return ", ".join(shown)
