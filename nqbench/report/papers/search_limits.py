"""Our searches against a paper's last version, and against what the device allows per move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nqbench.analysis.claims.functions import first_counted
from nqbench.analysis.data.dataset import Dataset, PointResult, point_ratio
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.quantities import TIME, Quantity, quantity
from nqbench.analysis.data.select import NotMeasured
from nqbench.analysis.limits.ceilings import bytes_per_s, fp32_per_s, roots_per_s
from nqbench.papers.schema import Paper
from nqbench.papers.schema_shown import PaperTable
from nqbench.report.papers.phase_bars import points_at, shown_systems, untimed
from nqbench.report.papers.search_tables import ITERATIONS, VERSIONS
from nqbench.report.papers.version_rates import EVALUATION
from nqbench.report.table import Cell, Column, Table, slug, source_of
from nqbench.report.tables.common import interval_note
from nqbench.vocabulary import of_kernel

BASE: Final = VERSIONS[-1]
"""The paper's last version: the only one of it that works at all sizes."""
GIVEN: Final = ("fp32_instructions_per_move", "roots_per_move", "bytes_per_move")
"""What a move takes by the algorithm, as every point states it (docs/local-search.md)."""
GIGA: Final = 1e9
NOTES: Final = (
    "instructions, square roots and bytes asked for are counts of the algorithm; device memory: as"
    " Nsight Compute counts it for the first evaluation, whose caches are empty",
    "limits: single-precision instructions and square roots per move at the highest clock, and the"
    " bytes of device memory at the bandwidth of the data sheet. Bytes asked for come from caches"
    " and shared memory and set no limit here: lanes that ask for one word are served at once",
    "share: the time that the lowest limit allows over the time taken, of the evaluation kernel"
    " and of a whole iteration (evaluation, choice, application, host)",
    "the evaluation's time is that between two events, which a search without events does not wait"
    " for: it can exceed the iteration of a search of one kernel",
)


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
        *(Column(f"an {what}", "time", spread=True) for what in ("evaluation", "iteration")),
        *(
            Column(f"{BASE} / this, {of}", "ratio", spread=True)
            for of in ("evaluation", "whole search")
        ),
        Column("FP32 instructions per move", "number"),
        Column("square roots per move", "number"),
        Column("bytes asked for per move", "number"),
        Column("device memory per move", "number", "B"),
        *(
            Column(f"limit by {what}", "number", "G moves/s")
            for what in ("instructions", "square roots", "device memory")
        ),
        *(Column(f"share of the lowest, {of}", "ratio", spread=True)
          for of in ("evaluation", "iteration")),
    )  # fmt: skip
    notes = (*NOTES, interval_note(simulated=False, rounds=data.rounds))
    title = f"{paper.title}: {table.title}"
    return Table(slug("paper", table.id), title, columns, tuple(rows), source_of(data), notes)


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
    """Time of the paper's last version over that of a search as long."""
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
