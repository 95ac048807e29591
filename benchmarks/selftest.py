"""The statistics of ``compare`` on noise whose truth is known: the same kernel against itself.

    python -m benchmarks.selftest [--trials 4000]

A trial is what a user would have: a run that contains a kernel twice (``a`` and ``b``), and a
second run of the same. Measurements are sampled from the test device by the sampling policy of real
runs and go through ``compare`` like those of any run: within the run (paired by round) and between
the two (Welch). Exit code 1 if a limit is broken. ``nqbench selftest`` does it on a device.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from nqbench.analysis.compare.runs import ComparedPoint, compare_levels, compare_runs
from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.estimate import ALPHA, Estimate
from nqbench.cli.show import console
from nqbench.devices.fake import identity_of
from nqbench.measure.sampling import Policy, sample
from nqbench.plan import KernelPlan
from nqbench.selftest.device import HEADS, MAX_FALSE, SIDES, JudgedRate

TRIALS = 4000
"""The nominal 5% is then known to +-0.7%: enough to distinguish 5% from the limit."""
ROUNDS = 5
"""The default of studies."""
COVERAGE_NORMAL, COVERAGE_SKEW = (0.93, 0.97), (0.90, 1.0)
MIN_POWER = 0.90
"""Share of single comparisons in which a true 2% has to be called right."""


@dataclass(frozen=True)
class Noise:
    """How times differ from 100 us. A time is the product of

    - exp(round effect), normal with deviation ``round``: what one process differs by
    - exp(measurement effect), normal with deviation ``block`` plus ``block_skew`` x (exponential -
      1): what one kernel in one process differs by (such as where its memory lies)
    - exp(drift x launches so far in this process)
    - exp(e), e an autocorrelated (``rho``) normal sequence of deviation ``noise``
    - exp(skew x noise x exponential), and with probability ``outliers`` a factor ``outlier``
    """

    noise: float
    round: float
    block: float
    seed: int = 0
    block_skew: float = 0.0
    drift: float = 0.0
    rho: float = 0.0
    skew: float = 0.0
    outliers: float = 0.0
    outlier: float = 2.0


@dataclass
class Process:
    """One round of a run: a process, which counts its launches."""

    noise: Noise
    round: int
    launches: int = 0

    def times(self, kernel: str) -> Iterator[float]:
        """Seconds of the launches of a kernel."""
        noise, about = self.noise, {"n": 8, "answer": 0}
        plan = KernelPlan(Path("selftest"), kernel, (), (1, 1, 1), (1, 1, 1), about=about)
        draws = np.random.default_rng([noise.seed, self.round, identity_of(plan)])
        offset = np.random.default_rng([noise.seed, self.round]).normal(0.0, noise.round)
        offset += draws.normal(0.0, noise.block)
        offset += noise.block_skew * (draws.exponential() - 1)
        error = 0.0
        while True:
            self.launches += 1
            fresh = draws.normal(0.0, noise.noise * math.sqrt(1 - noise.rho**2))
            error = noise.rho * error + fresh
            logarithm = offset + noise.drift * self.launches + error
            if noise.skew:
                logarithm += noise.skew * noise.noise * draws.exponential()
            hit = noise.outliers and draws.random() < noise.outliers
            yield 1e-4 * math.exp(logarithm) * (noise.outlier if hit else 1.0)


NOISE = Noise(noise=0.004, round=0.004, block=0.004)
"""0.4% within a measurement, between processes, and between measurements: what GPUs in a quiet
machine show."""


@dataclass(frozen=True)
class Scenario:
    """A noise model and what is true under it.

    ``effect``  how much longer the second side really takes
    ``family``  points of one run that are compared, and corrected, together
    ``share``   of the family's points that have the effect
    """

    name: str
    model: Noise
    effect: float = 1.0
    family: int = 1
    share: float = 1.0

    def truth(self, index: int) -> float:
        """The true ratio of the family's point number ``index``."""
        return self.effect if index < self.share * self.family else 1.0


SCENARIOS = (
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
    """The verdict of ``compare`` on one pair, and the true ratio of the two."""

    truth: float
    row: ComparedPoint

    @property
    def called(self) -> bool:
        """Whether the two were called different."""
        return self.row.verdict in ("faster", "slower")

    @property
    def right(self) -> bool:
        """Whether a true difference was given its direction."""
        return self.truth != 1 and self.row.verdict == ("slower" if self.truth > 1 else "faster")


@dataclass
class Outcome:
    """All trials of a scenario: compared within a run, and between two runs."""

    paired: list[Trial] = field(default_factory=list)
    welch: list[Trial] = field(default_factory=list)


def run_scenario(scenario: Scenario, trials: int, *, seed: int = 1) -> Outcome:
    """Carry out ``trials`` comparisons of each design; whole families, so perhaps a few more."""
    outcome = Outcome()
    for family in range(-(-trials // scenario.family)):
        first, second = (_run(scenario, family, s) for s in (seed, seed + 1))
        within = compare_levels(first, "system", SIDES)
        versions = _version(first, "a"), _version(second, "b")
        between = compare_runs(*versions, ("the first run", "the second run"))
        for kept, comparison in ((outcome.paired, within), (outcome.welch, between)):
            for row in comparison.rows:
                kept.append(Trial(scenario.truth(int(row.pair.first.level("index"))), row))
    return outcome


def _version(data: Dataset, system: str) -> Dataset:
    """One of the two under a common name, as a changed kernel has it in the next run."""
    points = (replace(p, system="kernel") for p in data.points if p.system == system)
    return replace(data, points=tuple(points))


def _run(scenario: Scenario, family: int, seed: int) -> Dataset:
    """The points of one run: a fresh process and a fresh order in each round."""
    # The seed of a family in a run is one that no other family and no other run has.
    model = replace(scenario.model, seed=2 * family + seed % 2 + 10_000_000 * (seed // 2))
    kernels = [(side, index) for index in range(scenario.family) for side in SIDES]
    measured: dict[tuple[str, int], dict[int, dict[str, float]]] = {k: {} for k in kernels}
    for round_ in range(1, ROUNDS + 1):
        process = Process(model, round_)
        order = list(kernels)
        random.Random(f"{model.seed}:{round_}").shuffle(order)
        for side, index in order:
            effect = scenario.truth(index) if side == "b" else 1.0
            measured[side, index][round_] = {
                "value_s": effect * _median_s(process, f"{side}{index}")
            }
    points = (
        PointResult("trials", side, 8, {"index": index}, False, True, "ok", "", rounds)
        for (side, index), rounds in measured.items()
    )
    manifest = {"study": {"workload": "counting"}, "device": {"spec": "fake", "kind": "cuda"}}
    return Dataset("selftest", manifest, tuple(points), ROUNDS)


def _median_s(process: Process, kernel: str) -> float:
    """What the sampling policy of real runs makes of one kernel in one round."""
    times, policy = process.times(kernel), Policy()
    for _ in range(policy.warm_up):
        next(times)
    # Only the samples decide when to stop: the clock stands still.
    return sample(lambda: next(times), policy, lambda: 0.0).median_s


def tried(trials: int, scenarios: Sequence[Scenario] = SCENARIOS) -> Iterator[JudgedRate]:
    """Every scenario's rates, held against the limits."""
    for number, scenario in enumerate(scenarios):  # two seeds each: a scenario has two runs
        outcome = run_scenario(scenario, trials, seed=1 + 2 * number)
        yield from findings_of(scenario, "paired", outcome.paired)
        yield from findings_of(scenario, "welch", outcome.welch)
        if scenario.family == 1:
            estimates = [t.row.first for t in outcome.paired]
            # Of the mean over all trials, whose own error is less than a sixtieth of an interval.
            truth = math.exp(float(np.mean([math.log(e.value) for e in estimates])))
            held = [_holds(e, truth) for e in estimates]
            yield _coverage(scenario, "point", "interval of a point holds the truth", held)


def findings_of(scenario: Scenario, design: str, trials: Sequence[Trial]) -> Iterator[JudgedRate]:
    """What the trials of one design amount to, against the limits that apply."""
    name, single = scenario.name, scenario.family == 1
    null, real = ([t for t in trials if (t.truth == 1) == equal] for equal in (True, False))
    calls = [t for t in trials if t.called]
    if null:
        counts = {"false faster or slower": sum(t.called for t in null)}
        if single:
            counts[f"p <= {ALPHA:g} though equal"] = sum(t.row.p <= ALPHA for t in null)
        for what, count in counts.items():
            limit = f"upper bound at most {MAX_FALSE:.1%}"
            rate = JudgedRate(name, design, what, count, len(null), limit)
            yield replace(rate, holds=rate.bounds()[1] <= MAX_FALSE)
    if calls and not single:
        wrong = sum(not t.right for t in calls)
        yield JudgedRate(name, design, "wrong among the calls made", wrong, len(calls))
    if real:
        right, limit = sum(t.right for t in real), f"at least {MIN_POWER:.0%}" if single else ""
        rate = JudgedRate(name, design, "true difference called right", right, len(real), limit)
        yield replace(rate, holds=not single or rate.value >= MIN_POWER)
    if single:  # the points of a family share their rounds: too few are independent
        held = [_holds(t.row.ratio, t.truth) for t in trials]
        yield _coverage(scenario, design, "interval of the ratio holds the truth", held)


def _holds(estimate: Estimate, truth: float) -> bool:
    if estimate.low is None or estimate.high is None:
        return False
    return estimate.low <= truth <= estimate.high


def _coverage(scenario: Scenario, design: str, what: str, held: Sequence[bool]) -> JudgedRate:
    model = scenario.model
    skewed = model.skew or model.block_skew
    rate = JudgedRate(scenario.name, design, what, sum(held), len(held))
    if (model.outliers or model.rho or model.drift) and not skewed:
        return rate
    low, high = COVERAGE_SKEW if skewed else COVERAGE_NORMAL
    return replace(rate, limit=f"{low:.0%} to {high:.0%}", holds=low <= rate.value <= high)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print every rate with its bounds and its limit; 1 if a limit is broken."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--trials", type=int, default=TRIALS, help="of each kind of noise")
    rates = list(tried(parser.parse_args(arguments).trials))
    console.show_table(HEADS, [rate.cells() for rate in rates])
    return int(not all(rate.holds for rate in rates))


if __name__ == "__main__":
    sys.exit(main())
