"""Which points of a run a claim, or a table of a paper, is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.quantities import TIME
from nqbench.errors import AnalysisError
from nqbench.papers.load import paper_names
from nqbench.point import PART

_NOT_LAUNCH: Final = ("probe", "seed", "board")
"""The input, and what is counted: the same for all points that are compared."""


class NotMeasured(AnalysisError):
    """The run lacks something: ``what`` and why, and the ``command`` that would measure it."""

    def __init__(self, what: str, command: str = "") -> None:
        super().__init__(f"{what}; `{command}` measures it" if command else what)
        self.what = what
        self.command = command


def configurations(
    data: Dataset, system: str, n: int, levels: Mapping[str, object] | None = None
) -> list[PointResult]:
    """Points of a system at a size with the given levels, each configuration once.

    Several sweeps may have the same point: the first one in the order of the study counts. Variants
    of a kernel are left out unless ``levels`` asks for one. A level of ``sweep`` is the name of the
    only sweep to look in.
    Raises :class:`NotMeasured` if there is none.
    """
    wanted = {name: str(level) for name, level in (levels or {}).items()}
    found: dict[frozenset[tuple[str, object]], PointResult] = {}
    for point in data.points:
        if point.system != system or point.n != n:
            continue
        if (PART in point.levels) != (PART in wanted):
            continue
        own = {"sweep": point.sweep}
        if all(str(own.get(name, point.level(name))) == level for name, level in wanted.items()):
            found.setdefault(frozenset(point.levels.items()), point)
    if not found:
        whose = "baseline of the CPU programs" if _borrowed(data, system) else "run"
        sizes = sorted({p.n for p in data.points if p.system == system})
        known = ", ".join(map(str, sizes)) or "none"
        raise NotMeasured(
            f"the {whose} has no {described(system, n, wanted)} (sizes: {known})",
            remedy(data, system, n),
        )
    return list(found.values())


def finished(points: Sequence[PointResult], data: Dataset) -> list[PointResult]:
    """The finished points. Raises :class:`NotMeasured` with the first reason if there is none."""
    ok = [p for p in points if p.ok]
    if not ok:
        one = points[0]
        levels = {k: str(v) for k, v in one.levels.items() if k in ("depth", "block_size")}
        # What was skipped would be skipped again; the reason says what to change.
        command = "" if one.status == "skipped" else data.command
        raise NotMeasured(
            f"{described(one.system, one.n, levels)}: {one.status}: {one.reason}", command
        )
    return ok


def main_point(
    data: Dataset, system: str, n: int, levels: Mapping[str, object] | None = None
) -> PointResult:
    """The configuration of the study's first sweep that has the system at this size.

    Raises :class:`NotMeasured` where it is missing, unfinished, or not one but several.
    """
    found = configurations(data, system, n, levels)
    first = [p for p in found if p.sweep == found[0].sweep]
    if len(first) > 1:
        names = dict.fromkeys((*data.launch, *(name for p in first for name in p.levels)))
        varied = [f for f in names if len({p.level(f) for p in first}) > 1]
        raise NotMeasured(
            f"{described(system, n, levels or {})} has {len(first)} configurations in sweep"
            f" {first[0].sweep}: say which {', '.join(varied) or 'one'}, or take best(...)"
        )
    return finished(first, data)[0]


def best_point(
    data: Dataset, system: str, n: int, levels: Mapping[str, object] | None = None
) -> PointResult:
    """The fastest configuration that was timed. Raises :class:`NotMeasured`."""
    timed = timed_points(data, system, n, levels)
    return min(timed, key=lambda point: point.value(TIME))


def timed_points(
    data: Dataset, system: str, n: int, levels: Mapping[str, object] | None = None
) -> list[PointResult]:
    """All finished configurations that have a time. Raises :class:`NotMeasured`."""
    check_timed(data, system)
    ok = finished(configurations(data, system, n, levels), data)
    timed = [p for p in ok if p.values(TIME)]
    if not timed:
        raise NotMeasured(f"the run has no time of {system} N={n}", data.command)
    return timed


def check_timed(data: Dataset, system: str) -> None:
    """Raise :class:`NotMeasured` for a kernel's time in a simulated run: only CPU programs
    are timed there."""
    on_cpu = any(point.cpu for point in data.points if point.system == system)
    if data.simulated and not on_cpu:
        raise NotMeasured(no_time(data, system))


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


def remedy(data: Dataset, system: str, n: int) -> str:
    """The command that measures what a run lacks; empty if no paper's study is known to do it.

    It is the run's own if its study may have the point; another study, or the simulator's smaller
    boards, would lack it again. What comes from a baseline, no other run would change.
    """
    if _borrowed(data, system):
        return ""
    if data.name in paper_names() and (not data.simulated or any(p.n == n for p in data.points)):
        return data.command
    return _on_gpu(data, system)


def _borrowed(data: Dataset, system: str) -> bool:
    return any(point.borrowed for point in data.points if point.system == system)


def described(system: str, n: int, levels: Mapping[str, object]) -> str:
    """A point in words."""
    words = "".join(f" {name}={level}" for name, level in levels.items())
    return f"{system} N={n}{words}"


def launch_text(data: Dataset, point: PointResult) -> str:
    """The launch of a point: what its system's name leaves open, and ``auto`` as it came out."""
    shown = []
    for name in data.launch:
        level = point.level(name)
        if name not in _NOT_LAUNCH and level not in ("-", "from_jobs", "from_jobs_plus_one"):
            used = point.detail(f"{name}_used") if level == "auto" else None
            shown.append(f"{name} {level if used is None else f'auto ({int(used)})'}")
    return ", ".join(shown)
