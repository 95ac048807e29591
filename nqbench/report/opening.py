"""What the page of a run opens with: its question, three cards with the answer, its figures."""

from __future__ import annotations

from collections import Counter
from typing import Final

from nqbench.analysis import wording
from nqbench.analysis.answer import MODELLED, Answer, Best
from nqbench.analysis.findings import gains, superlative, undecided
from nqbench.report.figures import effects, ranking
from nqbench.report.figures.style import styled
from nqbench.report.page import Beside, Card, Page, Picture
from nqbench.system.suggest import many

WIDTH_IN: Final = 11.0
"""Width of the figures that open a page, together: as many points as the page has pixels."""
NARROW_IN: Final = 3.9
"""Width of each on a narrow screen."""
LARGEST_IN: Final = 5.7
"""Height that leaves them on the first screen."""
SHARE: Final = 0.6
"""Part of the width that all points take, beside what each change is worth."""


def cards(answer: Answer) -> list[Card]:
    """The best variant, what it gains, and why or what went wrong; fewer where less is known."""
    made = []
    if answer.best:
        best = answer.best[0]
        made.append(_best(answer, best))
        if best.of > 1 and (gained := gains(best)):
            value, _, than = gained[0].partition(" than ")
            than = than.replace("the default", "the default (the first level of every factor)")
            made.append(Card("What it gains", value, (f"than {than}", *gained[1:])))
    last = _trouble(answer) or _why(answer)
    return [*made, last] if last else made


def _best(answer: Answer, best: Best) -> Card:
    head = superlative(best)
    label = f"{head[0].upper()}{head[1:]} of {many(best.of, 'variant')}, N = {best.n:,}"
    if best.over_worst and not best.clear:
        return Card(label, "none is clearly best", (f"{undecided(best)}.",))
    value = wording.amount(best.value.value, best.what)
    if best.what.name == MODELLED:
        value = f"{value}, modelled"
    elif best.what.counts:
        value = f"{value} {best.what.label}"
    texts = [best.name]
    others = [one for one in answer.best[1:] if one.name != best.name]
    for one in others[:1]:  # no variant is best in every count
        also = superlative(one)
        other = wording.amount(one.value.value, one.what)
        levels = set(best.name.split(", "))  # those that differ are enough
        own = ", ".join(part for part in one.name.split(", ") if part not in levels)
        texts.append(f"{also[0].upper()}{also[1:]} ({other}): with {own}")
    return Card(label, value, tuple(texts))


def _trouble(answer: Answer) -> Card | None:
    failed = [p for p in answer.data.points if not p.ok and p.status != "skipped"]
    if not failed:
        return None
    counts = Counter(p.status.replace("_", " ") for p in failed)
    said = ", ".join(f"{number} {status}" for status, number in counts.items())
    reason = next((p.reason for p in failed if p.reason), "")
    value = f"{len(failed)} of {many(len(answer.data.points), 'point')}"
    return Card("Did not finish", value, (said, reason.partition("\n")[0][:120]), bad=True)


def _why(answer: Answer) -> Card | None:
    """What the best point has that the worst has not; else what comes next."""
    best = answer.best[0] if answer.best else None
    skipped = sum(p.status == "skipped" for p in answer.data.points)
    left = [f"{many(skipped, 'point')} not run"] if skipped else []
    if why := answer.reasons:
        more = [f"and {text}" for text in why[1:]]
        return Card("Why: the best against the worst", why[0], tuple(more + left))
    if best and best.over_next and best.of > 2 and best.clear:
        ahead = wording.better_by(best.over_next, best.what)
        value = ahead if best.over_next.differs_from(1) else "as good"
        return Card("Against the next", value, (best.next_name, *left))
    return Card("Left out", left[0]) if left else None


def hero(answer: Answer, page: Page) -> Beside | None:
    """All points beside what each change is worth, as high as each other; either may be missing."""
    points = answer.ranked
    both = bool(points[1:] and answer.changes)
    widths = [WIDTH_IN * part for part in ((SHARE, 1 - SHARE) if both else (1.0, 1.0))]
    needed = (ranking.height_in(points), effects.height_in(answer, widths[1]))
    if not (page.wants_html and any(needed)):
        return None
    height = min(max(needed), LARGEST_IN)
    narrow_in = effects.height_in(answer, NARROW_IN)
    pictures = []
    drawn = (ranking.hero, widths[0], needed[0]), (effects.worth, widths[1], narrow_in)
    with styled():
        for draw, width, tall in drawn:
            if tall:
                wide, narrow = draw(answer, width, height), draw(answer, NARROW_IN, tall)
                picture = Picture(wide.alt, svg=page.inline(wide), narrow=page.inline(narrow))
                pictures.append((wide.title, picture, width))
    return Beside(tuple(pictures))
