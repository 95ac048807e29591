"""Searches of a paper and of ours: a profile, times of whole searches, limits of the device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from nqbench.analysis.claims.functions import first_counted
from nqbench.analysis.data.dataset import Dataset, PointResult, point_ratio
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.quantities import TIME, Quantity, quantity
from nqbench.analysis.data.select import NotMeasured, main_point
from nqbench.analysis.limits.ceilings import bytes_per_s, fp32_per_s, roots_per_s
from nqbench.analysis.wording import grouped
from nqbench.errors import AnalysisError
from nqbench.papers.schema import Counterpart, Paper, PaperTable, Series
from nqbench.report.papers.brodtkorb_part1 import (
    EVALUATION,
    IDEAL_SECTORS,
    PHASES,
    moves_per_s,
    points_at,
    shares_s,
    shown_systems,
    untimed,
)
from nqbench.report.papers.common import COMPARE_TIMES, GIGA, reproduced, short, timed_point
from nqbench.report.table import Cell, Column, Table, tabulate
from nqbench.report.tables.common import interval_note
from nqbench.vocabulary import of_kernel

KERNELS: Final = {EVALUATION: "evaluation", "apply": "choice"}
"""Kernels of a search, and what they are called."""
LOADS: Final = {
    "global_load_sectors_per_request": ("sectors (32 B) per request", ""),
    "global_load_efficiency_percent": ("used of loaded bytes", "%"),
    "global_load_hit_percent": ("sectors found in L1", "%"),
}
"""Counters of loads, with their names and units."""
VERSIONS: tuple[str, str] = ("gpu_v1", "gpu_v8")
"""The paper's first and last: what speed-ups refer to."""
ITERATIONS = "iterations"
_NAMES = "NAMES"
"""Placeholder for the names of the counters that share a reason."""
BASE: Final = VERSIONS[-1]
"""The paper's last version, the only one that works at all sizes."""
GIVEN: Final = ("fp32_instructions_per_move", "roots_per_move", "bytes_per_move")
"""Work per move by the algorithm, as every point states it (docs/local-search.md)."""
NOTES: Final = (
    "instructions, square roots and requested bytes are counts of the algorithm; device memory: as"
    " counted by Nsight Compute for the first evaluation, which starts with cold caches",
    "limits: single-precision instructions and square roots per move at the maximum clock, and"
    " bytes of device memory at the data-sheet bandwidth. Requested bytes come from caches and"
    " shared memory and set no limit here: lanes that request the same word are served at once",
    "share: the time at the lowest limit over the measured time, for the evaluation kernel and for"
    " a whole iteration (evaluation, choice, application, CPU)",
    "the evaluation is timed between two events, which a search without events does not wait for:"
    " it can exceed the iteration of a single-kernel search",
)


def counters(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """Each printed counter with the nearest one of today, by kernel.

    Raises ``AnalysisError`` where the run has none of them.
    """
    n = _size(run, table)
    printed = {str(row[0]): [str(cell) for cell in row[1:]] for row in table.rows}
    rows: list[tuple[Cell, ...]] = []
    missing: dict[str, dict[str, None]] = {}
    for part in table.counterparts:
        row: list[Cell] = [part.label]
        for series, cell in zip(table.series, printed[part.label], strict=True):
            row.append(cell)
            try:
                row.append(_counter(run, series, n, part))
            except NotMeasured as error:
                row.append(None)
                own = of_kernel(part.counter, series.kernel)
                missing.setdefault(error.what.replace(own, _NAMES), {})[part.counter] = None
        scaled = "" if part.scale == 1 else f" \u00d7 {part.scale:g}"
        rows.append((*row, part.unit, f"{part.counter}{scaled}", part.note))
    if all(cell is None for row in rows for cell in row[2:-3:2]):
        raise AnalysisError("; ".join(_reasons(missing)))
    pairs = [c for s in table.series for c in (Column(f"{s.label}, paper"),
             Column(f"{s.label}, here", "number"))]  # fmt: skip
    last = (Column("unit"), Column("counter here"), Column("difference"))
    columns = (Column("counter"), *pairs, *last)
    notes = [f"here: N={n}, {table.series[0].system}, first launch of each kernel"]
    if n not in table.sizes:
        notes.append(f"the paper has N={', '.join(map(str, table.sizes))}: compare no totals")
    notes.append(f"on the paper: {table.note}")
    notes += [f"not measured: {reason}" for reason in _reasons(missing)]
    return reproduced(paper, table, run, columns, rows, notes)


def coalescing(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """Sectors of each kernel's loads by version and size, beside the printed transactions.

    Raises ``NotMeasured`` where no loads were counted.
    """
    printed = {(paper.system(str(row[0])), int(str(row[1]))): str(row[2]) for row in table.rows}
    rows: list[tuple[Cell, ...]] = []
    reasons: dict[str, None] = {}
    for n in table.sizes:
        for system in shown_systems(paper, [run]):
            found: list[Cell] = []
            for kernel in KERNELS:
                for name in LOADS:
                    try:
                        found.append(first_counted(run, system, n, of_kernel(name, kernel)))
                    except NotMeasured as error:
                        found.append(None)
                        reasons[error.what] = None
            if any(value is not None for value in found):
                rows.append((short(system), n, printed.get((system, n), ""), *found))
    if not rows:
        raise NotMeasured(next(iter(reasons), "no loads were counted"), run.data.command)
    columns = (
        *(Column("system"), Column("N", "number")),
        Column("evaluation: transactions (128 B) per request, paper"),
        *(Column(f"{words}: {what}", "number", unit) for words in KERNELS.values()
          for what, unit in LOADS.values()),
    )  # fmt: skip
    notes = (
        f"first launch of each kernel under Nsight Compute; {IDEAL_SECTORS} sectors of 32 bytes per"
        " request are ideal for neighbouring words of 4 bytes, 32 are the most",
        f"on the paper: {table.note}",
    )
    return reproduced(paper, table, run, columns, rows, notes, number="")


def _reasons(missing: Mapping[str, Iterable[str]]) -> list[str]:
    """Reasons, each with the names of all counters that it applies to."""
    return [reason.replace(_NAMES, ", ".join(names)) for reason, names in missing.items()]


def _size(run: Observed, table: PaperTable) -> int:
    """The paper's size if the run has it, else the largest at which the system was counted."""
    system = table.series[0].system
    own = sorted({p.n for p in run.data.points if p.system == system and p.ok})
    if not own:
        raise NotMeasured(f"the run has no {system} that came to an end", run.data.command)
    wanted = [n for n in table.sizes if n in own]
    return wanted[0] if wanted else own[-1]


def _counter(run: Observed, series: Series, n: int, part: Counterpart) -> float:
    name = of_kernel(part.counter, series.kernel)
    return part.scale * first_counted(run, series.system, n, name)


def searches(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """Every system at every size: the printed time, ours, moves a second, speed-ups.

    Raises ``AnalysisError`` where nothing was timed.
    """
    data = run.data
    printed = {(paper.system(str(row[0])), int(str(row[1]))): str(row[2]) for row in table.rows}
    points, missing = [], dict[str, None]()
    for n in sorted({p.n for p in data.points}):
        for system in dict.fromkeys(p.system for p in data.points if p.n == n):
            try:
                points.append(main_point(data, system, n))
            except NotMeasured as error:
                missing[error.what] = None
    points = [p for p in points if p.values(TIME)]
    if not points:
        raise AnalysisError(next(iter(missing), "the run timed no search"))
    versions = {name: paper.system(name) for name in VERSIONS}
    columns, rows = tabulate(
        points,
        (Column("system"), lambda p: p.system),
        (Column("N", "number"), lambda p: p.n),
        (Column("iteration limit", "number"), lambda p: int(p.level(ITERATIONS))),
        (
            Column("paper, whole search", unit=table.unit),
            lambda p: printed.get((p.system, p.n), ""),
        ),
        (Column("here", "time", spread=True), lambda p: p.estimate(TIME)),
        *(
            (Column(label, "time"), lambda p, name=name: shares_s(p)[name] or None)
            for name, label, _ in PHASES
        ),
        (Column("evaluations", "number"), lambda p: p.detail("evaluations")),
        (Column("moves", "number", "G/s"), lambda p: (r := moves_per_s(p)) and r / GIGA),
        *(
            (Column(f"{name} / this", "ratio", spread=True), partial(_speedup, data, system))
            for name, system in versions.items()
        ),
        (
            Column("final length", "number", "sides of the square"),
            lambda p: p.detail("final_length"),
        ),
    )
    notes = (
        COMPARE_TIMES,
        "the phases come from another search with events around each kernel: their sum may exceed"
        " the whole",
        "speed-ups are given where both searches had the same iteration limit",
        interval_note(simulated=False, rounds=data.rounds),
        f"on the paper: {table.note}",
        *(f"not timed: {reason}" for reason in grouped(missing)),
    )
    return reproduced(paper, table, run, columns, rows, notes, number="")


def _speedup(data: Dataset, base: str, point: PointResult) -> Estimate | None:
    return _gain(timed_point(data, base, point.n), point, TIME)


def against_limits(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """A row per size and system: the paper's last version, then every one that is not the paper's.

    Raises ``NotMeasured`` where the run timed none of them.
    """
    data, base = run.data, paper.system(BASE)
    others = [s for s in shown_systems(paper, [run]) if not s.startswith(f"{paper.id}.")]
    rows: list[tuple[Cell, ...]] = []
    for n in table.n:
        points = points_at(run, [base, *others], n)
        rows += [_row(run, point, points.get(base)) for point in points.values()]
    if not rows:
        raise untimed([run])
    columns = (
        Column("system"),
        Column("N", "number"),
        *(Column(f"time of an {what}", "time", spread=True)
          for what in ("evaluation", "iteration")),
        *(
            Column(f"{BASE} / this, {of}", "ratio", spread=True)
            for of in ("evaluation", "whole search")
        ),
        Column("FP32 instructions per move", "number"),
        Column("square roots per move", "number"),
        Column("requested per move", "number", "B"),
        Column("device memory per move", "number", "B"),
        *(
            Column(f"limit by {what}", "number", "G moves/s")
            for what in ("instructions", "square roots", "device memory")
        ),
        *(Column(f"lowest limit's time / measured, {of}", "ratio", spread=True)
          for of in ("evaluation", "iteration")),
    )  # fmt: skip
    notes = (*NOTES, interval_note(simulated=False, rounds=data.rounds))
    return reproduced(paper, table, run, columns, rows, notes, number="")


def _row(run: Observed, point: PointResult, base: PointResult | None) -> tuple[Cell, ...]:
    evaluations = float(point.detail("evaluations"))
    moves = float(point.detail("moves_evaluated")) / evaluations
    wholes = [point.estimate(q) for q in (quantity(EVALUATION), TIME)]
    evaluation, iteration = (whole and whole.scaled(1 / evaluations) for whole in wholes)
    given = [None if (v := point.detail(name)) is None else float(v) for name in GIVEN]
    fetched = _fetched(run, point, moves)
    limits = _limits(run.data, given, fetched)
    known = [limit for limit in limits if limit]
    shares = [
        time.inverse().scaled(moves / min(known)) if known and time else None
        for time in (evaluation, iteration)
    ]
    gains = [_gain(base, point, q) for q in (quantity(EVALUATION), TIME)]
    shown = [limit and limit / GIGA for limit in limits]
    return (point.system, point.n, evaluation, iteration, *gains, *given, fetched, *shown, *shares)


def _gain(base: PointResult | None, point: PointResult, what: Quantity) -> Estimate | None:
    """Time of a version of the paper over that of a search as long."""
    if base is None or base is point or base.level(ITERATIONS) != point.level(ITERATIONS):
        return None
    return point_ratio(base, point, what) if base.values(what) and point.values(what) else None


def _fetched(run: Observed, point: PointResult, moves: float) -> float | None:
    """Bytes of device memory per move of the first evaluation, by a profiler."""
    name = of_kernel("dram_bytes", EVALUATION)
    try:
        return first_counted(run, point.system, point.n, name) / moves
    except NotMeasured:
        return None


def _limits(
    data: Dataset, given: Sequence[float | None], fetched: float | None
) -> list[float | None]:
    """Moves per second that instructions, square roots and device memory allow."""
    pairs = ((fp32_per_s(data), given[0]), (roots_per_s(data), given[1]),
             (bytes_per_s(data), fetched))  # fmt: skip
    return [peak / needed if peak and needed else None for peak, needed in pairs]
