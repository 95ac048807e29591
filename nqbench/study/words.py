"""Small pieces of the sentences that a mistake in a study file gets."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

SIMILAR = 0.55
"""difflib ratio from which a name counts as a likely misspelling: 'blocksize' and 'block_size' give
0.95, two unrelated factors stay below 0.5."""

LISTED = 14
"""Names listed in full in one sentence; more would hide the message."""


def nearest(word: object, known: Iterable[str]) -> str | None:
    """The known name most like ``word``, or ``None`` when nothing is close.

    The tail of a dotted name counts too, so that ``opt4_compact`` finds its paper's system.
    """
    names = sorted(set(known))
    text = str(word).lower()
    close = difflib.get_close_matches(text, names, n=1, cutoff=SIMILAR)
    if close:
        return close[0]
    tails = {name.rsplit(".", 1)[-1]: name for name in names}
    close = difflib.get_close_matches(text, tails, n=1, cutoff=SIMILAR)
    return tails[close[0]] if close else None


def listing(names: Iterable[str], last: str = "or") -> str:
    """``a, b or c``; shortened beyond :data:`LISTED` names."""
    all_names = list(names)
    shown = all_names[:LISTED]
    if len(all_names) > LISTED:
        return f"{', '.join(shown)}, ... ({len(all_names)} in all)"
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} {last} {shown[-1]}"


def suggestion(word: object, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` where a name is close, else what there is to choose from."""
    names = list(known)
    close = nearest(word, names)
    return f"did you mean '{close}'?" if close else f"choose from {listing(names)}"


def shown(value: object, width: int = 60) -> str:
    """A value as a user would recognise it, cut to ``width`` characters.

    A line break or a terminal's control code in it is spelt out: a message stays one line.
    """
    text = f"'{value}'" if isinstance(value, str) else str(value)
    if not text.isprintable():
        text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return text if len(text) <= width else f"{text[: width - 4]} ..."
