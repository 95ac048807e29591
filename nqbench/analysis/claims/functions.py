"""The functions that claims call over recorded runs, for one resample of the rounds at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np

from nqbench.analysis.claims.bootstrap import Resampled, Resamples
from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.observed import Observed, probe_value, profile_value
from nqbench.analysis.data.quantities import TIME, Quantity, quantity
from nqbench.analysis.data.select import (
    NotMeasured,
    best_point,
    check_timed,
    configurations,
    described,
    finished,
    main_point,
    paper_of,
    remedy,
    timed_points,
)
from nqbench.analysis.limits.ceilings import device_number
from nqbench.errors import AnalysisError
from nqbench.papers.formula import DEVICE
from nqbench.papers.schema import Paper
from nqbench.vocabulary import PROFILER_COUNTERS, is_counter, of_kernel, plain_name
from nqbench.workloads import get, probe_counters

TOO_OLD: Final = "cannot run kernels of a CUDA compiler that is still maintained (Turing or later)"
"""CUDA 13 compiles for compute capability 7.5 and up, the papers' devices are Tesla and Fermi."""


FULL: Final = "nqbench claims RUN --full"
"""The command that walks the large trees."""


@dataclass(eq=False)
class Values:
    """What a claim may read. ``at`` is the resample that the functions answer for; 0: all rounds.

    ``run`` is the index of the run in question among ``runs``; ``n`` the size (``N``); ``full``
    lets counts walk trees for minutes; ``notes`` collects where values come from, ``edges`` the
    optima that lie at the edge of their sweep.
    """

    paper: Paper
    runs: Sequence[Observed]
    resamples: Resamples
    run: int = 0
    n: int = 0
    at: int = 0
    full: bool = False
    notes: dict[str, None] = field(default_factory=dict)
    edges: dict[str, None] = field(default_factory=dict)
    _kept: dict[Any, Any] = field(default_factory=dict)

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """By the names of the language."""
        return {
            "time": self.time,
            "times": self.times,
            "best": self.best,
            "argbest": self.argbest,
            "levels": self.levels,
            "phase": self.phase,
            "counter": self.counter,
            "count": self.count,
            "recorded": self.recorded,
            "sizes_of": self.sizes_of,
            "rank": self.rank,
            "fails": self.fails,
        }

    @property
    def names(self) -> dict[str, Any]:
        """Names of the language that are not functions."""
        here = self.runs[self.run] if self.runs else None
        return {
            "N": self.n,
            "hw": here.hardware(self.paper) if here else "",
            "devices": [run.hardware(self.paper) for run in self.runs],
            "sizes": here.sizes if here else [],
            "logical_cores": here.logical_cores if here else 0,
        }

    def time(self, system: str, N: int | None = None, hw: str = "", **levels: Any) -> float:
        """Kernel seconds of the main configuration."""
        return self._one(TIME, system, N, hw, levels)

    def phase(
        self,
        system: str,
        name: str,
        N: int | None = None,
        hw: str = "",
        config: str = "",
        **levels: Any,
    ) -> float:
        """Seconds of a phase of a configuration (``fastest``, or the main one)."""
        return self._one(quantity(name), system, N, hw, levels, config)

    def times(
        self,
        system: str,
        N: int | None = None,
        hw: str = "",
        phase: str = "",
        skipped: int = 0,
        **levels: Any,
    ) -> list[float]:
        """Seconds (of a phase, if given) of every configuration that was timed.

        With ``skipped=1`` also kernel seconds of those too slow to be timed: of the launch that
        verified them.
        """
        _, columns = self._all(system, N, hw, levels, phase)
        found = [float(column[self.at]) for column in columns]
        if skipped:
            _, data = self._data(hw)
            every = configurations(data, self.paper.system(system), N or self.n, levels)
            found += [p.first_s for p in every if p.status == "skipped" and p.first_s is not None]
        return found

    def best(
        self, system: str, N: int | None = None, hw: str = "", phase: str = "", **levels: Any
    ) -> float:
        """Seconds (of a phase, if given) of the configuration that is fastest over all rounds.

        Picking it anew in each resample would take the minimum of many noisy values, a biased one.
        """
        _, columns = self._all(system, N, hw, levels, phase)
        return float(min(columns, key=lambda column: column[0])[self.at])

    def argbest(
        self, system: str, factor: str, N: int | None = None, hw: str = "", **levels: Any
    ) -> Any:
        """The level of a factor in the fastest configuration (``auto`` is not a level)."""
        every = zip(*self._all(system, N, hw, levels), strict=True)
        chosen = [(p, c) for p, c in every if p.level(factor) != "auto"]
        points, columns = [p for p, _ in chosen], [c for _, c in chosen]
        if len({p.level(factor) for p in points}) < 2:
            raise NotMeasured(
                f"{described(self.paper.system(system), N or self.n, levels)} was timed with one"
                f" {factor} only",
                self._data(hw)[1].command,
            )
        best = points[int(np.argmin([column[self.at] for column in columns]))].level(factor)
        numbers = _numbers(points, factor)
        edges = numbers[:1] + numbers[-1:]
        if self.at == 0 and best in edges and best != 1:  # no level lies below 1
            self.edges[f"best {factor} {best} of {edges[0]} to {edges[1]}"] = None
        return best

    def levels(
        self, system: str, factor: str, N: int | None = None, hw: str = "", **levels: Any
    ) -> list[int]:
        """The numeric levels of a factor among the configurations that were timed, in order."""
        return _numbers(self._all(system, N, hw, levels)[0], factor)

    def recorded(
        self, system: str, name: str, N: int | None = None, hw: str = "", **levels: Any
    ) -> list[float]:
        """A number that every finished configuration recorded (``found``, ``evaluations``, ...)."""
        _, data = self._data(hw)
        full, n = self.paper.system(system), N or self.n
        points = finished(configurations(data, full, n, levels), data)
        found = [value for p in points if (value := p.detail(name)) is not None]
        if not found:
            raise NotMeasured(f"the run has no {name} of {described(full, n, levels)}")
        return [float(value) for value in found]

    def sizes_of(self, *systems: str, least: int = 0) -> list[int]:
        """Sizes from ``least`` on at which each of the systems was timed."""
        _, data = self._data("")
        names = [self.paper.system(system) for system in systems]
        for name in names:
            check_timed(data, name)
        timed = {(p.system, p.n) for p in data.points if p.ok and p.values(TIME)}
        sizes = sorted({n for _, n in timed})
        found = [n for n in sizes if n >= least and all((name, n) in timed for name in names)]
        if not found:
            which = f"size of {least:,} or more" if least else "size"
            raise NotMeasured(f"no {which} has times of {' and '.join(names)}", data.command)
        return found

    def rank(self, *systems: str) -> bool:
        """Whether the times increase strictly in this order."""
        times = [self.time(system) for system in systems]
        return all(a < b for a, b in pairwise(times))

    def fails(self, system: str, N: int | None = None, hw: str = "", **levels: Any) -> bool:
        """Whether the system ends with an error or a wrong answer."""
        _, data = self._data(hw)
        points = configurations(data, self.paper.system(system), N or self.n, levels)
        judged = [p for p in points if p.status not in ("skipped", "unfinished")]
        if not judged:
            finished(points, data)
        return all(not p.ok for p in judged)

    def counter(
        self,
        system: str,
        name: str,
        N: int | None = None,
        hw: str = "",
        config: str = "",
        kernel: str = "",
        probe: str = "iterations",
        **levels: Any,
    ) -> float:
        """A counter or resource of a configuration (``fastest``, ``highest_occupancy``, main).

        ``kernel`` is one of a program's; ``probe`` is what an instrumented kernel counted
        (``iterations`` or ``clocks``); ``system`` may be ``device``, for numbers of its maker.
        """
        index, data = self._data(hw)
        if system == DEVICE:
            return device_number(data, name)
        if kernel:
            name = of_kernel(name, kernel)
        full, n = self.paper.system(system), N or self.n
        if name in probe_counters():
            found = probe_value(self.runs[index], full, n, name, levels.get("depth"), probe)
            if found is None:
                raise NotMeasured(
                    f"no instrumented kernel counted {name} for {described(full, n, levels)}",
                    remedy(data, full, n),
                )
            return found
        key = ("counter", index, full, n, name, config, tuple(sorted(levels.items())))
        if key not in self._kept:
            point = configuration(data, full, n, config, levels)
            self._kept[key] = counter_of(self.runs[index], point, name)
        return float(self._kept[key])

    def count(self, name: str, **parameters: Any) -> Any:
        """A deterministic count; where it comes from is added to ``notes``."""
        given = {"N": self.n, **parameters}
        if "system" in given:
            given["system"] = self.paper.system(given["system"])
        workload = self.paper.workload
        value, note = count(name, given, self.runs, full=self.full, workload=workload)
        if note:
            self.notes[note] = None
        return value

    def _data(self, hw: str) -> tuple[int, Dataset]:
        """The run that a function is asked about."""
        if not self.runs:
            raise NotMeasured("no run was given")
        if not hw:
            return self.run, self.runs[self.run].data
        for i, run in enumerate(self.runs):
            if run.hardware(self.paper) == hw:
                return i, run.data
        known = {h.id: h.name for h in self.paper.hardware}
        if hw in known:
            raise NotMeasured(f"it is about the {known[hw]}, which {TOO_OLD}")
        raise NotMeasured(f"no run of device {hw} was given")

    def _one(
        self,
        what: Quantity,
        system: str,
        n: int | None,
        hw: str,
        levels: Mapping[str, Any],
        config: str = "",
    ) -> float:
        index, data = self._data(hw)
        full, size = self.paper.system(system), n or self.n
        check_timed(data, full)
        key = (what.name, index, full, size, config, tuple(sorted(levels.items())))
        if key not in self._kept:
            point = configuration(data, full, size, config, levels)
            if not point.values(what):
                raise NotMeasured(f"the run has no {what.label} of {full}")
            self._kept[key] = self.resamples.values(index, point, what)
        return float(self._kept[key][self.at])

    def _all(
        self, system: str, n: int | None, hw: str, levels: Mapping[str, Any], phase: str = ""
    ) -> tuple[list[PointResult], list[Resampled]]:
        index, data = self._data(hw)
        full, size = self.paper.system(system), n or self.n
        check_timed(data, full)
        key = ("all", index, full, size, phase, tuple(sorted(levels.items())))
        if key not in self._kept:
            what = quantity(phase) if phase else TIME
            points = [p for p in timed_points(data, full, size, levels) if p.values(what)]
            if not points:
                raise NotMeasured(f"the run has no {what.label} of {full}")
            self._kept[key] = points, [self.resamples.values(index, p, what) for p in points]
        found: tuple[list[PointResult], list[Resampled]] = self._kept[key]
        return found


def _numbers(points: Sequence[PointResult], factor: str) -> list[int]:
    return sorted({v for p in points if isinstance(v := p.level(factor), int)})


def counter_of(run: Observed, point: PointResult, name: str) -> float:
    """A counter or resource of a point. Raises :class:`NotMeasured` if it was not counted."""
    value: float | None
    if is_counter(name):
        estimate = point.estimate(quantity(name))
        value = profile_value(run, point, name) if estimate is None else estimate.value
        missing = (
            f"{name} is counted in the simulator"
            f" (nqbench reproduce {paper_of(run.data, point.system)} --device sim)"
            " or by Nsight Compute (`counters: ncu` under `measure` in the study)"
        )
    elif plain_name(name)[0] in PROFILER_COUNTERS:
        value = profile_value(run, point, name)
        missing = (
            f"{name} is counted by Nsight Compute alone (`counters: ncu` under `measure` in the"
            " study, on a GPU)"
        )
    else:
        value = point.detail(name)
        missing = f"the run has no {name} of {point.system} N={point.n}"
    if value is None:
        raise NotMeasured(missing)
    return float(value)


def first_counted(run: Observed, system: str, n: int, name: str) -> float:
    """A counter or resource of the first configuration of a system that has it.

    Raises :class:`NotMeasured` with the reason of the first configuration where none has.
    """
    reasons = []
    for point in finished(configurations(run.data, system, n), run.data):
        try:
            return counter_of(run, point, name)
        except NotMeasured as error:
            reasons.append(error)
    raise reasons[0]


def configuration(
    data: Dataset, system: str, n: int, config: str, levels: Mapping[str, Any]
) -> PointResult:
    """The configuration that ``config`` picks: ``fastest``, ``highest_occupancy``, main."""
    if config == "fastest":
        return best_point(data, system, n, levels)
    if config == "highest_occupancy":
        ok = finished(configurations(data, system, n, levels), data)
        known = [p for p in ok if p.detail("occupancy") is not None]
        if not known:
            raise NotMeasured(
                f"the run has no occupancy of {system}; a GPU's compiler reports it",
                f"nqbench reproduce {paper_of(data, system)} --device cuda:0",
            )
        return max(known, key=lambda p: float(p.detail("occupancy")))
    if config:
        raise NotMeasured(f"config {config!r} is neither fastest nor highest_occupancy")
    return main_point(data, system, n, levels)


def count(
    name: str,
    parameters: Mapping[str, Any],
    runs: Sequence[Observed] = (),
    *,
    full: bool = False,
    workload: str = "counting",
) -> tuple[Any, str]:
    """A count by name, and where it comes from if that is not the enumeration on the CPU.

    ``parameters`` are those of ``Workload.count``; ``full`` walks trees
    that take minutes. Raises :class:`NotMeasured` where neither knows, ``StudyError`` for a name
    that does not exist.
    """
    found = _probed(name, parameters, runs)
    if found is not None:
        return found
    try:
        return get(workload).count(name, full=full, **parameters), ""
    except AnalysisError as error:
        raise NotMeasured(
            f"counting {name} at N={parameters.get('N')} walks the whole tree: `{FULL}` does it"
            " once (minutes), and so does a run of the study on a GPU"
        ) from error


def _probed(
    name: str, parameters: Mapping[str, Any], runs: Sequence[Observed]
) -> tuple[float, str] | None:
    stat = parameters.get("stat")
    counter = f"{name}_{stat}" if stat else name
    if counter not in probe_counters() or "system" not in parameters:
        return None
    for run in runs:
        depth = parameters.get("depth", "own")
        found = probe_value(run, str(parameters["system"]), int(parameters["N"]), counter, depth)
        if found is not None:
            return found, f"counted by the instrumented kernel on {run.data.device_short}"
    return None
