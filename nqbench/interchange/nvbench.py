"""nvbench's JSON (file version 1): read as points for ``compare``, written for nvbench's tools.

``devices``: what was measured on. ``benchmarks``: each with ``states``, one per combination of
axis values; a state has ``axis_values`` and ``summaries``. A summary is a ``tag`` with ``data``, a
list of ``{name, type, value}``; 64-bit numbers are written as strings, infinities as null.

Reading: a state becomes a point, the benchmark's name its sweep, its axes its factors (``system``
and ``n`` or ``N`` keep their meaning). One file is one process, and so one round: several files of
the same benchmarks give the rounds that an interval needs.

Writing: a sweep becomes a benchmark, a point a state, factors become axes. All samples of all
rounds go into the mean and, if a file is written, into sample files like those of ``--jsonbin``. An
extra summary holds the median of each round, so that reading the file back loses nothing that
``compare`` uses.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, Field, StrictInt

from nqbench.analysis.data.collect import collect
from nqbench.analysis.data.dataset import INAPPLICABLE, Dataset, Level, PointResult
from nqbench.analysis.data.quantities import TIME
from nqbench.errors import AnalysisError, InterchangeError, StoreError
from nqbench.interchange.reading import fitting, read_json, wrong
from nqbench.record import LONGEST_S
from nqbench.runs.reading import newest, read_manifest, read_records
from nqbench.system.versions import __version__

VERSION: Final = 1
"""Major version of the file format that is understood."""
MEAN: Final = "nv/cold/time/gpu/mean"
MEDIAN: Final = "nv/cold/time/gpu/median"
STDEV: Final = "nv/cold/time/gpu/stdev/relative"
SAMPLE_SIZE: Final = "nv/cold/sample_size"
SAMPLES: Final = "nv/json/bin:nv/cold/sample_times"
ROUNDS: Final = "nqbench/rounds"
"""An extra summary: the median of each round by its number, in seconds."""
SPEC: Final = "nqbench_device"
"""An extra entry in ``meta``: the device's name on the command line. It separates the synthetic
times of the test device from measured ones."""
TYPES: Final = ("int64", "float64", "string")
_ANEW: Final = "; write the file again with `nvbench --json`"
Identity = tuple[str, str, int, tuple[tuple[str, Level], ...]]


def _none_as_empty(value: Any) -> Any:
    return [] if value is None else value


def _not_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a number is needed")
    return value


def _text(value: Any) -> Any:
    return str(value) if value else ""


_Empty = BeforeValidator(_none_as_empty)
_Number = BeforeValidator(_not_bool)


class _Int(BaseModel):
    type: Literal["int64"]
    name: str
    value: Annotated[int | None, _Number] = None


class _Float(BaseModel):
    type: Literal["float64"]
    name: str
    value: Annotated[float | None, _Number] = None


class _String(BaseModel):
    type: Literal["string"]
    name: str
    value: str


_Named = Annotated[_Int | _Float | _String, Field(discriminator="type")]


class _Summary(BaseModel):
    tag: str
    data: Annotated[list[_Named], _Empty] = []


class _State(BaseModel):
    device: StrictInt
    axis_values: Annotated[list[_Named], _Empty] = []
    summaries: Annotated[list[_Summary], _Empty] = []
    is_skipped: Annotated[bool, BeforeValidator(bool)] = False
    skip_reason: Annotated[str, BeforeValidator(_text)] = ""


class _Benchmark(BaseModel):
    name: str
    states: Annotated[list[_State], _Empty] = []


class _Gpu(BaseModel):
    id: StrictInt
    name: str


class _Root(BaseModel):
    """A result file, as far as it is read; everything else in it is ignored."""

    meta: Any = None
    devices: Annotated[list[_Gpu], _Empty] = []
    benchmarks: Annotated[list[_Benchmark], _Empty]


def read_files(paths: Sequence[Path]) -> Dataset:
    """Read nvbench files of the same benchmarks, a round each. Raises ``InterchangeError``."""
    files = [_read(path) for path in paths]
    devices = {file.device for file in files}
    if len(devices) > 1:
        raise InterchangeError(
            f"{paths[0].parent}: its files were measured on different devices"
            f" ({', '.join(sorted(devices))}); put each device into a folder of its own"
        )
    found: dict[Identity, PointResult] = {}
    for number, file in enumerate(files, 1):
        for point in file.points:
            key = _identity(point)
            # Rounds that nqbench exported keep their numbers; a process of nvbench is a round.
            rounds_of = point.measurements if len(files) == 1 else _renumber(point, number)
            earlier = found.get(key)
            if earlier is None or not earlier.ok:
                found[key] = _with_rounds(point, rounds_of)
            elif point.ok:
                found[key] = _with_rounds(point, {**earlier.measurements, **rounds_of})
    count = max((len(p.measurements) for p in found.values()), default=0)
    manifest = {
        "device": {"spec": files[0].spec, "kind": "cuda", "facts": {"name": files[0].device}},
        "command": ["nvbench", "--json", str(paths[0])],
        "statistic": files[0].statistic,
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
    states = [(bench.name, state) for bench in root.benchmarks for state in bench.states]
    if not states:
        raise InterchangeError(
            f"{path} holds no benchmark with a state; write it with `nvbench --json FILE`"
        )
    names = {gpu.id: gpu.name for gpu in root.devices}
    used = list(dict.fromkeys(state.device for _, state in states))
    if len(used) > 1:
        listed = ", ".join(names.get(d, f"device {d}") for d in used)
        raise InterchangeError(
            f"{path} holds results of several devices ({listed}); run nvbench with `--devices 0`,"
            " one file per device"
        )
    statistics: set[str] = set()
    points = [_point(path, name, state, statistics) for name, state in states]
    spec = root.meta.get(SPEC) if isinstance(root.meta, Mapping) else None
    statistic = "mean" if "mean" in statistics else "median"
    gpu = names.get(used[0], "unknown GPU")
    return _File(points, gpu, spec if isinstance(spec, str) else "nvbench", statistic)


def _load(path: Path) -> _Root:
    data = read_json(path, _ANEW)
    if not isinstance(data, Mapping) or "benchmarks" not in data:
        raise InterchangeError(
            f"{path} is not a result of nvbench: it has no list 'benchmarks';"
            " write it with `nvbench --json FILE`"
        )
    version: Any = data.get("meta")
    for name in ("version", "json", "major"):
        version = version.get(name) if isinstance(version, Mapping) else None
    if version is not None and version != VERSION:
        raise _wrong(path, "meta.version.json.major", version, f"only {VERSION} is known here")
    return fitting(path, data, _Root, TYPES, _ANEW)


_wrong = partial(wrong, again=_ANEW)


def _values(named: Sequence[_Int | _Float | _String]) -> dict[str, Level]:
    """Values by name; a number that is null is NaN."""
    return {one.name: math.nan if one.value is None else one.value for one in named}


def _point(path: Path, name: str, state: _State, statistics: set[str]) -> PointResult:
    levels = {"n" if k == "N" else k: value for k, value in _values(state.axis_values).items()}
    system, size = str(levels.pop("system", "")), levels.pop("n", 0)
    if not isinstance(size, int):
        raise _wrong(path, f"axis 'n' of {name!r}", size, "a whole number is needed")
    rounds: Mapping[int, Mapping[str, Any]] = {}
    if not state.is_skipped:
        rounds = _rounds(path, f"benchmark {name!r}", state, statistics)
    return PointResult(
        sweep=name,
        system=system,
        n=size,
        levels=levels,
        cpu=False,
        timed=True,
        status="skipped" if state.is_skipped else "ok",
        reason=(state.skip_reason or "skipped by nvbench") if state.is_skipped else "",
        measurements=rounds,
    )


def _rounds(
    path: Path, where: str, state: _State, statistics: set[str]
) -> dict[int, Mapping[str, Any]]:
    """The times of a state: nqbench's rounds, else the median of the samples, else the mean."""
    summaries = {summary.tag: _values(summary.data) for summary in state.summaries}
    if ROUNDS in summaries:
        found: dict[int, Mapping[str, Any]] = {}
        for name, value in summaries[ROUNDS].items():
            if not name.isdecimal():
                raise _wrong(path, f"{where} tag {ROUNDS!r} name", name, "rounds have numbers")
            found[int(name)] = {"value_s": _time(path, f"{where} tag {ROUNDS!r}", value)}
        return found
    if SAMPLES in summaries:
        values = _samples(path, f"{where} tag {SAMPLES!r}", summaries[SAMPLES])
        if values is not None:
            return {1: {"value_s": float(np.median(values)), "samples": len(values)}}
    tag = MEDIAN if MEDIAN in summaries else MEAN
    time_s = _time(path, f"{where} tag {tag!r} value", summaries.get(tag, {}).get("value"))
    statistics.add("mean" if tag == MEAN else "median")
    return {1: {"value_s": time_s, "samples": summaries.get(SAMPLE_SIZE, {}).get("value")}}


def _time(path: Path, where: str, value: object) -> float:
    if not isinstance(value, float) or not 0 < value <= LONGEST_S:  # false of NaN too
        raise _wrong(path, where, value, "a positive number of seconds (float64) is needed")
    return value


def _samples(path: Path, where: str, data: Mapping[str, Level]) -> Any:
    """The samples of ``--jsonbin`` in seconds; ``None`` if their file is missing."""
    name, size = data.get("filename"), data.get("size")
    if not isinstance(name, str):
        raise _wrong(path, f"{where} filename", name, "a string is needed")
    for file in (path.parent / name, path.parent.parent / name):
        if file.is_file():
            values = np.fromfile(file, dtype="<f4")
            if len(values) != size or not len(values):
                raise _wrong(path, f"{where} size", size, f"{name} holds {len(values)} samples")
            if not (np.isfinite(values).all() and (values > 0).all()):
                raise _wrong(path, f"{where} filename", name, "its times are not all positive")
            return values.astype(float)
    return None


def _identity(point: PointResult) -> Identity:
    return point.sweep, point.system, point.n, tuple(sorted(point.levels.items()))


def _renumber(point: PointResult, number: int) -> dict[int, Mapping[str, Any]]:
    """One file as one round: several rounds in it become their geometric mean."""
    if not point.ok:
        return {}
    if len(point.measurements) == 1:
        return {number: next(iter(point.measurements.values()))}
    logs = [math.log(found["value_s"]) for found in point.measurements.values()]
    return {number: {"value_s": math.exp(math.fsum(logs) / len(logs))}}


def _with_rounds(point: PointResult, rounds: Mapping[int, Mapping[str, Any]]) -> PointResult:
    return replace(point, measurements=dict(sorted(rounds.items())))


# Writing.

Samples = Mapping[str, Sequence[float]]
"""All samples of a point in seconds, round by round, by key."""
_DEVICE: Final = {
    "number_of_sms": "multiprocessors",
    "max_blocks_per_sm": "max_blocks_per_multiprocessor",
    "max_threads_per_sm": "max_threads_per_multiprocessor",
    "max_threads_per_block": "max_threads_per_block",
    "registers_per_sm": "registers_per_multiprocessor",
    "registers_per_block": "registers_per_block",
    "global_memory_size": "memory_bytes",
    "shared_memory_per_sm": "shared_per_multiprocessor",
    "shared_memory_per_block": "shared_per_block",
}
"""nvbench's names of what the facts of a device hold."""


def export(run: Path, out: Path | None) -> str:
    """The run as nvbench's JSON; sample files go next to ``out`` if it is given.

    Raises ``StoreError`` for a run that cannot be read, ``AnalysisError`` for one without times.
    """
    manifest = read_manifest(run)
    found = read_records(run)
    data = collect(manifest, found.records)
    if not any(p.ok and p.values(TIME) for p in data.points):
        why = "it is simulated" if data.simulated else "no point of it is finished"
        raise AnalysisError(
            f"{run} has no times, which are all that nvbench's format holds ({why});"
            " `nqbench export RUN --format csv` writes everything"
        )
    samples: dict[str, list[float]] = {}
    for (key, round_), record in sorted(newest(found.records).items(), key=lambda item: item[0]):
        if record.status == "ok" and round_ > 0:
            samples.setdefault(key, []).extend(record.samples_s)
    root = {"meta": _meta(data), "devices": [_device(manifest["device"])]}
    folder = out.with_name(out.name + "-bin") if out else None
    root["benchmarks"] = _benchmarks(data, samples, folder)
    return json.dumps(root, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _meta(data: Dataset) -> dict[str, Any]:
    version = {"major": VERSION, "minor": 0, "patch": 0, "string": f"{VERSION}.0.0"}
    return {
        "argv": data.command.split(),
        "version": {"json": version, "nqbench": {"string": __version__}},
        "about": f"exported by nqbench; {data.provenance}",
        SPEC: data.spec,
    }


def _device(device: Mapping[str, Any]) -> dict[str, Any]:
    facts = device.get("facts", {})
    major, minor = (*facts.get("compute_capability", ()), 0, 0)[:2]
    name = device.get("identity", {}).get("name") or facts.get("name") or device.get("spec")
    return {
        "id": 0,
        "name": str(name),
        "sm_version": 100 * int(major) + 10 * int(minor),
        **{theirs: facts[ours] for theirs, ours in _DEVICE.items() if ours in facts},
    }


def _benchmarks(data: Dataset, samples: Samples, folder: Path | None) -> list[dict[str, Any]]:
    benchmarks = []
    written = 0
    for index, sweep in enumerate(data.sweeps):
        points = [p for p in data.select(sweep) if p.timed]
        if not points:
            continue
        states = []
        for point in points:
            values = samples.get(str(point.detail("key")), ()) if point.ok else ()
            state = _state(point, values)
            if values and folder is not None:
                state["summaries"].append(_sample_file(folder, written, values))
                written += 1
            states.append(state)
        benchmarks.append(
            {"name": sweep, "index": index, "devices": [0], "axes": _axes(points), "states": states}
        )
    return benchmarks


def _levels(point: PointResult) -> dict[str, Level]:
    system = {"system": point.system} if point.system else {}
    levels = {f: level for f, level in point.levels.items() if level != INAPPLICABLE}
    return {**system, "n": point.n, **levels}


def _axes(points: Sequence[PointResult]) -> list[dict[str, Any]]:
    names = dict.fromkeys(name for point in points for name in _levels(point))
    axes = []
    for name in names:
        present = dict.fromkeys(lv[name] for point in points if name in (lv := _levels(point)))
        kinds = {_type(value) for value in present}
        kind = kinds.pop() if len(kinds) == 1 else "string"
        values = [
            {"input_string": str(v), "description": "", "value": str(v) if kind == "string" else v}
            for v in present
        ]
        axes.append({"name": name, "type": kind, "flags": "", "values": values})
    return axes


def _state(point: PointResult, values: Sequence[float]) -> dict[str, Any]:
    levels = _levels(point)
    state: dict[str, Any] = {
        "name": "Device=0 " + " ".join(f"{name}={value}" for name, value in levels.items()),
        "device": 0,
        "type_config_index": 0,
        "axis_values": [_named(name, value) for name, value in levels.items()],
        "summaries": _summaries(point, values) if point.ok else [],
        "is_skipped": not point.ok,
    }
    if not point.ok:
        state["skip_reason"] = f"{point.status}: {point.reason}"
    return state


def _summaries(point: PointResult, values: Sequence[float]) -> list[dict[str, Any]]:
    rounds = point.values(TIME)
    of_rounds = [_named(str(number), value) for number, value in rounds.items()]
    ours = _summary(ROUNDS, "Rounds", "Median kernel time of each round", of_rounds)
    if not values:
        return [ours]
    times = np.asarray(values, dtype=float)
    mean = float(times.mean())
    noise = float(times.std(ddof=1)) / mean if len(times) > 1 else math.inf
    return [
        _value(SAMPLE_SIZE, "Samples", "Number of kernel launches", len(values), "sample_size"),
        _value(MEAN, "GPU Time", "Mean kernel time (CUDA events)", mean, "duration"),
        _value(MEDIAN, "GPU Median", "Median kernel time", float(np.median(times)), "duration"),
        _value(STDEV, "Noise", "Relative standard deviation", noise, "percentage"),
        ours,
    ]


def _value(tag: str, name: str, about: str, value: float, hint: str) -> dict[str, Any]:
    return _summary(tag, name, about, [_named("value", value)], hint)


def _summary(
    tag: str, name: str, about: str, data: list[dict[str, Any]], hint: str = ""
) -> dict[str, Any]:
    hinted = {"hint": hint} if hint else {"hide": "Read by nqbench."}
    return {"tag": tag, "name": name, "description": about, **hinted, "data": data}


def _named(name: str, value: Level) -> dict[str, Any]:
    """A named value as nvbench writes it: numbers as text, infinities as null."""
    kind = _type(value)
    finite = kind != "float64" or math.isfinite(float(value))
    return {"name": name, "type": kind, "value": str(value) if finite else None}


def _type(value: Level) -> str:
    if isinstance(value, str):
        return "string"
    return "int64" if isinstance(value, int) else "float64"


def _sample_file(folder: Path, index: int, values: Sequence[float]) -> dict[str, Any]:
    """Write the samples as little-endian 32-bit floats; returns the summary that names the file."""
    file = folder / f"{index}.bin"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        np.asarray(values, dtype="<f4").tofile(file)
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror}") from error
    named = [_named("filename", f"{folder.name}/{file.name}"), _named("size", len(values))]
    about = "Sample times as little-endian float32"
    return _summary(SAMPLES, "Samples Times File", about, named, "file/sample_times")
