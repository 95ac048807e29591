"""A run as T4 results: one entry per configuration, and the metadata beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from nqbench.analysis.data.collect import collect, instrumented
from nqbench.analysis.data.dataset import INAPPLICABLE, Dataset, PointResult
from nqbench.analysis.data.quantities import TIME, Quantity
from nqbench.errors import AnalysisError
from nqbench.record import Record
from nqbench.runs.reading import newest, read_manifest, read_records

SCHEMA_VERSION: Final = "1.0.0"
INVALIDITY: Final = {
    "ok": "correct",
    "wrong": "correctness",
    "compile_error": "compile",
    "launch_error": "runtime",
    "crashed": "runtime",
    "timeout": "timeout",
}
"""Our statuses in T4's words. A point that cannot run is ``constraints``; one that was not measured
for lack of time, or throttled, has no word and is left out."""


def export(run: Path, out: Path | None) -> str:
    """The run as T4 results; T4 metadata goes to ``NAME-metadata.json`` next to ``out``.

    One entry per configuration. Raises ``StoreError`` for a run that cannot be read,
    ``AnalysisError`` for one without a finished or failed point.
    """
    manifest, found = read_manifest(run), read_records(run)
    data = collect(manifest, found.records)
    records: dict[str, list[Record]] = {}
    for (key, _), record in sorted(newest(found.records).items(), key=lambda item: item[0]):
        records.setdefault(key, []).append(record)
    results = [
        entry
        for point, planned in zip(data.points, _planned(manifest), strict=True)
        if (entry := _entry(data, point, planned, records.get(str(planned["key"]), ()))) is not None
    ]
    if not results:
        raise AnalysisError(f"{run} has no measured point yet; run its study again to resume")
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        meta = {"schema_version": SCHEMA_VERSION, "metadata": _metadata(manifest)}
        out.with_name(f"{out.stem}-metadata.json").write_text(_json(meta), encoding="utf-8")
    return _json({"schema_version": SCHEMA_VERSION, "results": results})


def _planned(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The points of the manifest that a data set has, in its order."""
    return [p for p in manifest["points"] if not instrumented(p["factors"])]


def _entry(
    data: Dataset, point: PointResult, planned: Mapping[str, Any], records: Sequence[Record]
) -> dict[str, Any] | None:
    """One configuration; ``None`` if it was not measured for a reason that T4 has no word for."""
    invalidity = "constraints" if planned.get("skip") else INVALIDITY.get(point.status)
    if invalidity is None:
        return None
    good = [r for r in records if r.status == "ok" and r.round > 0] if point.ok else []
    levels = {name: level for name, level in point.levels.items() if level != INAPPLICABLE}
    system = {"system": point.system} if point.system else {}
    sweep = {"sweep": point.sweep} if len(data.sweeps) > 1 else {}
    measurements = [m for what in _quantities(data, point) for m in _measurements(point, what)]
    return {
        "timestamp": max((r.started for r in records), default=""),
        "configuration": {**sweep, **system, "n": point.n, **levels},
        "objectives": [m["name"] for m in measurements[:1]],
        "times": _times(records, good),
        "invalidity": invalidity,
        "correctness": int(invalidity == "correct"),
        "measurements": measurements,
    }


def _quantities(data: Dataset, point: PointResult) -> list[Quantity]:
    return [TIME] if point.timed else list(data.quantities(None))


def _measurements(point: PointResult, what: Quantity) -> Iterator[dict[str, Any]]:
    """A quantity, and for a time the ends of its interval over the rounds; times in ms."""
    found = point.estimate(what) if point.ok else None
    if found is None:
        return
    scale, unit = (1.0, "") if what.kind == "counter" else (1e3, "ms")
    yield {"name": what.name, "value": found.value * scale, "unit": unit}
    for end, value in (("low", found.low), ("high", found.high)):
        if value is not None and unit:
            yield {"name": f"{what.name}_{end}", "value": value * scale, "unit": unit}


def _times(records: Sequence[Record], good: Sequence[Record]) -> dict[str, Any]:
    """Where the time of a configuration went, in ms; all samples of all rounds.

    ``compilation`` and ``benchmark`` are kernel_tuner's own names beside those of the schema.
    """

    def spent(*names: str) -> float:
        return 1e3 * sum(r.spent_s.get(name, 0.0) for r in records for name in names)

    parts = {"prepare": spent("prepare"), "check": spent("check")}
    benchmark = spent("warm_up", "sample", "phases")
    whole = 1e3 * sum(r.wall_s for r in records)
    return {
        "compilation_time": parts["prepare"],
        "compilation": parts["prepare"],
        "benchmark": benchmark,
        "framework": max(0.0, whole - benchmark - sum(parts.values())),
        "search_algorithm": 0.0,
        "validation": parts["check"],
        "runtimes": [1e3 * value for record in good for value in record.samples_s],
    }


def _metadata(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """T4's metadata: the device and the software, as the manifest has them."""
    described, device = manifest.get("environment", {}), manifest["device"]
    packages = described.get("packages", {})
    return {
        "hardware": {
            "hardware_description": [device.get("host", {}), device.get("facts", {})],
            "operating_system": str(described.get("system", "")),
        },
        "environment": {
            "device_query": dict(device.get("identity", {})),
            "requirements": [f"{name}=={version}" for name, version in packages.items() if version],
        },
    }


def _json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
