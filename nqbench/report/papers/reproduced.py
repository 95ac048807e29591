"""Reproduced tables of papers: every printed cell with the fresh number next to it.

Speed-ups are compared with speed-ups. Times on the paper's device and on ours are shown, never
divided: the devices are generations apart. What belongs to one paper, and all figures, is in the
module of that paper; :data:`TABLES` and :data:`FIGURES` list everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal

from nqbench.analysis.claims.functions import counter_of
from nqbench.analysis.data.dataset import PointResult
from nqbench.analysis.data.observed import TOTALS, Observed
from nqbench.analysis.data.quantities import TIME
from nqbench.analysis.data.select import NotMeasured, launch_text, main_point, no_time
from nqbench.analysis.wording import grouped
from nqbench.errors import AnalysisError
from nqbench.papers.schema import Paper, PaperFigure, PaperTable
from nqbench.report.figures.style import Drawing
from nqbench.report.papers import (
    annealing,
    brodtkorb_part1,
    feinbube2010,
    fitness_schemes,
    limits,
    searches,
    zhang2011,
)
from nqbench.report.papers.common import (
    COMPARE_RATIOS,
    IN_BRACKETS,
    ComparedCell,
    Reader,
    cpu_name,
    reproduced,
    short,
    speedup,
)
from nqbench.report.table import Cell, Column, Field, Source, Table, tabulate
from nqbench.report.tables.common import interval_note

ENUMERATED: Final = "counted by enumeration"
SCALED: Final = "scaled"
COUNTED: Final = "counted"
LAUNCHES: Final = ("the paper's", "scaled")
_RATIO_NAMES: Final = {"speedup": "speed-up", "share": "share of total"}


@dataclass(frozen=True, slots=True)
class _Counter:
    """A counter of a profile: its name, its words, and what makes it a number of ``unit``."""

    name: str
    words: str
    unit: str = ""
    scale: float = 1.0
    kind: Literal["number", "time"] = "number"


PROFILE: Final = (
    _Counter("warp_instructions", "warp instructions", "M", 1e-6),
    _Counter("lane_efficiency", "active lanes", "%", 100),
    _Counter("branches", "branches", "M", 1e-6),
    _Counter("divergent_branches", "divergent branches", "M", 1e-6),
    _Counter("shared_requests", "shared-memory requests", "M", 1e-6),
    _Counter("bank_conflicts", "bank conflicts", "M", 1e-6),
    _Counter("local_sectors", "local sectors (32 B)", "M", 1e-6),
    _Counter("global_sectors", "global sectors (32 B)", "M", 1e-6),
    _Counter("l1_hit_percent", "L1 hits", "%"),
    _Counter("dram_bytes", "device memory", "MB", 1e-6),
    _Counter("achieved_occupancy", "achieved occupancy", "%", 100),
    _Counter("duration_ns", "duration", "", 1e-9, "time"),
)
DrawFigure = Callable[[Paper, PaperFigure, Sequence[Observed], Source], list[Drawing]]
MakeTable = Callable[[Paper, PaperTable, Observed], Table]


def reproduced_table(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """A table that is reproduced. Raises ``AnalysisError`` with what the run lacks for it."""
    return TABLES[table.reproduce](paper, table, run)


def series(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """Every printed number and quotient with ours."""
    reader = Reader(paper, run.data)
    asked = [reader.cell(table, series, n) for series in table.series for n in table.sizes]
    cells = [c for c in asked if not (c.series.ours and c.here is None and c.ratio is None)]
    if all(cell.here is None and cell.ratio is None for cell in cells):
        command = next(iter(reader.commands), "")
        hint = f"; `{command}` measures it" if command else ""
        raise AnalysisError(f"{cells[0].missing}{hint}")
    counted = any(s.quantity == "jobs" for s in table.series)
    ratios = any(s.ratio for s in table.series)
    own = any(s.quantity != "ratio" for s in table.series)
    form = next((s.ratio.form for s in table.series if s.ratio), "speedup")
    quotient = _RATIO_NAMES[form]
    fields: list[Field[ComparedCell]] = [
        (Column("series"), lambda cell: cell.series.label),
        (Column("N"), lambda cell: str(cell.n)),
    ]
    if own:
        here = Column("here", "number") if counted else Column("here", "time", spread=True)
        fields.append((Column("paper", unit=table.unit), lambda cell: cell.printed))
        fields.append((here, lambda cell: cell.here))
    if ratios:
        here = Column(f"{quotient}, here", "ratio", spread=True)
        fields.append((Column(f"{quotient}, paper"), lambda cell: cell.printed_ratio))
        fields.append((here, lambda cell: cell.ratio))
    launches = list(dict.fromkeys(cell.launch for cell in cells if cell.launch))
    if len(launches) > 1:
        fields.append((Column("configuration here"), _launch))
    columns, rows = tabulate(cells, *fields)
    source = Source("CPU", ENUMERATED, run.data.command, run.data.name) if counted else None
    notes = [f"configuration here: {launches[0]}"] if len(launches) == 1 else []
    notes += _notes(paper, table, asked, reader, run)
    return reproduced(paper, table, run, columns, rows, notes, source=source)


def by_device(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """A row per device of the paper as printed, then one for each program that was run here.

    Raises ``AnalysisError`` where the run has none of them.
    """
    reader = Reader(paper, run.data)
    rows: list[tuple[Cell, ...]] = []
    own: dict[tuple[object, ...], list[ComparedCell]] = {}
    for series in table.series:
        name, unit = paper.device(series.hardware).name, f" ({table.unit})"
        printed = (table.printed(series.label, n) for n in table.sizes)
        rows.append((f"{name}, paper{'' if series.quantity == 'ratio' else unit}", *printed))
        program = (series.system, tuple(series.levels.items()), series.choose)
        if program not in own:
            own[program] = [reader.cell(table, series, n) for n in table.sizes]
    notes: list[str] = []
    cells = [cell for found in own.values() for cell in found]
    for found in own.values():
        values = [cell.ratio if cell.series.quantity == "ratio" else cell.here for cell in found]
        system = found[0].series.system
        on_cpu = any(p.cpu for p in run.data.points if p.system == system)
        rows.append((f"{cpu_name(run) if on_cpu else run.name}, here", *values))
        launches = dict.fromkeys(c.launch for c in found if c.launch)
        notes += [f"{system} here: {launch}" for launch in launches]
    if all(cell.here is None and cell.ratio is None for cell in cells):
        raise AnalysisError(cells[0].missing)
    kind: Literal["ratio", "time"] = "ratio" if cells[0].series.quantity == "ratio" else "time"
    columns = [Column("device"), *(Column(f"N={n}", kind, spread=True) for n in table.sizes)]
    notes += _notes(paper, table, cells, reader, run)
    return reproduced(paper, table, run, columns, rows, notes)


def scaled(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """The paper's launch beside launches scaled to the device: the sweeps ``scaled`` and
    ``scaled_...`` of the study.

    Raises ``NotMeasured`` where the run has none of them, or no time.
    """
    data = run.data
    sweeps = [s for s in data.sweeps if s.partition("_")[0] == SCALED]
    timed: list[tuple[PointResult, PointResult]] = []
    for point in (p for sweep in sweeps for p in data.select(sweep) if p.values(TIME)):
        with suppress(NotMeasured):
            base = main_point(data, point.system, point.n)
            if base.values(TIME):
                timed.append((base, point))
    if not timed:
        if data.simulated:
            raise NotMeasured(no_time(data))
        raise NotMeasured("the run has no time of a launch scaled to the device", data.command)
    columns, rows = tabulate(
        timed,
        (Column("system"), lambda pair: short(pair[0].system)),
        (Column("N", "number"), lambda pair: pair[0].n),
        *((Column(f"{name} launch"), lambda pair, i=i: launch_text(data, pair[i]))
          for i, name in enumerate(LAUNCHES)),
        *((Column(f"threads, {name}", "number"), lambda pair, i=i: pair[i].detail("threads"))
          for i, name in enumerate(LAUNCHES)),
        *((Column(f"time, {name}", "time", spread=True), lambda pair, i=i: pair[i].estimate(TIME))
          for i, name in enumerate(LAUNCHES)),
        (Column("speed-up by scaling", "ratio", spread=True), lambda pair: speedup(*pair, TIME)),
    )  # fmt: skip
    notes = [table.note, interval_note(data.simulated, data.rounds)]
    if paper.timed == "total":
        notes.append(TOTALS)
    return reproduced(paper, table, run, columns, rows, notes, number="")


def _launch(cell: ComparedCell) -> str:
    return cell.launch if cell.here or cell.ratio else "not measured"


def _notes(
    paper: Paper, table: PaperTable, cells: list[ComparedCell], reader: Reader, run: Observed
) -> Iterator[str]:
    devices = ", ".join(paper.device(d).name for d in table.hardware)
    if devices:
        yield f"paper: {devices}"
    if any(s.quantity != "jobs" for s in table.series):
        yield COMPARE_RATIOS
        if paper.timed == "total":
            yield TOTALS
        yield interval_note(run.data.simulated, run.data.rounds)
    if any(c.printed_ratio.startswith("(") for c in cells):
        yield IN_BRACKETS
    for c in cells:
        if isinstance(c.here, int) and c.printed != str(c.here):
            yield f"N={c.n}, {c.series.label}: {c.printed} printed, {c.here} counted"
    if table.note:
        yield f"on the paper: {table.note}"
    for ours, words in ((False, "not measured"), (True, "beyond the paper, not measured")):
        lacking = (c.missing for c in cells if c.missing and c.series.ours == ours)
        for reason in grouped(lacking):
            yield f"{words}: {reason}"
    for command in reader.commands:
        yield f"`{command}` resumes and measures what is missing"


def _printed(table: PaperTable) -> list[tuple[Cell, ...]]:
    return [
        tuple(", ".join(map(str, c)) if isinstance(c, list) else str(c) for c in row)
        for row in table.rows
    ]


def printed(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """A table without numbers, as printed."""
    source = Source("the paper", "as printed", run.data.command, run.data.name)
    columns = [Column(c) for c in table.columns]
    return reproduced(paper, table, run, columns, _printed(table), [table.note], source=source)


def environment(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """The paper's test systems, and this one."""
    own = {"test system": "here", "CPU": cpu_name(run), "Graphics card": run.data.device}
    rows = [*_printed(table), tuple(own.get(c) for c in table.columns)]
    return reproduced(paper, table, run, [Column(c) for c in table.columns], rows, ())


def launch(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """Blocks and threads per block: the paper's devices, and this one."""
    data = run.data
    point = main_point(data, paper.system("both"), run.sizes[-1])
    size = int(point.level("block_size"))
    threads = point.detail("threads")
    if threads is None:
        raise NotMeasured("the run does not say how many threads it launched", data.command)
    own: tuple[Cell, ...] = (data.device_short, str(int(threads) // size), str(size))
    columns = [Column(c.replace("_", " ")) for c in table.columns]
    where = f"here: {launch_text(data, point)} at N={point.n}"
    notes = [f"{where}, one block per multiprocessor as printed"]
    return reproduced(paper, table, run, columns, [*_printed(table), own], notes)


def profile(paper: Paper, table: PaperTable, run: Observed) -> Table:
    """Counters of the kernels of the sweep ``counted``, by Nsight Compute or the simulator.

    Raises ``NotMeasured`` where the run has none.
    """
    points = [p for p in run.data.select(COUNTED) if p.ok and not p.cpu]
    found = [[_counted(run, point, part.name) for part in PROFILE] for point in points]
    shown = [(p, values) for p, values in zip(points, found, strict=True) if any(values)]
    if not shown:
        # The simulator may have no sweep of these: its own command would not measure them.
        command = "" if run.data.simulated else run.data.command
        raise NotMeasured("the run has no counters of the kernels", command)
    kept = [i for i in range(len(PROFILE)) if any(values[i] is not None for _, values in shown)]
    columns, rows = tabulate(
        shown,
        (Column("system"), lambda row: short(row[0].system)),
        (Column("N", "number"), lambda row: row[0].n),
        *((Column(PROFILE[i].words, PROFILE[i].kind, PROFILE[i].unit),
           lambda row, i=i: None if (v := row[1][i]) is None else v * PROFILE[i].scale)
          for i in kept),
        (Column("launch"), lambda row: launch_text(run.data, row[0])),
    )  # fmt: skip
    by = "the simulator" if run.data.simulated else "Nsight Compute, one launch of each kernel"
    notes = (f"counted by {by}", table.note)
    return reproduced(paper, table, run, columns, rows, notes, number="")


def _counted(run: Observed, point: PointResult, name: str) -> float | None:
    try:
        return counter_of(run, point, name)
    except NotMeasured:
        return None


TABLES: Final[dict[str, MakeTable]] = {
    "series": series,
    "devices": by_device,
    "scaled": scaled,
    "profile": profile,
    "printed": printed,
    "environment": environment,
    "launch": launch,
    "best": feinbube2010.best,
    "granularity": zhang2011.granularity,
    "divergence": zhang2011.divergence,
    "pools": zhang2011.pools,
    "speedups": fitness_schemes.speedup_table,
    "threads": fitness_schemes.thread_table,
    "thresholds": fitness_schemes.threshold_table,
    "annealing": annealing.quartiles,
    "limits": limits.shares,
    "counters": searches.counters,
    "coalescing": searches.coalescing,
    "searches": searches.searches,
    "against_limits": searches.against_limits,
}
"""By the word that ``published.yaml`` uses."""
FIGURES: Final[dict[str, DrawFigure]] = {
    "bars": feinbube2010.bars,
    "pool": zhang2011.pool,
    "kernels": zhang2011.kernels,
    "times": fitness_schemes.times,
    "speedups": fitness_schemes.speedups,
    "thread_curves": fitness_schemes.thread_curves,
    "best_threads": fitness_schemes.best_threads,
    "thresholds": fitness_schemes.thresholds,
    "boards": fitness_schemes.boards,
    "annealing": annealing.annealing,
    "distribution": annealing.distribution,
    "evaluation_share": annealing.evaluation_share,
    "parts": brodtkorb_part1.parts,
    "phases": brodtkorb_part1.phases,
    "requests": brodtkorb_part1.requests,
}
"""Likewise. A figure is drawn within ``style.styled()``."""
OF_TIMES: Final = ("bars", "pool", "kernels")
"""Figures of kernel times: neither they nor their source lines include simulated runs."""
