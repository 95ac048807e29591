"""Where the time of a recorded run went: kernels, nqbench's own work, the time in between."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from nqbench.measure.measurement import SPENT
from nqbench.record import Record
from nqbench.runs.reading import read_records


def describe(run: Path) -> str:
    """Lines for a run folder. Raises ``StoreError`` if it is none.

    Looks at timed measurements only. The first of each worker stands apart, because it makes the
    device's context. ``outside`` is wall time less the time inside kernels, warm-up included.
    """
    records = [r for r in read_records(run).records if r.round > 0 and r.samples_s and r.spent_s]
    if not records:
        return f"{run}: no timed measurement tells where its time went"
    points = len({record.key for record in records})
    firsts = _firsts(records)
    others = [record for record in records if id(record) not in {id(first) for first in firsts}]
    lines = [f"{run}: {len(records)} timed measurements of {points} points"]
    lines += _group("first of a worker", firsts)
    if others:
        lines += _group("all others", others)
    gaps_s = _between(records)
    if gaps_s:
        lines.append(
            f"between two measurements of a worker (storing, asking): median"
            f" {statistics.median(gaps_s) * 1e3:.1f} ms"
        )
    kernels_s, wall_s = _sum(records, "kernels"), sum(record.wall_s for record in records)
    lines.append(
        f"per point, over all its rounds: {(wall_s - kernels_s) / points * 1e3:.1f} ms outside"
        f" kernels, {kernels_s / points * 1e3:.1f} ms inside"
        f" ({(wall_s - kernels_s) / wall_s:.0%} of the measurements' time is outside)"
    )
    return "\n".join(lines)


def _group(name: str, records: Sequence[Record]) -> list[str]:
    outside_s = [record.wall_s - record.spent_s.get("kernels", 0.0) for record in records]
    lines = [
        f"{name}: {len(records)} measurements, median"
        f" {statistics.median(outside_s) * 1e3:.1f} ms outside kernels"
        f" (largest {max(outside_s) * 1e3:.1f} ms)"
    ]
    for part in (name for name in SPENT if name != "kernels"):
        spent_s = statistics.median(record.spent_s.get(part, 0.0) for record in records)
        lines.append(f"    {part:<10} {spent_s * 1e3:10.2f} ms   {SPENT[part]}")
    return lines


def _firsts(records: Sequence[Record]) -> list[Record]:
    by_worker: dict[tuple[int, int], Record] = {}
    for record in records:
        by_worker.setdefault((record.round, record.worker), record)
    return list(by_worker.values())


def _between(records: Sequence[Record]) -> list[float]:
    """Seconds from the end of a measurement to the start of the next one of the same worker."""
    gaps_s = []
    for one, two in itertools.pairwise(records):
        if (one.round, one.worker) == (two.round, two.worker):
            started = [datetime.fromisoformat(record.started).timestamp() for record in (one, two)]
            # Starts are recorded to the millisecond, so that a gap may come out just below zero.
            gaps_s.append(max(0.0, started[1] - started[0] - one.wall_s))
    return gaps_s


def _sum(records: Sequence[Record], part: str) -> float:
    return sum(record.spent_s.get(part, 0.0) for record in records)
