"""The simulator's counters against Nsight Compute's, launch by launch.

    nqbench run benchmarks/validate_simulator.yaml --device cuda:0 --out RUN
    python -m benchmarks.validate_simulator RUN... [--device sim:h200:cache:ptxas] [--all]

A run with profiles (``counters: ncu``) is simulated again, point by point, and compared: for each
counter the number of kernels, the median of simulated / measured, and how many are within 2% and
10% (of hit rates: the difference in percentage points, within 0.5 and 2). Atomics are left out of
the simulated requests, because Nsight Compute counts them elsewhere. The recorded runs under
results/reference/h200 have such profiles, so that this needs no GPU.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from nqbench.devices.registry import open_device
from nqbench.measure.ncu import PROFILE_ROUND
from nqbench.record import Record
from nqbench.runs.reading import read_records
from nqbench.vocabulary import of_kernel, plain_name
from nqbench.workloads import get

COUNTERS = (
    "warp_instructions", "thread_instructions", "divergent_branches", "shared_requests",
    "shared_passes", "bank_conflicts", "local_requests", "local_sectors", "global_requests",
    "global_sectors", "l1_hit_percent", "l2_hit_percent", "dram_read_bytes",
)  # fmt: skip
ATOMICS = {"shared_requests": "shared_atomics", "global_requests": "global_atomics"}
LEAST = 100
"""Smaller counts are left out: one launch more or less would be many percent."""

CounterPair = tuple[str, str, float, float]  # kernel, counter, measured, simulated


def profiles(run: Path, most: float) -> Iterator[Record]:
    """Profiled launches of at most so many thread instructions."""
    for record in read_records(run).records:
        counters = record.counters
        profiled = record.round == PROFILE_ROUND and "duration_ns" in counters
        if profiled and counters.get("thread_instructions", 0) <= most:
            yield record


def simulated(record: Record, spec: str) -> Mapping[str, int | float]:
    """Counters of the same point in the simulator."""
    device, workload = open_device(spec), get(record.point["workload"])
    # A former factor has the one level that is left in every recorded run.
    factors = {
        name: level
        for name, level in record.point["factors"].items()
        if level != "-" and name in workload.factors
    }
    system = record.point["system"]
    plan = workload.plan(
        workload.resolve(factors, system, device.facts).factors, system, device.facts
    )
    with device.prepare(plan) as prepared:
        return prepared.launch().counters or {}


def compared(record: Record, spec: str) -> Iterator[CounterPair]:
    """Every counter that both have, for each kernel of the launch."""
    found = simulated(record, spec)
    kernels = {plain_name(name)[1] for name in record.counters} - {""} or {""}
    for kernel in sorted(kernels):
        for counter in COUNTERS:
            name, atomics = (
                of_kernel(word, kernel) if kernel else word
                for word in (counter, ATOMICS.get(counter, ""))
            )
            measured = record.counters.get(name)
            if measured is not None and name in found:
                label = f"{record.point['label']} {kernel}".strip()
                yield label, counter, measured, float(found[name] - found.get(atomics, 0))


def summary(rows: Sequence[CounterPair]) -> Iterator[str]:
    """One line per counter."""
    yield "| counter | kernels | median | worst | within 2% | within 10% |"
    yield "|---|---|---|---|---|---|"
    for counter in COUNTERS:
        percent = counter.endswith("_percent")
        pairs = [(m, s) for _, name, m, s in rows if name == counter and (percent or m >= LEAST)]
        if not pairs:
            continue
        ratios = [s - m if percent else s / m for m, s in pairs]
        ideal, limits = (0.0, (0.5, 2.0)) if percent else (1.0, (0.02, 0.1))
        worst = max(ratios, key=lambda ratio: abs(ratio - ideal))
        near = [sum(abs(ratio - ideal) <= limit for ratio in ratios) for limit in limits]
        unit = " points" if percent else ""
        yield (
            f"| `{counter}` | {len(pairs)} | {statistics.median(ratios):.3f}{unit}"
            f" | {worst:.3f}{unit} | {near[0]} | {near[1]} |"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folders with profiles")
    parser.add_argument("--device", default="sim:h200:cache:ptxas", help="model and modes")
    parser.add_argument("--most", type=float, default=1e9, help="thread instructions of a launch")
    parser.add_argument("--all", action="store_true", help="print every number")
    options = parser.parse_args(arguments)
    rows: list[CounterPair] = []
    for record in (r for run in options.runs for r in profiles(run, options.most)):
        new = list(compared(record, options.device))
        rows += new
        for label, counter, measured, found in new if options.all else ():
            sys.stdout.write(f"{label}: {counter} {measured:,.6g} simulated {found:,.6g}\n")
    sys.stdout.write("\n".join(summary(rows)) + "\n")


if __name__ == "__main__":
    main()
