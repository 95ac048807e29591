"""The functions that claims call over recorded runs, for one resample of the rounds at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

from nqbench.analysis.claims.bootstrap import Resampled, Resamples
from nqbench.analysis.data import select
from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.observed import Observed, probe_value, profile_value
from nqbench.analysis.data.quantities import TIME, quantity
from nqbench.analysis.data.select import NotMeasured, configurations, finished
from nqbench.analysis.limits.ceilings import device_number
from nqbench.errors import AnalysisError
from nqbench.papers.formula import DEVICE, FUNCTIONS
from nqbench.papers.schema import Paper
from nqbench.vocabulary import PROFILER_COUNTERS, is_counter, of_kernel, plain_name
from nqbench.workloads import get, probe_counters

TOO_OLD: Final = "cannot run kernels of a CUDA compiler that is still maintained (Turing or later)"
"""CUDA 13 compiles for compute capability 7.5 and up, the papers' devices are Tesla and Fermi."""


class Asked(NamedTuple):
    """What a function is asked about: the configurations of a system at one size of a run."""

    data: Dataset
    system: str
    n: int
    levels: Mapping[str, Any]

    def __str__(self) -> str:
        return select.described(self.system, self.n, self.levels)


@dataclass(eq=False)
class Values:
    """What a claim may read: a method for each function of the language that is not built in.

    ``at``     the resample that the functions answer for; 0: all rounds
    ``run``    index of the run in question among ``runs``; ``n`` the size (``N``)
    ``full``   counts may walk trees for minutes
    ``notes``  where values come from; ``edges`` the optima that lie at the edge of their sweep
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
        return {name: getattr(self, name) for name in FUNCTIONS if hasattr(self, name)}

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
        return self.phase(system, TIME.name, N, hw, **levels)

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
        _, (column,) = self._columns(name, system, N, hw, levels, config)
        return float(column[self.at])

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
        _, columns = self._columns(phase, system, N, hw, levels)
        found = [float(column[self.at]) for column in columns]
        if skipped:
            every = configurations(*self._asked(system, N, hw, levels))
            found += [p.first_s for p in every if p.status == "skipped" and p.first_s is not None]
        return found

    def best(
        self, system: str, N: int | None = None, hw: str = "", phase: str = "", **levels: Any
    ) -> float:
        """Seconds (of a phase, if given) of the configuration that is fastest over all rounds.

        Picking it anew in each resample would take the minimum of many noisy values, a biased one.
        """
        _, columns = self._columns(phase, system, N, hw, levels)
        return float(min(columns, key=lambda column: column[0])[self.at])

    def argbest(
        self, system: str, factor: str, N: int | None = None, hw: str = "", **levels: Any
    ) -> Any:
        """The level of a factor in the fastest configuration (``auto`` is not a level)."""
        every = zip(*self._columns("", system, N, hw, levels), strict=True)
        chosen = [(p, c) for p, c in every if p.level(factor) != "auto"]
        if len({p.level(factor) for p, _ in chosen}) < 2:
            asked = self._asked(system, N, hw, levels)
            raise NotMeasured(f"{asked} was timed with one {factor} only", asked.data.command)
        best = min(chosen, key=lambda one: one[1][self.at])[0].level(factor)
        numbers = _numbers([p for p, _ in chosen], factor)
        edges = numbers[:1] + numbers[-1:]
        if self.at == 0 and best in edges and best != 1:  # no level lies below 1
            self.edges[f"best {factor} {best} of {edges[0]} to {edges[1]}"] = None
        return best

    def levels(
        self, system: str, factor: str, N: int | None = None, hw: str = "", **levels: Any
    ) -> list[int]:
        """The numeric levels of a factor among the configurations that were timed, in order."""
        return _numbers(self._columns("", system, N, hw, levels)[0], factor)

    def recorded(
        self, system: str, name: str, N: int | None = None, hw: str = "", **levels: Any
    ) -> list[float]:
        """A number that every finished configuration recorded (``found``, ``evaluations``, ...)."""
        asked = self._asked(system, N, hw, levels)
        points = finished(configurations(*asked), asked.data)
        found = [value for p in points if (value := p.detail(name)) is not None]
        if not found:
            raise NotMeasured(f"the run has no {name} of {asked}")
        return [float(value) for value in found]

    def sizes_of(self, *systems: str, least: int = 0) -> list[int]:
        """Sizes from ``least`` on at which each of the systems was timed."""
        data = self.runs[self._run("")].data
        names = [self.paper.system(system) for system in systems]
        for name in names:
            select.check_timed(data, name)
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
        asked = self._asked(system, N, hw, levels)
        points = configurations(*asked)
        judged = [p for p in points if p.status not in ("skipped", "unfinished")]
        if not judged:
            finished(points, asked.data)
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
        index = self._run(hw)
        run = self.runs[index]
        if system == DEVICE:
            return device_number(run.data, name)
        asked, name = self._asked(system, N, hw, levels), of_kernel(name, kernel)
        if name in probe_counters():
            found = probe_value(run, asked.system, asked.n, name, levels.get("depth"), probe)
            if found is None:
                raise NotMeasured(
                    f"no instrumented kernel counted {name} for {asked}",
                    select.remedy(run.data, asked.system, asked.n),
                )
            return found
        key = ("counter", name, config, index, *asked[1:3], *sorted(levels.items()))
        if key not in self._kept:
            self._kept[key] = counter_of(run, configuration(*asked, config), name)
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

    def _run(self, hw: str) -> int:
        """Index of the run that a function is asked about."""
        if not self.runs:
            raise NotMeasured("no run was given")
        if not hw:
            return self.run
        for i, run in enumerate(self.runs):
            if run.hardware(self.paper) == hw:
                return i
        known = {h.id: h.name for h in self.paper.hardware}
        if hw in known:
            raise NotMeasured(f"it is about the {known[hw]}, which {TOO_OLD}")
        raise NotMeasured(f"no run of device {hw} was given")

    def _asked(self, system: str, n: int | None, hw: str, levels: Mapping[str, Any]) -> Asked:
        data = self.runs[self._run(hw)].data
        return Asked(data, self.paper.system(system), n or self.n, levels)

    def _columns(
        self,
        phase: str,
        system: str,
        n: int | None,
        hw: str,
        levels: Mapping[str, Any],
        config: str | None = None,
    ) -> tuple[list[PointResult], list[Resampled]]:
        """The configurations that were timed, or the one that ``config`` picks, with their values
        (of a phase, or of the time) in every resample."""
        index, asked = self._run(hw), self._asked(system, n, hw, levels)
        key = (phase, config, index, *asked[1:3], *sorted(levels.items()))
        if key not in self._kept:
            what = quantity(phase or TIME.name)
            select.check_timed(asked.data, asked.system)
            found = (
                select.timed_points(*asked) if config is None else [configuration(*asked, config)]
            )
            points = [p for p in found if p.values(what)]
            if not points:
                raise NotMeasured(f"the run has no {what.label} of {asked.system}")
            self._kept[key] = points, [self.resamples.values(index, p, what) for p in points]
        kept: tuple[list[PointResult], list[Resampled]] = self._kept[key]
        return kept


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
            f" (nqbench reproduce {select.paper_of(run.data, point.system)} --device sim)"
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
    data: Dataset, system: str, n: int, levels: Mapping[str, Any], config: str
) -> PointResult:
    """The configuration that ``config`` picks: ``fastest``, ``highest_occupancy``, main."""
    if config == "fastest":
        return select.best_point(data, system, n, levels)
    if config == "highest_occupancy":
        ok = finished(configurations(data, system, n, levels), data)
        known = [p for p in ok if p.detail("occupancy") is not None]
        if not known:
            raise NotMeasured(
                f"the run has no occupancy of {system}; a GPU's compiler reports it",
                f"nqbench reproduce {select.paper_of(data, system)} --device cuda:0",
            )
        return max(known, key=lambda p: float(p.detail("occupancy")))
    if config:
        raise NotMeasured(f"config {config!r} is neither fastest nor highest_occupancy")
    return select.main_point(data, system, n, levels)


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
    stat = parameters.get("stat")
    counter = f"{name}_{stat}" if stat else name
    if counter in probe_counters() and "system" in parameters:
        system, n = str(parameters["system"]), int(parameters["N"])
        for run in runs:
            found = probe_value(run, system, n, counter, parameters.get("depth", "own"))
            if found is not None:
                return found, f"counted by the instrumented kernel on {run.data.device_short}"
    try:
        return get(workload).count(name, full=full, **parameters), ""
    except AnalysisError as error:
        raise NotMeasured(
            f"counting {name} at N={parameters.get('N')} walks the whole tree:"
            " `nqbench claims RUN --full` does it once (minutes), and so does a run of the study"
            " on a GPU"
        ) from error
