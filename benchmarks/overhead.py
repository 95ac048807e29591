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
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.arguments import positive
from benchmarks.run_overhead import describe
from nqbench.devices.registry import facts_for
from nqbench.errors import StoreError
from nqbench.facts import DeviceFacts
from nqbench.measure.runner import run_study
from nqbench.point import Point
from nqbench.study import Measure, Study
from nqbench.workloads import get

SYSTEM = "zhang2011.low_divergence"


@dataclass(frozen=True)
class BlockSizes:
    """A study of one system over many block sizes, without a file."""

    count: int
    measure: Measure

    @property
    def study(self) -> Study:
        """What a run records of it."""
        return Study.in_memory("overhead", self.measure)

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
        facts, isolate = facts_for(spec), given.isolate
        run_study(warm.study, warm.points(facts), spec, out / "warm", isolate=False)
        started = time.perf_counter()
        points = study.points(facts)
        outcome = run_study(study.study, points, spec, out / "r", isolate=isolate)
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
