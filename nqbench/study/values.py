"""Values of a study: one, a list, a range, any of these by kind of device; ``10s``, ``0.5%``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from nqbench import expressions
from nqbench.errors import StudyError
from nqbench.study.model import KINDS, Axis, Condition, PlacedValue
from nqbench.system.suggest import listing, shown, suggestion
from nqbench.system.yaml_marks import KeyPath, ParsedFile

MAX_RANGE: Final = 20_000
"""Most numbers in one range: a longer one would exceed the limit of points in a study anyway."""

_SECONDS: Final = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_PART: Final = r"(\d+(?:\.\d+)?)\s*(ms|min|s|m|h)"
_DURATION: Final = re.compile(rf"\s*(?:{_PART}\s*)+")
_PERCENT: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")

LONGEST_S: Final = 7 * 24 * 3600.0
"""A week: a longer limit on a single point has the wrong unit."""

_FORMS: Final = ("range", "per_sm", *KINDS)


def one(source: ParsedFile, raw: Any, path: KeyPath) -> Axis:
    """A single value (``fixed``, ``system``), perhaps by kind of device."""
    return _axis(source, raw, path, many=False, single=True)


def several(source: ParsedFile, raw: Any, path: KeyPath) -> Axis:
    """A list or a range (``matrix``, ``zip``, ``systems``), perhaps by kind of device."""
    return _axis(source, raw, path, many=True, single=False)


def sizes(source: ParsedFile, raw: Any, path: KeyPath) -> Axis:
    """Problem sizes: a number, a list or a range, perhaps by kind of device."""
    axis = _axis(source, raw, path, many=True, single=True)
    for item in axis.items():
        if not isinstance(item.value, int):
            raise source.error(f"a size n is a whole number, not {shown(item.value)}", item.path)
    return axis


def _axis(source: ParsedFile, raw: Any, path: KeyPath, *, many: bool, single: bool) -> Axis:
    if isinstance(raw, dict) and raw.keys() & set(KINDS):
        if odd := next((key for key in raw if key not in KINDS), None):
            kinds = listing(KINDS, "and")
            said = f"'{odd}' is not a kind of device; the kinds are {kinds}"
            raise source.error(said, (*path, odd))
        by_kind = {
            kind: _values(source, raw[kind], (*path, kind), many, single)
            for kind in KINDS
            if kind in raw
        }
        return Axis(by_kind, path)
    return Axis(dict.fromkeys(KINDS, _values(source, raw, path, many, single)), path)


def _values(
    source: ParsedFile, raw: Any, path: KeyPath, many: bool, single: bool
) -> tuple[PlacedValue, ...]:
    key = _key(path)
    if isinstance(raw, dict) and raw.keys() & {"range", "step"}:
        if not many:
            raise source.error(f"'{key}' takes one value, not a range; put it under matrix", path)
        return tuple(PlacedValue(number, path) for number in _range(source, raw, path))
    if isinstance(raw, list):
        if not many:
            where = "write systems: [...]" if key == "system" else "put it under matrix"
            raise source.error(f"'{key}' takes one value, not a list; for several, {where}", path)
        return tuple(_item(source, item, (*path, index)) for index, item in enumerate(raw))
    item = _item(source, raw, path)
    if not single:
        example = raw if not isinstance(raw, dict) else "..."
        ranges = "" if key in ("system", "systems") else " or a range such as {range: [2, 6]},"
        said = f"'{key}' takes a list, such as [{example}],{ranges} not {shown(raw)}"
        raise source.error(said, path)
    return (item,)


def _item(source: ParsedFile, raw: Any, path: KeyPath) -> PlacedValue:
    key = _key(path)
    if isinstance(raw, str) and raw.strip():
        return PlacedValue(raw.strip(), path)
    if isinstance(raw, int):
        return PlacedValue(raw, path)
    if isinstance(raw, float):
        raise source.error(f"'{key}' takes whole numbers and names, not {raw}", path)
    if isinstance(raw, list):
        raise source.error(f"'{key}' holds a list inside a list; write one flat list", path)
    if isinstance(raw, dict) and raw.keys() == {"per_sm"}:
        blocks = raw["per_sm"]
        if not isinstance(blocks, int) or blocks < 1:
            raise source.error(f"per_sm takes a whole number from 1, not {shown(blocks)}", path)
        return PlacedValue({"per_sm": blocks}, path)
    if isinstance(raw, dict) and raw.keys() <= set(KINDS):
        raise source.error(
            f"'{key}' has a kind of device inside a kind of device or a list; write"
            " {sim: [...], cuda: [...]} once, around the whole value",
            path,
        )
    if isinstance(raw, dict):
        odd = next((k for k in raw if k not in _FORMS), next(iter(raw)))
        raise source.error(
            f"'{odd}' has no meaning inside '{key}', which takes values, {{range: [first, last]}},"
            " {per_sm: k}, or values by kind of device ({sim: ..., cuda: ..., cpu: ...});"
            f" {suggestion(odd, _FORMS)}",
            (*path, odd),
        )
    raise source.error(f"'{key}' is empty text; give a value", path)


def _range(source: ParsedFile, raw: dict[str, Any], path: KeyPath) -> Sequence[int]:
    form = "{range: [first, last], step: s}"
    for key in raw:
        if key not in ("range", "step"):
            said = f"a range has only the keys range and step, not '{key}'"
            raise source.error(said, (*path, key))
    if "range" not in raw:
        raise source.error(f"a step needs its range: {form}", (*path, "step"))
    ends, step = raw["range"], raw.get("step", 1)
    if not (isinstance(ends, list) and len(ends) == 2 and all(isinstance(e, int) for e in ends)):
        hint = f"; write the step as {form}" if isinstance(ends, list) else ""
        said = f"a range takes two whole numbers, {{range: [first, last]}}, not {shown(ends)}{hint}"
        raise source.error(said, path)
    if not isinstance(step, int) or step < 1:
        raise source.error(f"the step of a range is a whole number from 1, not {shown(step)}", path)
    first, last = ends
    about = f"the range [{first}, {last}]"
    if first > last:
        raise source.error(f"{about} is empty; write the smaller end first", path)
    if (last - first) // step >= MAX_RANGE:
        raise source.error(f"{about} holds more than {MAX_RANGE:,} numbers", path)
    return range(first, last + 1, step)


def conditions(
    source: ParsedFile, raw: Any, path: KeyPath, *, mappings: bool
) -> tuple[Condition, ...]:
    """The entries of ``where`` (expressions) or ``exclude`` (mappings too)."""
    entries = list(enumerate(raw)) if isinstance(raw, list) else [(None, raw)]
    return tuple(
        _condition(source, entry, path if index is None else (*path, index), mappings)
        for index, entry in entries
    )


def _condition(source: ParsedFile, raw: Any, path: KeyPath, mappings: bool) -> Condition:
    if isinstance(raw, str):
        try:
            return Condition(path, expressions.parse(raw, expressions.STUDY))
        except StudyError as error:
            raise source.error(error.message, path) from error
    if isinstance(raw, dict) and mappings:
        match = {key: _matched(source, value, (*path, key)) for key, value in raw.items()}
        return Condition(path, match=match)
    form = "an expression or a mapping such as {memory: global}" if mappings else "an expression"
    raise source.error(f"'{_key(path)}' takes {form}, not {shown(raw)}", path)


def _matched(source: ParsedFile, raw: Any, path: KeyPath) -> tuple[PlacedValue, ...]:
    if isinstance(raw, dict) and raw.keys() & set(KINDS):
        raise source.error("an excluded level cannot depend on the kind of device", path)
    return _values(source, raw, path, many=True, single=True)


def _key(path: KeyPath) -> str:
    """The key a value belongs to: kinds of device and list positions are not keys."""
    return next((p for p in reversed(path) if isinstance(p, str) and p not in KINDS), "study")


def duration_s(text: object) -> float:
    """Seconds in ``10s``, ``500ms``, ``2m``, ``1h`` or ``1m30s``.

    Raises ``StudyError`` (without a place) for anything else, a bare number included: its unit
    would be a guess.
    """
    if not isinstance(text, str) or len(text) > 40 or not _DURATION.fullmatch(text):
        raise StudyError(
            f"{shown(text)} is not a duration; write a number with its unit,"
            " such as 500ms, 10s, 2m or 1h"
        )
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in re.findall(_PART, text))
    if not 0 < seconds <= LONGEST_S:
        raise StudyError(f"the duration {shown(text)} must be more than 0 and at most 7 days")
    return seconds


def fraction(text: object) -> float:
    """``0.5%`` as ``0.005``. Raises ``StudyError`` (without a place) for anything else."""
    match = _PERCENT.fullmatch(text) if isinstance(text, str) and len(text) < 40 else None
    if match is None:
        said = f"{shown(text)} is not a percentage; write a number with a % sign, such as 0.5%"
        raise StudyError(said)
    value = float(match[1]) / 100
    if not 0 < value <= 0.5:
        raise StudyError(f"the percentage {shown(text)} must be more than 0% and at most 50%")
    return value
