"""The modelled time against the measured times of the ablation's factorial: its record.

    python -m benchmarks.modelled_time --gpu h100 --gpu h200 --store /tmp/modelled
    python -m benchmarks.modelled_time --recorded results/reference/h200/zhang2011 --n 15

simulates the 24 kernels of ``configs/ablation.yaml`` (sweep ``factorial``) at N = 15 to 18 and
prints, for each N and GPU, Spearman's rank correlation with the medians recorded in
``results/reference/GPU/ablation``, the median error, and every main effect, modelled and measured.

Large boards are simulated in part: every k-th pool of 512 jobs on 1/k of the multiprocessors, with
1/k of the bandwidths and the L2 cache (``SLICES``), so that a multiprocessor has the load that it
would have. A part shows how long kernels take that all wait for the L2 cache. A kernel in shared
memory ends with its slowest multiprocessor, which a few do not show: of 4 the last job pool ends
up to 13% earlier than of 132. ``--store`` keeps every simulated kernel in a file; a second call
goes on from there, and ``--budget`` ends a call after so many seconds.

``--recorded`` sets the kernels of recorded runs, of these sizes, beside the model of their GPU,
with caches: for each run and for all Spearman's rank correlation, the median error, and how many
pairs of one run and size that were measured 20% apart or more are in the measured order.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.stats import spearmanr

from nqbench.devices.registry import SimDevice
from nqbench.plan import Buffer, KernelPlan
from nqbench.runs.reading import read_manifest, read_records
from nqbench.simulator.launching import SimPrepared
from nqbench.simulator.models import CACHE, TIME, Model, load_model
from nqbench.study import expand, load_study
from nqbench.workloads import get, register

ROOT: Final = Path(__file__).parents[1]
FACTORS: Final = ("memory", "layout", "loop", "assignment")
EFFECTS: Final = (
    ("memory", "global", "shared"),
    ("layout", "per_thread", "interleaved"),
    ("loop", "branchy", "irrc"),
    ("assignment", "one_per_thread", "block_pool"),
    ("assignment", "one_per_thread", "global_pool"),
)
SLICES: Final = {
    "global": {15: 1, 16: 4, 17: 33, 18: 132},
    "shared": {15: 1, 16: 1, 17: 1, 18: 33},
}
"""By memory and N: one of how many multiprocessors is simulated."""
POOL: Final = 512
"""Jobs that stay together in a slice: the ablation's pool size, a multiple of its block size."""

PointKey = tuple[str, ...]
Kernel = tuple[int, float, float]
"""Size, modelled and measured milliseconds."""


def part_of(model: Model, slice_: int) -> Model:
    """A model with 1/``slice_`` of the multiprocessors, the bandwidths and the L2 cache."""
    facts, chip = model.facts, model.chip
    return replace(
        model,
        facts=replace(facts, multiprocessors=facts.multiprocessors // slice_),
        chip=replace(
            chip,
            bandwidth_gb_per_s=(chip.bandwidth_gb_per_s or 0) / slice_,
            memory_gb_per_s=chip.memory_gb_per_s and chip.memory_gb_per_s / slice_,
            block_clocks=chip.block_clocks and chip.block_clocks * slice_,
            l2_gb_per_s=chip.l2_gb_per_s and chip.l2_gb_per_s / slice_,
            l2_bytes=(chip.l2_bytes or 0) // slice_,
        ),
    )


def sliced(plan: KernelPlan, assignment: str, slice_: int) -> KernelPlan:
    """The plan of a counting kernel with every ``slice_``-th pool of jobs."""
    if slice_ == 1:
        return plan
    named = {buffer.name: buffer for buffer in plan.buffers}
    data, count = named["jobs"].data, int(plan.about["jobs"])
    assert data is not None
    words, pools = len(data) // count, -(-count // POOL)
    taken = max(1, round(pools / slice_))
    chosen = [int((i + 0.5) * pools / taken) * POOL for i in range(taken)]
    data = np.concatenate([data[words * first : words * (first + POOL)] for first in chosen])
    jobs, (threads, *_) = len(data) // words, plan.block
    per_block = {"one_per_thread": threads, "block_pool": POOL}
    blocks = (
        -(-jobs // per_block[assignment])
        if assignment in per_block
        else max(1, plan.grid[0] // slice_)
    )

    def fitted(buffer: Buffer) -> Buffer:
        if buffer.name == "jobs":
            return replace(buffer, length=len(data), data=data)
        if buffer.name == "counter":
            return replace(buffer, data=np.array([blocks * threads], np.uint32))
        return replace(buffer, length=-(-buffer.length * blocks // plan.grid[0]))

    arguments = list(plan.arguments)
    arguments[1] = arguments[3] = np.uint32(jobs)  # job_count, light_from
    return replace(
        plan,
        buffers=tuple(map(fitted, plan.buffers)),
        arguments=tuple(arguments),
        grid=(blocks, 1, 1),
    )


@dataclass(frozen=True)
class Simulated:
    """Milliseconds of one kernel by GPU, modelled."""

    n: int
    key: PointKey
    ms: Mapping[str, float]
    clocks: Mapping[str, float]


def simulate(
    sizes: Sequence[int], gpus: Sequence[str], done: set[tuple[int, PointKey]]
) -> Iterator[Simulated]:
    """Each kernel of the factorial that is not ``done``. Counts are of the first GPU's model; the
    others must be of its compute capability."""
    first = load_model(gpus[0])
    real = replace(first.facts, kind="cuda")  # sizes and systems as on a GPU
    for point in expand(load_study("ablation"), real):
        levels = point.configuration
        n, key = int(str(levels["n"])), tuple(str(levels[f]) for f in FACTORS)
        if point.sweep != "factorial" or n not in sizes or (n, key) in done:
            continue
        whole = get(point.workload).plan(levels, point.system, real)
        assert isinstance(whole, KernelPlan)
        slice_ = SLICES[key[0]][n]
        models = {gpu: part_of(load_model(gpu), slice_) for gpu in gpus}
        device = SimDevice(gpus[0], modes=(TIME,))
        device.simulation = replace(device.simulation, model=models[gpus[0]])
        with device.prepare(sliced(whole, key[-1], slice_)) as prepared:
            assert isinstance(prepared, SimPrepared)
            clocks, ms = prepared.launch().detail["modelled_clocks"], {}
            for gpu, model in models.items():
                prepared.kernel.simulation = replace(device.simulation, model=model)
                ms[gpu] = float(prepared.kernel.counters()["modelled_ms"])
        yield Simulated(n, key, ms, clocks)


def recorded(
    gpu: str, runs: Sequence[Path], sizes: Sequence[int], budget_s: float
) -> Iterator[str]:
    """A line for each kernel of the runs, as many as the time allows, then one for each run and
    their sum. The study of an own kernel is read from its file in ``examples``."""
    end, found = time.monotonic() + budget_s, dict[str, list[Kernel]]()
    real = replace(load_model(gpu).facts, kind="cuda")
    for run in runs:
        study, rows = (
            read_manifest(run)["study"],
            dict[str, tuple[Mapping[str, Any], list[float]]](),
        )
        name = str(study["name"])
        if ":" in study["workload"]:
            register(load_study(ROOT / "examples" / name / f"{name}.yaml").external)
        for record in read_records(run).records:
            if not (record.status == "ok" and record.round > 0 and record.value_s):
                continue
            if not sizes or record.point["factors"]["n"] in sizes:
                rows.setdefault(record.key, (record.point, []))[1].append(record.value_s)
        for point, values in rows.values():
            workload = get(point["workload"])
            levels = {of: level for of, level in point["factors"].items() if of in workload.factors}
            whole = workload.plan(levels, point["system"], real)
            if not isinstance(whole, KernelPlan) or (found and time.monotonic() > end):
                continue
            with SimDevice(gpu, modes=(CACHE, TIME)).prepare(whole) as prepared:
                ms = float((prepared.launch().counters or {})["modelled_ms"])
            real_ms = 1e3 * statistics.median(values)
            found.setdefault(name, []).append((point["factors"]["n"], ms, real_ms))
            yield f"{point['label']:60s} {ms:9.3f} ms modelled, {real_ms:9.3f} measured"
    yield "| run | kernels | Spearman | median error | pairs 20% apart in order |"
    yield "|---|---|---|---|---|"
    yield from (beside(name, [kernels]) for name, kernels in found.items())
    if found:
        yield beside("all", list(found.values()))


def beside(name: str, runs: Sequence[Sequence[Kernel]]) -> str:
    """The row of a table for kernels of these runs."""
    kernels = [kernel for run in runs for kernel in run]
    rank = float(spearmanr([ms for _, ms, _ in kernels], [real for *_, real in kernels])[0])
    error = statistics.median(abs(ms / real - 1) for _, ms, real in kernels)
    apart = [
        (a[1] < b[1]) == (a[2] < b[2])
        for run in runs
        for a, b in combinations(run, 2)
        if a[0] == b[0] and not 1 / 1.2 < a[2] / b[2] < 1.2
    ]
    return f"| {name} | {len(kernels)} | {rank:.2f} | {error:.0%} | {sum(apart)} of {len(apart)} |"


def measured(gpu: str) -> dict[tuple[int, PointKey], float]:
    """Milliseconds of each kernel of the factorial: the median of the rounds."""
    found: dict[tuple[int, PointKey], list[float]] = {}
    with gzip.open(ROOT / f"results/reference/{gpu}/ablation/records.jsonl.gz") as file:
        for record in map(json.loads, file):
            point = record["point"]
            if point["sweep"] == "factorial" and record["status"] == "ok" and record["value_s"]:
                key = tuple(str(point["factors"][f]) for f in FACTORS)
                found.setdefault((point["factors"]["n"], key), []).append(record["value_s"])
    return {key: 1e3 * statistics.median(values) for key, values in found.items()}


def effect(times: Mapping[PointKey, float], factor: str, base: str, other: str) -> float:
    """Geometric mean of the times with level ``other`` over those with ``base``."""
    place = FACTORS.index(factor)
    logs = {
        level: [math.log(t) for key, t in times.items() if key[place] == level]
        for level in (base, other)
    }
    if not all(logs.values()):  # not simulated yet
        return math.nan
    return math.exp(statistics.mean(logs[other]) - statistics.mean(logs[base]))


def judge(found: Sequence[Simulated], gpu: str) -> list[str]:
    """Lines of the record: one per N."""
    real, lines = measured(gpu), []
    for n in sorted({s.n for s in found}):
        model = {s.key: s.ms[gpu] for s in found if s.n == n}
        times = {key: real[n, key] for key in model}
        keys = list(model)
        rank = float(spearmanr([model[k] for k in keys], [times[k] for k in keys])[0])
        error = statistics.median(abs(model[k] / times[k] - 1) for k in keys)
        cells = []
        for of in EFFECTS:
            pair = effect(model, *of), effect(times, *of)
            wrong = " WRONG" if (pair[0] - 1) * (pair[1] - 1) < 0 else ""
            cells.append(f"{pair[0]:.2f} ({pair[1]:.2f}){wrong}")
        row = (gpu, str(n), str(len(keys)), f"{rank:.3f}", f"{100 * error:.0f}%", *cells)
        lines.append(f"| {' | '.join(row)} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate what is missing, then print the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--gpu", action="append", choices=("h100", "h200"))
    parser.add_argument("--n", type=int, nargs="+", help="default: 15 to 18; all that are recorded")
    parser.add_argument("--store", type=Path, help="JSON lines of what was simulated")
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds of simulation")
    parser.add_argument("--all", action="store_true", help="print every kernel too")
    parser.add_argument("--recorded", nargs="+", type=Path, metavar="RUN")
    given = parser.parse_args(arguments)
    if given.recorded:
        for gpu in given.gpu or ["h200"]:
            for line in recorded(gpu, given.recorded, given.n or (), given.budget):
                say(line)
        return
    gpus, found, started = given.gpu or ["h100", "h200"], list[Simulated](), time.monotonic()
    if given.store and given.store.exists():
        rows: list[dict[str, Any]] = [json.loads(line) for line in given.store.open()]
        found = [Simulated(r["n"], tuple(r["key"]), r["ms"], r["clocks"]) for r in rows]
    missing = simulate(given.n or list(SLICES["global"]), gpus, {(s.n, s.key) for s in found})
    while time.monotonic() - started < given.budget and (one := next(missing, None)):
        found.append(one)
        if given.store:
            with given.store.open("a") as file:
                file.write(json.dumps(asdict(one)) + "\n")
    names = ["GPU", "N", "kernels", "Spearman", "median error"]
    names += [f"{base} to {other}" for _, base, other in EFFECTS]
    say(f"| {' | '.join(names)} |")
    say("|---" * len(names) + "|")
    for gpu in gpus:
        for line in judge(found, gpu):
            say(line)
    for gpu in gpus if given.all else ():
        real = measured(gpu)
        for s in sorted(found, key=lambda s: (s.n, s.key)):
            ratio = s.ms[gpu] / real[s.n, s.key]
            name = f"{gpu} {s.n} {' '.join(s.key)}"
            say(f"{name:56s} {s.ms[gpu]:9.3f} ms modelled, {ratio:.2f} of the measured time")


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
