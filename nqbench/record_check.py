"""Whether parsed JSON has the shape of a record, and a manifest's point that of a point.

A file that somebody edited, merged or half recovered may be valid JSON and still hold a word where
a time belongs. That is said when it is read, with the field and the value; further in, it would be
a wrong number or a traceback.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

REQUIRED: Final = {"key": str, "point": dict, "device": str, "round": int, "status": str}
POINT_WORDS: Final = ("study", "sweep", "workload", "label")
POINT_FIELDS: Final = (*POINT_WORDS[:3], "system", "label", "factors")
TEXTS: Final = ("reason", "ended_by", "started")
ANSWERS: Final = ("answer", "expected")
WHOLE: Final = ("order", "worker", "version")
TABLES: Final = ("phases", "counters", "resources", "about", "telemetry", "spent_s")
SECONDS: Final = ("phases", "spent_s")
LONGEST_S: Final = 1e9
"""Thirty years: no launch takes longer, and logarithms of such ratios still have exponentials."""
SHOWN: Final = 40
"""Characters of a wrong value that a sentence repeats."""


def record_fault(data: Mapping[str, Any]) -> str:
    """What is wrong with a record's plain form, as the end of a sentence; empty if nothing is."""
    for name, kind in REQUIRED.items():
        if not isinstance(data.get(name), kind) or isinstance(data[name], bool):
            return f"has no valid {name!r}"
    lacking = [name for name in POINT_FIELDS if name not in data["point"]]
    if lacking:
        return f"has a point that lacks {', '.join(lacking)}"
    return point_fault(data["point"]) or _fields(data) or _times(data) or _tables(data)


def point_fault(point: Mapping[str, Any]) -> str:
    """What is wrong with a point's plain form; fields that are not there are not looked at."""
    for name in POINT_WORDS:
        if name in point and not isinstance(point[name], str):
            return _no("text", f"point.{name}", point[name])
    system = point.get("system")
    if system is not None and not isinstance(system, str):
        return _no("text", "point.system", system)
    factors = point.get("factors", {})
    if not isinstance(factors, Mapping):
        return _no("table", "point.factors", factors)
    for name, level in factors.items():
        if not _is_level(level):
            return _no("level", f"point.factors.{name}", level)
    return ""


def planned_fault(point: object) -> str:
    """What is wrong with a point of a manifest, as the end of a sentence; empty if nothing is."""
    if not isinstance(point, Mapping) or not isinstance(point.get("key"), str):
        return "has no key"
    lacking = [name for name in ("sweep", "factors") if name not in point]
    if lacking:
        return f"lacks {', '.join(lacking)}"
    fault = point_fault(point)
    if fault:
        return fault
    size = point["factors"].get("n", 0)
    return "" if _is_whole(size) else _no("whole number", "point.factors.n", size)


def _fields(data: Mapping[str, Any]) -> str:
    for name in TEXTS:
        if not isinstance(data.get(name, ""), str):
            return _no("text", name, data[name])
    for name in ANSWERS:
        if not isinstance(data.get(name), str | None):
            return _no("text", name, data[name])
    for name in WHOLE:
        if not _is_whole(data.get(name, 0)):
            return _no("whole number", name, data[name])
    return ""


def _times(data: Mapping[str, Any]) -> str:
    """No clock gives a negative or endless time; 0 is what a coarse one may give."""
    samples = data.get("samples_s", ())
    if not isinstance(samples, list | tuple):
        return _no("list of times", "samples_s", samples)
    for number, sample in enumerate(samples):
        if not _is_time(sample):
            return _no("time", f"samples_s[{number}]", sample)
    if data.get("value_s") is not None and not _is_time(data["value_s"]):
        return _no("time", "value_s", data["value_s"])
    return "" if _is_time(data.get("wall_s", 0.0)) else _no("time", "wall_s", data["wall_s"])


def _tables(data: Mapping[str, Any]) -> str:
    for name in TABLES:
        table = data.get(name, {})
        if not isinstance(table, Mapping):
            return _no("table", name, table)
        for entry, value in table.items():
            if name in SECONDS and not _is_time(value):
                return _no("time", f"{name}.{entry}", value)
            if name == "counters" and not _is_number(value):
                return _no("number", f"{name}.{entry}", value)
            if name in ("resources", "about") and not isinstance(value, int | float | str | None):
                return _no("number or text", f"{name}.{entry}", value)
    return _telemetry(data.get("telemetry", {}))


def _telemetry(readings: Mapping[str, Any]) -> str:
    for name, value in readings.items():
        here = f"telemetry.{name}"
        if isinstance(value, Mapping):
            if not all(_is_number(value.get(which)) for which in ("min", "median", "max")):
                return _no("least, median and largest number", here, value)
        elif name == "clock_reasons" or isinstance(value, list):
            if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
                return _no("list of words", here, value)
        elif not isinstance(value, int | float | str):
            return _no("reading", here, value)
    return ""


def _is_number(value: object) -> bool:
    """A finite one: neither a counter nor a sensor gives another, and it spoils every sum."""
    return _is_whole(value) or (isinstance(value, float) and math.isfinite(value))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and _is_number(value) and 0 <= value <= LONGEST_S


def _is_level(value: object) -> bool:
    if isinstance(value, Mapping):
        return set(value) == {"per_sm"} and _is_whole(value["per_sm"])
    return isinstance(value, int | float | str | None)


def _no(kind: str, name: str, value: object) -> str:
    text = repr(value)
    shown = text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
    return f"has {name} {shown}, which is no {kind}"
