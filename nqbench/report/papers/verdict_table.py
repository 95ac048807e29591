"""The verdicts as a table: one row per claim and device, and one per size."""

from __future__ import annotations

from collections.abc import Sequence

from nqbench.analysis.claims.bootstrap import RESAMPLES
from nqbench.analysis.claims.judge import SizeVerdict, Verdict
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import TOTALS
from nqbench.analysis.wording import number, ratio
from nqbench.papers.schema import Paper
from nqbench.report.table import Column, Source, Table, slug

ORDER = ("holds", "fails", "unclear", "not measured")
LONG = 100
"""Characters of a paper's value beyond which the table is hard to read."""


def claims_table(paper: Paper, verdicts: Sequence[Verdict], source: Source) -> Table:
    """One row per claim and device: verdict, measured value by size, the paper's, the reason."""
    rows = tuple(
        (
            verdict.claim.id,
            verdict.claim.statement,
            verdict.word,
            device_text(verdict),
            "; ".join(_measured(size, len(verdict.sizes)) for size in verdict.sizes if size.value),
            paper_text(verdict),
            verdict.reason,
        )
        for verdict in verdicts
    )
    names = ("claim", "statement", "verdict", "device", "measured", "paper", "remark")
    counts = ", ".join(f"{sum(v.word == w for v in verdicts)} {w}" for w in ORDER)
    notes = (
        counts,
        f"brackets: the middle 95% of {RESAMPLES:,} joint resamplings of the rounds,"
        " widened as Student's t asks for so few; a claim holds"
        " with 97.5% of them true, fails with 2.5%, and is unclear between; over several sizes all"
        " must hold",
        "counts and counters are exact and judged directly",
        *((TOTALS,) if paper.timed == "total" else ()),
        *(
            f"caveat {name}: {paper.caveat(name)}"
            for name in dict.fromkeys(v.claim.caveat for v in verdicts if v.claim.caveat)
        ),
        f"paper: {paper.title}; sections and formulas are in experiments/{paper.id}/published.yaml",
    )
    return Table(
        slug("claims", paper.id),
        f"Claims of {paper.title}",
        tuple(Column(name) for name in names),
        rows,
        source,
        notes,
    )


def details_table(paper: Paper, verdicts: Sequence[Verdict], source: Source) -> Table:
    """One row per claim, device and size, for a spreadsheet."""
    rows = tuple(
        (
            verdict.claim.id,
            device_text(verdict),
            None if size.n is None else str(size.n),
            size.word,
            size.value if isinstance(size.value, Estimate) else None,
            size.value if isinstance(size.value, str) else None,
            size.share,
            size.paper,
            verdict.claim.expr,
            verdict.claim.expect,
            size.reason,
        )
        for verdict in verdicts
        for size in verdict.sizes
    )
    columns = (
        *(Column("claim"), Column("device"), Column("N"), Column("verdict")),
        *(Column("value", "ratio", spread=True), Column("other value")),
        *(Column("share of resamples true", "number"), Column("paper")),
        *(Column("expr"), Column("expect"), Column("remark")),
    )
    title = f"Claims of {paper.title}, by size"
    return Table(slug("claims", paper.id, "by-size"), title, columns, rows, source)


def device_text(verdict: Verdict) -> str:
    """Device, marked where it is simulated."""
    mark = f" ({verdict.provenance})" if verdict.simulated else ""
    return f"{verdict.device}{mark}"


def _measured(size: SizeVerdict, of: int) -> str:
    value = size.value
    text = _value(value) if isinstance(value, Estimate) else str(value)
    return f"N={size.n}: {text}" if of > 1 and size.n is not None else text


def _value(value: Estimate) -> str:
    """A ratio with its interval; a whole number that came out in every draw as such."""
    if value.value.is_integer() and {value.low, value.high} <= {value.value, None}:
        return number(value.value)
    return ratio(value)


def paper_text(verdict: Verdict) -> str:
    """The paper's value, by size where it goes by size."""
    value = verdict.claim.paper_value
    if isinstance(value, str):
        return value
    text = "; ".join(f"{f'N={k}' if k.isdigit() else k}: {v}" for k, v in value.items())
    return text if len(text) <= LONG else f"{text[: LONG - 4]} ..."
