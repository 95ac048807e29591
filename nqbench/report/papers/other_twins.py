"""Twins of the tables that are no series of times: environment, launches, statistics of threads."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from nqbench.analysis.claims.functions import count
from nqbench.analysis.data.dataset import Dataset, point_ratio
from nqbench.analysis.data.observed import Observed, probe_value
from nqbench.analysis.data.quantities import TIME
from nqbench.analysis.data.select import (
    NotMeasured,
    configurations,
    launch_text,
    main_point,
    timed_points,
    timed_s,
)
from nqbench.errors import AnalysisError
from nqbench.papers.schema import Paper
from nqbench.papers.schema_shown import PaperTable
from nqbench.report.table import Cell, Column, Source, Table, slug, source_of
from nqbench.report.tables.common import interval_note

STATISTICS: Final = ("min", "max", "mean", "variance", "sd")
"""In the order of the paper's columns."""
_BASE: Final = "base"


def _title(paper: Paper, table: PaperTable) -> str:
    return f"{paper.title}, table {table.number}: {table.title}"


def _name(table: PaperTable) -> str:
    return slug("paper", table.id)


def _cells(row: Sequence[object]) -> tuple[Cell, ...]:
    return tuple(", ".join(map(str, c)) if isinstance(c, list) else str(c) for c in row)


def printed(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """A table without numbers, as printed."""
    source = Source("the paper", "as printed", run.data.command)
    columns = tuple(Column(c) for c in table.columns)
    rows = tuple(_cells(row) for row in table.rows)
    return Table(_name(table), _title(paper, table), columns, rows, source, (table.note,))


def environment(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """The paper's test systems, and this one."""
    data = run.data
    host = data.host.removesuffix(" (cpu)")
    own = {"test system": "here", "CPU": host, "Graphics card": data.device}
    rows = [*(_cells(row) for row in table.rows), tuple(own.get(c) for c in table.columns)]
    columns = tuple(Column(c) for c in table.columns)
    return Table(_name(table), _title(paper, table), columns, tuple(rows), source_of(data))


def launch(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """Blocks and threads per block: the paper's devices, and this one."""
    data = run.data
    point = main_point(data, paper.system("both"), run.sizes[-1])
    size = int(point.level("block_size"))
    threads = point.detail("threads")
    if threads is None:
        raise NotMeasured("the run does not say how many threads it launched", data.command)
    own: tuple[Cell, ...] = (data.device_short, str(int(threads) // size), str(size))
    rows = (*(_cells(row) for row in table.rows), own)
    columns = tuple(Column(c.replace("_", " ")) for c in table.columns)
    notes = (
        f"here: {launch_text(data, point)} at N={point.n}, one block per multiprocessor as printed",
    )
    return Table(_name(table), _title(paper, table), columns, rows, source_of(data), notes)


def granularity(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """Work per thread: the printed rows, the counted iterations, the measured clock cycles."""
    n = table.sizes[0]
    columns = (Column(table.columns[0]), *(Column(c, "number") for c in table.columns[1:]))
    rows: list[tuple[Cell, ...]] = []
    notes = [table.note] if table.note else []
    for series, cells in zip(table.series, table.rows, strict=True):
        rows.append((f"{series.label}, paper", *_cells(cells[1:])))
        own, note = _statistics(series.quantity, series.system, n, run)
        rows.append((f"{series.label}, here", *own))
        notes.append(note)
        if series.quantity == "iterations" and all(isinstance(v, int | float) for v in own):
            same = all(_digits(v) == p for v, p in zip(own, cells[1:], strict=True))
            notes.append(
                "the iterations come out exactly as printed"
                if same
                else "the iterations differ from the printed ones"
            )
    if all(cell is None for row in rows[1::2] for cell in row[1:]):
        raise AnalysisError(notes[-1])
    rows.append(_printed_utilization(paper, len(columns)))
    own = _utilization(table.series[0].system, n, run, len(columns))
    rows.append(own)
    if own[1] is not None:
        notes.append("warp utilization: of every warp here, of 100 sampled ones in the paper")
    title = f"{_title(paper, table)}, with warp utilization (equation 1)"
    told = tuple(dict.fromkeys(n for n in notes if n))
    return Table(_name(table), title, columns, tuple(rows), source_of(run.data), told)


def _statistics(what: str, system: str, n: int, run: Observed) -> tuple[tuple[Cell, ...], str]:
    found = [probe_value(run, system, n, f"{what}_per_job_{s}", "own") for s in STATISTICS]
    if all(value is not None for value in found):
        return tuple(found), f"{what}: counted inside the kernel on {run.data.device_short}"
    command = run.data.command
    if n not in run.sizes:  # the study has other sizes for this device
        command = f"nqbench reproduce {run.data.name} --device cuda:0"
    missing = f"{what} at N={n}: no instrumented kernel was run; `{command}` does"
    if what != "iterations":
        return (None,) * len(STATISTICS), missing
    try:
        given = {"N": n, "system": system}
        counted = [count("iterations_per_job", {**given, "stat": s}, (run,)) for s in STATISTICS]
    except NotMeasured as error:
        return (None,) * len(STATISTICS), error.what
    return tuple(value for value, _ in counted), "iterations: counted by enumeration"


def _digits(value: Cell) -> str:
    assert isinstance(value, int | float)
    return f"{value:.2E}"


def _printed_utilization(paper: Paper, width: int) -> tuple[Cell, ...]:
    """The paper's utilization of sampled warps, from its text."""
    claim = next((c for c in paper.claims if c.id == "utilization"), None)
    printed = claim.paper_value if claim and isinstance(claim.paper_value, dict) else {}
    cells: list[Cell] = ["Warp utilization, paper (%)", *(printed.get(s) for s in STATISTICS[:3])]
    return (*cells, *(None,) * (width - len(cells)))


def _utilization(system: str, n: int, run: Observed, width: int) -> tuple[Cell, ...]:
    """Warp utilization in percent in the columns of least, most and mean."""
    found = [probe_value(run, system, n, f"warp_utilization_{s}", "own") for s in STATISTICS[:3]]
    cells: list[Cell] = ["Warp utilization, here (%)"]
    cells += [None if value is None else 100 * value for value in found]
    return (*cells, *(None,) * (width - len(cells)))


def best(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """The fastest configuration of each version, with its occupancy."""
    data = run.data
    versions = [s.system for s in paper.systems if s.system.startswith(paper.id)]
    rows = []
    missing: dict[str, None] = {}
    for n in run.sizes:
        for system in versions:
            try:
                rows.append(_best_row(paper, data, system, n))
            except NotMeasured as error:
                missing[str(error)] = None
    if not rows:
        raise AnalysisError(next(iter(missing)))
    columns = (
        *(Column("version"), Column("N"), Column("depth", "number")),
        *(Column("block size", "number"), Column("time", "time", spread=True)),
        *(Column("occupancy", "number"), Column("highest occupancy", "number")),
        *(
            Column("slowest / best", "ratio"),
            Column("timed", "number"),
            Column("not run", "number"),
        ),
        *(Column("speed-up over base, paper"), Column("speed-up over base", "ratio", spread=True)),
    )
    notes = [
        "the paper sweeps "
        + "; ".join(f"{row[0]} {', '.join(map(str, row[1]))}" for row in table.rows)
        + ", and does not say which configuration was best",
        interval_note(data.simulated, data.rounds),
        "the fastest of many is picked from the same rounds that give its time: a little too good",
    ]
    notes += [f"not measured: {reason}" for reason in missing]
    title = f"{_title(paper, table)}: the fastest configuration of each version"
    return Table(_name(table), title, columns, tuple(rows), source_of(data), tuple(notes))


def _best_row(paper: Paper, data: Dataset, system: str, n: int) -> tuple[Cell, ...]:
    everyone = configurations(data, system, n)
    timed = timed_points(data, system, n)
    chosen = min(timed, key=timed_s)
    fractions = [float(o) for p in timed if (o := p.detail("occupancy")) is not None]
    base_name = paper.system(_BASE)
    base = min(timed_points(data, base_name, n), key=timed_s) if system != base_name else None
    own = chosen.detail("occupancy")
    return (
        *(system.partition(".")[2], str(n), chosen.level("depth"), chosen.level("block_size")),
        chosen.estimate(TIME),
        None if own is None else float(own),
        max(fractions, default=None),
        max(map(timed_s, timed)) / timed_s(chosen),
        *(len(timed), len(everyone) - len(timed)),
        published_speedups(paper, system, n),
        point_ratio(base, chosen, TIME) if base else None,
    )


def published_speedups(paper: Paper, system: str, n: int) -> str:
    """Quotients of the printed times over the base version, by device."""
    told = []
    for figure in paper.figures:
        known = {(k.system, k.hardware): k.value for k in figure.known if n in figure.n}
        for device in figure.hardware:
            base, own = known.get((paper.system(_BASE), device)), known.get((system, device))
            if base and own and system != paper.system(_BASE):
                # As a person rounds: the float nearest to 14.7 / 12.0 lies below 1.225.
                quotient = Decimal(str(base)) / Decimal(str(own))
                told.append(f"{quotient.quantize(Decimal('0.01'), ROUND_HALF_UP)} ({device})")
    return ", ".join(told)
