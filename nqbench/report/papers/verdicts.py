"""Verdicts on a paper's claims as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from nqbench.analysis.claims import judge
from nqbench.analysis.claims.bootstrap import RESAMPLES
from nqbench.analysis.claims.judge import SizeVerdict, Verdict
from nqbench.analysis.claims.scorecard import Score, Scorecard
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import TOTALS
from nqbench.analysis.wording import measured
from nqbench.papers.schema import Paper
from nqbench.report.table import Column, Source, Table, slug, tabulate

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
        (Column("tested"), lambda v: v.tested),
        (Column("measured"), measured_text),
        (Column("paper"), paper_text),
        (Column("share of the effect"), effect_text),
        (Column("remark"), lambda v: v.reason),
    )
    notes = (
        *counted(verdicts),
        "asked of: the sentence is about another compute capability than the device's",
        f"brackets: the central 95% of {RESAMPLES:,} joint bootstrap resamples of the rounds,"
        " widened by Student's t for few rounds; a claim holds if it is true in at least 97.5% of"
        " them, fails at 2.5% or fewer, and is unclear in between; over several sizes, all must"
        f" hold; no effect: a ratio whose interval lies within {judge.NO_EFFECT:.0%} of 1",
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
    title = f"Claims of {paper.title}"
    return Table(slug("claims", paper.id), title, columns, rows, source, notes)


def scorecard_table(card: Scorecard, source: Source, *, spread: bool = True) -> Table:
    """A row per main claim that was measured, a column for each run, with intervals if asked."""
    shown = [row for row in card.rows if row.verdicts]
    chips = dict.fromkeys(row.chips for row in shown if row.chips)
    one = next(iter(chips)) if len(chips) == 1 else ""
    columns, rows = tabulate(
        shown,
        (Column("claim"), lambda row: row.headline.label),
        (Column("N"), lambda row: f"{row.n:,}" if row.n else ""),
        (
            Column(f"paper, {one}" if one else "paper"),
            lambda row: row.printed + (f" ({row.chips})" if row.chips and not one else ""),
        ),
        *((Column(name), partial(Score.here, name=name, spread=spread)) for name in card.names),
        (Column("verdict"), lambda row: row.verdict),
        (Column("runs"), lambda row: row.runs),
    )
    asked = "asked of: the sentence is about another compute capability than the device's"
    notes = (*card.missing, *[asked] * any("asked of" in str(row) for row in rows))
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
        (
            Column("value", "ratio", spread=True),
            lambda one: one[1].value if isinstance(one[1].value, Estimate) else None,
        ),
        (
            Column("other value"),
            lambda one: one[1].value if isinstance(one[1].value, str) else None,
        ),
        (Column("share of resamples true", "number"), lambda one: one[1].share),
        (Column("paper"), lambda one: one[1].paper),
        (Column("share of the effect", "ratio", spread=True), lambda one: one[1].effect),
        (Column("unit"), lambda one: one[0].claim.unit),
        (Column("formula tested"), lambda one: one[0].formula),
        (Column("condition tested"), lambda one: one[0].tested),
        (Column("formula of the paper"), lambda one: one[0].claim.expr),
        (Column("condition of the paper"), lambda one: one[0].claim.expect),
        (Column("remark"), lambda one: one[1].reason),
    )
    title = f"Claims of {paper.title}, by size"
    return Table(slug("claims", paper.id, "by-size"), title, columns, rows, source)


def device_text(verdict: Verdict) -> str:
    """Device, marked where it is simulated."""
    mark = f" ({verdict.provenance})" if verdict.simulated else ""
    return f"{verdict.device}{mark}"


def measured_text(verdict: Verdict) -> str:
    """The measured values with their unit, by size where there are several."""
    unit = f" {verdict.claim.unit}" if verdict.claim.unit else ""
    return _by_size(verdict, lambda size: measured(size.value, unit) if size.value else "")


def effect_text(verdict: Verdict) -> str:
    """The measured shares of the printed effect, with the second word where it varies."""
    varies = verdict.size == "mixed sizes"

    def text(size: SizeVerdict) -> str:
        if size.effect is None:
            return ""
        bounds = [b for b in (size.effect.low, size.effect.high) if b is not None]
        interval = f" [{', '.join(f'{100 * b:z.0f}' for b in bounds)}]" if bounds else ""
        word = f" {size.size}" if varies and size.size else ""
        return f"{100 * size.effect.value:z.0f}%{interval}{word}"

    return _by_size(verdict, text)


def _by_size(verdict: Verdict, text_of: Callable[[SizeVerdict], str]) -> str:
    texts = [(size.n, text) for size in verdict.sizes if (text := text_of(size))]
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
