"""Formulas over the points of a run: cells of a paper's tables and heights in its figures.

A published time is a point of a run too, one with a single round (:func:`published_run`), so that
the formula of a curve gives the paper's curve as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from nqbench import expressions
from nqbench.analysis.claims import functions as claims
from nqbench.analysis.data import select
from nqbench.analysis.data.dataset import Dataset, PointResult, missing
from nqbench.analysis.data.estimate import Estimate, combine, welch
from nqbench.analysis.data.for_papers import probe_value
from nqbench.analysis.data.quantities import TIME, Quantity, quantity
from nqbench.analysis.data.select import Asked, NotMeasured
from nqbench.analysis.limits import ceilings
from nqbench.errors import StudyError
from nqbench.papers.forms import Points
from nqbench.papers.formula import CELL_FUNCTIONS, CELLS
from nqbench.papers.schema import Paper, PaperTable
from nqbench.point import Level
from nqbench.report.table import Cell
from nqbench.vocabulary import of_kernel


@dataclass(frozen=True, eq=False)
class PointRow:
    """What a formula is about: one point of a run, out of the ``group`` it was chosen from.

    ``own``    levels that distinguish it from other rows, also where there is no point
    ``sizes``  where a formula is tried in turn; without any, at ``n``
    ``each``   the level of a column that stands for one
    ``lacks``  why formulas had no value, with the command that would measure it
    ``at``     whether times of a baseline are of one round, or the others, and of which one;
               without it times are of all rounds
    ``reads``  whose times a formula has read, and which ones
    """

    paper: Paper
    run: Dataset
    system: str
    n: int
    point: PointResult | None = None
    group: Sequence[PointResult] = ()
    table: PaperTable | None = None
    own: Mapping[str, Any] = field(default_factory=dict)
    sizes: Sequence[int] = ()
    each: object = None
    lacks: dict[str, str] = field(default_factory=dict)
    used: dict[int, None] = field(default_factory=dict)
    at: tuple[bool, int] | None = None
    reads: list[tuple[PointResult, Quantity]] = field(default_factory=list)

    def value(self, text: str, **own: Any) -> Cell:
        """A formula's value; ``None`` where something that it reads is not known."""
        formula = expressions.parse(text, CELLS)
        before = dict(self.lacks)
        for n in self.sizes or (self.n,):
            row = replace(self, n=n, reads=[], **own)
            found: Cell = None
            try:
                found = row._sampled(formula)
            except StudyError as error:  # such as a division by a counter that is 0
                self.lacks[error.message] = ""
            if not missing(found):
                self.lacks.clear()
                self.lacks.update(before)
                if self.sizes and "(" in text:
                    self.used[n] = None
                return found
        return None

    def _sampled(self, formula: expressions.Expression) -> Any:
        """A formula's value: of times, that of each round in which all of them were measured, so
        that they are paired. Rounds of a baseline vary by themselves. NaN for a time over itself.
        """
        names = {name: self.name(name) for name in formula.names}
        found = expressions.evaluate(formula, CELLS, names, self.functions)
        if not self.reads or missing(found):
            return found
        if found == 1 and all(self.reads.count(one) > 1 for one in self.reads):
            return math.nan
        own, lent = (self._by_round(formula, names, borrowed) for borrowed in (False, True))
        if len(own) > 1 and len(lent) > 1:
            return welch({at: found / value for at, value in lent.items()}, own).estimate()
        values = list((own or lent).values())
        return combine(values) if values else Estimate(found)

    def _by_round(
        self, formula: expressions.Expression, names: Mapping[str, Any], borrowed: bool
    ) -> dict[int, float]:
        """A formula's positive values where the times of a baseline alone, or the others alone, are
        of one round."""
        reads = tuple(one for one in self.reads if one[0].borrowed == borrowed)
        rounds = set.intersection(*({*p.values(what)} for p, what in reads)) if reads else set()
        at = ((n, replace(self, at=(borrowed, n)).functions) for n in sorted(rounds))
        found = {n: expressions.evaluate(formula, CELLS, names, functions) for n, functions in at}
        return {n: value for n, value in found.items() if value > 0}

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """By the names of the language. What a run lacks is unknown, and its reason kept."""
        free = {"known": known, "least": least, **expressions.BASIC}
        own = (name for name in CELL_FUNCTIONS if name not in free)
        return {**free, **{name: self._lenient(getattr(self, name)) for name in own}}

    def _lenient(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **named: Any) -> Any:
            with lacking(self.lacks):
                return function(*args, **named)
            return math.nan

        return called

    def name(self, name: str) -> Any:
        """A name of the language, else a level or a recorded number of the point."""
        run, group = self.run, self.group
        peaks = ceilings.peaks(run)[0] if name in ceilings.MOVED else {}
        found: dict[str, Callable[[], Any]] = {
            "N": lambda: self.n,
            "system": lambda: self.system,
            "version": lambda: self.system.partition(".")[2],
            "device": lambda: run.device_short,
            "card": lambda: run.device,
            "cpu": lambda: cpu_name(run),
            "unknown": lambda: math.nan,
            "each": lambda: self.each,
            "counted_at": lambda: ", ".join(f"N={n}" for n in self.used),
            "timed": lambda: len(group),
            "not_run": lambda: len(Asked(run, self.system, self.n).configurations()) - len(group),
            "slowest": lambda: max((p.value(TIME) for p in group), default=math.nan),
            **{f"{of}_per_s": partial(ceilings.peak_per_s, run, of) for of in ("fp32", "roots")},
            "bytes_per_s": partial(ceilings.peak_per_s, run, "bytes"),
            **{peak: partial(peaks.get, peak) for peak in ceilings.MOVED},
        }
        value = found[name]() if name in found else self.level(name)
        return math.nan if value is None else value

    def level(self, name: str, system: str = "") -> Any:
        """A level or a recorded number of the row's point, or of a system's main one."""
        if not system and name in self.own:
            return math.nan if self.own[name] == "-" else self.own[name]
        point = self.chosen(system)
        return math.nan if point is None else _fact(point, name)

    def launch(self, system: str = "") -> str:
        """The launch of the row's point, or of a system's main one."""
        point = self.chosen(system)
        return select.launch_text(self.run, point) if point else ""

    def highest(self, name: str) -> float:
        """The highest level or recorded number among the points of the group."""
        found = (_fact(point, name) for point in self.group)
        return max((f for f in found if isinstance(f, int | float)), default=math.nan)

    def time(self, system: str = "", alike: str = "", **levels: object) -> float:
        """Seconds of the row's point, of one of its group, or of a system's main configuration.

        Only of one with the same level of the factor ``alike``, if that is given.
        """
        return self._seconds(TIME, self.chosen(system, levels=levels), alike)

    def best(self, system: str = "", **levels: object) -> float:
        """Seconds of a system's fastest configuration."""
        return self._seconds(TIME, self.chosen(system or self.system, True, levels))

    def phase(
        self, name: str, system: str = "", alike: str = "", best: int = 0, **levels: object
    ) -> float:
        """Seconds of a phase; of a system's fastest configuration with ``best=1``."""
        return self._seconds(quantity(name), self.chosen(system, bool(best), levels), alike)

    def rest(self, *names: str) -> float:
        """What the phases named leave of the time; unknown where that is nothing."""
        whole = replace(self, at=None, reads=[])
        parts = (whole.phase(name) for name in names)
        left = whole.time() - sum(part for part in parts if not missing(part))
        return left if left > 0 else math.nan

    def _seconds(self, what: Quantity, point: PointResult | None, alike: str = "") -> float:
        if point is None or (alike and point.level(alike) != self.level(alike)):
            return math.nan
        self.reads.append((point, what))
        values = point.values(what)
        if self.at is not None and self.at[0] == point.borrowed:
            return values[self.at[1]]
        positive = [value for value in values.values() if value > 0]
        return combine(positive).value if positive else math.nan

    def chosen(
        self, system: str = "", best: bool = False, levels: Mapping[str, object] | None = None
    ) -> PointResult | None:
        """The row's point, the first of its group with some levels, or a system's main or fastest
        configuration; ``None`` with its reason where the run lacks it."""
        wanted = {name: str(level) for name, level in (levels or {}).items()}
        if not system:
            alike = (p for p in self.group if all(str(p.level(k)) == v for k, v in wanted.items()))
            return next(alike, None) if wanted else self.point
        with lacking(self.lacks):
            asked = Asked(self.run, self.paper.system(system), self.n, wanted)
            asked.check_timed()
            return asked.best() if best else asked.main()
        return None

    def main(self, n: int) -> PointResult | None:
        """The main configuration of the row's system at a size; ``None`` without one."""
        with suppress(NotMeasured):
            return Asked(self.run, self.system, n).main()
        return None

    def counter(self, name: str, kernel: str = "", system: str = "") -> float:
        """A counter or resource of the first point that has it: of the group, else of all."""
        wanted = of_kernel(name, kernel) if kernel else name
        asked = Asked(self.run, system or self.system, self.n)
        for point in self.group if self.group and not system else asked.finished():
            with lacking(self.lacks):
                return claims.counter_of(self.run, point, wanted)
        return math.nan

    def probe(self, name: str, probe: str = "") -> float:
        """What an instrumented kernel counted with the paper's own split."""
        found = probe_value(self.run, self.system, self.n, name, "own", probe)
        if found is None:
            asked = Asked(self.run, self.system, self.n)
            raise NotMeasured(f"no instrumented kernel counted {name} for {asked}", asked.remedy())
        return found

    def count(self, name: str, **given: Any) -> Any:
        """A deterministic count, by an instrumented kernel or by enumeration."""
        about = {"system": self.system, **given}
        return claims.Values(self.paper, (self.run,), n=self.n).count(name, **about)

    def printed(self, column: str) -> str:
        """The printed cell of a column in the row of this system and size; empty without one."""
        assert self.table is not None
        heads = self.table.columns
        for row in self.table.rows:
            cells = dict(zip(heads, map(str, row), strict=True))
            own = self.paper.system(cells.get("system", self.system)) == self.system
            own &= str(row[0]) == self.own.get("label", str(row[0]))
            if own and cells.get("n", str(self.n)) == str(self.n):
                return cells[column]
        return ""

    @property
    def searches(self) -> list[SeededSearch]:
        """The whole searches of the group, each once."""
        timed = ((p, p.estimate(TIME)) for p in self.group if p.ok)
        return list(dict.fromkeys(_search(p, found.value) for p, found in timed if found))

    def quantile(self, percent: float = -1, name: str = "time") -> float | Estimate:
        """A percentile over the whole searches of the group; the median with the least and the
        largest value if no percent is given. ``name``  ``evaluations`` or ``cut`` (predicted)"""
        values = [float(getattr(search, name)) for search in self.searches]
        if not values:
            return math.nan
        if percent < 0:
            return Estimate(float(np.median(values)), min(values), max(values), len(values))
        value = float(np.percentile(values, percent))
        return value if name == "time" else round(value)

    def seeds(self, name: str = "") -> int | str:
        """How many seeds the searches of the group have; how many are ``found``, as words."""
        if not name:
            return len({search.seed for search in self.searches})
        return f"{sum(getattr(s, name) for s in self.searches)} of {len(self.searches)}"


@dataclass(frozen=True, slots=True)
class SeededSearch:
    """A whole search. Its time is predicted where ``cut`` says it was cut short; ``found`` and
    ``evaluations`` are those of the whole walk, which is known even then."""

    time: float
    evaluations: float
    found: bool
    cut: bool
    seed: int


def _search(point: PointResult, time_s: float) -> SeededSearch:
    """The search of a point, with the rest of its walk where it was cut short."""
    from nqbench.workloads.fitness.annealing.points import expected, full_length

    limit, done = point.level("max_evaluations"), float(point.detail("evaluations") or 0)
    found, seed = bool(float(point.detail("found") or 0)), int(point.level("seed"))
    if limit not in ("-", 0) and done and not found:
        levels: dict[str, Level] = {"n": point.n}
        levels |= {k: v for k, v in point.levels.items() if k != "n" and not isinstance(v, float)}
        whole = full_length(levels)
        if whole > done:
            reached = expected({**levels, "max_evaluations": 0}) == 0
            return SeededSearch(time_s * whole / done, whole, reached, True, seed)
    return SeededSearch(time_s, done, found, False, seed)


def _fact(point: PointResult, name: str) -> Any:
    """A level or a recorded number; unknown where it does not apply."""
    level = point.level(name)
    fact = point.detail(name) if level == "-" else level
    return math.nan if fact in (None, "-") else fact


def number(cell: Cell) -> float | None:
    """A cell without its interval."""
    value = cell.value if isinstance(cell, Estimate) else cell
    return float(value) if isinstance(value, int | float) else None


def known(*values: Any) -> Any:
    """The first value that is known."""
    return next((value for value in values if not missing(value)), math.nan)


def least(*values: Any) -> Any:
    """The least of the numbers that are known."""
    return min((value for value in values if not missing(value)), default=math.nan)


# Rows.


def systems_of(paper: Paper, runs: Sequence[Dataset], named: Sequence[str]) -> list[str]:
    """Systems by their names, or by the words of ``Points.systems``; the kernels of the paper stand
    in its order, ours behind them."""
    points = [p for run in runs for p in run.points if p.system]
    every = list(dict.fromkeys(p.system for p in points))
    on_cpu = {p.system for p in points if p.cpu}
    own = [s.system for s in paper.systems if s.system in every]
    kernels = [s for s in dict.fromkeys((*own, *every)) if s not in on_cpu]
    others = [s for s in kernels if not s.startswith(f"{paper.id}.")]
    words = {"kernels": kernels, "others": others, "every": every}
    found = [system for name in named for system in words.get(name, [paper.system(name)])]
    return list(dict.fromkeys(found))


def rows_of(
    paper: Paper,
    run: Dataset,
    points: Points,
    listed: Sequence[int] = (),
    *,
    table: PaperTable | None = None,
    lacks: dict[str, str] | None = None,
) -> list[PointRow]:
    """The rows that ``points`` asks for, at the sizes listed (empty: at all).

    ``lacks`` collects why some are missing, with the command that would measure them.
    """
    lacks = {} if lacks is None else lacks
    if points.sweeps:
        found = (p for p in run.points if p.sweep.partition("_")[0] in points.sweeps)
        timed = (p for p in found if p.ok and not p.cpu)
        return [PointRow(paper, run, p.system, p.n, p, [p], table) for p in timed]
    rows: list[PointRow] = []
    for system in systems_of(paper, [run], points.systems):
        own = sorted({p.n for p in run.points if p.system == system})
        if points.sizes == "counted":
            sizes = (() if run.simulated else listed) or run.sizes[::-1]
            parts = [part.names for part in table.counterparts] if table else []
            for names in parts or [{}]:
                row = PointRow(paper, run, system, sizes[0], table=table, own=names, sizes=sizes)
                rows.append(row)
            continue
        sizes = run.sizes if points.sizes == "run" else listed or own
        at: list[PointRow] = []
        for n in sorted({*sizes, *own}) if points.sizes == "largest" else sizes:
            with lacking(lacks):
                at += _rows_at(PointRow(paper, run, system, n, table=table), points)
        if points.sizes == "largest":
            at = [row for row in at if row.n in listed or row.n == at[-1].n]
        words = [row.own for row in at] if points.words else []
        at.sort(key=lambda row: words.index(row.own) if words else 0)
        rows += at
    return rows if points.order == "system" else sorted(rows, key=lambda row: row.n)


@contextmanager
def lacking(lacks: dict[str, str]) -> Iterator[None]:
    """Keep the reason where a run lacks something."""
    try:
        yield
    except NotMeasured as error:
        lacks[error.what] = error.command


def _rows_at(row: PointRow, points: Points) -> Iterator[PointRow]:
    """The rows of one system at one size. Raises ``NotMeasured``."""
    run, system, n = row.run, row.system, row.n
    named = {row.paper.system(name): levels for name, levels in points.levels.items()}
    levels = {} if run.spec == PUBLISHED else named.get(system, {})
    asked = Asked(run, system, n, levels)
    every = asked.finished() if points.choose == "any" else asked.timed()
    if points.numbers:  # ``auto`` is not a level
        factor = points.several or points.by
        every = [p for p in every if isinstance(p.level(factor), int)]
        if len({p.level(factor) for p in every}) < (2 if points.several else 1):
            return
    fastest = points.choose == "best" or system in map(row.paper.system, points.best)
    if not points.by:
        point = every[0] if points.choose == "any" or fastest else asked.main()
        if fastest:
            point = min(every, key=lambda p: p.value(TIME))
        if points.choose == "any" or point.values(TIME):
            yield replace(row, point=point, group=every)
        return
    levels_found = list(dict.fromkeys(p.level(points.by) for p in every))
    for level in sorted(levels_found) if points.numbers else levels_found:
        group = [p for p in every if p.level(points.by) == level]
        point = min(group, key=lambda p: p.value(TIME)) if fastest else group[0]
        yield replace(row, point=point, group=group, own={points.by: level})


PUBLISHED: Final = "published"


def published_run(paper: Paper, data: str = "", name: str = PUBLISHED) -> Dataset:
    """Published times as a run of one round: those of a data file with those of the file of many
    systems, or else those that tables print (all of them, or the one that ``data`` names). A time
    of 0, below its last digit, is left out."""
    points: list[PointResult] = []

    def add(system: str, n: int, seconds: float, levels: Mapping[str, int]) -> None:
        if seconds > 0:
            row = {0: {"value_s": seconds}}
            points.append(PointResult(PUBLISHED, system, n, levels, False, True, "ok", "", row))

    files = {part.id for part in paper.data}
    if data in files:
        mine = paper.series(data)
        of_all = next((part for part in paper.data if not part.system), mine)
        for part in dict.fromkeys((mine.id, of_all.id)):
            for row in paper.series(part).rows:
                if part == mine.id or row.system != mine.system:
                    add(row.system, row.n, row.seconds, row.levels)
    else:
        for table in (t for t in paper.tables if data in ("", t.id)):
            for series in (s for s in table.series if s.quantity == "time"):
                for n in table.sizes:
                    with suppress(ValueError):  # a cell may be words
                        levels = {k: int(v) for k, v in series.levels.items() if v.isdecimal()}
                        add(series.system, n, float(table.printed(series.label, n)), levels)
    device = {"spec": PUBLISHED, "kind": PUBLISHED, "identity": {"name": name}}
    return Dataset(paper.id, {"device": device}, tuple(points), 1, Path(PUBLISHED))


def short(system: str) -> str:
    """A system without the name of its paper."""
    return system.partition(".")[2]


def cpu_name(run: Dataset) -> str:
    """The CPU of a run."""
    return run.cpu.removesuffix(" (cpu)")


def timed_on(run: Dataset, points: Sequence[PointResult]) -> str:
    """The device behind times, for a title: the CPU if no point ran on the GPU."""
    return cpu_name(run) if points and all(point.cpu for point in points) else run.device_name


def refuse(run: Dataset, system: str, what: str) -> NoReturn:
    """Raise ``NotMeasured`` with the reason why a run has no times of a system, else ``what``.

    A simulated run has no times; a skipped point has its own reason.
    """
    sizes = [p.n for p in run.points if p.system == system]
    if sizes:
        Asked(run, system, max(sizes)).best()
    raise NotMeasured(f"the run has {what if sizes else f'no {system}'}")
