"""Parts of messages: a name as written, the nearest known one, lists and numbers of things."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

SIMILAR = 0.6
"""difflib ratio from which a name counts as a misspelling, the value its documentation recommends.
One wrong letter in three gives 0.67, two swapped letters in four 0.75; unrelated factors of ours
stay below 0.5."""

MAX_LISTED = 14
"""Names listed in one message; more would hide what it says."""


def nearest(word: object, known: Iterable[str]) -> str | None:
    """The known name most like ``word``, or ``None`` when nothing is close.

    The tail of a dotted name counts too, so that ``opt4_compact`` finds its paper's system. Where
    the part before the dot is right, only the names that share it are candidates, and a name may be
    cut short: ``feinbube2010.opt3`` is not like ``feinbube2010.base``.
    """
    text, names = str(word).casefold(), sorted(set(known))
    group = _group(word, names)
    tails = {name.rsplit(".", 1)[-1].casefold(): name for name in group or names}
    if group:
        text = text.rsplit(".", 1)[-1]
    for candidates in ({name.casefold(): name for name in names} if not group else {}, tails):
        close = difflib.get_close_matches(text, candidates, 1, SIMILAR)
        if close:
            return candidates[close[0]]
    longer = [name for tail, name in tails.items() if text and tail.startswith(text)]
    return longer[0] if group and longer else None


def _group(word: object, names: Iterable[str]) -> list[str]:
    """The names that share what stands before the last dot of ``word``; none without a dot."""
    before, dot, _ = str(word).casefold().rpartition(".")
    return [name for name in names if dot and name.casefold().startswith(before + dot)]


def nearest_file(path: Path, *suffixes: str) -> Path | None:
    """The file in the folder of ``path`` whose name is most like its own, or ``None``.

    Names are compared without their suffix: an equal suffix does not make them similar.
    """
    if not path.parent.is_dir():
        return None
    there = {p.stem: p for p in sorted(path.parent.iterdir()) if p.suffix in suffixes}
    close = nearest(path.stem, there)
    return there[close] if close else None


def suggestion(word: object, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` if a name is close, else the choices."""
    names = list(known)
    close = nearest(word, names)
    if close:
        return f"did you mean '{close}'?"
    return f"choose from {listing(_group(word, names) or names)}"


def listing(names: Iterable[str], last: str = "or") -> str:
    """``a, b or c``; shortened beyond :data:`MAX_LISTED` names."""
    all_names = list(names)
    first = all_names[:MAX_LISTED]
    if len(all_names) > MAX_LISTED:
        return f"{', '.join(first)}, ... ({len(all_names)} in all)"
    return "".join(first) if len(first) < 2 else f"{', '.join(first[:-1])} {last} {first[-1]}"


def many(count: int, noun: str) -> str:
    """``1 point``, ``3 points``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def shown(value: object, width: int = 60) -> str:
    """A value as a user would recognise it, cut to ``width`` characters.

    Line breaks and control codes are escaped: a message stays one line.
    """
    text = f"'{value}'" if isinstance(value, str) else str(value)
    if not text.isprintable():
        text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return text if len(text) <= width else f"{text[: width - 4]} ..."
