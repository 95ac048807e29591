"""The fitness paper's own measurements as if they had been taken today, as a run of its study."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nqbench.analysis.data.observed import Observed, observed
from nqbench.papers import load_paper
from nqbench.report.table import Table
from tests.analysis.builder import H100, Builder

SIZES = (100, 300, 1000, 3000, 10_000, 50_000, 100_000, 400_000, 1_000_000)
HOST = {"name": "2 Xeon E7-4820 v4", "cores": 40}
SA = "fitness_schemes.sa_"


def levels(n: int, scheme: str, **own: Any) -> dict[str, Any]:
    return {"n": n, "scheme": scheme, "board": "random", "seed": 1} | own


def builder(*, noise: float = 1e-5, rounds: int = 3) -> Builder:
    """Times as in the CSV files; annealing as the text says: 27 ms an evaluation, 9.3 times."""
    made = Builder({**H100, "host": HOST}, rounds=rounds, noise=noise)
    paper = load_paper("fitness_schemes")
    times = paper.series("times")
    for row in times.rows:
        short = row.system.partition(".")[2]
        if row.n in SIZES and row.seconds:
            own = levels(row.n, short)
            own |= {"threads": "auto"} if short == "cpu_threads" else {}
            made.time("schemes", own, row.seconds, row.system)
    for row in paper.series("threads").rows:
        if row.n in (300, 1000, 10_000, 100_000):
            own = levels(row.n, "cpu_threads", **row.levels)
            made.time("threads", own, row.seconds, row.system)
    for row in paper.series("dynamic_parallelism").rows:
        if row.n in (10_000, 50_000) and row.seconds:
            own = levels(row.n, "gpu_cdp", nesting=1, **row.levels)
            made.time("dynamic", own, row.seconds, row.system)
    _nested_and_boards(made, times.times("fitness_schemes.gpu_coarse"))
    _searches(made)
    return made


def _nested_and_boards(made: Builder, coarse: dict[int, float]) -> None:
    for depth in (1, 24):
        own = levels(1000, "gpu_cdp", threshold=256, nesting=depth)
        made.time("nesting", own, 0.1, "fitness_schemes.gpu_cdp")
    own = levels(1000, "gpu_cdp", threshold=256, nesting=25)
    made.fail("nesting", own, "wrong", "answer 0, expected 660", "fitness_schemes.gpu_cdp")
    for i, n in enumerate((100, 1000, 10_000, 100_000, 1_000_000)):
        own = levels(n, "gpu_coarse", board="valid")
        made.time("boards", own, coarse[n] / (1 + 0.03 / 2**i), "fitness_schemes.gpu_coarse")


def _searches(made: Builder) -> None:
    for n, evaluations, serial_s, gain in ((100, 20_000, 4.6e-5, 0.1), (1000, 2000, 4.5e-3, 2.9),
                                           (3000, 500, 2.7e-2, 9.4)):  # fmt: skip
        for name, time_s in (("cpu", serial_s), ("gpu", serial_s / gain)):
            own = levels(n, f"sa_{name}", max_evaluations=evaluations, start_temperature=500)
            own |= {"end_temperature": 10, "cooling": 800, "moves_per_queen": 20, "evaluator": "x"}
            made.time("search", own, evaluations * time_s, f"{SA}{name}")
            share = {100: 0.95, 1000: 0.995, 3000: 0.999}[n]
            found = {"found": int(n == 100), "evaluations": evaluations}
            for row in made.rows[-made.rounds :]:
                row |= {"evaluation_s": share, "total_s": 1.0, **found}
    for system in ("fitness.sa_delta", "fitness.sa_chains"):
        for seed in range(1, 21):
            own = levels(3000, system.partition(".")[2], seed=seed, proposal="uniform")
            made.time("seeds", own, 0.1 * (1 + seed / 40), system)
            for row in made.rows[-made.rounds :]:
                row |= {"found": int(seed != 7), "evaluations": 720_000}


def run(made: Builder | None = None) -> Observed:
    """The frame of a builder as a run of the study."""
    frame = (made or builder()).frame()
    manifest = frame.attrs["manifest"]
    manifest["study"] |= {"name": "fitness_schemes", "workload": "fitness"}
    manifest["command"] = ["nqbench", "reproduce", "fitness_schemes"]
    return observed(frame, Path("run"))


def column(table: Table, name: str) -> list[object]:
    """The cells of a table's column."""
    return [row[[c.name for c in table.columns].index(name)] for row in table.rows]
