"""Frames of the shape that ``store.load`` gives, with a truth that is known."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from nqbench.vocabulary import COUNTERS

FACTORIAL: dict[str, list[Any]] = {
    "memory": ["global", "shared"],
    "layout": ["per_thread", "interleaved"],
    "loop": ["branchy", "irrc"],
    "assignment": ["one_per_thread", "block_pool", "global_pool"],
}
TRUTH = {"shared": 0.5, "interleaved": 0.8, "irrc": 0.9, "block_pool": 0.7, "global_pool": 0.75}
REVERSAL = 2.0
"""Extra factor of ``interleaved`` together with ``shared``: it helps global and hurts shared."""

H100 = {
    "spec": "cuda:0",
    "kind": "cuda",
    "timed": True,
    "identity": {"name": "NVIDIA H100 PCIe"},
    "facts": {"name": "NVIDIA H100 PCIe"},
}
MINI = {
    "spec": "sim:mini",
    "kind": "sim",
    "timed": False,
    "identity": {"model": "mini"},
    "facts": {"name": "mini (sm_90 rules)"},
}
Levels = Mapping[str, Any]


class Builder:
    """Collects points, then makes a frame with one row per block."""

    def __init__(
        self,
        device: Mapping[str, Any] = H100,
        *,
        rounds: int = 5,
        noise: float = 0.003,
        seed: int = 1,
        report: Sequence[Mapping[str, Any]] = (),
        sweeps: Sequence[Mapping[str, Any]] = (),
        command: Sequence[str] = ("nqbench", "run", "configs/ablation.yaml"),
    ) -> None:
        self.device = device
        self.rounds = rounds
        self.noise = noise
        self.random = np.random.default_rng(seed)
        self.report = list(report)
        self.sweeps = list(sweeps)
        self.command = list(command)
        self.rows: list[dict[str, Any]] = []
        self.points: list[dict[str, Any]] = []

    @property
    def simulated(self) -> bool:
        return bool(self.device["kind"] == "sim")

    def skip(self, sweep: str, levels: Levels, reason: str, system: str = "") -> None:
        """A planned point that cannot run."""
        self._plan(sweep, system, levels, reason)

    def _plan(self, sweep: str, system: str, levels: Levels, skip: str = "") -> str:
        key = f"k{len(self.points)}"
        self.points.append(
            {
                "sweep": sweep,
                "system": system or None,
                "factors": dict(levels),
                "skip": skip,
                "key": key,
            }
        )
        return key

    def fail(
        self, sweep: str, levels: Levels, status: str, reason: str = "", system: str = ""
    ) -> None:
        """A point that failed when it was verified."""
        key = self._plan(sweep, system, levels)
        self.rows.append(
            self._row(sweep, system, levels, key, 0)
            | {"status": status, "reason": reason or f"because of {status}"}
        )

    def time(self, sweep: str, levels: Levels, value_s: float, system: str = "") -> None:
        """A measured point: a verification row, then one block per round."""
        key = self._plan(sweep, system, levels)
        host = system.startswith("cpu.")
        self.rows.append(self._row(sweep, system, levels, key, 0))
        for number in range(1, self.rounds + 1):
            value = value_s * float(np.exp(self.noise * self.random.standard_normal()))
            row = self._row(sweep, system, levels, key, number)
            row |= {"value_s": value, "samples": 20, "kernel_s": value, "split_s": 1e-4}
            row |= {"transfer_s": 2e-4, "reduce_s": 1e-4, "total_s": value + 4e-4}
            if host:
                row |= {"device": "cpu", "device_kind": "cpu", "simulated": False}
            self.rows.append(row)

    def count(
        self, sweep: str, levels: Levels, counters: Mapping[str, float], system: str = ""
    ) -> None:
        """A simulated point: one block."""
        key = self._plan(sweep, system, levels)
        row = self._row(sweep, system, levels, key, 0)
        self.rows.append(row | {name: float(value) for name, value in counters.items()})

    def _row(
        self, sweep: str, system: str, levels: Levels, key: str, number: int
    ) -> dict[str, Any]:
        row: dict[str, Any] = {
            "run": "run",
            "study": "ablation",
            "sweep": sweep,
            "workload": "counting",
            "system": system,
            "device": self.device["spec"],
            "device_kind": self.device["kind"],
            "simulated": self.simulated,
            "round": number,
            "status": "ok",
            "reason": "",
            "answer": "14200",
            "expected": "14200",
            "registers": 32,
            "occupancy": 0.5,
            "key": key,
        }
        return row | dict(levels)

    def frame(self) -> pd.DataFrame:
        """One row per block, columns as in a loaded run."""
        names = ["value_s", "samples", *COUNTERS]
        names += [f"{p}_s" for p in ("split", "transfer", "kernel", "reduce", "total")]
        frame = pd.DataFrame(self.rows)
        for name in names:
            if name not in frame:
                frame[name] = float("nan")
        frame.attrs["manifest"] = {
            "study": {
                "name": "ablation",
                "about": "Every combination of the four optimisations",
                "workload": "counting",
                "sweeps": self.sweeps,
                "report": self.report,
            },
            "command": self.command,
            "device": dict(self.device),
            "points": self.points,
        }
        return frame


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
            if builder.simulated:
                builder.count("factorial", placed, counters_of(placed))
            else:
                builder.time("factorial", placed, value(placed))
    return builder
