"""Runs of the papers' studies whose truth is known: their authors' numbers as if measured today, or
every point of a study with synthetic times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nqbench.analysis.claims.judge import Verdict
from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.estimate import Estimate
from nqbench.facts import DeviceFacts
from nqbench.papers import load_paper, paper_folder
from nqbench.papers.load import RESOURCES
from nqbench.papers.schema import Paper
from nqbench.report.table import Table
from nqbench.study import expand, load_study
from nqbench.vocabulary import COUNTERS, PROFILER_COUNTERS, of_kernel
from nqbench.workloads import probe_counters
from nqbench.workloads.fitness.factors import COOLED
from nqbench.workloads.local_search.plans import moves_of
from tests.builders import H100, Builder, Levels

NAME = "NVIDIA H100 PCIe"
MACHINE = {
    **H100,
    "host": {"name": "a CPU", "cores": 16},
    "identity": {"name": NAME, "compute_capability": "9.0", "max_sm_mhz": 1755},
    "facts": {"name": NAME, "multiprocessors": 132},
}
ON_CPU = {"device": "cpu"}


def value_of(verdict: Verdict, index: int = 0) -> float:
    """What a claim's expression comes to, at one of its sizes."""
    found = verdict.sizes[index].value
    assert isinstance(found, Estimate)
    return found.value


def tiny_paper(*claims: Mapping[str, Any]) -> Paper:
    """A paper with two systems and the claims given."""
    filled = [
        {
            "id": f"claim_{i}",
            "statement": "it is so",
            "section": "1",
            "kind": "ratio",
            "value_origin": "printed",
            "architecture_dependent": "true",
            "n": ["15"],
            **claim,
        }
        for i, claim in enumerate(claims)
    ]
    cards = [("gtx275", "GTX 275"), ("gtx480", "GTX480")]
    return Paper.model_validate(
        {
            "schema": "nqbench-paper/2",
            "id": "zhang2011",
            "source": {"title": "A paper", "authors": ["Somebody"], "venue": "Proc.", "year": 2010},
            "hardware": [
                {"id": key, "kind": "gpu", "name": name, "role": "r"} for key, name in cards
            ],
            "systems": [],
            "tables": [],
            "figures": [],
            "claims": filled,
            "caveats": [{"id": "odd", "kind": "paper_error", "text": "it says otherwise"}],
        }
    )


def column(table: Table, name: str) -> list[Any]:
    """The cells of a table's column."""
    return [row[[c.name for c in table.columns].index(name)] for row in table.rows]


STEPS = {
    "naive_l1_16k": 12.0,
    "naive_l1_48k": 10.0,
    "shared_conflict": 3.0,
    "shared_no_conflict": 2.0,
    "low_divergence": 1.6,
    "pool_distributed": 1.0,
    "pool_monolithic": 0.9,
}
"""Relative times of the kernels in the synthetic run."""
POOLS = (64, 128, 256, 512, 1024, 2560, 5120, 10240)
SIZES = (15, 16, 17, 18, 19)


def levels(n: int, **own: Any) -> dict[str, Any]:
    return {"n": n, "depth": n - 11, "block_size": 128, "blocks": "from_jobs"} | own


def zhang(
    *,
    steps: Mapping[str, float] = STEPS,
    sizes: Sequence[int] = SIZES,
    dev: Mapping[str, Any] = H100,
    pools: Sequence[int] = POOLS,
    **options: Any,
) -> Builder:
    """Zhang's kernels over N, and the pool sweep at the sizes if there are pools."""
    builder = Builder(dev, **options)
    for n in sizes:
        base_s = 1e-3 * 7.5 ** (n - 15)
        for name, step in steps.items():
            own = {"pool_size": 512} if name == "pool_distributed" else {}
            builder.time("kernels", levels(n, **own), step * base_s, f"zhang2011.{name}")
        if pools:
            own = levels(n, block_size=32)
            builder.time("pool", own, 2.0 * base_s, "zhang2011.low_divergence")
        for pool in pools:
            own = {"block_size": 32, "pool_size": pool}
            time_s = (2.2 if pool == POOLS[-1] else 1.2) * base_s
            builder.time("pool", levels(n, **own), time_s, "zhang2011.pool_distributed")
    return builder


FITNESS = "fitness_schemes"
FITNESS_SIZES = (100, 300, 1000, 3000, 10_000, 50_000, 100_000, 400_000, 1_000_000)
XEON = {"name": "2 Xeon E7-4820 v4", "cores": 40}
SA = "fitness_schemes.sa_"


def fitness_levels(n: int, scheme: str, **own: Any) -> dict[str, Any]:
    return {"n": n, "scheme": scheme, "board": "random", "seed": 1} | own


def published(system: str) -> dict[int, float]:
    """Seconds by N in the authors' file."""
    rows = load_paper(FITNESS).series("times").rows
    return {row.n: row.seconds for row in rows if row.system == system}


def fitness(*, noise: float = 1e-5, rounds: int = 3) -> Builder:
    """Times as in the CSV files; annealing as the text says: 27 ms an evaluation, 9.3 times."""
    made = Builder({**H100, "host": XEON}, rounds=rounds, noise=noise)
    paper = load_paper(FITNESS)
    times = paper.series("times")
    for row in times.rows:
        short = row.system.partition(".")[2]
        if row.n in FITNESS_SIZES and row.seconds:
            own = fitness_levels(row.n, short)
            own |= {"threads": "auto"} if short == "cpu_threads" else {}
            made.time("schemes", own, row.seconds, row.system)
    for row in paper.series("threads").rows:
        if row.n in (300, 1000, 10_000, 100_000):
            own = fitness_levels(row.n, "cpu_threads", **row.levels)
            made.time("threads", own, row.seconds, row.system)
    for row in paper.series("dynamic_parallelism").rows:
        if row.n in (10_000, 50_000) and row.seconds:
            own = fitness_levels(row.n, "gpu_cdp", nesting=1, **row.levels)
            made.time("dynamic", own, row.seconds, row.system)
    coarse = published("fitness_schemes.gpu_coarse")
    for n, serial_s in published("fitness_schemes.cpu_serial").items():
        if n in (1000, 10_000):  # the authors' thread is not optimized
            for plain in ("none", "default"):
                own = fitness_levels(n, "cpu_serial", optimization=plain)
                made.time("baseline", own, serial_s, "fitness_schemes.cpu_serial")
            own = fitness_levels(n, "gpu_coarse", block_size=64)
            made.time("scaled", own, coarse[n], "fitness_schemes.gpu_coarse")
    _nested_and_boards(made, coarse)
    _searches(made)
    return made


def _nested_and_boards(made: Builder, coarse: dict[int, float]) -> None:
    for depth in (1, 24):
        own = fitness_levels(1000, "gpu_cdp", threshold=256, nesting=depth)
        made.time("nesting", own, 0.1, "fitness_schemes.gpu_cdp")
    own = fitness_levels(1000, "gpu_cdp", threshold=256, nesting=25)
    made.fail("nesting", own, "wrong", "answer 0, expected 660", "fitness_schemes.gpu_cdp")
    for i, n in enumerate((100, 1000, 10_000, 100_000, 1_000_000)):
        for board, slower in (("random", 1 + 0.03 / 2**i), ("valid", 1.0)):
            own = fitness_levels(n, "gpu_coarse", board=board)
            # Not as in the first sweep: boards are compared with boards of the same sweep.
            made.time("boards", own, 2 * coarse[n] * slower, "fitness_schemes.gpu_coarse")


def _searches(made: Builder) -> None:
    for n, evaluations, serial_s, gain in ((100, 20_000, 4.6e-5, 0.1), (1000, 2000, 4.5e-3, 2.9),
                                           (3000, 500, 2.7e-2, 9.4)):  # fmt: skip
        for name, time_s in (("cpu", serial_s), ("gpu", serial_s / gain)):
            own = fitness_levels(n, f"sa_{name}", max_evaluations=evaluations)
            own |= COOLED
            share = {100: 0.95, 1000: 0.995, 3000: 0.999}[n]
            found: dict[str, float] = {"found": int(n == 100), "evaluations": evaluations}
            found |= {"evaluation_s": share, "total_s": 1.0}
            made.time("search", own, evaluations * time_s, f"{SA}{name}", **found)
    for system in ("fitness.sa_delta", "fitness.sa_chains"):
        for seed in range(1, 21):
            own = fitness_levels(3000, system.partition(".")[2], seed=seed, proposal="uniform")
            found = {"found": int(seed != 7), "evaluations": 720_000}
            made.time("seeds", own, 0.1 * (1 + seed / 40), system, **found)


SEARCH = "brodtkorb_part1"
V = f"{SEARCH}.gpu_v"
EVALUATION = {1: 460e-6, 2: 400e-6, 3: 380e-6, **dict.fromkeys((4, 5, 6, 7), 300e-6), 8: 290e-6}
APPLY = {1: 275e-6, 2: 400e-6, 3: 400e-6, 4: 400e-6, 5: 90e-6, 6: 88e-6, 7: 88e-6, 8: 88e-6}
ITERATIONS = {1000: 2500, 2000: 5000, 10_000: 500}


def searched(n: int, iterations: int) -> dict[str, Any]:
    return {"evaluations": iterations, "moves_evaluated": iterations * moves_of(n),
            "final_solution_hash": 1000 * n + iterations, "final_length": 23.5,
            "operations_per_move": 55, "roots_per_move": 8}  # fmt: skip


def search_levels(n: int, iterations: int, mapping: str = "quadratic", **own: Any) -> Levels:
    return {"n": n, "iterations": iterations, "mapping": mapping, **own}


def gtx480(*, rounds: int = 3) -> Builder:
    """A device on which the paper's sentences are true: version 1 as in table 1."""
    made = Builder(MACHINE, rounds=rounds, noise=1e-4)
    for n, iterations in ITERATIONS.items():
        grown = moves_of(n) / moves_of(1000)
        for version, evaluation_s in EVALUATION.items():
            mapping = "rectangle" if version == 8 else "quadratic"
            own = search_levels(n, iterations, mapping)
            if n == 10_000 and version < 8:
                made.fail("versions", own, "wrong", "24310 moves", f"{V}{version}")
                continue
            parts = {"evaluation_s": iterations * evaluation_s * grown,
                     "apply_s": iterations * APPLY[version]}  # fmt: skip
            whole_s = sum(parts.values()) + iterations * 20e-6
            parts |= searched(n, iterations) | {"threads": 8192 if version == 1 else 20160}
            made.time("versions", own, whole_s, f"{V}{version}", **parts)
            if n < 10_000:  # and the same where the launch fills the device
                sweep, blocks = ("scaled_v1", "4/SM") if version == 1 else ("scaled", "7/SM")
                filled = search_levels(n, iterations, mapping, blocks=blocks)
                made.time(sweep, filled, whole_s, f"{V}{version}", **parts)
    for n, iterations in ((1000, 200), (2000, 20)):
        own = search_levels(n, iterations)
        one_s = 80 * iterations * 735e-6
        found = searched(n, iterations)
        made.time("processor", own, one_s / 80, f"{V}1", **found)
        for name, share in (("mapped", 1.0), ("two_loops", 0.4)):
            made.time("processor", own, one_s * share, f"{SEARCH}.cpu_{name}", **ON_CPU, **found)
    made.fail("processor", search_levels(10_000, 1), "wrong", "24310 moves", f"{SEARCH}.cpu_mapped")
    for n in (1000, 2000):
        for version, longer, shorter in ((1, "math_only", "memory_only"),
                                         (4, "memory_only", "math_only")):  # fmt: skip
            for part, s in (("full", 1.0), (longer, 0.9), (shorter, 0.5)):
                made.time("parts", search_levels(n, 1, part=part), s * 3e-4, f"{V}{version}")
        for version in OCCUPANCY:
            profiled(made, n, version)
    for most, threads, apply_s in ((264, 128, 1e-3), (528, 256, 2e-3)):
        own = search_levels(1000, 50, "rectangle", blocks=most, block_size=threads)
        parts = {"evaluation_s": 1e-3, "apply_s": apply_s}
        made.time("launch", own, sum(parts.values()), f"{V}8", **parts)
    return made


OCCUPANCY = {1: 0.33, 2: 0.78, 3: 0.78, 4: 0.78, 5: 0.78}
SECTORS = {1: 14.75, 2: 14.75, 3: 14.75, 4: 10.23, 5: 10.23}
CHOICE_SECTORS = {1: 17.0, 2: 17.0, 3: 17.0, 4: 17.0, 5: 1.0}


def profiled(made: Builder, n: int, version: int) -> None:
    """What a profiler counted of a version, with the numbers of table 1 where it has them."""
    made.time("counted", search_levels(n, 1), 1e-3, f"{V}{version}", **searched(n, 1))
    counted = {
        "achieved_occupancy": OCCUPANCY[version],
        "instructions_issued": 6452288,
        "global_store_sectors": 570,
        "global_load_misses": 1395,
        "global_sectors": 1000 * SECTORS[version],
        "global_requests": 1000,
        "global_load_sectors_per_request": SECTORS[version],
        "global_load_hit_percent": 100,
        "global_load_efficiency_percent": 6.9,
        "dram_read_bytes": 12 * n,
        "lane_efficiency": 0.97,
        "global_store_efficiency_percent": 100,
        "replay_overhead_percent": 52.1,
        "fp32_operations_per_s": 141.84e9,
        "duration_ns": 459_700,
        "branches": 1000,
        "divergent_branches": 2,
    }
    whole = {of_kernel(name, "evaluation"): value for name, value in counted.items()}
    choice = {
        "achieved_occupancy": 0.33,
        "global_load_sectors_per_request": CHOICE_SECTORS[version],
    }
    made.profile(whole | {of_kernel(name, "apply"): value for name, value in choice.items()})


GPU = DeviceFacts("NVIDIA H100", "cuda", (9, 0), 132, shared_per_block_optin=232448)


def text(level: Any) -> Any:
    return f"{level['per_sm']}/SM" if isinstance(level, Mapping) else level


SEARCHED = {"evaluation_s": 0.9, "total_s": 1.0, "found": 1, "evaluations": 4000}
"""What a search records beside its time."""


MOVED = {"evaluation_s": 0.8e-3, "apply_s": 0.1e-3, "evaluations": 200, "moves_evaluated": 1e8,
         "operations_per_move": 55, "roots_per_move": 8, "final_solution_hash": 7}  # fmt: skip
"""What a local search records beside its time."""
FAILING = ("quadratic", "rearranged")
"""Mappings that fail at 10,000 cities."""


def expected_wrong(levels: Mapping[str, Any]) -> bool:
    """Points whose wrong answer the papers themselves tell of."""
    failing = levels.get("n") == 10_000 and levels.get("mapping") in FAILING
    return failing or levels.get("nesting") == 25


def synthetic_s(paper: str, n: int, i: int) -> float:
    """A time that grows as the paper's problem does, and differs between points."""
    squared = paper in (FITNESS, SEARCH)
    grown = (n / 1000) ** 2 if squared else 7.5 ** (n - 14)
    return 1e-3 * grown * (1 + i % 7 / 10)


def complete_run(paper: str) -> Dataset:
    """The paper's study on an H100 as if every point had been measured."""
    builder = Builder(MACHINE, rounds=2, noise=0.001)
    both = {**COUNTERS, **PROFILER_COUNTERS}
    study = load_study(paper_folder(paper) / "study.yaml")
    for i, point in enumerate(expand(study, GPU)):
        system = point.system or ""
        levels = {k: text(v) for k, v in point.factors.items()}
        if point.skip:
            builder.skip(point.sweep, levels, point.skip, system)
            continue
        if expected_wrong(levels):
            builder.fail(point.sweep, levels, "wrong", "answer 0, expected 660", system)
            continue
        found: dict[str, Any] = SEARCHED if "max_evaluations" in levels else {}
        if paper == SEARCH and "part" not in levels:
            found = MOVED | (ON_CPU if ".cpu_" in system else {})
        builder.time(point.sweep, levels, synthetic_s(paper, point.n, i), system, **found)
        if levels.get("probe", "none") not in ("none", "-"):
            builder.rows[-1] |= dict.fromkeys(probe_counters(), 2.0)
        profile = dict.fromkeys(COUNTERS, 1.0) if not system.startswith("cpu") else {}
        if point.sweep.startswith("counted"):
            profile |= {of_kernel(c, k): 0.5 for c in both for k in ("evaluation", "apply")}
        builder.profile(profile)
    for row in builder.rows:
        row["threads"] = 132 * 160
        row |= dict.fromkeys(("jobs", "job_bytes", "device_bytes", "sub_kernels", "operations"), 64)
        row.setdefault("blocks", 1)
        row |= {of_kernel(name, k): 64 for name in RESOURCES for k in ("evaluation", "apply")}
    return builder.data(paper)
