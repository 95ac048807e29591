"""From the measurements of a run to its points."""

from __future__ import annotations

import statistics
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nqbench.analysis.data.dataset import INAPPLICABLE, Dataset, Level, PointResult, missing
from nqbench.errors import StudyError

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]


def load_dataset(run: Path | str) -> Dataset:
    """Load a run folder. Raises ``StoreError`` where it cannot be read."""
    from nqbench.runs.folder import load

    return collect(load(run))


def collect(frame: pd.DataFrame, name: str = "") -> Dataset:
    """Read a frame as ``runs.frame`` makes it, with the manifest in ``frame.attrs``.

    The manifest's points give the order and say what was planned. Measurements find their point by
    key, so that two sweeps that hold the same point share them. Without planned points, rows that
    agree in sweep, system and all factors make a point.
    """
    manifest: Mapping[str, Any] = frame.attrs.get("manifest", {})
    device = manifest.get("device", {})
    simulated = isinstance(device, Mapping) and device.get("kind") == "sim"
    rows = list(_rows(frame))
    planned = [p for p in manifest.get("points", ()) if isinstance(p, Mapping)]
    planned = [p for p in planned if not _instrumented(p["factors"])]
    rows = [row for row in rows if not _instrumented(row) and int(row["round"]) >= 0]
    if planned:
        points = _planned(planned, rows, simulated, _host_systems(manifest))
    else:
        points = _grouped(rows, _workload_factors(manifest, frame.columns), simulated)
    timed = any(p.timed and p.ok for p in points)
    # What most points have: a run that was stopped has one measurement more for a few of them.
    rounds = (
        statistics.mode(len(p.measurements) for p in points if p.timed and p.ok) if timed else 0
    )
    study = manifest.get("study", {})
    study_name = study.get("name", "") if isinstance(study, Mapping) else str(study)
    return Dataset(name or study_name or "run", manifest, tuple(points), rounds)


def _instrumented(levels: Row) -> bool:
    """Whether a kernel counts what it does: it has no time, and its counters are its own."""
    probe = levels.get("probe")
    return not (missing(probe) or probe in (INAPPLICABLE, "none"))


def _planned(
    planned: Sequence[Row], rows: Sequence[Row], simulated: bool, hosts: frozenset[str]
) -> list[PointResult]:
    by_key: dict[str, list[Row]] = {}
    for row in rows:
        by_key.setdefault(str(row["key"]), []).append(row)
    points: list[PointResult] = []
    for point in planned:
        levels = _levels(point["factors"])
        place = (str(point["sweep"]), str(point.get("system") or ""))
        measurements = by_key.get(str(point.get("key", "")), [])
        if measurements:
            points.append(_settle(place, levels, measurements, simulated))
        else:
            skip = str(point.get("skip") or "")
            points.append(_unrun(place, levels, skip, host=place[1] in hosts))
    return points


def _grouped(rows: Sequence[Row], factors: Sequence[str], simulated: bool) -> list[PointResult]:
    groups: dict[Hashable, tuple[tuple[str, str], dict[str, Level], list[Row]]] = {}
    for row in rows:
        levels = _levels({factor: row.get(factor) for factor in factors})
        place = (row["sweep"], row["system"])
        group = groups.setdefault((*place, frozenset(levels.items())), (place, levels, []))
        group[2].append(row)
    return [_settle(place, levels, found, simulated) for place, levels, found in groups.values()]


def _rows(frame: pd.DataFrame) -> Iterable[Mapping[str, Any]]:
    """Rows as dictionaries, in the order of the file."""
    frame = frame.copy(deep=False)
    frame.attrs = {}  # pandas would copy the manifest once more for every column
    columns = [str(c) for c in frame.columns]
    data = [frame.iloc[:, i].tolist() for i in range(len(columns))]
    for values in zip(*data, strict=True):
        row = dict(zip(columns, values, strict=True))
        row["system"] = "" if missing(row.get("system")) else str(row["system"])
        row["sweep"] = "" if missing(row.get("sweep")) else str(row["sweep"])
        yield row


def _workload_factors(manifest: Row, columns: Iterable[Any]) -> list[str]:
    from nqbench.workloads import get

    present = {str(column) for column in columns}
    return [factor for factor in get(_workload_name(manifest)).factors if factor in present]


def _workload_name(manifest: Row) -> str:
    study = manifest.get("study", {})
    return str(study.get("workload", "counting")) if isinstance(study, Mapping) else "counting"


def _host_systems(manifest: Row) -> frozenset[str]:
    """Systems of the run's workload that run on the processor; of nobody's where it is unknown."""
    from nqbench.workloads import get

    try:
        return get(_workload_name(manifest)).cpu_systems
    except StudyError:
        return frozenset()  # somebody's own workload: its records say where they ran


def _levels(given: Row) -> dict[str, Level]:
    """Levels that apply, in one form whether they come from a table or from JSON."""
    levels: dict[str, Level] = {}
    for factor, value in given.items():
        if missing(value) or value == INAPPLICABLE:
            continue
        if isinstance(value, Mapping):
            levels[factor] = f"{value.get('per_sm')}/SM"
        elif isinstance(value, bool | str):
            levels[factor] = str(value)
        else:
            number = float(value)  # a column with gaps turns integers into floats
            levels[factor] = int(number) if number.is_integer() else number
    return levels


def _unrun(
    place: tuple[str, str], levels: Mapping[str, Level], skip: str, *, host: bool
) -> PointResult:
    return PointResult(
        *place,
        n=int(levels.get("n", 0)),
        levels={k: v for k, v in levels.items() if k != "n"},
        host=host,
        timed=False,
        status="skipped" if skip else "unfinished",
        reason=skip or "planned, but the run ended before it; run the study again to resume",
        measurements={},
    )


def _settle(
    place: tuple[str, str], levels: Mapping[str, Level], rows: Sequence[Row], simulated: bool
) -> PointResult:
    """Decide what a point's measurements amount to.

    Only measurements of the newest key count (an older key measured something else). One wrong
    answer condemns the point: its other measurements cannot be trusted either. Throttled ones do
    not count.
    """
    last = rows[-1]
    rows = [r for r in rows if r.get("key") == last.get("key")]
    host = last.get("device") == "cpu"
    timed = host or not simulated
    good = {int(r["round"]): r for r in rows if r["status"] == "ok" and _complete(r, timed)}
    status, reason = _verdict(rows, bool(good))
    return PointResult(
        *place,
        n=int(levels.get("n", 0)),
        levels={k: v for k, v in levels.items() if k != "n"},
        host=host,
        timed=timed,
        status=status,
        reason=reason,
        measurements=dict(sorted(good.items())) if status == "ok" else {},
    )


def _verdict(rows: Sequence[Row], any_good: bool) -> tuple[str, str]:
    """Status of a point and its reason, from the statuses of its measurements."""
    bad = [r for r in rows if r["status"] not in {"ok", "throttled"}]
    wrong = [r for r in bad if r["status"] == "wrong"]
    if wrong:
        answer = f"answer {wrong[-1].get('answer')}, expected {wrong[-1].get('expected')}"
        return "wrong", str(wrong[-1].get("reason") or answer)
    slowed = sum(r["status"] == "throttled" for r in rows)
    if any_good:
        lost = []
        if bad:
            lost = [f"{_count(len(bad), 'lost')}: {bad[-1]['status']}: {bad[-1]['reason']}"]
        if slowed:
            lost.append(_count(slowed, "throttled and left out"))
        return "ok", "; ".join(lost)
    if bad:
        return str(bad[-1]["status"]), str(bad[-1].get("reason") or "no reason recorded")
    if slowed:
        return "throttled", str(rows[-1].get("reason") or "every measurement was throttled")
    if any(int(r["round"]) > 0 and r.get("value_s") == 0 for r in rows):
        return "unfinished", (
            "its measurements took 0 s: shorter than the clock can tell; give the kernel more work"
        )
    return "unfinished", "verified, but no measurement was timed; run the study again to resume"


def _count(number: int, what: str) -> str:
    return f"{number} measurement{'' if number == 1 else 's'} {what}"


def _complete(row: Mapping[str, Any], timed: bool) -> bool:
    """Whether a measurement says something: a time after round 0, or counters."""
    if timed:
        value = row.get("value_s")
        return int(row["round"]) > 0 and not missing(value) and float(value or 0) > 0
    return not missing(row.get("warp_instructions"))
