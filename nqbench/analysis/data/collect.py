"""From the records of a run to its points."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nqbench.analysis.data.dataset import INAPPLICABLE, Dataset, Level, PointResult, missing
from nqbench.errors import StudyError
from nqbench.record import Record
from nqbench.runs.frame import recorded
from nqbench.runs.reading import current, read_manifest, read_records
from nqbench.system.suggest import many

Row = Mapping[str, Any]


def load_dataset(run: Path | str) -> Dataset:
    """Load a run folder. Raises ``StoreError`` where it cannot be read."""
    return collect(read_manifest(Path(run)), read_records(Path(run)).records)


def collect(manifest: Row, records: Iterable[Record], name: str = "") -> Dataset:
    """The points of a run, from its manifest and its records.

    The manifest's points give the order and say what was planned, levels included. Records find
    their point by key, so that two sweeps that hold the same point share its measurements.
    Instrumented kernels and a profiler's launches are left out: see ``observed``.
    """
    measured: dict[str, list[Row]] = {}
    for record in current(manifest, records):
        if record.round >= 0:
            measured.setdefault(record.key, []).append(recorded(record))
    points = tuple(
        _point(planned, measured.get(planned["key"], ()), manifest)
        for planned in manifest.get("points", ())
        if not instrumented(planned["factors"])
    )
    # What most points have: a run that was stopped has one measurement more for a few of them.
    counts = [len(p.measurements) for p in points if p.timed and p.ok]
    study = str(manifest["study"]["name"])
    return Dataset(name or study, manifest, points, statistics.mode(counts) if counts else 0)


def instrumented(factors: Row) -> bool:
    """Whether a kernel counts what it does: it has no time, and its counters are its own."""
    return factors.get("probe") not in (None, INAPPLICABLE, "none")


def _levels(factors: Row) -> dict[str, Level]:
    """The levels that apply, ``n`` included; ``{"per_sm": 2}`` as ``2/SM``."""
    levels: dict[str, Level] = {}
    for factor, value in factors.items():
        if isinstance(value, Mapping):
            levels[factor] = f"{value.get('per_sm')}/SM"
        elif not missing(value) and value != INAPPLICABLE:
            levels[factor] = value if isinstance(value, int | float) else str(value)
    return levels


def _point(planned: Row, rows: Sequence[Row], manifest: Row) -> PointResult:
    """The result of a point from its measurements.

    One wrong answer disqualifies the point, because its other measurements cannot be trusted
    either. Throttled ones do not count.
    """
    levels = _levels(planned["factors"])
    system = str(planned.get("system") or "")
    good: dict[int, Row] = {}
    if rows:
        cpu = rows[-1]["device"] == "cpu"
        timed = cpu or manifest["device"]["kind"] != "sim"
        good = {r["round"]: r for r in rows if r["status"] == "ok" and _complete(r, timed)}
        status, reason = _status(rows, bool(good))
    else:
        program = planned.get("program")
        cpu = program["device"] == "cpu" if program else system in _cpu_systems(manifest)
        timed = False
        status, reason = "skipped", str(planned.get("skip") or "")
        if not reason:
            status = "unfinished"
            reason = "planned, but the run ended before it; run the study again to resume"
    return PointResult(
        sweep=str(planned["sweep"]),
        system=system,
        n=int(levels.pop("n", 0)),
        levels=levels,
        cpu=cpu,
        timed=timed,
        status=status,
        reason=reason,
        measurements=dict(sorted(good.items())) if status == "ok" else {},
        first_s=next((r["first_launch_s"] for r in rows if r.get("first_launch_s")), None),
        key=str(planned.get("key") or ""),
    )


def _cpu_systems(manifest: Row) -> frozenset[str]:
    """Systems of the run's workload that run on the CPU; none where it is unknown."""
    from nqbench.workloads import of_study

    try:
        return of_study(manifest["study"]).cpu_systems
    except StudyError:
        return frozenset()  # a user's own workload: its records say where they ran


def _status(rows: Sequence[Row], any_good: bool) -> tuple[str, str]:
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
            last = f"{bad[-1]['status']}: {bad[-1]['reason']}"
            lost.append(f"{many(len(bad), 'measurement')} lost: {last}")
        if slowed:
            lost.append(f"{many(slowed, 'measurement')} throttled and left out")
        return "ok", "; ".join(lost)
    if bad:
        return str(bad[-1]["status"]), str(bad[-1].get("reason") or "no reason recorded")
    if slowed:
        return "throttled", str(rows[-1].get("reason") or "every measurement was throttled")
    if any(r["round"] > 0 and r["value_s"] == 0 for r in rows):
        return "unfinished", (
            "its measurements took 0 s: shorter than the clock can resolve;"
            " give the kernel more work"
        )
    return "unfinished", "verified, but no measurement was timed; run the study again to resume"


def _complete(row: Row, timed: bool) -> bool:
    """Whether a measurement counts: it has a time after round 0, or counters."""
    if timed:
        return row["round"] > 0 and (row["value_s"] or 0) > 0
    return not missing(row.get("warp_instructions"))
