"""The histogram scheme and the coarse one, and how close each comes to its device's limits.

Bytes and operations are those that the workload states (docs/fitness.md), summed over the threads,
whether caches or memory serve them. The limits are measured if a run of ``configs/ceilings.yaml``
is next to the run, else taken from data sheets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from nqbench.analysis.data.dataset import PointResult
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.quantities import TIME, Quantity
from nqbench.analysis.limits.ceilings import bytes_per_s, ceilings_beside, integers_per_s
from nqbench.papers.schema import Paper, PaperTable
from nqbench.report.papers.common import (
    FULL,
    GIGA,
    KERNEL,
    found_points,
    refuse,
    reproduced,
    sizes_of,
    speedup,
    timed_point,
)
from nqbench.report.papers.fitness_schemes import COARSE
from nqbench.report.table import Cell, Column, Table
from nqbench.report.tables.common import interval_note

if TYPE_CHECKING:
    pass


HISTOGRAM: Final = "fitness.histogram"
MOVED: Final = ("bytes_moved", "operations")
"""What an evaluation moves and computes, as the workload states it (docs/fitness.md)."""
CEILINGS_OF: Final = {MOVED[0]: "copy", MOVED[1]: "logic"}
"""The ceiling of each. For integers that of logic instructions, which do not fuse two operations:
of a pair's four operations, three are not additions with three operands."""


BATCHES: Final = "batch"


def peaks(run: Observed) -> dict[str, float]:
    """Peak bytes and integer operations per second of a GPU, as far as known.

    Measured if a run of the ceilings of that GPU is next to the run, else from data sheets.
    """
    found = {MOVED[0]: bytes_per_s(run.data), MOVED[1]: integers_per_s(run.data)}
    return measured_peaks(run) or {name: value for name, value in found.items() if value}


def measured_peaks(run: Observed) -> dict[str, float]:
    """The peaks out of measured ceilings; empty unless all of them were measured."""
    measured = ceilings_beside(run.path, run.data.device)
    if measured is None or not set(CEILINGS_OF.values()) <= set(measured.found):
        return {}
    return {name: measured.found[of].per_s.value for name, of in CEILINGS_OF.items()}


def shares(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """A row per system of the table's series and size. Raises ``NotMeasured`` without any time."""
    known = peaks(run)
    coarse = found_points(run.data, paper.system(COARSE))
    rows: list[tuple[Cell, ...]] = []
    for system, n, point in _points(paper, table, run):
        what = TIME if point.cpu else KERNEL
        here = point.estimate(what)
        if here is None or here.value <= 0:
            continue
        amounts = [_amount(point, name) for name in MOVED]
        row: list[Cell] = [system, n, here, _gain(coarse.get(n), point, what)]
        for name, amount in zip(MOVED, amounts, strict=True):
            rate = None if amount is None else amount / here.value
            limit = None if point.cpu else known.get(name)
            row += [amount, None if rate is None else rate / GIGA]
            row.append(None if rate is None or limit is None else FULL * rate / limit)
        rows.append(tuple(row))
    if not rows:
        refuse(run, paper.system(COARSE), "no time of a scheme")
    columns = (
        *(Column("system"), Column("N", "number"), Column("kernels", "time", spread=True)),
        Column("speed-up over the coarse scheme", "ratio", spread=True),
        *(Column("bytes moved", "number"), Column("moved", "number", "GB/s")),
        Column("of memory bandwidth", "number", "%"),
        *(Column("operations", "number"), Column("done", "number", "Gop/s")),
        Column("of integer units", "number", "%"),
    )
    notes = (
        _limits_note(run),
        "bytes and operations as the algorithm states them, summed over all threads, without the"
        " atomic additions of conflicts found. Above 100%, caches serve them",
        "kernels: the sum of a call's kernels, without allocation and transfers; for CPU programs"
        " the whole call, compared with the whole call of the coarse scheme",
        interval_note(run.data.simulated, run.data.rounds),
        table.note,
    )
    return reproduced(paper, table, run, columns, rows, notes)


def _points(
    paper: Paper, table: PaperTable, run: Observed
) -> Iterator[tuple[str, int, PointResult]]:
    """The rows: of every system the sizes that the table asks for, and its largest."""
    for series in table.series:
        system = paper.system(series.system)
        found = _found(run, system, series.levels)
        if found:
            for n in sorted({*table.n, max(found)} & set(found)):
                batch = found[n].level(BATCHES)
                many = f", {batch} boards" if isinstance(batch, int) and batch > 1 else ""
                levels = "".join(f", {k} {v}" for k, v in series.levels.items() if v != "1")
                yield f"{system}{many}{levels}", n, found[n]


def _found(run: Observed, system: str, levels: Mapping[str, str]) -> dict[int, PointResult]:
    """The timed points of a system by size, with the given levels if there are any."""
    if not levels:
        return found_points(run.data, system)
    sizes = sizes_of(run.data, system)
    return {n: p for n in sizes if (p := timed_point(run.data, system, n, levels))}


def _amount(point: PointResult, name: str) -> float | None:
    value = point.detail(name)
    return None if value is None else float(value)


def _gain(coarse: PointResult | None, point: PointResult, what: Quantity) -> Estimate | None:
    """Kernels against kernels; a CPU program against the whole call."""
    several = isinstance(batch := point.level(BATCHES), int) and batch > 1
    own = coarse is not None and coarse.system == point.system
    return None if several or own else speedup(coarse, point, what)


def _limits_note(run: Observed) -> str:
    known = peaks(run)
    if not known:
        return "the limits of this device are unknown"
    bounds = ", ".join(
        f"{known[name] / 1e12:.3g} {unit}"
        for name, unit in zip(MOVED, ("TB/s", "Top/s (32-bit)"), strict=True)
        if name in known
    )
    measured = bool(measured_peaks(run))
    how = (
        "measured (configs/ceilings.yaml: copy; 32-bit logic)"
        if measured
        else "from the data sheet"
    )
    return f"limits of the GPU, {how}: {bounds}"
