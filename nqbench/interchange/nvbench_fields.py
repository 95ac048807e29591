"""The parts of nvbench's JSON (file version 1) that results are read from and written to.

``devices``: what was measured on. ``benchmarks``: each with ``states``, one per combination of
axis values; a state has ``axis_values`` and ``summaries``. A summary is a ``tag`` with ``data``, a
list of ``{name, type, value}``; 64-bit numbers are written as strings, infinities as null.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nqbench.errors import InterchangeError

VERSION: Final = 1
"""Major version of the file format that is understood."""
MEAN: Final = "nv/cold/time/gpu/mean"
MEDIAN: Final = "nv/cold/time/gpu/median"
STDEV: Final = "nv/cold/time/gpu/stdev/relative"
SAMPLE_SIZE: Final = "nv/cold/sample_size"
SAMPLES: Final = "nv/json/bin:nv/cold/sample_times"
ROUNDS: Final = "nqbench/rounds"
"""A summary of nqbench's own: the median of each round by its number, in seconds."""
SPEC: Final = "nqbench_device"
"""An entry of nqbench's own in ``meta``: what the command line calls the device. It keeps times
that the test device invented apart from measured ones."""
TYPES: Final = ("int64", "float64", "string")


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file something stands, for error messages."""

    path: Path
    where: str = ""

    def at(self, where: str) -> Place:
        """A place within this one."""
        return Place(self.path, f"{self.where} {where}".strip())

    def wrong(self, field: str, value: Any, wanted: str) -> InterchangeError:
        """The error that a field is not what it has to be."""
        shown = repr(value)
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        place = f"{self.path}: {self.where}: " if self.where else f"{self.path}: "
        return InterchangeError(
            f"{place}{field} is {shown}, not {wanted}; write the file anew with `nvbench --json`"
        )


def mapping(value: Any, field: str, place: Place) -> Mapping[str, Any]:
    """The value if it is a JSON object. Raises ``InterchangeError``."""
    if not isinstance(value, Mapping):
        raise place.wrong(field, value, "an object")
    return value


def items(value: Any, field: str, place: Place) -> list[Any]:
    """The value if it is a list; null is an empty one. Raises ``InterchangeError``."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise place.wrong(field, value, "a list")
    return value


def text(owner: Mapping[str, Any], field: str, place: Place) -> str:
    """A field that has to be a string. Raises ``InterchangeError``."""
    value = owner.get(field)
    if not isinstance(value, str):
        raise place.wrong(field, value, "a string")
    return value


def device_id(owner: Mapping[str, Any], field: str, place: Place) -> int:
    """A field that has to be a device's number. Raises ``InterchangeError``."""
    value = owner.get(field)
    if isinstance(value, bool) or not isinstance(value, int):
        raise place.wrong(field, value, "the number of a device")
    return value


def named_value(entry: Any, place: Place) -> tuple[str, int | float | str]:
    """Name and value of ``{name, type, value}``; null is NaN. Raises ``InterchangeError``."""
    data = mapping(entry, "entry", place)
    name = text(data, "name", place)
    kind, value = data.get("type"), data.get("value")
    if kind not in TYPES:
        raise place.wrong(f"type of {name!r}", kind, f"one of {', '.join(TYPES)}")
    if kind == "string":
        if not isinstance(value, str):
            raise place.wrong(f"value of {name!r}", value, "a string")
        return name, value
    if value is None:
        return name, math.nan
    wanted = "a whole number" if kind == "int64" else "a number"
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise place.wrong(f"value of {name!r}", value, wanted)
    try:
        return name, int(value) if kind == "int64" else float(value)
    except (ValueError, OverflowError):
        raise place.wrong(f"value of {name!r}", value, wanted) from None


def summary_values(state: Mapping[str, Any], place: Place) -> dict[str, dict[str, Any]]:
    """The data of each summary of a state, by tag. Raises ``InterchangeError``."""
    found: dict[str, dict[str, Any]] = {}
    for index, entry in enumerate(items(state.get("summaries"), "summaries", place)):
        here = place.at(f"summary {index}")
        summary = mapping(entry, "summary", here)
        tag = text(summary, "tag", here)
        inside = place.at(f"tag {tag!r}")
        data = items(summary.get("data"), "data", inside)
        found[tag] = dict(named_value(item, inside) for item in data)
    return found
