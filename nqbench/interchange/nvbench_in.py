"""Reading what ``nvbench --json`` (or ``--jsonbin``) wrote, as points that ``compare`` knows.

A state becomes a point: the benchmark's name its sweep, its axes its factors (``system`` and ``n``
or ``N`` as such). One file is one process, and so one round: several files of the same benchmarks
give the rounds that an interval needs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nqbench.analysis.data.dataset import Dataset, Level, PointResult
from nqbench.errors import InterchangeError
from nqbench.interchange.nvbench_fields import (
    MEAN,
    MEDIAN,
    ROUNDS,
    SAMPLE_SIZE,
    SAMPLES,
    SPEC,
    VERSION,
    Place,
    device_id,
    items,
    mapping,
    named_value,
    summary_values,
    text,
)
from nqbench.record import LONGEST_S

Identity = tuple[str, str, int, tuple[tuple[str, Level], ...]]


def read_files(paths: Sequence[Path]) -> Dataset:
    """Read nvbench files of the same benchmarks, a round each. Raises ``InterchangeError``."""
    rounds = [_read(path) for path in paths]
    devices = {file.device for file in rounds}
    if len(devices) > 1:
        raise InterchangeError(
            f"{paths[0].parent}: its files were measured on different devices"
            f" ({', '.join(sorted(devices))}); put each device into a folder of its own"
        )
    found: dict[Identity, PointResult] = {}
    for number, file in enumerate(rounds, 1):
        for point in file.points:
            key = _identity(point)
            # Rounds that nqbench exported keep their numbers; a process of nvbench is a round.
            blocks = point.measurements if len(rounds) == 1 else _renumber(point, number)
            earlier = found.get(key)
            if earlier is None or not earlier.ok:
                found[key] = _with_blocks(point, blocks)
            elif point.ok:
                found[key] = _with_blocks(point, {**earlier.measurements, **blocks})
    count = max((len(p.measurements) for p in found.values()), default=0)
    manifest = {
        "device": {
            "spec": rounds[0].spec,
            "kind": "cuda",
            "facts": {"name": rounds[0].device},
        },
        "command": ["nvbench", "--json", str(paths[0])],
        "statistic": rounds[0].statistic,
        "study": {"name": paths[0].stem, "workload": "counting"},
    }
    return Dataset(paths[0].stem, manifest, tuple(found.values()), count)


@dataclass(frozen=True, slots=True, eq=False)
class _File:
    """One file. ``statistic`` is what its times are: ``mean`` or ``median``."""

    points: list[PointResult]
    device: str
    spec: str
    statistic: str


def _read(path: Path) -> _File:
    root = _load(path)
    place = Place(path)
    _check_version(root, place)
    names = {}
    for index, entry in enumerate(items(root.get("devices"), "devices", place)):
        here = place.at(f"device {index}")
        device = mapping(entry, "device", here)
        names[device_id(device, "id", here)] = text(device, "name", here)
    points: list[PointResult] = []
    used: dict[int, None] = {}
    statistics: set[str] = set()
    for index, entry in enumerate(items(root.get("benchmarks"), "benchmarks", place)):
        bench = mapping(entry, "benchmark", place.at(f"benchmark {index}"))
        name = text(bench, "name", place.at(f"benchmark {index}"))
        here = place.at(f"benchmark {name!r}")
        for number, item in enumerate(items(bench.get("states"), "states", here)):
            inside = here.at(f"state {number}")
            state = mapping(item, "state", inside)
            used[device_id(state, "device", inside)] = None
            points.append(_point(name, state, inside, statistics))
    if not points:
        raise InterchangeError(
            f"{path} holds no benchmark with a state; write it with `nvbench --json FILE`"
        )
    if len(used) > 1:
        listed = ", ".join(names.get(d, f"device {d}") for d in used)
        raise InterchangeError(
            f"{path} holds results of several devices ({listed}); run nvbench with `--devices 0`,"
            " one file per device"
        )
    gpu = names.get(next(iter(used)), "unknown GPU")
    meta = root.get("meta")
    spec = meta.get(SPEC) if isinstance(meta, Mapping) else None
    statistic = "mean" if "mean" in statistics else "median"
    return _File(points, gpu, spec if isinstance(spec, str) else "nvbench", statistic)


def _load(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InterchangeError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InterchangeError(
            f"{path} is not JSON ({error}); write it anew with `nvbench --json {path.name}`"
        ) from None
    if not isinstance(data, Mapping) or "benchmarks" not in data:
        raise InterchangeError(
            f"{path} is not a result of nvbench: it has no list 'benchmarks';"
            " write it with `nvbench --json FILE`"
        )
    return data


def _check_version(root: Mapping[str, Any], place: Place) -> None:
    version: Any = root.get("meta")
    for name in ("version", "json", "major"):
        version = version.get(name) if isinstance(version, Mapping) else None
    if version is not None and version != VERSION:
        raise place.wrong("meta.version.json.major", version, f"{VERSION}, which is known here")


def _point(name: str, state: Mapping[str, Any], place: Place, statistics: set[str]) -> PointResult:
    levels: dict[str, Level] = {}
    for entry in items(state.get("axis_values"), "axis_values", place):
        axis, value = named_value(entry, place.at("axis"))
        levels["n" if axis == "N" else axis] = value
    system = str(levels.pop("system", ""))
    size = levels.pop("n", 0)
    if not isinstance(size, int):
        raise place.wrong("axis 'n'", size, "a whole number")
    status, reason, blocks = "ok", "", {}
    if state.get("is_skipped"):
        status, reason = "skipped", str(state.get("skip_reason") or "skipped by nvbench")
    else:
        blocks = _blocks(summary_values(state, place), place, statistics)
    return PointResult(
        sweep=name,
        system=system,
        n=size,
        levels=levels,
        cpu=False,
        timed=True,
        status=status,
        reason=reason,
        measurements=blocks,
    )


def _blocks(
    summaries: Mapping[str, Mapping[str, Any]], place: Place, statistics: set[str]
) -> dict[int, dict[str, Any]]:
    """The times of a state: nqbench's rounds, else the median of the samples, else the mean."""
    if ROUNDS in summaries:
        inside = place.at(f"tag {ROUNDS!r}")
        found = {}
        for name, value in summaries[ROUNDS].items():
            if not name.isdecimal():
                raise inside.wrong("name", name, "the number of a round")
            found[int(name)] = {"value_s": _time(value, name, inside)}
        return found
    samples = summaries.get(SAMPLE_SIZE, {}).get("value")
    if SAMPLES in summaries:
        values = _samples(summaries[SAMPLES], place.at(f"tag {SAMPLES!r}"))
        if values is not None:
            return {1: {"value_s": float(np.median(values)), "samples": len(values)}}
    tag = MEDIAN if MEDIAN in summaries else MEAN
    inside = place.at(f"tag {tag!r}")
    value = _time(summaries.get(tag, {}).get("value"), "value", inside)
    statistics.add("mean" if tag == MEAN else "median")
    return {1: {"value_s": value, "samples": samples}}


def _time(value: Any, field: str, place: Place) -> float:
    if not isinstance(value, float) or not 0 < value <= LONGEST_S:  # false of NaN too
        raise place.wrong(field, value, "a positive number of seconds (float64)")
    return value


def _samples(data: Mapping[str, Any], place: Place) -> Any:
    """The samples of ``--jsonbin`` in seconds, or ``None`` where their file was left behind."""
    name, size = data.get("filename"), data.get("size")
    if not isinstance(name, str):
        raise place.wrong("filename", name, "a string")
    for file in (place.path.parent / name, place.path.parent.parent / name):
        if file.is_file():
            values = np.fromfile(file, dtype="<f4")
            if len(values) != size or not len(values):
                raise place.wrong("size", size, f"the {len(values)} samples that {name} holds")
            if not (np.isfinite(values).all() and (values > 0).all()):
                raise place.wrong("filename", name, "a file of positive, finite times")
            return values.astype(float)
    return None


def _identity(point: PointResult) -> Identity:
    return point.sweep, point.system, point.n, tuple(sorted(point.levels.items()))


def _renumber(point: PointResult, number: int) -> dict[int, Mapping[str, Any]]:
    """One file as one round: of several rounds in it, their geometric mean stands for it."""
    if not point.ok:
        return {}
    if len(point.measurements) == 1:
        return {number: next(iter(point.measurements.values()))}
    logs = [math.log(block["value_s"]) for block in point.measurements.values()]
    return {number: {"value_s": math.exp(math.fsum(logs) / len(logs))}}


def _with_blocks(point: PointResult, blocks: Mapping[int, Mapping[str, Any]]) -> PointResult:
    return replace(point, measurements=dict(sorted(blocks.items())))
