"""Verdicts of the recorded runs, recomputed from records.jsonl by code of another hand.

The recomputing part imports nothing of nqbench. As docs/papers.md says: geometric means of the
rounds, draws of the rounds, distances from the plain mean widened by Student's t over the normal
quantile, a word from the share of the draws in which the condition is true.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm, rankdata, t

from nqbench.analysis.claims.judge import judge
from nqbench.analysis.data.dataset import load_dataset
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.for_papers import modelled, with_baseline
from nqbench.papers import load_paper
from nqbench.report.papers.tables import against_print
from nqbench.report.papers.write import TRUST, joint_source

REFERENCE = Path(__file__).parents[2] / "results" / "reference"
Rounds = dict[int, float]
INF = math.inf
F, T, Z, B = "feinbube2010.", "tanaka2011.", "zhang2011.", "brodtkorb_part1.gpu_v"
LOW = Z + "low_divergence"
STEPS = ("opt1_shared_stack", "opt2_shared_all", "opt3_shared_extern", "opt4_compact")


class Run:
    """A run's records; ``at`` is the draw of rounds that times are asked for, empty for all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with gzip.open(folder / "records.jsonl.gz") as lines:
            rows = [json.loads(line) for line in lines]
        study = json.loads((folder / "manifest.json").read_text())["study"]
        order = [sweep["name"] for sweep in study["sweeps"]]
        self.rows = sorted(rows, key=lambda row: order.index(row["point"]["sweep"]))
        self.rounds = sorted({r["round"] for r in rows if r["round"] > 0 and r["value_s"]})
        self.at: tuple[int, ...] = ()
        self.points = cache(self._points)

    def of(self, system: str, n: int, **levels: object) -> list[Any]:
        """Records of a system at a size; those of instrumented kernels only if asked for."""
        found = []
        for row in self.rows:
            f = row["point"]["factors"] | {"sweep": row["point"]["sweep"]}
            asked = {"probe": f.get("probe"), "part": f.get("part")} | levels
            if asked["probe"] not in (None, "-", "none", levels.get("probe")):
                continue
            if f["sweep"][:6] in ("filled", "scaled") and "sweep" not in levels:
                continue  # only their name asks for them
            if asked["part"] is None and row["point"]["system"] == system and f["n"] == n:
                fits = all(f.get(name) == level for name, level in levels.items())
                found += [row] * (fits and row["status"] == "ok")
        return found

    def _points(self, system: str, n: int, what: str, **k: object) -> list[tuple[Any, Rounds]]:
        """Each timed configuration once (the study's first sweep counts): seconds by round."""
        found: dict[str, tuple[Any, Rounds]] = {}
        for row in self.of(system, n, **k):
            if row["round"] > 0 and row["value_s"]:
                name = json.dumps(row["point"]["factors"], sort_keys=True)
                first, rounds = found.setdefault(name, (row, {}))
                if row["key"] == first["key"]:
                    rounds[row["round"]] = row["phases"][what] if what else row["value_s"]
        return list(found.values())

    def mean(self, rounds: Rounds) -> float:
        logs = {number: math.log(seconds) for number, seconds in rounds.items()}
        plain = sum(logs.values()) / len(logs)
        drawn = [logs[number] for number in self.at if number in logs] or list(logs.values())
        k = len(self.rounds)
        wide = widening(k) if self.at else 1.0
        return math.exp(plain + wide * (sum(drawn) / len(drawn) - plain))

    def time(self, system: str, n: int, what: str = "", **k: object) -> float:
        return self.mean(self.points(system, n, what, **k)[0][1])

    def fastest(self, system: str, n: int, what: str = "", **k: object) -> tuple[Any, Rounds]:
        at, self.at = self.at, ()
        found = min(self.points(system, n, what, **k), key=lambda point: self.mean(point[1]))
        self.at = at
        return found

    def best(self, system: str, n: int, what: str = "", **k: object) -> float:
        return self.mean(self.fastest(system, n, what, **k)[1])

    def counted(self, system: str, n: int, name: str, **k: object) -> float:
        """A counter of Nsight Compute, or of an instrumented kernel."""
        rows = [r["counters"] for r in self.of(system, n, **k) if k or r["round"] < 0]
        return float(next(counters[name] for counters in rows if name in counters))


@cache
def widening(rounds: int) -> float:
    """Student's t over the normal quantile, for so many rounds."""
    normal = norm.ppf(0.975) * math.sqrt((rounds - 1) / rounds)
    return float(t.ppf(0.975, rounds - 1) / normal)


def spread(run: Run) -> float:
    """What was too slow to be timed counts with its one launch."""
    timed = run.points(F + "opt4_compact", 16, "kernel")
    keys = {row["key"] for row, _ in timed}
    rows = [row for row in run.of(F + "opt4_compact", 16) if row["key"] not in keys]
    once = [float(row["about"].get("first_launch_s") or 0) for row in rows]
    slowest: float = max([run.mean(rounds) for _, rounds in timed] + once)
    return slowest / run.best(F + "opt4_compact", 16, "kernel")


def stability(run: Run) -> float:
    def of(board: str, n: int) -> float:
        return run.time("fitness_schemes.gpu_coarse", n, sweep="boards", board=board)

    sizes = [10**k for k in (2, 3, 4, 5, 6)]
    return sum(of("random", n) / of("valid", n) for n in sizes) / 5 - 1


NS = (15, 16, 17, 18, 19)
CPU = cache(lambda: Run(REFERENCE / "cpu/cpu_baseline"))
OBSERVED = cache(load_dataset)
SECTORS = "global_load_sectors_per_request@apply"
FORMULAS: dict[tuple[str, str, int | None], Callable[[Run], float]] = {
    ("feinbube2010", "config_spread", 16): spread,
    ("tanaka2011", "conflict_free_alone", 19): lambda run: (
        run.time(T + "none", 19, "total") / run.time(T + "conflict_free", 19, "total")
    ),
    ("tanaka2011", "speedup_cpu", 17): lambda run: (
        CPU().time("cpu.somers", 17) / run.time(T + "both", 17, "total")
    ),
    ("zhang2011", "l1_48_average", None): lambda run: (
        sum(run.time(Z + "naive_l1_16k", n) / run.time(Z + "naive_l1_48k", n) for n in NS) / 5
    ),
    ("zhang2011", "pool_distributed_speedup", 18): lambda run: (
        run.best(LOW, 18) / run.best(Z + "pool_distributed", 18)
    ),
    ("tanaka2011", "conflict_free_filled", 18): lambda run: (
        run.time(T + "none", 18, "kernel", sweep="scaled", depth=6)
        / run.time(T + "conflict_free", 18, "kernel", sweep="scaled", depth=6)
    ),
    ("feinbube2010", "cc13_final_filled", 16): lambda run: (
        run.best(F + "base", 16, "kernel", depth=6)
        / run.best(F + "opt4_compact", 16, "kernel", depth=6)
    ),
    ("fitness_schemes", "coarse_unoptimized", 10_000): lambda run: (
        run.time("fitness_schemes.cpu_serial", 10_000, sweep="baseline", optimization="none")
        / run.time("fitness_schemes.gpu_coarse", 10_000)
    ),
    ("zhang2011", "pools_similar", 17): lambda run: (
        run.best(Z + "pool_distributed", 17) / run.best(Z + "pool_monolithic", 17)
    ),
    ("tanaka2011", "conflict_free_every_n", 17): lambda run: (
        run.time(T + "none", 17, "total") / run.time(T + "conflict_free", 17, "total")
    ),
    ("zhang2011", "utilization", 18): lambda run: (
        100 * run.counted(LOW, 18, "warp_utilization_mean", probe="clocks")
    ),
    ("brodtkorb_part1", "v4_evaluation_faster", 1000): lambda run: (
        run.time(B + "3", 1000, "evaluation") / run.time(B + "4", 1000, "evaluation")
    ),
    ("brodtkorb_part1", "apply_transactions", 1000): lambda run: run.counted(
        B + "4", 1000, SECTORS
    ),
    ("fitness_schemes", "stability", None): stability,
}
CONDITIONS: dict[str, tuple[float, float]] = {
    "config_spread": (10, INF),
    "pools_similar": (0.85, 1.15),
    "utilization": (45, 65),
    "apply_transactions": (8, INF),
    "stability": (0, INF),
}
"""What the value must lie between; above 1 where nothing is said."""
PRINTED = {
    "conflict_free_alone": (1.08, 1),
    "speedup_cpu": (23.04, 1),  # of three printed
    "conflict_free_every_n": (1.048, 1),
    "conflict_free_filled": (1.067, 1),
    "coarse_unoptimized": (48, 1),
    "l1_48_average": (1.14, 1),
    "pool_distributed_speedup": (1.48, 1),
    "utilization": (55.15, 0),
    "stability": (0.0095, 0),
}
"""The printed number, and what it would be without an effect."""


CASES = [
    (*key, folder.relative_to(REFERENCE).as_posix())
    for key in FORMULAS
    for folder in sorted(REFERENCE.glob(f"h?00/{key[0]}*"))
]


@pytest.mark.parametrize(("name", "claim", "n", "folder"), CASES)
def test_verdicts_are_what_records_say(name: str, claim: str, n: int | None, folder: str) -> None:
    formula, run = FORMULAS[name, claim, n], Run(REFERENCE / folder)
    paper = load_paper(name)
    alone = paper.model_copy(update={"claims": [paper.claim(claim)]})
    (verdict,) = judge(alone, [with_baseline(OBSERVED(run.folder), OBSERVED(CPU().folder))])
    if verdict.word == "not measured" or n not in {size.n for size in verdict.sizes}:
        with pytest.raises((IndexError, StopIteration)):
            formula(run)
        return
    (size,) = [size for size in verdict.sizes if size.n == n]
    least, most = CONDITIONS.get(claim, (1, INF))
    value, drawn = formula(run), []
    draws = product(run.rounds, repeat=len(run.rounds))
    for at, times in Counter(tuple(sorted(d)) for d in draws).items():
        run.at = at
        drawn += [formula(run)] * times
    low, high = np.percentile(np.repeat(drawn, 50), [2.5, 97.5])
    share = sum(least < one < most for one in drawn) / len(drawn)
    assert isinstance(size.value, Estimate)
    assert size.value.value == pytest.approx(value, rel=1e-9)
    if not size.value.exact:  # nqbench takes 2,000 of the draws, this test has them all
        bounds = size.value.low, size.value.high
        assert bounds == pytest.approx((low, high), abs=0.1 * (high - low))
    if min(abs(share - 0.025), abs(share - 0.975)) > 0.005:
        assert size.word == ("holds" if share > 0.975 else "fails" if share < 0.025 else "unclear")
    if claim in PRINTED:
        printed, null = PRINTED[claim]
        assert size.effect is not None
        assert size.effect.value == pytest.approx((value - null) / (printed - null), rel=1e-9)


MODELLED = [
    ("feinbube2010", "gtx275", F + "base", 16, "", 2.9),
    ("feinbube2010", "nvs295", F + "opt3_shared_extern", 16, "", 38.2),
    ("tanaka2011", "gtx280", T + "both", 15, "", 0.171),
    ("zhang2011", "gtx480", LOW, 15, "", 0.05),
    ("brodtkorb_part1", "gtx480", B + "1", 1000, "@apply", 274.8e-6),
    ("brodtkorb_part1", "gtx480", B + "8", 10_000, "", 22.5 / 500),
]


@pytest.mark.parametrize(("name", "gpu", "system", "n", "kernel", "printed"), MODELLED)
def test_printed_times_stand_beside_modelled_ones_of_the_records(
    name: str, gpu: str, system: str, n: int, kernel: str, printed: float
) -> None:
    record = Run(REFERENCE / f"sim-{gpu}-cache-time" / name)
    counts = [row["counters"] for row in record.of(system, n)]
    ms = min(c[f"modelled_ms{kernel}"] for c in counts if "modelled_ms" in c)
    folders = sorted(REFERENCE.glob(f"sim-*-cache-time/{name}"))
    runs = [modelled(OBSERVED(folder)) for folder in folders]
    table = against_print(load_paper(name), runs, joint_source(runs))
    assert table is not None
    cells = n, printed, ms / 1e3
    (ratio,) = {row[5] for row in table.rows if system in str(row[1]) and row[2:5] == cells}
    assert ratio == round(ms / 1e3 / printed, 2)
    ranks = [rankdata([float(str(row[i])) for row in table.rows]) for i in (3, 4)]
    assert f"these {len(table.rows)}: {np.asarray(np.corrcoef(ranks))[0, 1]:.2f};" in table.notes[0]


def test_the_trust_in_modelled_times_is_that_of_their_record() -> None:
    record = (REFERENCE / "h200/ablation/README.md").read_text("utf-8")
    rows = re.findall(r"\| h\d00 \| 1\d \| 24 \| ([\d.]+) \| (\d+)% \|(.*)", record)
    ranks, errors = (sorted(map(float, column)) for column in [*zip(*rows, strict=True)][:2])
    right = 5 * len(rows) - sum(effects.count("WRONG") for *_, effects in rows)
    for text in (TRUST[0], (REFERENCE.parents[1] / "docs/simulator.md").read_text("utf-8")):
        said = " ".join(text.split())
        assert f"error is {errors[0]:.0f} to {errors[-1]:.0f}%" in said
        assert f"{ranks[0]:.2f} to {ranks[-1]:.2f}" in said
        assert f"{right} of {5 * len(rows)} " in said
