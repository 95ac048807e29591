"""Runs whose truth is known, as manifests and records."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nqbench.analysis.data.dataset import Dataset, collect
from nqbench.analysis.data.estimate import Estimate
from nqbench.papers.load import load_paper, paper_names
from nqbench.record import Record
from nqbench.runs.reading import MANIFEST, MANIFEST_VERSION, RECORDS
from nqbench.vocabulary import COUNTERS, plain_name
from nqbench.workloads import get

FACTORIAL: dict[str, list[Any]] = {
    "memory": ["global", "shared"],
    "layout": ["per_thread", "interleaved"],
    "loop": ["branchy", "irrc"],
    "assignment": ["one_per_thread", "block_pool", "global_pool"],
}
TRUTH = {"shared": 0.5, "interleaved": 0.8, "irrc": 0.9, "block_pool": 0.7, "global_pool": 0.75}
REVERSAL = 2.0
"""Extra factor of ``interleaved`` together with ``shared``: it helps global and hurts shared."""


def device(name: str, capability: Sequence[int] = ()) -> dict[str, Any]:
    """A GPU as a manifest has it."""
    facts = {"name": name} | ({"compute_capability": [*capability]} if capability else {})
    own = {"identity": {"name": name}, "facts": facts}
    return {"spec": "cuda:0", "kind": "cuda", "timed": True, **own}


H100 = device("NVIDIA H100 PCIe")
_KNOWN = {"identity": {"model": "mini"}, "facts": {"name": "mini (sm_90 rules)"}}
MINI = {"spec": "sim:mini", "kind": "sim", "timed": False, **_KNOWN}
Levels = Mapping[str, Any]
FIELDS = ("key", "device", "round", "status", "reason", "answer", "expected", "value_s")


@dataclass
class Builder:
    """Collects points, then makes a run of them.

    ``rows``  one per record, flat: fields, levels and everything recorded by name, to be changed
    """

    device: Mapping[str, Any] = field(default_factory=lambda: H100)
    _: KW_ONLY
    rounds: int = 5
    noise: float = 0.003
    seed: int = 1
    report: Sequence[Mapping[str, Any]] = ()
    sweeps: Sequence[Mapping[str, Any]] = ()
    command: Sequence[str] = ("nqbench", "run", "configs/ablation.yaml")
    study: str = "ablation"
    workload: str = "counting"
    rows: list[dict[str, Any]] = field(default_factory=list)
    points: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    @property
    def simulated(self) -> bool:
        return bool(self.device["kind"] == "sim")

    def skip(self, sweep: str, levels: Levels, reason: str, system: str = "") -> None:
        """A planned point that cannot run."""
        self._plan(sweep, system, levels, reason)

    def fail(
        self, sweep: str, levels: Levels, status: str, reason: str = "", system: str = ""
    ) -> None:
        """A point that failed when it was verified."""
        row = self._row(sweep, system, levels)
        self.rows.append(row | {"status": status, "reason": reason or f"because of {status}"})

    def time(
        self, sweep: str, levels: Levels, value_s: float, system: str = "", **recorded: Any
    ) -> None:
        """A measured point: its verification, then a measurement per round with ``recorded``."""
        row = self._row(sweep, system, levels)
        self.rows.append(row)
        for number in range(1, self.rounds + 1):
            value = value_s * float(np.exp(self.noise * self.random.standard_normal()))
            phases = {"split_s": 1e-4, "transfer_s": 2e-4, "reduce_s": 1e-4}
            timed = {"value_s": value, "kernel_s": value, "total_s": value + 4e-4, **phases}
            device = "cpu" if system.startswith("cpu.") else row["device"]
            self.rows.append(row | {"round": number, "device": device} | timed | recorded)

    def count(
        self, sweep: str, levels: Levels, counters: Mapping[str, float], system: str = ""
    ) -> None:
        """A simulated point, or an instrumented kernel: one measurement."""
        self.rows.append(self._row(sweep, system, levels) | dict(counters))

    def add(
        self, sweep: str, levels: Levels, value_s: float, counters: Levels, system: str = ""
    ) -> None:
        """A point that takes ``value_s``, or counts ``counters`` where the device is simulated."""
        if self.simulated:
            self.count(sweep, levels, counters, system)
        else:
            self.time(sweep, levels, value_s, system)

    def profile(self, counters: Mapping[str, float]) -> None:
        """What a profiler counted of the last point."""
        self.rows.append(self.rows[-1] | {"round": -1} | dict(counters))

    def _row(self, sweep: str, system: str, levels: Levels) -> dict[str, Any]:
        row: dict[str, Any] = {"sweep": sweep, "system": system, "factors": dict(levels)}
        row |= {"device": self.device["spec"], "round": 0, "status": "ok", "reason": ""}
        row |= {"answer": "14200", "expected": "14200", "registers": 32, "occupancy": 0.5}
        return {**levels, **row, "key": self._plan(sweep, system, levels)}

    def _plan(self, sweep: str, system: str, levels: Levels, skip: str = "") -> str:
        key = f"k{len(self.points)}"
        point = {"sweep": sweep, "system": system or None, "factors": dict(levels)}
        self.points.append(point | {"skip": skip, "key": key})
        return key

    @property
    def manifest(self) -> dict[str, Any]:
        study = {
            "name": self.study,
            "about": "Every combination of the four optimisations",
            "workload": self.workload,
            "sweeps": [*self.sweeps],
            "report": [*self.report],
        }
        facts = {"version": MANIFEST_VERSION, "device": dict(self.device), "points": self.points}
        return {**facts, "study": study, "command": [*self.command]}

    @property
    def records(self) -> list[Record]:
        return [self._record(row) for row in self.rows]

    def _record(self, row: Mapping[str, Any]) -> Record:
        place = {"study": self.study, "sweep": row["sweep"], "workload": self.workload}
        place |= {"system": row["system"] or None, "label": "", "factors": row["factors"]}
        known = {*FIELDS, "sweep", "system", "factors", *row["factors"]}
        rest = {name: value for name, value in row.items() if name not in known}
        phases = {name[:-2]: rest.pop(name) for name in [*rest] if name.endswith("_s")}
        counters = {n: rest.pop(n) for n in [*rest] if plain_name(n)[0] in COUNTERS}
        own = {name: row[name] for name in FIELDS if name in row}
        return Record(**own, point=place, phases=phases, counters=counters, about=rest)

    def data(self, study: str = "", path: Path = Path("run")) -> Dataset:
        """The run as analyses see it, on request as one of a paper's study."""
        if study:
            self.study, self.command = study, ["nqbench", "reproduce", study]
            if study in paper_names():
                self.workload = load_paper(study).workload
        return collect(self.manifest, self.records, path)

    def write(self, folder: Path) -> Path:
        """The run as a folder."""
        folder.mkdir(parents=True)
        (folder / MANIFEST).write_text(json.dumps(self.manifest))
        lines = [json.dumps(record.as_json()) + "\n" for record in self.records]
        (folder / RECORDS).write_text("".join(lines))
        return folder


def interval(found: object) -> tuple[float, float, float]:
    """Lower bound, value and upper bound of an estimate that has an interval."""
    assert isinstance(found, Estimate)
    assert found.low is not None
    assert found.high is not None
    return found.low, found.value, found.high


def combinations(factors: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """The cartesian product of the levels."""
    return [
        dict(zip(factors, chosen, strict=True)) for chosen in itertools.product(*factors.values())
    ]


def truth_s(levels: Levels, *, reversal: bool = False) -> float:
    """Time of a combination: a product of the levels' factors, growing in n."""
    value = 0.01 * 7.5 ** (int(levels["n"]) - 15)
    for level in levels.values():
        value *= TRUTH.get(level, 1.0)
    if reversal and (levels["memory"], levels["layout"]) == ("shared", "interleaved"):
        value *= REVERSAL
    return float(value)


def counters_of(levels: Levels) -> dict[str, float]:
    """Counters of a simulated combination: whole numbers, no conflicts where interleaved."""
    work = round(1e6 * 4.5 ** (int(levels["n"]) - 10) * TRUTH.get(levels.get("loop", ""), 1.0))
    shared = levels.get("memory") == "shared"
    conflict = shared and levels.get("layout") == "per_thread"
    pool = levels.get("assignment") in {"block_pool", "global_pool"}
    counted = dict.fromkeys(COUNTERS, 0.0)
    return counted | {
        "warp_instructions": work * (1 if pool else 2),
        "thread_instructions": work * 16,
        "issue_slots": work * (1 if pool else 2) + (3 * work if conflict else 0),
        "lane_efficiency": 0.5 if pool else 0.25,
        "branches": work // 4,
        "divergent_branches": work // 8,
        "bank_conflicts": 3 * work if conflict else 0,
        "global_sectors": 1000
        if shared
        else work * (1 if levels.get("layout") == "interleaved" else 8),
    }


def factorial(
    device: Mapping[str, Any] = H100,
    sizes: Sequence[int] = (15, 16),
    *,
    value: Callable[[Levels], float] = truth_s,
    **options: Any,
) -> Builder:
    """The factorial of the ablation study, measured or simulated."""
    builder = Builder(device, sweeps=[{"name": "factorial", "matrix": FACTORIAL}], **options)
    for n in sizes:
        for levels in combinations(FACTORIAL):
            placed = {**levels, "n": n, "block_size": 128}
            builder.add("factorial", placed, value(placed), counters_of(placed))
    return builder


SYSTEMS = tuple(name for name in get("counting").systems if "20" in name)
"""Those of papers: their names have a year."""
BLOCK_SIZES = [1, 2, 3, 4, 8, 16, 32, 64, 128, 180, 256, 448, 512]
POOLS = [64, 128, 256, 512, 1024, 2560, 5120, 10240, 20480]
REPORT = [
    {"table": "effects", "of": "factorial"},
    {"table": "interactions", "of": "factorial"},
    {"figure": "effects", "of": "factorial"},
    {"figure": "ranking", "of": "factorial"},
    {"figure": "heatmap", "of": "launch", "x": "block_size", "y": "depth"},
    {"figure": "line", "of": "pool", "x": "pool_size", "series": "system"},
    {"figure": "scaling", "of": "systems", "series": "system"},
    {"table": "results"},
    {"table": "resources"},
    {"table": "skipped"},
]


def ablation(device: Mapping[str, Any] = H100, **options: Any) -> Builder:
    """A run like that of configs/ablation.yaml: four sweeps, about 250 points."""
    simulated = device["kind"] == "sim"
    sizes = (10, 12, 13) if simulated else (15, 16, 17, 18)
    options.setdefault("report", REPORT)
    builder = factorial(
        device, sizes, value=lambda levels: truth_s(levels, reversal=True), **options
    )
    builder.sweeps = [
        *builder.sweeps,
        {"name": "launch", "system": "feinbube2010.opt4_compact"},
        {"name": "pool", "matrix": {"system": [], "pool_size": {}}},
        {"name": "systems", "systems": list(SYSTEMS)},
    ]
    _launch(builder, sizes[1])
    _pool(builder, sizes[-1])
    for i, system in enumerate(SYSTEMS):
        for n in sizes:
            levels = {"n": n, "memory": "shared" if i else "local", "block_size": 128}
            counters = counters_of({**levels, "layout": "per_thread" if i < 9 else "-"})
            counters["warp_instructions"] = round(counters["warp_instructions"] * (1 - 0.03 * i))
            builder.add("systems", levels, 0.01 * 7.5 ** (n - 15) / (1 + i / 8), counters, system)
    for n in (12, 13) if simulated else sizes:
        builder.time("systems", {"n": n}, 0.2 * 7.5 ** (n - 12), "cpu.somers")
        builder.time("systems", {"n": n}, 0.03 * 7.5 ** (n - 12), "cpu.multicore")
    return builder


def _launch(builder: Builder, n: int) -> None:
    for depth, block in itertools.product(range(2, 7), BLOCK_SIZES):
        levels = {"n": n, "depth": depth, "block_size": block}
        if block * (n - depth) * 16 > 49152:
            reason = f"needs {block * (n - depth) * 16} bytes of shared memory, 49152 fit"
            builder.skip("launch", levels, reason, "feinbube2010.opt4_compact")
            continue
        slow = max(1.0, 32 / block) * (1 + 0.3 * abs(depth - 5)) * (1 + block / 900)
        counters = counters_of({"n": n, "memory": "shared", "layout": "per_thread"})
        counters["warp_instructions"] = round(counters["warp_instructions"] * slow)
        counters["bank_conflicts"] *= block != 1
        builder.add("launch", levels, 0.02 * slow, counters, "feinbube2010.opt4_compact")


def _pool(builder: Builder, n: int) -> None:
    pools: list[Any] = ["-", *POOLS]
    for pool in pools:
        system = "low_divergence" if pool == "-" else "pool_distributed"
        levels = {"n": n, "pool_size": pool, "block_size": 32}
        shape = 1.0 if isinstance(pool, str) else 0.5 + 30 / pool + pool / 30000
        counters = counters_of({"n": n, "memory": "shared"})
        counters["warp_instructions"] = round(counters["warp_instructions"] * shape)
        counters["lane_efficiency"] = 0.45 / shape / 1.2
        builder.add("pool", levels, 0.3 * shape, counters, f"zhang2011.{system}")
