"""Tables of papers: what is printed with the fresh numbers next to it, and verdicts on claims.

Speed-ups are compared with speed-ups. Times on the paper's device and on ours are shown, never
divided: the devices are generations apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress, product
from statistics import median
from typing import Any, Final

from nqbench.analysis.answer import MODELLED
from nqbench.analysis.claims import judge
from nqbench.analysis.claims.bootstrap import RESAMPLES
from nqbench.analysis.claims.judge import Verdict
from nqbench.analysis.claims.scorecard import Scorecard
from nqbench.analysis.data import select
from nqbench.analysis.data.dataset import Dataset, chip
from nqbench.analysis.data.estimate import DEFAULT_MARGIN, Estimate
from nqbench.analysis.data.for_papers import TOTALS
from nqbench.analysis.data.quantities import TIME
from nqbench.analysis.data.select import NotMeasured, launch_text, no_time
from nqbench.analysis.limits import ceilings
from nqbench.analysis.wording import grouped, measured
from nqbench.papers.forms import HereRow, PointColumn
from nqbench.papers.schema import Paper, PaperTable, Series
from nqbench.report.papers import cells
from nqbench.report.papers.cells import PointRow
from nqbench.report.table import Cell, Column, Source, Table, slug, source_of, tabulate
from nqbench.report.tables.common import interval_note
from nqbench.system.suggest import listing

IN_BRACKETS: Final = "in brackets: quotients of the printed numbers; the paper gives none"
COMPARE_RATIOS: Final = (
    "Compare the ratios: times from the paper and times measured here are not comparable"
)
NOTHING: Final = "not measured"


def reproduced_table(paper: Paper, table: PaperTable, run: Dataset) -> Table:
    """A table that is reproduced. Raises ``AnalysisError`` with what the run lacks for it."""
    return FORMS[table.reproduce](paper, table, run)


def _points(paper: Paper, table: PaperTable, run: Dataset) -> Table:
    """A row per point, with the columns that ``published.yaml`` lists.

    Raises ``NotMeasured`` where the run has no row.
    """
    lacks: dict[str, str] = {}
    rows = cells.rows_of(paper, run, table.points, table.n, table=table, lacks=lacks)
    shown = [one for column in table.shown for one in _each(column, rows)]
    columns = [column for column, _ in shown]
    needed = [i for i, column in enumerate(columns) if column.needed]
    ours = [i for i, c in enumerate(columns) if "(" in c.value and c.kind != "text"]
    made = [[_cell(*pair, *one) for one in shown] for pair in _joined(paper, table, rows)]
    kept = [
        row
        for row in made
        if all(row[i] not in (None, "") for i in needed) and any(row[i] is not None for i in ours)
    ]
    if not kept:
        for row in rows:
            lacks |= row.lacks
        if lacks:
            raise NotMeasured(*next(iter(lacks.items())))
        if table.points.sweeps and not rows:
            if run.simulated:
                raise NotMeasured(no_time(run))
            sweeps = ", ".join(table.points.sweeps)
            raise NotMeasured(f"the run has no point of the sweep {sweeps}", run.command)
        systems = cells.systems_of(paper, [run], table.points.systems)
        cells.refuse(run, next(iter(systems), rows[0].system if rows else ""), "no point")
    filled = [any(row[i] is not None for row in kept) for i in range(len(columns))]
    used = [i for i, c in enumerate(columns) if filled[i] or not c.optional]
    heads = [
        Column(c.head, "text" if c.of == "paper" else c.kind, c.unit, spread=c.spread)
        for c in (columns[i] for i in used)
    ]
    notes = [*_about(paper, table, run), *table.notes]
    if any(head.spread for head in heads):
        notes += intervals(paper, run)
    notes.append(f"on the paper: {table.note}" if table.rows and table.note else table.note)
    if table.points.explain:
        notes += [f"not timed: {reason}" for reason in grouped(lacks)]
    if table.points.sizes == "counted":
        notes += dict.fromkeys(f"not counted: {why}" for row in rows for why in row.lacks)
    return reproduced(paper, table, run, heads, [[row[i] for i in used] for row in kept], notes)


def intervals(paper: Paper, run: Dataset) -> list[str]:
    """What intervals are, and which time it is that the paper reports."""
    note = interval_note(run.simulated, run.rounds)
    return [note, TOTALS] if paper.timed == "total" else [note]


def _each(column: PointColumn, rows: Sequence[PointRow]) -> Iterator[tuple[PointColumn, object]]:
    """A column, or one for each number of its factor among the points of the rows."""
    if not column.each:
        yield column, None
        return
    levels = {p.level(column.each) for row in rows for p in row.group}
    for level in sorted(level for level in levels if isinstance(level, int)):
        yield column.model_copy(update={"head": column.head.replace("{}", str(level))}), level


def _joined(
    paper: Paper, table: PaperTable, rows: Sequence[PointRow]
) -> Iterator[tuple[PointRow, PointRow | None]]:
    """The rows with the published ones of the same system, size and level."""
    if not table.data:
        yield from ((row, None) for row in rows)
        return

    def key(row: PointRow) -> tuple[object, ...]:
        return (row.system, row.n, *row.own.values())

    run = cells.published_run(paper, table.data)
    theirs = {key(row): row for row in cells.rows_of(paper, run, table.points, table.n)}
    found = {key(row): row for row in rows}
    if table.points.join == "either":
        sizes = {row.n for row in rows}
        lacking = (k for k, row in theirs.items() if k not in found and row.n in sizes)
        found |= {k: replace(theirs[k], run=rows[0].run, point=None, group=()) for k in lacking}
        found = dict(sorted(found.items(), key=lambda item: item[0][1:]))
    for k, row in found.items():
        if k in theirs or table.points.join != "both":
            yield row, theirs.get(k)


def _cell(row: PointRow, theirs: PointRow | None, column: PointColumn, each: object) -> Cell:
    found = None
    if column.of == "here":
        found = row.value(column.value, each=each)
    elif theirs is not None:
        found = theirs.value(column.value)
    value = found.value if isinstance(found, Estimate) else found
    if column.of == "paper" and isinstance(value, float):
        return bracketed(value) if column.kind == "ratio" else f"{value:g}"
    if column.kind == "text" and value is not None:
        return str(value)
    return found if column.spread else value


def _about(paper: Paper, table: PaperTable, run: Dataset) -> Iterator[str]:
    """What the cells of the paper are, and which limits of the device ours are set against."""
    if table.data:
        part = paper.series(table.data)
        devices = ", ".join(paper.device(d).name for d in table.hardware)
        more = f" ({part.note})" if part.note else ""
        yield f"paper: {devices}; {part.origin}: {part.file}{more}"
        yield COMPARE_RATIOS
        yield "in brackets: quotients of the published numbers"
    if any(name in column.value for column in table.shown for name in ceilings.MOVED):
        known, how = ceilings.peaks(run)
        units = {"copy_per_s": "TB/s", "logic_per_s": "Top/s (32-bit)"}
        bounds = ", ".join(f"{value / 1e12:.3g} {units[name]}" for name, value in known.items())
        unknown = "the limits of this device are unknown"
        yield f"limits of the GPU, {how}: {bounds}" if known else unknown


def _printed(paper: Paper, table: PaperTable, run: Dataset) -> Table:
    """A table as printed, with our rows. Raises ``NotMeasured`` if the run has nothing of them."""
    rows: list[tuple[Cell, ...]] = []
    ours: list[Cell] = []
    notes, lacks = [table.note, *table.notes], dict[str, str]()
    every: list[list[str | list[str]]] = [*table.rows, [""]]  # our last rows stand below all
    for printed in every:
        texts = [", ".join(map(str, c)) if isinstance(c, list) else str(c) for c in printed]
        below = [here for here in table.here if here.after == texts[0]]
        if texts[0]:
            rows.append((f"{texts[0]}, paper" if below else texts[0], *texts[1:]))
        for here in below:
            own = _here(paper, table, run, here, lacks, notes)
            rows.append(own)
            ours += own[1:]
    if table.here and all(value is None for value in ours):
        raise NotMeasured(*next(iter(lacks.items()), ("the run has nothing of it", "")))
    source = source_of(run)
    if not table.here:
        source = Source("the paper", "as printed", run.command, run.name)
    counted = any(isinstance(value, int | float) for value in ours)
    columns = [Column(head.replace("_", " ")) for head in table.columns]
    if table.n_axis == "columns":
        columns[1:] = [Column(f"N={n}", table.here[0].kind, spread=True) for n in table.sizes]
    elif counted:
        columns[1:] = [Column(column.name, "number") for column in columns[1:]]
    if any(here.each for here in table.here):
        notes += [COMPARE_RATIOS, *intervals(paper, run)]
    for what, command in lacks.items():
        notes.append(f"not measured: {what}" + (f"; `{command}` measures it" if command else ""))
    return reproduced(paper, table, run, columns, rows, notes, source=source)


def _here(
    paper: Paper,
    table: PaperTable,
    run: Dataset,
    here: HereRow,
    lacks: dict[str, str],
    notes: list[str],
) -> tuple[Cell, ...]:
    """Our row of a printed table. Of its reasons for empty cells the first one is kept."""
    sizes = table.sizes or run.sizes[-1:] or [0]  # of a run without points
    system = paper.system(here.system) if here.system else ""
    row = PointRow(paper, run, system, sizes[0], table=table)
    found: tuple[Cell, ...]
    if here.each:
        at = [replace(row, n=n, point=row.main(n)) for n in sizes]
        device = cells.timed_on(run, [one.point for one in at if one.point])
        found = (f"{device}, here", *(one.value(here.each) for one in at))
        said = (launch_text(run, one.point) for one in at if one.point)
        notes += dict.fromkeys(f"{system} here: {launch}" for launch in said if launch)
    else:
        row = replace(row, point=row.main(row.n))
        found = tuple(row.value(text) if text else None for text in here.cells)
    lacks |= dict(list(row.lacks.items())[:1])
    return found


def _of_series(paper: Paper, run: Dataset, series: Series, n: int) -> PointRow:
    """The row of the point that a series shows at a size."""
    row = PointRow(paper, run, series.system, n)
    return replace(row, point=row.chosen(series.system, series.choose == "best", series.levels))


def _quotient(paper: Paper, table: PaperTable, series: Series, n: int) -> tuple[str, str]:
    """The quotient that the paper draws: printed, or in brackets worked out from the printed values
    (empty if it has none); and its formula."""
    ratio = series.ratio
    assert ratio is not None
    of = paper.table(ratio.table)
    base = next(one for one in of.series if one.label == ratio.series)
    if ratio.form == "share":
        formula = f'phase("{ratio.of or series.quantity}") / phase("total")'
    else:
        function = "best" if base.choose == "best" else "time"
        levels = "".join(f', {name}="{level}"' for name, level in base.levels.items())
        formula = f'{function}("{base.system}"{levels}) / time()'
    own, above = table.printed(series.label, n), of.printed(ratio.series, n)
    if series.quantity == "ratio":
        return own, formula
    if ratio.printed:
        return paper.table(ratio.printed_in or table.id).printed(ratio.printed, n), formula
    itself = (ratio.table, ratio.series) == (table.id, series.label)
    return bracketed(float(above) / float(own)) if own and above and not itself else "", formula


def by_size(paper: Paper, table: PaperTable, run: Dataset) -> Table:
    """Every printed number and quotient with ours.

    Raises ``NotMeasured`` where the run has none of them.
    """
    lacks: dict[str, dict[str, str]] = {"not measured": {}, "beyond the paper, not measured": {}}
    made = list(_each_size(paper, table, run, *lacks.values()))
    if not any(here is not None or ratio is not None for _, _, _, here, _, ratio, _ in made):
        raise NotMeasured(*next(why for some in lacks.values() for why in some.items()))
    names = {"speedup": "speed-up", "share": "share of total"}
    quotient = next((names[s.ratio.form] for s in table.series if s.ratio), "")
    timed = any(series.quantity != "ratio" for series in table.series)
    launches = list(dict.fromkeys(str(row[-1]) for row in made if row[-1]))
    several = [launch for launch in launches if launch != NOTHING]
    columns = {
        Column("series"): True,
        Column("N"): True,
        Column("paper", unit=table.unit): timed,
        Column("here", "time", spread=True): timed,
        Column(f"{quotient}, paper"): bool(quotient),
        Column(f"{quotient}, here", "ratio", spread=True): bool(quotient),
        Column("configuration here"): len(several) > 1,
    }
    notes = [f"configuration here: {several[0]}"] if len(several) == 1 else []
    if devices := ", ".join(paper.device(d).name for d in table.hardware):
        notes.append(f"paper: {devices}")
    notes += [COMPARE_RATIOS, *intervals(paper, run)]
    notes += [IN_BRACKETS] * any(str(row[4]).startswith("(") for row in made)
    notes.append(f"on the paper: {table.note}" if table.note else "")
    for words, some in lacks.items():
        notes += [f"{words}: {reason}" for reason in grouped(some)]
    commands = dict.fromkeys(c for some in lacks.values() for c in some.values() if c)
    notes += [f"`{command}` resumes and measures what is missing" for command in commands]
    shown = list(columns.values())
    rows = [compress(row, shown) for row in made]
    return reproduced(paper, table, run, list(compress(columns, shown)), rows, notes)


def _each_size(
    paper: Paper, table: PaperTable, run: Dataset, lacks: dict[str, str], beyond: dict[str, str]
) -> Iterator[tuple[Cell, ...]]:
    """A series and a size: the printed number with ours, the quotient likewise, our launch. Why
    ours are missing is added to ``lacks``, or to ``beyond`` where the paper has none either."""
    for series, n in product(table.series, table.sizes):
        row, here, ratio = _of_series(paper, run, series, n), None, None
        if series.quantity != "ratio":
            here = row.value(f'phase("{series.quantity}")')
        drawn, formula = _quotient(paper, table, series, n) if series.ratio else ("", "")
        if formula and row.point:
            ratio = row.value(formula)
        why = beyond if series.ours else lacks
        why |= dict(list(row.lacks.items())[:1])
        empty = here is None and ratio is None
        if not (series.ours and empty):
            printed, launch = table.printed(series.label, n), NOTHING if empty else row.launch()
            yield series.label, str(n), printed, here, drawn, ratio, launch


def bracketed(quotient: float) -> str:
    """A quotient of printed numbers, in brackets; none of them has more than three digits."""
    digits = f"{quotient:#.3g}"
    return f"({digits.removesuffix('.')})"


def reproduced(
    paper: Paper,
    table: PaperTable,
    run: Dataset,
    columns: Sequence[Column],
    rows: Iterable[Iterable[Cell]],
    notes: Iterable[str],
    *,
    source: Source | None = None,
) -> Table:
    """A reproduced table of a paper; empty and repeated notes are dropped.

    Its title has the paper's number and words for it, and what is added to them.
    """
    number = table.number if table.number.startswith("section") else f"table {table.number}"
    place = "" if table.number == "none" else f", {number}"
    title = f"{paper.title}{place}: {table.title}{table.after}"
    kept = tuple(dict.fromkeys(note for note in notes if note))
    cells = tuple(map(tuple, rows))
    name, source = slug("paper", table.id), source or source_of(run)
    return Table(name, title, tuple(columns), cells, source, kept)


FORMS: Final[Mapping[str, Callable[[Paper, PaperTable, Dataset], Table]]] = {
    "series": by_size,
    "points": _points,
    "printed": _printed,
}
"""By the word that ``published.yaml`` uses."""


ASKED_OF: Final = (
    "the claim is about the paper's GPUs, and the answer depends on the GPU; here another is asked"
)
ROBUST: Final = (
    "robust: the word stays in every other way to judge the runs (limits halved or doubled, without"
    " any one round, by total instead of kernel times or the reverse); fragile: one of them changes"
    " it"
)
LONG = 100
"""Characters of a paper's value beyond which the table is hard to read."""


def claims_table(paper: Paper, verdicts: Sequence[Verdict], source: Source) -> Table:
    """One row per claim and device: both words, the measured value by size, the paper's, why."""
    columns, rows = tabulate(
        verdicts,
        (Column("claim"), lambda v: v.claim.id),
        (Column("statement"), lambda v: v.claim.statement),
        (Column("verdict"), lambda v: v.word),
        (Column("size"), lambda v: v.size),
        (Column("asked of"), lambda v: v.asked_of),
        (Column("device"), device_text),
        (Column("tested"), lambda v: v.asked.expect),
        (Column("measured"), measured_text),
        (Column("paper"), paper_text),
        (Column("remark"), lambda v: v.reason),
    )
    notes = (
        *counted(verdicts),
        f"asked of: {ASKED_OF}",
        f"brackets: the central 95% of {RESAMPLES:,} joint bootstrap resamples of the rounds,"
        " widened by Student's t for few rounds; a claim holds if it is true in at least 97.5% of"
        " them, fails at 2.5% or fewer, and is unclear in between; over several sizes, or GPUs"
        " of a model, all must hold; no effect, which is asked first: the interval lies within"
        f" {DEFAULT_MARGIN:.0%} of 1",
        "size: the measured share of the effect that the paper prints, (ours - 1) / (printed - 1)"
        f" for ratios; {judge.WEAKER} to {judge.STRONGER} is as large, unclear where the"
        " interval straddles a limit",
        "counts and counters are exact and judged directly",
        *((TOTALS,) if paper.timed == "total" else ()),
        *(
            f"caveat {name}: {paper.caveat(name)}"
            for name in dict.fromkeys(v.claim.caveat for v in verdicts if v.claim.caveat)
        ),
        f"paper: {paper.title}; sections and formulas are in experiments/{paper.id}/published.yaml",
    )
    return Table(slug("claims", paper.id), f"Claims of {paper.title}", columns, rows, source, notes)


def against_print(paper: Paper, runs: Sequence[Dataset], source: Source) -> Table | None:
    """The times that the paper prints of its own GPUs beside those modelled for them, with the
    correlation of their ranks; ``None`` where a paper prints none at a size that was modelled."""
    found: list[tuple[str, str, int, float, float, float]] = []
    for run in runs:
        name = chip(paper.device(run.hardware(paper)).name)
        for row, printed, kernel, about in _printed_times(paper, run):
            if row.point and printed:
                modelled = replace(row, group=[row.point]).counter(MODELLED, kernel) / 1e3
                said = (row.point.system, kernel, about, select.launch_text(run, row.point))
                times = float(printed), modelled, round(modelled / float(printed), 2)
                found.append((name, ", ".join(filter(None, said)), row.n, *times))
    found = list(dict.fromkeys(found))
    if len(found) < 3:
        return None
    columns = (
        *(Column("GPU"), Column("program"), Column("N", "number"), Column("printed", "time")),
        *(Column("modelled", "time"), Column("modelled over printed", "number")),
    )
    from scipy.stats import spearmanr

    rank = float(spearmanr(*zip(*(one[3:5] for one in found), strict=True))[0])
    note = f"Spearman's rank correlation over these {len(found)}: {rank:.2f}"
    note += f"; median of modelled over printed: {median(one[5] for one in found):.2f}"
    if paper.timed == "total":
        note += "; printed are totals, modelled is the kernel alone"
    title = "Printed and modelled times on the paper's own GPUs"
    return Table(slug("own-times", paper.id), title, columns, tuple(found), source, (note,))


def _printed_times(paper: Paper, run: Dataset) -> Iterator[tuple[PointRow, str, str, str]]:
    """What the paper prints of the run's GPU in seconds: rows with the point, where modelled; the
    time; the kernel that it is of, if it is not the whole; words about it."""
    own = [run.hardware(paper)]
    for table, n in product(paper.tables, run.sizes):
        for one in (s for s in table.series if s.quantity == TIME.name and not s.ours):
            if own == ([one.hardware] if one.hardware else table.hardware):
                yield _of_series(paper, run, one, n), table.printed(one.label, n), "", ""
    for figure in (figure for figure in paper.figures if figure.unit == "s"):
        for known in figure.known:
            if own == ([known.hardware] if known.hardware else figure.hardware):
                row = PointRow(paper, run, known.system, known.n or figure.n[0])
                row = replace(row, point=row.chosen(known.system, best=True) or row.main(row.n))
                yield row, str(known.value or ""), known.role, known.relation


def scorecard_table(card: Scorecard, source: Source, *, spread: bool = True) -> Table:
    """A row per main claim that was measured: the paper's number, ours (with intervals if asked for
    ``spread``), the word, and whether it is robust."""
    shown = [row for row in card.rows if row.verdicts]
    chips = dict.fromkeys(row.chips for row in shown if row.chips)
    one = next(iter(chips)) if len(chips) == 1 else ""
    paper = Column(f"paper, {one}" if one else "paper")
    columns, rows = tabulate(
        shown,
        (Column("claim"), lambda row: row.headline.label),
        (paper, lambda row: row.printed + (f" ({row.chips})" if row.chips and not one else "")),
        (Column(f"here, {listing(card.names, 'and')}"), lambda row: row.here(spread=spread)),
        (Column("verdict"), lambda row: row.verdict),
        (Column("judged again"), lambda row: row.kept),
    )
    asked = any(verdict.asked_of for row in shown for verdict in row.verdicts.values())
    notes = (*card.missing, *[f"* {ASKED_OF}"] * asked, ROBUST)
    title = "The claims of abstract and conclusion"
    return Table(slug("scorecard", card.paper.id), title, columns, rows, source, notes)


def counted(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """The verdicts of each device in numbers, those asked of another architecture apart."""
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        asked = f", asked of {verdict.asked_of}" if verdict.asked_of else ""
        groups.setdefault(f"{device_text(verdict)}{asked}", []).append(verdict)
    texts = []
    for group, mine in groups.items():
        of_word, of_size = Counter(v.word for v in mine), Counter(v.size for v in mine)
        words = ", ".join(f"{of_word[word]} {word}" for word in judge.WORDS if of_word[word])
        sizes = ", ".join(f"{of_size[size]} {size}" for size in judge.SIZE_WORDS if of_size[size])
        texts.append(f"{group}: {words}{f'; of those that hold: {sizes}' if sizes else ''}")
    return tuple(texts)


def details_table(paper: Paper, verdicts: Sequence[Verdict], source: Source) -> Table:
    """One row per claim, device and size, for a spreadsheet."""
    columns, rows = tabulate(
        [(verdict, size) for verdict in verdicts for size in verdict.sizes],
        (Column("claim"), lambda one: one[0].claim.id),
        (Column("device"), lambda one: device_text(one[0])),
        (Column("N"), lambda one: None if one[1].n is None else str(one[1].n)),
        (Column("verdict"), lambda one: one[1].word),
        (Column("size"), lambda one: one[1].size),
        (Column("asked of"), lambda one: one[0].asked_of),
        (Column("value", "ratio", spread=True), lambda one: _if_a(Estimate, one[1].value)),
        (Column("other value"), lambda one: _if_a(str, one[1].value)),
        (Column("share of resamples true", "number"), lambda one: one[1].share),
        (Column("paper"), lambda one: one[1].paper),
        (Column("share of the effect", "ratio", spread=True), lambda one: one[1].effect),
        (Column("unit"), lambda one: one[0].claim.unit),
        (Column("formula tested"), lambda one: one[0].asked.expr),
        (Column("condition tested"), lambda one: one[0].asked.expect),
        (Column("formula of the paper"), lambda one: one[0].claim.expr),
        (Column("condition of the paper"), lambda one: one[0].claim.expect),
        (Column("remark"), lambda one: one[1].reason),
    )
    title = f"Claims of {paper.title}, by size"
    return Table(slug("claims", paper.id, "by-size"), title, columns, rows, source)


def _if_a(kind: type, value: Any) -> Any:
    return value if isinstance(value, kind) else None


def device_text(verdict: Verdict) -> str:
    """Device, marked where it is a model."""
    mark = f" ({verdict.provenance})" if verdict.provenance in ("simulated", "modelled") else ""
    return f"{verdict.device}{mark}"


def measured_text(verdict: Verdict) -> str:
    """The measured values with their unit, by size where there are several."""
    unit = f" {verdict.claim.unit}" if verdict.claim.unit else ""
    texts = [(size.n, measured(size.value, unit)) for size in verdict.sizes if size.value]
    if len(verdict.sizes) == 1 or all(n is None for n, _ in texts):
        return "; ".join(text for _, text in texts)
    return "; ".join(f"N={n}: {text}" for n, text in texts)


def paper_text(verdict: Verdict) -> str:
    """The paper's value, by size if it depends on the size."""
    value, unit = verdict.claim.paper_value, verdict.claim.unit
    after = f" {unit}" if unit else ""
    if isinstance(value, str):
        return f"{value}{after}" if value else ""
    text = "; ".join(f"{f'N={k}' if k.isdigit() else k}: {v}" for k, v in value.items()) + after
    return text if len(text) <= LONG else f"{text[: LONG - 4]} ..."
