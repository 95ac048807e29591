"""Where the time of a recorded run went: kernels, nqbench's own work, the time between blocks."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from nqbench.measure.sampling.measurement import SPENT
from nqbench.record import Record
from nqbench.runs.reading import read_records


def describe(run: Path) -> str:
    """Lines for a run folder. Raises ``StoreError`` if it is none.

    Only timed blocks are looked at; the first of each worker is told apart, because it makes the
    device's context. ``outside`` is wall time less the time inside kernels, warm-up included.
    """
    blocks = [r for r in read_records(run).records if r.round > 0 and r.samples_s and r.spent_s]
    if not blocks:
        return f"{run}: no timed block tells where its time went"
    firsts = _firsts(blocks)
    others = [block for block in blocks if id(block) not in {id(first) for first in firsts}]
    lines = [f"{run}: {len(blocks)} timed blocks of {len({b.key for b in blocks})} points"]
    lines += _group("first of a worker", firsts)
    if others:
        lines += _group("all others", others)
    gaps_s = _between(blocks)
    if gaps_s:
        lines.append(
            f"between two blocks of a worker (storing, asking): median"
            f" {statistics.median(gaps_s) * 1e3:.1f} ms"
        )
    kernels_s, wall_s = _sum(blocks, "kernels"), sum(block.wall_s for block in blocks)
    points = len({block.key for block in blocks})
    lines.append(
        f"per point, over all its rounds: {(wall_s - kernels_s) / points * 1e3:.1f} ms outside"
        f" kernels, {kernels_s / points * 1e3:.1f} ms inside"
        f" ({(wall_s - kernels_s) / wall_s:.0%} of the blocks' time is outside)"
    )
    return "\n".join(lines)


def _group(name: str, blocks: Sequence[Record]) -> list[str]:
    outside_s = [block.wall_s - block.spent_s.get("kernels", 0.0) for block in blocks]
    lines = [
        f"{name}: {len(blocks)} blocks, median {statistics.median(outside_s) * 1e3:.1f} ms outside"
        f" kernels (largest {max(outside_s) * 1e3:.1f} ms)"
    ]
    for part in (name for name in SPENT if name != "kernels"):
        spent_s = statistics.median(block.spent_s.get(part, 0.0) for block in blocks)
        lines.append(f"    {part:<10} {spent_s * 1e3:10.2f} ms   {SPENT[part]}")
    return lines


def _firsts(blocks: Sequence[Record]) -> list[Record]:
    by_worker: dict[tuple[int, int], Record] = {}
    for block in blocks:
        by_worker.setdefault((block.round, block.worker), block)
    return list(by_worker.values())


def _between(blocks: Sequence[Record]) -> list[float]:
    """Seconds from the end of a block to the start of the next one of the same worker."""
    gaps_s = []
    for one, two in itertools.pairwise(blocks):
        if (one.round, one.worker) == (two.round, two.worker):
            started = [datetime.fromisoformat(block.started).timestamp() for block in (one, two)]
            # Starts are recorded to the millisecond, so that a gap may come out just below zero.
            gaps_s.append(max(0.0, started[1] - started[0] - one.wall_s))
    return gaps_s


def _sum(blocks: Sequence[Record], part: str) -> float:
    return sum(block.spent_s.get(part, 0.0) for block in blocks)
