"""Trials of the statistics: the same kernel against itself on the test device.

A trial is what a user would have: a run that contains a kernel twice (``a`` and ``b``), and a
second run of the same. Measurements are sampled from the test device by the sampling policy of real
runs, become records, a table, points, and go through ``compare`` like those of any run.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from nqbench.analysis.compare.runs import ComparedPoint, compare_levels, compare_runs
from nqbench.analysis.data.collect import collect
from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.devices.fake.device import FakeDevice, FakeModel
from nqbench.measure.sampling.sampling import Policy, sample
from nqbench.plan import KernelPlan
from nqbench.record import Record

ROUNDS: Final = 5
"""The default of studies."""
CHUNK: Final = 500
"""Trials whose records are in memory at once: about 40 MB."""
N: Final = 8
"""Size at which the test device takes its base time."""
NOISE: Final = FakeModel(noise=0.004, round=0.004, block=0.004)
"""0.4% within a measurement, between processes, and between measurements: what GPUs in a quiet
machine show."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A noise model and what is true under it.

    ``effect``  how much longer the second side really takes
    ``family``  points of one run that are compared, and corrected, together
    ``share``   of the family's points that have the effect
    """

    name: str
    model: FakeModel
    effect: float = 1.0
    family: int = 1
    share: float = 1.0

    def truth(self, index: int) -> float:
        """The true ratio of the family's point number ``index``."""
        return self.effect if index < self.share * self.family else 1.0


SCENARIOS: Final = (
    Scenario("normal", NOISE),
    Scenario("drift", replace(NOISE, drift=2e-4)),
    Scenario("outliers", replace(NOISE, outliers=0.05, outlier=2.0)),
    Scenario("autocorrelation", replace(NOISE, rho=0.9)),
    Scenario("skew", replace(NOISE, skew=3.0, block=0.0, block_skew=0.004)),
    Scenario(
        "all at once",
        replace(NOISE, drift=2e-4, outliers=0.05, rho=0.9, skew=3.0, block_skew=0.004),
    ),
    Scenario("2% slower", NOISE, effect=1.02),
    Scenario("100 points, 50 of them 2% slower", NOISE, effect=1.02, family=100, share=0.5),
    Scenario("100 points, 5 of them 2% slower", NOISE, effect=1.02, family=100, share=0.05),
)


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """The verdict of ``compare`` on one pair, and the truth."""

    truth: float
    row: ComparedPoint


@dataclass(slots=True, eq=False)
class Outcome:
    """All trials of a scenario: compared within a run, and between two runs."""

    scenario: Scenario
    paired: list[Trial] = field(default_factory=list)
    welch: list[Trial] = field(default_factory=list)


def run_scenario(scenario: Scenario, trials: int, *, seed: int = 1) -> Outcome:
    """Carry out ``trials`` comparisons of each design; whole families, so perhaps a few more."""
    outcome = Outcome(scenario)
    families = -(-trials // scenario.family)
    step = max(1, CHUNK // scenario.family)
    for start in range(0, families, step):
        chosen = range(start, min(start + step, families))
        first = _by_family(_dataset(scenario, chosen, seed))
        second = _by_family(_dataset(scenario, chosen, seed + 1))
        for family in chosen:
            _judge(outcome, first[family], second[family])
    return outcome


def _judge(outcome: Outcome, first: Dataset, second: Dataset) -> None:
    scenario = outcome.scenario
    names = ("the first run", "the second run")
    within = compare_levels(first, "system", ("a", "b"))
    between = compare_runs(_version(first, "a"), _version(second, "b"), names)
    for trials, comparison in ((outcome.paired, within), (outcome.welch, between)):
        for row in comparison.rows:
            index = int(row.pair.first.level("index"))
            trials.append(Trial(scenario.truth(index), row))


def _version(data: Dataset, system: str) -> Dataset:
    """One of the two under a common name, as a changed kernel has it in the next run."""
    points = (replace(p, system="kernel") for p in data.points if p.system == system)
    return replace(data, points=tuple(points))


def _by_family(data: Dataset) -> dict[int, Dataset]:
    groups: dict[int, list[PointResult]] = {}
    for point in data.points:
        groups.setdefault(int(point.level("family")), []).append(point)
    return {f: replace(data, points=tuple(points)) for f, points in groups.items()}


def _dataset(scenario: Scenario, families: Sequence[int], seed: int) -> Dataset:
    """One run per family, all in one table (making a table per family would take all the time)."""
    points: dict[str, Mapping[str, Any]] = {}
    records: list[Record] = []
    for family in families:
        for record in _records(scenario, family, seed):
            records.append(record)
            points.setdefault(record.key, {**record.point, "key": record.key})
    manifest = {
        "study": {"name": "selftest", "workload": "counting"},
        "device": {"spec": "fake", "kind": "cuda", "facts": {}},
        "points": list(points.values()),
    }
    return collect(manifest, records)


def _records(scenario: Scenario, family: int, seed: int) -> Iterator[Record]:
    """The measurements of one run: a fresh process and a fresh order in each round."""
    # The seed of a family in a run is one that no other family and no other run has.
    model = replace(scenario.model, seed=2 * family + seed % 2 + 10_000_000 * (seed // 2))
    kernels = [(s, i, _plan(s, i)) for i in range(scenario.family) for s in ("a", "b")]
    for round_ in range(1, ROUNDS + 1):
        device = FakeDevice(model)
        device.begin_round(round_)
        order = list(kernels)
        random.Random(f"{model.seed}:{round_}").shuffle(order)
        for place, (side, index, plan) in enumerate(order):
            effect = scenario.truth(index) if side == "b" else 1.0
            yield _block(device, plan, round_, place, (side, family, index), effect)


def _block(
    device: FakeDevice,
    plan: KernelPlan,
    round_: int,
    place: int,
    who: tuple[str, int, int],
    effect: float,
) -> Record:
    side, family, index = who
    policy = Policy()
    with device.prepare(plan) as prepared:
        for _ in range(policy.warm_up):
            prepared.launch()
        # Only the samples decide when to stop: the clock stands still.
        samples = sample(lambda: effect * float(prepared.launch().kernel_s or 0), policy, _stopped)
    factors = {"n": N, "family": family, "index": index}
    point = {
        "study": "selftest",
        "sweep": "trials",
        "workload": "counting",
        "system": side,
        "label": side,
        "factors": factors,
    }
    return Record(
        key=f"{side}-{family}-{index}",
        point=point,
        device="fake",
        round=round_,
        status="ok",
        order=place,
        value_s=samples.median_s,
        samples_s=samples.values_s,
        ended_by=samples.ended_by,
    )


def _stopped() -> float:
    return 0.0


def _plan(side: str, index: int) -> KernelPlan:
    return KernelPlan(
        source=Path("selftest"),
        entry=f"{side}{index}",
        arguments=(),
        buffers=(),
        grid=(1, 1, 1),
        block=(1, 1, 1),
        about={"n": N, "answer": 0},
    )
