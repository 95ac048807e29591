"""Verdicts on kernels from the times of their variants."""

from __future__ import annotations

import math
from typing import Any

import pytest

from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.limits.bottleneck import BEYOND, NEAR, bottlenecks, judge, verdict_text
from nqbench.errors import AnalysisError
from nqbench.workloads.base import VARIANTS
from tests.builders import Builder, interval

ROUNDS = 5
JITTER = (0.0, 0.004, -0.003, 0.002, -0.004)
"""Relative, by round: what all variants of a round share."""


def data_of(times: dict[str, float], own: float = 0.001, **last: Any) -> Dataset:
    """A run of one kernel whose variants take these seconds; ``own`` is each one's own noise,
    ``last`` what is recorded of the last variant."""
    builder = Builder(rounds=ROUNDS, noise=0.0)
    for index, variant in enumerate(VARIANTS):
        if variant not in times:
            continue
        levels = {"n": 1024, "part": variant}
        about = last if variant == VARIANTS[-1] else {}
        builder.time("parts", levels, times[variant], "toy.kernel", **about)
        for row in builder.rows[-ROUNDS:]:
            round_ = row["round"] - 1
            row["value_s"] *= 1 + JITTER[round_] + own * math.sin(7 * index + 3 * round_)
    return builder.data()


@pytest.mark.parametrize(
    ("full_s", "math", "memory", "word", "said"),
    [
        (1e-3, 0.30, 0.98, "memory bound", ""),
        (1e-3, 0.99, 0.10, "arithmetic bound", ""),
        (1e-3, 0.95, 0.90, "balanced", ""),
        (1e-3, 0.50, 0.45, "latency bound", "overlap little"),
        (1.0, 0.20, 0.30, "latency bound", "waits for something else"),
        (1e-3, 1.30, 0.50, "unclear", ""),
        (1e-3, 0.50, 1.25, "unclear", ""),
        (1e-3, NEAR, 0.20, "unclear", ""),
        (19e-6, 0.50, 0.95, "memory bound", "an empty launch takes 3 µs"),
        (31e-6, 0.50, 0.95, "memory bound", ""),
    ],
)
def test_words(full_s: float, math: float, memory: float, word: str, said: str) -> None:
    parts = {"math_only": math * full_s, "memory_only": memory * full_s}
    (found,) = bottlenecks(data_of({"full": full_s, **parts}))
    assert (found.judged.word, found.levels) == (word, {}), found.judged.reason
    assert found.math is not None
    assert found.math.value == pytest.approx(math, rel=0.01)
    assert found.both is not None
    assert found.both.value == pytest.approx(math + memory, rel=0.01)
    assert verdict_text(found).startswith(f"toy.kernel at N = 1024: {word}: without memory ")
    assert said in found.judged.reason
    assert ("an empty launch" in found.judged.reason) == (full_s < 30e-6)


def test_what_a_round_does_to_all_is_not_uncertainty() -> None:
    """Parts are paired by round: what slows all of a round alike cancels."""
    times = {"full": 1e-3, "math_only": 7e-4, "memory_only": 9e-4}
    (found,) = bottlenecks(data_of(times, own=0.0))
    low, _, high = interval(found.math)
    assert high / low < 1.002  # what is left is the resolution of events, half a microsecond


LOW = Estimate(0.2, 0.19, 0.21)
WIDE = Estimate(NEAR, NEAR - 0.1, NEAR + 0.1)
OVER = Estimate(BEYOND - 0.02, BEYOND - 0.03, BEYOND - 0.01)


@pytest.mark.parametrize(
    ("math", "memory", "word", "said"),
    [
        (Estimate(0.2), LOW, "unclear", "one round"),
        (WIDE, LOW, "unclear", "interval of arithmetic contains"),
        (LOW, WIDE, "unclear", "interval of memory contains"),
        (LOW, OVER, "memory bound", "without memory 20%"),  # slightly slower than the whole
        (LOW, Estimate(NEAR, NEAR, NEAR + 0.1), "memory bound", ""),
        (LOW, Estimate(BEYOND, BEYOND + 0.01, BEYOND + 0.02), "unclear", "memory alone exceeds"),
    ],
)
def test_what_intervals_decide(math: Estimate, memory: Estimate, word: str, said: str) -> None:
    judged = judge(math, memory, Estimate(1.0, 0.9, 1.1))
    assert judged.word == word
    assert said in judged.reason


def test_what_a_run_lacks() -> None:
    times = {"full": 1.0, "math_only": 0.5}
    (found,) = bottlenecks(data_of(times))
    assert found.judged.word == "unclear"
    assert "memory_only was not planned" in found.judged.reason
    times["memory_only"] = 0.9
    assert bottlenecks(data_of(times))[0].matched
    assert not bottlenecks(data_of(times, occupancy_matched=0))[0].matched
    with pytest.raises(AnalysisError, match="nqbench bottleneck SYSTEM"):
        bottlenecks(data_of({}))
