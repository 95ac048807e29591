"""The functions that claims call over recorded runs, for one resample of the rounds at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from nqbench.analysis.claims.bootstrap import ALL_ROUNDS, Resampled, Resamples
from nqbench.analysis.data import select
from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.for_papers import probe_value, profile_value
from nqbench.analysis.data.quantities import TIME, quantity
from nqbench.analysis.data.select import Asked, NotMeasured
from nqbench.analysis.limits.ceilings import device_number
from nqbench.errors import AnalysisError
from nqbench.papers.formula import BUILT_IN, DEVICE, FUNCTIONS, OF_SYSTEM
from nqbench.papers.schema import Paper
from nqbench.vocabulary import PROFILER_COUNTERS, is_counter, of_kernel, plain_name
from nqbench.workloads import get, probe_counters

TOO_OLD: Final = "cannot run kernels of a CUDA compiler that is still maintained (Turing or later)"
"""CUDA 13 compiles for compute capability 7.5 and up, the papers' devices are Tesla and Fermi."""
OPTIONS: Final = ("phase", "config", "skipped", "kernel", "probe")
"""Arguments of functions of a system that are no levels of factors, besides ``N`` and ``hw``."""


@dataclass(eq=False)
class Values:
    """What a claim may read: a method for each function of the language that is not built in.

    ``at``     the resample that the functions answer for; 0: all rounds
    ``run``    index of the run in question among ``runs``; ``n`` the size (``N``)
    ``notes``  where values come from; ``edges`` the optima that lie at the edge of their sweep

    A formula gives the functions of a system (``formula.OF_SYSTEM``) the system, a size and a
    device, if not those of the claim, and levels of factors: here that is one :class:`Asked`.
    """

    paper: Paper
    runs: Sequence[Dataset]
    resamples: Resamples = ALL_ROUNDS
    run: int = 0
    n: int = 0
    at: int = 0
    notes: dict[str, None] = field(default_factory=dict)
    edges: dict[str, None] = field(default_factory=dict)
    _kept: dict[Any, Any] = field(default_factory=dict)

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """By the names of the language."""
        own = {name: getattr(self, name) for name in FUNCTIONS if hasattr(self, name)}
        of_system = {name: partial(self._of_system, own[name]) for name in OF_SYSTEM}
        return {**BUILT_IN, **own, **of_system}

    def _of_system(
        self,
        function: Callable[..., Any],
        system: str,
        *words: Any,
        N: int | None = None,
        hw: str = "",
        **given: Any,
    ) -> Any:
        index = self._run(hw)
        options = {name: given.pop(name) for name in OPTIONS if name in given}
        if function == self.counter and system == DEVICE:
            return device_number(self.runs[index], *words)
        system = self.paper.system(system)
        asked = Asked(self.runs[index], system, N or self.n, given, index)
        return function(asked, *words, **options)

    @property
    def names(self) -> dict[str, Any]:
        """Names of the language that are not functions; without a run ``hw`` is empty."""
        here = self.runs[self.run] if self.runs else None
        return {
            "N": self.n,
            "hw": here.hardware(self.paper) if here else "",
            "devices": [run.hardware(self.paper) for run in self.runs],
            "sizes": here.sizes if here else [],
            "logical_cores": here.logical_cores if here else 0,
        }

    def time(self, asked: Asked) -> float:
        """Kernel seconds of the main configuration."""
        return self.phase(asked, TIME.name)

    def phase(self, asked: Asked, name: str, config: str = "") -> float:
        """Seconds of a phase of a configuration (``fastest``, or the main one)."""
        _, (column,) = self._columns(asked, name, config)
        return float(column[self.at])

    def times(self, asked: Asked, phase: str = "", skipped: int = 0) -> list[float]:
        """Seconds (of a phase, if given) of every configuration that was timed.

        With ``skipped=1`` also kernel seconds of those too slow to be timed: of the launch that
        verified them.
        """
        found = [float(column[self.at]) for column in self._columns(asked, phase)[1]]
        if skipped:
            slow = [p.first_s for p in asked.configurations() if p.status == "skipped"]
            found += [first_s for first_s in slow if first_s is not None]
        return found

    def best(self, asked: Asked, phase: str = "") -> float:
        """Seconds (of a phase, if given) of the configuration that is fastest over all rounds.

        Picking it anew in each resample would take the minimum of many noisy values, a biased one.
        """
        _, columns = self._columns(asked, phase)
        return float(min(columns, key=lambda column: column[0])[self.at])

    def argbest(self, asked: Asked, factor: str) -> Any:
        """The level of a factor in the fastest configuration (``auto`` is not a level)."""
        every = zip(*self._columns(asked), strict=True)
        chosen = [(p, c) for p, c in every if p.level(factor) != "auto"]
        if len({p.level(factor) for p, _ in chosen}) < 2:
            raise NotMeasured(f"{asked} was timed with one {factor} only", asked.data.command)
        best = min(chosen, key=lambda one: one[1][self.at])[0].level(factor)
        numbers = _numbers([p for p, _ in chosen], factor)
        edges = numbers[:1] + numbers[-1:]
        if self.at == 0 and best in edges and best != 1:  # no level lies below 1
            self.edges[f"best {factor} {best} of {edges[0]} to {edges[1]}"] = None
        return best

    def levels(self, asked: Asked, factor: str) -> list[int]:
        """The numeric levels of a factor among the configurations that were timed, in order."""
        return _numbers(self._columns(asked)[0], factor)

    def recorded(self, asked: Asked, name: str) -> list[float]:
        """A number that every finished configuration recorded (``found``, ``evaluations``, ...)."""
        found = [value for p in asked.finished() if (value := p.detail(name)) is not None]
        if not found:
            raise NotMeasured(f"the run has no {name} of {asked}")
        return [float(value) for value in found]

    def sizes_of(self, *systems: str, least: int = 0) -> list[int]:
        """Sizes from ``least`` on at which each of the systems was timed."""
        data = self.runs[self._run("")]
        names = [self.paper.system(system) for system in systems]
        for name in names:
            Asked(data, name, self.n).check_timed()
        timed = {(p.system, p.n) for p in data.points if p.ok and p.values(TIME)}
        sizes = sorted({n for _, n in timed})
        found = [n for n in sizes if n >= least and all((name, n) in timed for name in names)]
        if not found:
            which = f"size of {least:,} or more" if least else "size"
            raise NotMeasured(f"no {which} has times of {' and '.join(names)}", data.command)
        return found

    def fails(self, asked: Asked) -> bool:
        """Whether the system ends with an error or a wrong answer."""
        points = asked.configurations()
        judged = [p for p in points if p.status not in ("skipped", "unfinished")]
        if not judged:
            asked.finished()  # raises the reason
        return all(not p.ok for p in judged)

    def counter(
        self, asked: Asked, name: str, config: str = "", kernel: str = "", probe: str = "iterations"
    ) -> float:
        """A counter or resource of a configuration (``fastest``, ``highest_occupancy``, main).

        ``kernel`` is one of a program's; ``probe`` is what an instrumented kernel counted
        (``iterations`` or ``clocks``). Of the system ``device`` it is a number of its maker.
        """
        run, name = self.runs[asked.run], of_kernel(name, kernel)
        if name in probe_counters():
            if run.simulated and (probe == "clocks" or name.startswith("cycles")):
                raise NotMeasured("the clock of the simulator counts issued instructions")
            found = probe_value(run, asked.system, asked.n, name, asked.levels.get("depth"), probe)
            if found is None:
                said = f"no instrumented kernel counted {name} for {asked}"
                raise NotMeasured(said, asked.remedy())
            return found
        return counter_of(run, configuration(asked, config), name)

    def count(self, name: str, **parameters: Any) -> Any:
        """A deterministic count, of an instrumented kernel if a run has it, else enumerated on the
        CPU, of boards that take no minutes."""
        given = {"N": self.n, **parameters}
        if "system" in given:
            given["system"] = self.paper.system(given["system"])
            stat, system, n = given.get("stat"), given["system"], int(given["N"])
            counter = f"{name}_{stat}" if stat else name
            for run in self.runs if counter in probe_counters() else ():
                found = probe_value(run, system, n, counter, given.get("depth", "own"))
                if found is not None:
                    where = run.device_short
                    self.notes[f"counted by the instrumented kernel on {where}"] = None
                    return found
        try:
            return get(self.paper.workload).count(name, **given)
        except AnalysisError as error:
            raise NotMeasured(
                f"counting {name} at N={given['N']} walks the whole tree: a run of the study on a"
                " GPU does"
            ) from error

    def _run(self, hw: str) -> int:
        """Index of the run that a function is asked about."""
        if not self.runs:
            raise NotMeasured("no run was given")
        if not hw:
            return self.run
        if hw in (devices := self.names["devices"]):
            return int(devices.index(hw))
        known = {h.id: h.name for h in self.paper.hardware}
        if hw in known:
            raise NotMeasured(f"it is about the {known[hw]}, which {TOO_OLD}")
        raise NotMeasured(f"no run of device {hw} was given")

    def _columns(
        self, asked: Asked, phase: str = "", config: str | None = None
    ) -> tuple[list[PointResult], list[Resampled]]:
        """The configurations that were timed, or the one that ``config`` picks, with their values
        (of a phase, or of the time) in every resample."""
        key = asked.key(phase, config)
        if key not in self._kept:
            what = quantity(phase or TIME.name)
            asked.check_timed()
            timed = asked.timed() if config is None else []
            points = [p for p in timed or [configuration(asked, config or "")] if p.values(what)]
            if not points:
                raise NotMeasured(f"the run has no {what.label} of {asked.system}")
            columns = [self.resamples.values(asked.run, p, what) for p in points]
            run = self.runs[asked.run]
            for point in (p for p in points if p.cpu):
                plain = ", without optimization" if point.level("optimization") == "none" else ""
                host = run.baseline if point.borrowed and run.baseline else run
                cores = f", {host.logical_cores} logical cores" if host.logical_cores else ""
                self.notes[f"{point.system}{plain} on {host.host_cpu}{cores}"] = None
            self._kept[key] = points, columns
        kept: tuple[list[PointResult], list[Resampled]] = self._kept[key]
        return kept


def _numbers(points: Sequence[PointResult], factor: str) -> list[int]:
    return sorted({v for p in points if isinstance(v := p.level(factor), int)})


def counter_of(run: Dataset, point: PointResult, name: str) -> float:
    """A counter or resource of a point. Raises :class:`NotMeasured` if it was not counted."""
    value: float | None
    if is_counter(name):
        estimate = point.estimate(quantity(name))
        value = profile_value(run, point, name) if estimate is None else estimate.value
        missing = (
            f"{name} is counted in the simulator"
            f" (nqbench reproduce {select.paper_of(run, point.system)} --device sim)"
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


def configuration(asked: Asked, config: str) -> PointResult:
    """The configuration that ``config`` picks: ``fastest``, ``highest_occupancy``, main."""
    if config == "fastest":
        return asked.best()
    if config == "highest_occupancy":
        known = [p for p in asked.finished() if p.detail("occupancy") is not None]
        if not known:
            raise NotMeasured(
                f"the run has no occupancy of {asked.system}; a GPU's compiler reports it",
                f"nqbench reproduce {select.paper_of(asked.data, asked.system)} --device cuda:0",
            )
        return max(known, key=lambda p: float(p.detail("occupancy")))
    if config:
        raise NotMeasured(f"config {config!r} is neither fastest nor highest_occupancy")
    return asked.main()
