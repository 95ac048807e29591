"""Invented runs of the local search paper's study, on a device that its sentences are true of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nqbench.vocabulary import of_kernel
from nqbench.workloads.local_search.mapping import moves_of
from tests.analysis.builder import Builder
from tests.papers.test_studies import MACHINE, ON_HOST

PAPER = "brodtkorb_part1"
V = f"{PAPER}.gpu_v"
EVALUATION = {
    1: 460e-6,
    2: 400e-6,
    3: 380e-6,
    4: 300e-6,
    5: 300e-6,
    6: 300e-6,
    7: 300e-6,
    8: 290e-6,
}
APPLY = {1: 275e-6, 2: 400e-6, 3: 400e-6, 4: 400e-6, 5: 90e-6, 6: 88e-6, 7: 88e-6, 8: 88e-6}
ITERATIONS = {1000: 2500, 2000: 5000, 10_000: 500}


def searched(n: int, iterations: int) -> dict[str, Any]:
    return {"evaluations": iterations, "moves_evaluated": iterations * moves_of(n),
            "final_solution_hash": 1000 * n + iterations, "final_length": 23.5,
            "operations_per_move": 55, "roots_per_move": 8}  # fmt: skip


def levels(n: int, iterations: int, mapping: str = "quadratic", **own: Any) -> dict[str, Any]:
    return {"n": n, "iterations": iterations, "mapping": mapping, **own}


def timed(made: Builder, sweep: str, system: str, own: Mapping[str, Any], s: float,
          **details: Any) -> None:  # fmt: skip
    made.time(sweep, own, s, system)
    for row in made.rows[-made.rounds :]:
        row |= details


def gtx480(*, rounds: int = 3) -> Builder:
    """A device on which the paper's sentences are true: version 1 as in table 1."""
    made = Builder(MACHINE, rounds=rounds, noise=1e-4)
    for n, iterations in ITERATIONS.items():
        grown = moves_of(n) / moves_of(1000)
        for version, evaluation_s in EVALUATION.items():
            mapping = "rectangle" if version == 8 else "quadratic"
            own = levels(n, iterations, mapping)
            if n == 10_000 and version < 8:
                made.fail("versions", own, "wrong", "24310 moves", f"{V}{version}")
                continue
            parts = {"evaluation_s": iterations * evaluation_s * grown,
                     "apply_s": iterations * APPLY[version]}  # fmt: skip
            whole_s = sum(parts.values()) + iterations * 20e-6
            timed(made, "versions", f"{V}{version}", own, whole_s, **parts,
                  **searched(n, iterations))  # fmt: skip
    for n, iterations in ((1000, 200), (2000, 20)):
        own = levels(n, iterations)
        one_s = 80 * iterations * 735e-6
        timed(made, "processor", f"{V}1", own, one_s / 80, **searched(n, iterations))
        for name, share in (("mapped", 1.0), ("two_loops", 0.4)):
            timed(made, "processor", f"{PAPER}.cpu_{name}", own, one_s * share, **ON_HOST,
                  **searched(n, iterations))  # fmt: skip
    made.fail("processor", levels(10_000, 1), "wrong", "24310 moves", f"{PAPER}.cpu_mapped")
    for n in (1000, 2000):
        for part, s in (("full", 1.0), ("math_only", 0.9), ("memory_only", 0.5)):
            made.time("parts", levels(n, 1, part=part), s * 3e-4, f"{V}4")
    for n, version in ((1000, 1), (1000, 2), (1000, 4), (2000, 1), (2000, 2), (2000, 4)):
        profiled(made, n, version)
    return made


OCCUPANCY = {1: 0.33, 2: 0.78, 4: 0.78}
SECTORS = {1: 14.75, 2: 14.75, 4: 10.23}


def profiled(made: Builder, n: int, version: int) -> None:
    """What a profiler counted of a version, with the numbers of table 1 where it has them."""
    made.time("counted", levels(n, 1), 1e-3, f"{V}{version}")
    counted = {
        "achieved_occupancy": OCCUPANCY[version],
        "instructions_issued": 6452288,
        "global_store_sectors": 570,
        "global_load_misses": 1395,
        "global_sectors": 1000 * SECTORS[version],
        "global_requests": 1000,
        "global_load_sectors_per_request": SECTORS[version],
        "global_load_hit_percent": 100,
        "global_store_efficiency_percent": 100,
        "replay_overhead_percent": 52.1,
        "fp32_operations_per_s": 141.84e9,
        "duration_ns": 459_700,
        "branches": 1000,
        "divergent_branches": 2,
    }
    row = dict(made.rows[-1]) | {"round": -1}
    row |= {of_kernel(name, "evaluation"): value for name, value in counted.items()}
    made.rows.append(row | {of_kernel("achieved_occupancy", "apply"): 0.33})
