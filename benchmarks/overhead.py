"""What a point costs besides its launches: planning, checking, statistics, storing.

    python -m benchmarks.overhead [--points 300] [--rounds 2] [--least 200] [--isolate]
    python -m benchmarks.overhead RUN...     # of recorded runs, e.g. on a GPU: measures nothing

The test device's launches take no time, so everything measured here is nqbench itself: the
counting workload's plans for one small board, sampling, and a flushed record for every measurement.
Work is done in this process, or with ``--isolate`` in worker processes as in a real run. Exits with
1 if fewer than ``--least`` points per second go through (a point is its verification and all
rounds).
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from benchmarks.in_process import in_process
from nqbench.devices.registry import facts_for
from nqbench.errors import StoreError
from nqbench.facts import DeviceFacts
from nqbench.measure.runner import run_study
from nqbench.point import Point
from nqbench.record import Record
from nqbench.runs.reading import read_records
from nqbench.study import Measure, Study, load_study
from nqbench.vocabulary import SPENT
from nqbench.workloads import get

SYSTEM = "zhang2011.low_divergence"


def positive(text: str) -> int:
    """A whole number from 1: none of anything measures nothing, and would pass for a success."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


@dataclass(frozen=True)
class BlockSizes:
    """A study of one system over many block sizes, without a file."""

    count: int
    measure: Measure

    @property
    def study(self) -> Study:
        """What a run records of it."""
        made = load_study({"name": "overhead", "n": 8, "system": SYSTEM})
        return replace(made, measure=self.measure)

    def points(self, facts: DeviceFacts) -> list[Point]:
        """One point per block size."""
        workload = get("counting")
        points = []
        for size in range(1, self.count + 1):
            found = workload.resolve({"n": 8, "block_size": size}, SYSTEM, facts)
            points.append(
                Point("overhead", "sizes", "counting", SYSTEM, found.factors, found.derived)
            )
        return points


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print one line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="recorded run folders")
    parser.add_argument("--points", type=positive, default=300)
    parser.add_argument("--rounds", type=positive, default=2)
    parser.add_argument("--least", type=float, default=200.0)
    parser.add_argument("--isolate", action="store_true")
    given = parser.parse_args(arguments)
    if given.runs:
        try:
            for run in given.runs:
                sys.stdout.write(describe(run) + "\n")
        except StoreError as error:
            parser.error(str(error))
        return 0
    study = BlockSizes(given.points, Measure(rounds=given.rounds))
    warm = BlockSizes(1, study.measure)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        spec = "fake:noise=0.002"
        facts = facts_for(spec)
        with in_process():
            run_study(warm.study, warm.points(facts), spec, out / "warm")
        started = time.perf_counter()
        points = study.points(facts)
        with nullcontext() if given.isolate else in_process():
            outcome = run_study(study.study, points, spec, out / "r")
        wall_s = time.perf_counter() - started
    rate = outcome.counts.get("ok", 0) / wall_s
    measurements = rate * (given.rounds + 1)
    sys.stdout.write(
        f"{given.points} points, {given.rounds} rounds and verification: {wall_s:.2f} s,"
        f" {rate:.0f} points/s, {measurements:.0f} measurements/s\n"
    )
    return 0 if rate >= given.least else 1


if __name__ == "__main__":
    sys.exit(main())
