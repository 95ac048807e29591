"""What a second GPU brings: counts and a sweep over all GPUs of this computer against one.

    python -m benchmarks.two_gpus [--count 20,21] [--budget 6s] [--rounds 2] [--out DIR]

About 270 s on two H200, 40 of them for the counts. Each result is printed, and appended to
DIR/two_gpus.jsonl, as soon as it is there. Exit code 1: a second GPU brings less than 1.9 times the
speed, or other values.

Counts are warm: the same workers have counted the first board before. Seconds are those from the
first launch to the last result, of a short count the shortest of three; for one GPU also those of
the kernel in a single launch without a cluster. The sweep measures every point for ``--budget``
seconds, on ``cuda:0`` without a cluster and with ``--gpus all``; its time is that from the first
record to the last. Values of both are the same if their intervals overlap. ``--fake 2`` tries the
script on two workers without a GPU: test devices for the sweep, the simulator for counts
(``--count 12``).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.arguments import positive
from nqbench.analysis.data.collect import load_dataset
from nqbench.analysis.data.quantities import TIME
from nqbench.cluster.connect import ClusterTarget, WorkerPart, connected, local
from nqbench.cluster.devices import ClusterSite
from nqbench.cluster.host import Offer
from nqbench.cluster.members import Cluster
from nqbench.count.chunked import count_in_chunks
from nqbench.count.cluster import ClusterCounter
from nqbench.count.solutions import count_solutions
from nqbench.devices.registry import facts_for
from nqbench.facts import FAKE_NAME
from nqbench.measure.device_threads import StudyRequest, run_on_site
from nqbench.measure.events import Listener
from nqbench.measure.runner import run_study
from nqbench.runs.reading import read_records
from nqbench.study import Study, expand, load_study
from nqbench.workloads.counting.known import SOLUTIONS

GOAL = 1.9
"""Times as fast with two GPUs."""
SAME = 0.9
"""Share of points whose 95% intervals overlap, at least: two GPUs of one model differ a little."""
REPEATS = 3
SHORT_N = 20
"""Up to here a count is repeated so often; longer ones are counted once."""
FAKE = "fake:seed={},base=1e-7,sleep=1,noise=0.003"


@dataclass
class Report(Listener):
    """Prints what is known, and keeps the results. ``out`` is a folder."""

    out: Path
    results: list[dict[str, Any]] = field(default_factory=list)

    def message(self, text: str) -> None:
        """A sentence, with the time of day."""
        sys.stdout.write(f"{datetime.now():%H:%M:%S} {text}\n")
        sys.stdout.flush()

    def result(self, text: str, **numbers: Any) -> None:
        """A result, in words and in numbers."""
        self.message(text)
        self.results.append(numbers)
        with (self.out / "two_gpus.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(numbers) + "\n")


def study(budget: str, rounds: int) -> Study:
    """Two sweeps of 12 kernels each: a group of points for each of two GPUs.

    No interval is narrow enough to end a measurement, and no kernel so exact: each takes its share
    of the budget.
    """
    axes = {
        "memory": ["global", "shared"],
        "loop": ["branchy", "irrc"],
        "block_size": [32, 64, 128],
    }
    return load_study(
        {
            "name": "two_gpus",
            "about": "Two sweeps for one GPU and for two",
            "n": {"cuda": [16]},
            "sweeps": [
                {"name": layout, "fixed": {"layout": layout}, "matrix": axes}
                for layout in ("per_thread", "interleaved")
            ],
            "measure": {"target": "0.001%", "samples": 200, "rounds": rounds, "budget": budget},
        }
    )


@contextmanager
def gpus(which: str, fake: int, report: Report) -> Iterator[Cluster]:
    """A cluster of this computer's GPUs, ``all`` or one, or of workers without any."""
    if not fake:
        with connected(ClusterTarget(gpus=which), report.message) as cluster:
            yield cluster
        return
    offers = [
        Offer(FAKE.format(i), "fake", FAKE_NAME, "", f"nqbench-fake-{i}")
        for i in range(fake if which == "all" else 1)
    ]
    with (
        local([WorkerPart((offer,), 1) for offer in offers]) as deployed,
        connected(ClusterTarget(scheduler=deployed.scheduler_address), report.message) as cluster,
    ):
        while len(cluster.look()) < len(offers):
            time.sleep(0.1)
        yield cluster


def counts(sizes: Sequence[int], report: Report, fake: int = 0) -> list[float]:
    """Count boards on one GPU and on all of them; returns how many times as fast each was."""
    took: dict[tuple[str, int], float] = {}
    for which in ("0", "all"):
        with gpus(which, fake, report) as cluster:
            for n in sizes:
                counter = ClusterCounter(cluster, "sim:mini" if fake else "cuda")
                if n == sizes[0]:
                    _count_s(counter, n, which, report, "warm-up: ")
                repeats = REPEATS if n <= SHORT_N else 1
                found = [_count_s(counter, n, which, report) for _ in range(repeats)]
                took[which, n] = min(found)
                if which == "all":
                    speed = took["0", n] / took["all", n]
                    about = f"{took['0', n]:.4f} s on one GPU, {took['all', n]:.4f} s on all"
                    text = f"COUNT {n}: {speed:.3f} times as fast ({about})"
                    report.result(text, count=n, speed=speed)
    for n in sizes:
        if not fake and n <= SHORT_N:
            kernel_s = count_solutions(n, "cuda:0").kernel_s or 0.0
            speed = kernel_s / took["all", n]
            text = f"count {n}: the kernel of a single launch on one GPU takes {kernel_s:.4f} s"
            report.result(f"{text}, {speed:.3f} times as long", count=n, kernel_s=kernel_s)
    return [took["0", n] / took["all", n] for n in sizes]


def _count_s(counter: ClusterCounter, n: int, which: str, report: Report, what: str = "") -> float:
    """Seconds from the first launch to the last result."""
    started = time.perf_counter()
    found = count_in_chunks(n, counter)
    wall_s = time.perf_counter() - started
    assert found.solutions == SOLUTIONS[n]
    report.result(
        f"{what}{n} queens on GPU {which}: {found.span_s:.4f} s ({wall_s:.3f} s with its jobs),"
        f" {found.parts} launches of {found.took_s:.4f} s in all",
        **{"count": n, "gpus": which, "warm": not what, "span_s": found.span_s, "wall_s": wall_s},
        **{"launches": found.parts, "kernels_s": found.took_s},
    )
    return found.span_s


def sweep(budget: str, rounds: int, report: Report, fake: int = 0) -> tuple[float, float]:
    """Run the study on one GPU and on all; returns how many times as fast it was, and the share of
    the points whose values agree."""
    asked = study(budget, rounds)
    one, all_ = report.out / "one", report.out / "all"
    device = FAKE.format(0) if fake else "cuda:0"
    run_study(asked, expand(asked, facts_for(device)), device, one, listener=report)
    report.result(f"sweep on one GPU: {span_s(one):.1f} s", sweep="one", span_s=span_s(one))
    with gpus("all", fake, report) as cluster:
        site = ClusterSite(cluster, "fake" if fake else "cuda")
        (outcome,) = run_on_site(
            StudyRequest(asked, partial(expand, asked), lambda _: all_), site, report
        )
    speed, (share, text) = span_s(one) / span_s(all_), agreement(one, all_)
    report.result(
        f"SWEEP: {speed:.3f} times as fast ({span_s(one):.1f} s on one GPU, {span_s(all_):.1f} s on"
        f" all, {dict(outcome.counts)}); {text}",
        **{"sweep": "all", "span_s": span_s(all_), "speed": speed, "agree": share},
    )
    return speed, share


def span_s(run: Path) -> float:
    """Seconds from the start of the first measurement to the end of the last."""
    records = [r for r in read_records(run).records if r.started]
    starts = [datetime.fromisoformat(r.started).timestamp() for r in records]
    return max(s + r.wall_s for s, r in zip(starts, records, strict=True)) - min(starts)


def agreement(one: Path, two: Path) -> tuple[float, str]:
    """The share of points with the same value within their intervals, and how far they differ."""
    values: list[dict[Any, Any]] = []
    for path in (one, two):
        points = load_dataset(path).points
        values.append({(p.n, *sorted(p.levels.items())): p.estimate(TIME) for p in points})
    pairs = [(found, values[1][key]) for key, found in values[0].items()]
    overlap = sum(a.low <= b.high and b.low <= a.high for a, b in pairs)
    ratios = [b.value / a.value for a, b in pairs]
    return overlap / len(pairs), (
        f"{overlap} of {len(pairs)} points agree within their 95% intervals, ratios of the times:"
        f" median {statistics.median(ratios):.4f}, {min(ratios):.4f} to {max(ratios):.4f}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both and print what came out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", default="20,21", help="board sizes; empty: none")
    parser.add_argument("--budget", default="6s", help="per point, over all rounds; empty: none")
    parser.add_argument("--rounds", type=positive, default=2)
    parser.add_argument("--out", type=Path, help="keep the results and run folders here")
    parser.add_argument("--fake", type=int, default=0, help="so many workers without a GPU")
    given = parser.parse_args(arguments)
    if given.rounds < 2:
        parser.error("--rounds: one round gives no interval")
    with tempfile.TemporaryDirectory() as folder:
        out = given.out or Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        report, speeds, same = Report(out), [], 1.0
        if given.count:
            speeds += counts([int(n) for n in given.count.split(",")], report, given.fake)
        if given.budget:
            speed, same = sweep(given.budget, given.rounds, report, given.fake)
            speeds.append(speed)
    return 0 if min(speeds, default=GOAL) >= GOAL and same >= SAME else 1


if __name__ == "__main__":
    sys.exit(main())
