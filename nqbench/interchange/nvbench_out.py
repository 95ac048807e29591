"""Writing a run in nvbench's JSON format, for tools that read it.

A sweep becomes a benchmark, a point a state, factors become axes. All samples of all rounds go into
the mean and, where a file is written, into the sample files that ``--jsonbin`` would have left; a
summary of nqbench's own keeps the median of each round, so that reading the file back loses nothing
that ``compare`` uses.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from nqbench.analysis.data.collect import collect
from nqbench.analysis.data.dataset import INAPPLICABLE, Dataset, Level, PointResult
from nqbench.analysis.data.quantities import TIME
from nqbench.errors import AnalysisError, StoreError
from nqbench.interchange.nvbench_fields import (
    MEAN,
    MEDIAN,
    ROUNDS,
    SAMPLE_SIZE,
    SAMPLES,
    SPEC,
    STDEV,
    VERSION,
)
from nqbench.runs.reading import newest, read_manifest, read_records
from nqbench.system.versions import __version__

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
    """The run as nvbench's JSON; sample files go beside ``out`` where it is given.

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
            {
                "name": sweep,
                "index": index,
                "devices": [0],
                "axes": _axes(points),
                "states": states,
            }
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
    mine = _summary(ROUNDS, "Rounds", "Median kernel time of each round", of_rounds)
    if not values:
        return [mine]
    times = np.asarray(values, dtype=float)
    mean = float(times.mean())
    noise = float(times.std(ddof=1)) / mean if len(times) > 1 else math.inf
    return [
        _value(SAMPLE_SIZE, "Samples", "Number of kernel launches", len(values), "sample_size"),
        _value(MEAN, "GPU Time", "Mean kernel time (CUDA events)", mean, "duration"),
        _value(MEDIAN, "GPU Median", "Median kernel time", float(np.median(times)), "duration"),
        _value(STDEV, "Noise", "Relative standard deviation", noise, "percentage"),
        mine,
    ]


def _value(tag: str, name: str, about: str, value: float, hint: str) -> dict[str, Any]:
    return _summary(tag, name, about, [_named("value", value)], hint)


def _summary(
    tag: str, name: str, about: str, data: list[dict[str, Any]], hint: str = ""
) -> dict[str, Any]:
    hinted = {"hint": hint} if hint else {"hide": "Read by nqbench."}
    return {"tag": tag, "name": name, "description": about, **hinted, "data": data}


def _named(name: str, value: Level) -> dict[str, Any]:
    """A named value as nvbench writes it: numbers as text, what is infinite as null."""
    kind = _type(value)
    finite = kind != "float64" or math.isfinite(float(value))
    return {"name": name, "type": kind, "value": _digits(value) if finite else None}


def _digits(value: Level) -> str:
    return repr(value) if isinstance(value, float) else str(value)


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
