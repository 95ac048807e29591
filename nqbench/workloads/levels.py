"""Levels that reach a workload without a study's checks: one sentence for what is wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from nqbench.errors import InfeasibleError, StudyError
from nqbench.point import Level
from nqbench.workloads.base import Factor


def check_level(workload: str, factors: Mapping[str, Factor], name: str, level: Level) -> None:
    """Refuse a factor that does not exist, a level it does not have, a number out of its range.

    Raises ``StudyError``, and ``InfeasibleError`` for a number. The range of ``n`` is left to the
    workload, whose systems may differ in it.
    """
    if name not in factors:
        raise StudyError(f"workload {workload} has no factor {name!r}{nearest(name, factors)}")
    factor = factors[name]
    if isinstance(level, str):
        words = (*factor.levels, *(("auto",) if factor.auto else ()))
        if level not in words and not factor.text:
            raise StudyError(f"{name}: no level {level!r}{nearest(level, words, factor.number)}")
    elif isinstance(level, int) and not isinstance(level, bool):
        if factor.number is None:
            wanted = "the name of a file" if factor.text else "a word"
            raise StudyError(f"{name} takes {wanted}, not {level}{nearest('', factor.levels)}")
        least, most = factor.number
        if name != "n" and not least <= level <= most:
            raise InfeasibleError(f"{name}: {level} is outside {least} to {most}", name)
    elif not (isinstance(level, Mapping) and factor.per_sm and _is_per_sm(level)):
        accepted = " or {per_sm: k} with k >= 1" if factor.per_sm else ""
        raise StudyError(f"{name}: {level!r} is not a level; give a number or a word{accepted}")


def number(levels: Mapping[str, Level], name: str) -> int:
    """A factor whose level is a number by now."""
    level = levels[name]
    assert isinstance(level, int)
    return level


def nearest(word: str, known: Iterable[str], number: tuple[int, int] | None = None) -> str:
    """``; did you mean ...?``, or what there is; empty if there is nothing to choose from."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {near[0]!r}?"
    choices = ([f"a number from {number[0]} to {number[1]}"] if number else []) + names
    return f"; there is {', '.join(choices)}" if choices else ""


def _is_per_sm(level: Mapping[str, int]) -> bool:
    return set(level) == {"per_sm"} and isinstance(level["per_sm"], int) and level["per_sm"] >= 1
