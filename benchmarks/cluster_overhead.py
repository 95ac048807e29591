"""What a point costs more on a cluster: its way through Dask's scheduler.

    python -m benchmarks.cluster_overhead [--points 300] [--most 10] [--gpus 1000 --measurement 2]

The test device's launches take no time. The same points are measured in a worker process of this
computer, and on a cluster of one worker and a scheduler that are processes of this computer too; of
both, the time from the first record to the last is compared. Exits with 1 if a point takes
``--most`` milliseconds more on the cluster.

From what a point costs the starter and the scheduler (CPU seconds, and bytes over the scheduler's
connections, by ``ss``), a table says what ``--gpus`` would need whose measurements take
``--measurement`` seconds each.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.overhead import BlockSizes, positive
from nqbench.cluster.connect import ClusterTarget, connected
from nqbench.cluster.devices import ClusterSite
from nqbench.devices.registry import facts_for
from nqbench.measure.device_threads import StudyRequest, run_on_site
from nqbench.measure.run_state import Listener
from nqbench.measure.runner import run_study
from nqbench.runs.reading import RECORDS
from nqbench.study import Measure

DEVICE = "fake:deterministic=1"


class Clock(Listener):
    """Notes when records come."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def advanced(self, record: Any = None) -> None:  # noqa: ARG002 (times alone count)
        """Another one."""
        self.times.append(time.perf_counter())

    @property
    def each_s(self) -> float:
        """Seconds from record to record, on average."""
        return (self.times[-1] - self.times[0]) / (len(self.times) - 1)


@dataclass(frozen=True)
class Costs:
    """Of one measurement: seconds on one device, CPU seconds, bytes over the scheduler's
    connections and in the file of records."""

    each_s: float
    scheduler_s: float
    starter_s: float
    network_bytes: float
    record_bytes: float


def alone(study: BlockSizes, out: Path) -> float:
    """Seconds per point in a worker process of this computer."""
    clock = Clock()
    run_study(study.study, study.points(facts_for(DEVICE)), DEVICE, out, listener=clock)
    return clock.each_s


@contextmanager
def scheduler() -> Iterator[tuple[str, int]]:
    """A scheduler in a process of its own."""
    words = ["-m", "distributed.cli.dask_scheduler", "--no-dashboard", "--host", "127.0.0.1"]
    command = [sys.executable, *words, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if "Scheduler at:" in line:
                    yield line.split()[-1], process.pid
                    break
        finally:
            process.kill()
            process.stderr.close()


@contextmanager
def worker(address: str) -> Iterator[None]:
    """``nqbench worker``."""
    command = [sys.executable, "-m", "nqbench", "worker", address, "--gpus", "none"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


def on_cluster(study: BlockSizes, out: Path) -> Costs:
    """The costs of a measurement on a cluster of one worker."""
    clock = Clock()
    with (
        scheduler() as (address, process),
        worker(address),
        connected(ClusterTarget(scheduler=address), print) as cluster,
    ):
        request = StudyRequest(study.study, study.points, lambda _: out)
        site = ClusterSite(cluster, DEVICE)
        site.devices()  # the device is open
        before = _cpu_s(process), time.process_time(), _bytes(address)
        run_on_site(request, site, clock)
        after = _cpu_s(process), time.process_time(), _bytes(address)
    spent = [(b - a) / study.count for a, b in zip(before, after, strict=True)]
    size = (out / RECORDS).stat().st_size / study.count
    return Costs(clock.each_s, spent[0], spent[1], spent[2], size)


def _cpu_s(pid: int) -> float:
    """User and system time of a process (proc(5), fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _bytes(address: str) -> int:
    """Bytes that all connections of the scheduler have carried so far."""
    port = address.rpartition(":")[2]
    command = ["ss", "-tinH", "sport", "=", f":{port}"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return sum(int(n) for n in re.findall(r"bytes_(?:sent|received):(\d+)", told))


def table(costs: Costs, gpus: int, measurement_s: float) -> list[str]:
    """What so many GPUs would need, one line per part."""
    rate = gpus / measurement_s
    parts = {
        "scheduler, CPU": (costs.scheduler_s, 1.0),
        "starter, CPU": (costs.starter_s, 1.0),
        "scheduler's network, 10 Gbit/s": (costs.network_bytes, 1.25e9),
        "records on disk, 100 MB/s": (costs.record_bytes, 1e8),
    }
    lines = [
        f"{gpus} GPUs, {measurement_s:g} s a measurement: {rate:g} measurements per second",
        "| part | per measurement | load | full at |",
        "|---|---:|---:|---:|",
    ]
    for name, (cost, capacity) in sorted(parts.items(), key=lambda p: -p[1][0] / p[1][1]):
        each = f"{cost * 1e3:.2f} ms" if capacity == 1.0 else f"{cost / 1e3:.1f} kB"
        full = capacity / cost * measurement_s
        lines.append(f"| {name} | {each} | {rate * cost / capacity:.1%} | {full:,.0f} GPUs |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its lines."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--points", type=positive, default=300)
    parser.add_argument("--most", type=float, default=10.0, help="milliseconds")
    parser.add_argument("--gpus", type=positive, default=1000)
    parser.add_argument("--measurement", type=float, default=2.0, help="seconds")
    given = parser.parse_args(arguments)
    study = BlockSizes(given.points, Measure(rounds=1))
    with tempfile.TemporaryDirectory() as folder:
        here_s = alone(study, Path(folder) / "alone")
        costs = on_cluster(study, Path(folder) / "cluster")
    more_ms = 1e3 * (costs.each_s - here_s)
    say = sys.stdout.write
    say(f"without a cluster: {1 / here_s:.0f} points per second and device\n")
    say(f"on a cluster: {1 / costs.each_s:.0f}, {more_ms:.1f} ms more a point\n\n")
    say("\n".join(table(costs, given.gpus, given.measurement)) + "\n")
    return int(more_ms > given.most)


if __name__ == "__main__":
    sys.exit(main())
