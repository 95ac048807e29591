"""The combinations of a sweep on one kind of device, before anything is worked out."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Final

from nqbench.facts import DeviceKind
from nqbench.point import Level
from nqbench.study.model import Item, Study, Sweep

MAX_POINTS: Final = 20_000
"""Combinations in a study. At a tenth of a second each, over five rounds, this is three hours."""

Given = dict[str, Item]
"""A combination: every factor that the study gives, with its value and place."""


def check_size(study: Study, kind: DeviceKind) -> None:
    """Raise ``StudyError`` if the study has more than :data:`MAX_POINTS` combinations."""
    total = 0
    for sweep in study.sweeps:
        count = prod(len(axis) for axis in _axes(study, sweep, kind))
        total += count
        if total > MAX_POINTS:
            before = f" ({total:,} with those before it)" if total > count else ""
            raise study.source.error(
                f"the sweep '{sweep.name}' has {count:,} combinations{before}, but a study may have"
                f" at most {MAX_POINTS:,}; narrow its matrix or split the study",
                (*sweep.path, "matrix"),
            )


def combinations(study: Study, sweep: Sweep, kind: DeviceKind) -> list[Given]:
    """Every combination of a sweep: n ascending, otherwise in the file's order."""
    rows = product(*_axes(study, sweep, kind))
    merged = [{f: item for part in row for f, item in part.items()} for row in rows]
    return sorted(merged, key=lambda given: int(str(given["n"].value)))


def context(sweep: Sweep, given: Given) -> str:
    """Which combination a sentence is about: the sweep, and what varies in it."""
    values = ", ".join(f"{f}={plain(i.value)}" for f, i in given.items() if f not in sweep.fixed)
    return f" (sweep '{sweep.name}', {values})"


def plain(value: Level) -> str:
    """A level as text."""
    return f"{{per_sm: {value['per_sm']}}}" if isinstance(value, Mapping) else str(value)


def _axes(study: Study, sweep: Sweep, kind: DeviceKind) -> list[list[Given]]:
    """What varies, slowest first: n, systems, the matrix's factors, the rows of zip.

    An axis without values on this kind of device is empty, and so is the product.
    """
    axes: list[list[Given]] = []
    if "n" not in {*sweep.matrix, *sweep.zip, *sweep.fixed}:
        sizes = sweep.n or study.n
        assert sizes is not None  # checked when the file was read
        axes.append([{"n": item} for item in sizes.on(kind)])
    if sweep.systems:
        axes.append([{"system": item} for item in sweep.systems.on(kind)])
    for group in (sweep.matrix, sweep.fixed):
        axes += [[{factor: item} for item in axis.on(kind)] for factor, axis in group.items()]
    if sweep.zip:
        rows = zip(*(axis.on(kind) for axis in sweep.zip.values()), strict=True)
        axes.append([dict(zip(sweep.zip, row, strict=True)) for row in rows])
    return axes
