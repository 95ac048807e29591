"""A forest plot: for each claim on a ratio, the measured interval against the paper's value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nqbench.analysis.claims import SizeVerdict, Verdict
from nqbench.analysis.estimate import Estimate
from nqbench.errors import AnalysisError
from nqbench.papers.schema import Paper
from nqbench.report.figures.ratio import ratio_axis
from nqbench.report.figures.style import (
    GREY,
    Drawing,
    finish,
    legend,
    new_figure,
    whiskers,
)
from nqbench.report.items import slug
from nqbench.report.table import Source

KINDS: Final = ("ratio", "share", "invariance", "bound", "crossover")
"""Kinds of claims whose value is a ratio; optima and counts have scales of their own."""
LOOKS: Final = {
    "holds": ("#009E73", "o"),
    "fails": ("#D55E00", "X"),
    "unclear": ("#E69F00", "s"),
    "not measured": (GREY, "d"),
}
"""Colour and marker by verdict: either tells it."""
_ROW_IN: Final = 0.155


def forest(paper: Paper, verdicts: Sequence[Verdict], device: str, source: Source) -> list[Drawing]:
    """One figure per device. Raises ``AnalysisError`` where no claim has a measured ratio."""
    rows = [
        (verdict, size)
        for verdict in verdicts
        if verdict.device == device and _comparable(verdict)
        for size in verdict.sizes
        if isinstance(size.value, Estimate) and size.value.value > 0
    ]
    if not rows:
        raise AnalysisError(f"no claim of {paper.id} on a ratio was measured on {device}")
    figure = new_figure(1.4 + _ROW_IN * len(rows))
    ax = figure.subplots()
    places = {id(size): y for y, (_, size) in enumerate(reversed(rows))}
    shown: list[float] = []
    for word, (colour, marker) in LOOKS.items():
        mine = [size for _, size in rows if size.word == word]
        values = [s.value for s in mine if isinstance(s.value, Estimate)]
        if not mine:
            continue
        ax.errorbar(
            [v.value for v in values],
            [places[id(s)] for s in mine],
            xerr=whiskers(values),
            fmt=marker,
            color=colour,
            markersize=4,
            capsize=2,
            label=word,
        )
        shown += [b for v in values for b in (v.value, v.low, v.high) if b]
    published = [(v, places[id(s)]) for _, s in rows if (v := _number(s)) is not None]
    if published:
        look: dict[str, Any] = {"color": "#000000", "markerfacecolor": "white", "linestyle": ""}
        ax.plot(
            [v for v, _ in published],
            [y for _, y in published],
            marker="D",
            markersize=4.5,
            label="published",
            **look,
        )
        shown += [v for v, _ in published]
    ratio_axis(ax, shown)
    labels = [f"{v.claim.id}{'' if s.n is None else f'  N={s.n}'}" for v, s in reversed(rows)]
    ax.set_yticks(range(len(rows)), labels, fontsize=6.5)
    ax.set_ylim(-0.8, len(rows) - 0.2)
    ax.set_xlabel("ratio as the claim defines it")
    ax.grid(axis="y", linewidth=0.3)
    legend(figure, ax)
    title = f"Claims of {paper.id}"
    subtitle = f"{device}: bars are the middle 95% of the resampled rounds"
    alt = f"{len(rows)} measured ratios with intervals beside the published values."
    name = slug("paper", "claims", device)
    return [finish(figure, name, title, source, alt=alt, subtitle=subtitle)]


def _comparable(verdict: Verdict) -> bool:
    """Ratios, and shares that the paper gives a number for: others may be millionths, and would
    press all the rest against 1."""
    claim = verdict.claim
    return claim.kind in KINDS and not (claim.kind == "share" and not claim.paper_value)


def _number(size: SizeVerdict) -> float | None:
    """The paper's value at this size, if it is one positive number."""
    try:
        value = float(size.paper)
    except ValueError:
        return None
    return value if value > 0 else None
