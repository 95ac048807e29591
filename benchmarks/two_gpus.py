"""What a second GPU brings: a sweep and a count over all GPUs of this computer against one.

    python -m benchmarks.two_gpus [--count 20,21] [--budget 4s] [--rounds 3] [--out DIR]

The sweep measures every point for ``--budget`` seconds, once on ``cuda:0`` without a cluster and
once with ``--gpus all``; its time is that from the first record to the last. Points of both are the
same if their intervals overlap. The counts are warm: each is repeated in the same workers, and the
shortest of three is taken, from the first launch to the last result; with one GPU also as a single
launch without a cluster. ``--fake 2`` tries the script on test devices instead.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.arguments import positive
from nqbench.analysis.data.collect import load_dataset
from nqbench.analysis.data.quantities import TIME
from nqbench.cluster.connect import Way, WorkerPart, connected, local
from nqbench.cluster.counting import ClusterCounter
from nqbench.cluster.host import Offer
from nqbench.cluster.places import Cluster, ClusterSite
from nqbench.facts import FAKE_NAME
from nqbench.measure.events import Listener
from nqbench.measure.lanes import Request, run_on_site
from nqbench.measure.runner import run_study
from nqbench.runs.reading import read_records
from nqbench.solve.chunks import count_in_chunks
from nqbench.solve.count import count_solutions
from nqbench.study import Study, expand, load_study
from nqbench.workloads.counting.known import SOLUTIONS

REPEATS = 3
FAKE = "fake:seed={},base=1e-7,sleep=1,noise=0.003"


class Teller(Listener):
    """Prints what a run says."""

    def message(self, text: str) -> None:
        """A sentence."""
        say(text)


def say(text: str) -> None:
    """One line, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def study(budget: str, rounds: int) -> Study:
    """Two sizes with 24 kernels each: a group of points for each of two GPUs.

    No interval is narrow enough to end a measurement, so that each takes its share of the budget.
    """
    return load_study(
        {
            "name": "two_gpus",
            "about": "A sweep for one GPU and for two",
            "n": {"cuda": [15, 16]},
            "matrix": {
                "memory": ["global", "shared"],
                "layout": ["per_thread", "interleaved"],
                "loop": ["branchy", "irrc"],
                "block_size": [32, 64, 128],
            },
            "measure": {"target": "0.001%", "rounds": rounds, "budget": budget},
        }
    )


@contextmanager
def gpus(which: str, fake: int) -> Iterator[Cluster]:
    """A cluster of this computer's GPUs, or of test devices."""
    if not fake:
        with connected(Way(gpus=which), say) as cluster:
            yield cluster
        return
    offers = [
        Offer(FAKE.format(i), "fake", FAKE_NAME, "", f"nqbench-fake-{i}") for i in range(fake)
    ]
    with (
        local([WorkerPart((offer,), 1) for offer in offers]) as deployed,
        connected(Way(scheduler=deployed.scheduler_address), say) as cluster,
    ):
        while len(cluster.look()) < fake:
            time.sleep(0.1)
        yield cluster


def sweep(out: Path, budget: str, rounds: int, fake: int = 0) -> tuple[float, float]:
    """Run the study on one GPU and on all; returns how many times as fast it was, and the share of
    the points whose values agree."""
    asked = study(budget, rounds)
    one, all_ = out / "one", out / "all"
    device = FAKE.format(0) if fake else "cuda:0"
    run_study(asked, device, one, listener=Teller(), expand=expand)
    with gpus("all", fake) as cluster:
        site = ClusterSite(cluster, "fake" if fake else "cuda")
        (outcome,) = run_on_site(Request(asked, lambda _: all_, expand), site, Teller())
    took = [span_s(path) for path in (one, all_)]
    say(f"sweep: {dict(outcome.counts)}; {took[0]:.1f} s on one, {took[1]:.1f} s on all,")
    share, text = agreement(one, all_)
    say(f"  {took[0] / took[1]:.2f} times as fast; {text}")
    return took[0] / took[1], share


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


def counts(sizes: Sequence[int]) -> list[float]:
    """Count boards on one GPU and on all of them; returns how many times as fast each was."""
    took: dict[tuple[str, int], float] = {}
    for which in ("0", "all"):
        with connected(Way(gpus=which), say) as cluster:
            for n in sizes:
                counter = ClusterCounter(cluster, "cuda")
                took[which, n] = min(_count_s(counter, n) for _ in range(REPEATS))
    for n in sizes:
        launch_s = count_solutions(n, "cuda:0").kernel_s
        one_s, all_s = took["0", n], took["all", n]
        say(
            f"count {n}: one GPU {one_s:.3f} s in chunks, {launch_s or 0:.3f} s in kernels without"
            f" a cluster; all GPUs {all_s:.3f} s: {one_s / all_s:.2f} times as fast"
            f" ({(launch_s or 0) / all_s:.2f} times the kernels' time)"
        )
    return [took["0", n] / took["all", n] for n in sizes]


def _count_s(counter: ClusterCounter, n: int) -> float:
    started = time.perf_counter()
    found = count_in_chunks(n, counter)
    took_s = time.perf_counter() - started
    assert found.solutions == SOLUTIONS[n]
    say(f"  {n} queens: {took_s:.3f} s, {found.parts} launches of {found.took_s:.3f} s in all")
    return took_s


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both and print what came out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", default="20,21", help="board sizes; empty: none")
    parser.add_argument("--budget", default="4s", help="per point, over all rounds")
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--out", type=Path, help="keep the run folders here")
    parser.add_argument("--fake", type=int, default=0, help="so many test devices instead of GPUs")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        sweep(given.out or Path(folder), given.budget, given.rounds, given.fake)
    if given.count and not given.fake:
        counts([int(n) for n in given.count.split(",")])
    return 0


if __name__ == "__main__":
    sys.exit(main())
