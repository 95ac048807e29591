"""Bootstrap over rounds: the rounds of a run are resampled, the same ones for every point.

A claim compares points that were measured round by round. Resampling whole rounds keeps what a
round does to all of them together.

With few rounds a plain bootstrap varies too little: it would call two equal systems different in
25% of runs of three rounds and 16% of runs of five (4,000 simulated runs each), where 5% is meant.
So the spread of the resamples is widened by the factor between Student's t and the normal quantile
(``widening``). That brings both to 5 to 6%, the error of a t test, and makes intervals agree with
those of the tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.estimate import CONFIDENCE, quantile
from nqbench.analysis.data.quantities import TIME, Quantity

RESAMPLES: Final = 2000
"""For a verdict: each 2.5% limit then rests on 50 of them."""
SEED: Final = 2011
"""The resamples are part of the analysis: the same records give the same verdict."""
Resampled = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Resamples:
    """The distinct resamples, and how often each came up.

    ``rounds``   the round numbers of each run, in the order of the columns
    ``weights``  one array per run, shape ``(distinct + 1, rounds)``: how often the resample has
                 each round; row 0 has every round once, for the value itself
    ``times``    how often each came up, shape ``(distinct,)``; sums to :data:`RESAMPLES`
    ``wider``    by run: how much wider than drawn (``widening``)
    ``lent``     whether the last run is the one that the others' CPU programs come from
    """

    rounds: tuple[tuple[int, ...], ...]
    weights: tuple[NDArray[np.float64], ...]
    times: NDArray[np.int64]
    wider: tuple[float, ...] = ()
    lent: bool = False

    @property
    def count(self) -> int:
        """Distinct resamples, the first row (all rounds) included."""
        return len(self.times) + 1

    @classmethod
    def of(
        cls,
        runs: Sequence[Dataset],
        *,
        lent: Dataset | None = None,
        without: int | None = None,
        confidence: float = CONFIDENCE,
    ) -> Resamples:
        """Resample the rounds of each run; those of different runs are independent, and those of
        the run whose CPU programs are ``lent`` to them, if it has several.

        Five rounds have 126 distinct resamples: each is evaluated once and counted as often as it
        came up. A run with one round cannot be resampled: there are none. ``without`` leaves out
        the round of that index; the rest spread as far as all of them would have to.
        """
        random = np.random.default_rng(SEED)
        lender = [lent] if lent and lent.rounds > 1 else []  # one round has no spread
        # The run's own rounds: those of a baseline say nothing about how its times vary.
        rounds = tuple(
            tuple(sorted({r for p in data.points if not p.borrowed for r in p.values(TIME)}))
            for data in (*runs, *lender)
        )
        wider = tuple(widening(len(r), confidence) if len(r) > 1 else 1.0 for r in rounds)
        if without is not None:
            left = tuple(r[:without] + r[without + 1 :] for r in rounds)
            rounds = (*left[: len(runs)], *rounds[len(runs) :])
        if not rounds or any(len(r) < 2 for r in rounds):
            ones = tuple(np.ones((1, max(1, len(r)))) for r in rounds)
            return cls(rounds, ones, np.zeros(0, dtype=np.int64))
        chances = [np.full(len(r), 1 / len(r)) for r in rounds]
        counts = [random.multinomial(len(each), each, RESAMPLES) for each in chances]
        distinct, times = np.unique(np.hstack(counts), axis=0, return_counts=True)
        edges = np.cumsum([len(r) for r in rounds])[:-1]
        parts = np.split(distinct, edges, axis=1)
        weights = tuple(np.vstack([np.ones(part.shape[1]), part]) for part in parts)
        return cls(rounds, weights, times, wider, bool(lender))

    def values(self, run: int, point: PointResult, what: Quantity = TIME) -> Resampled:
        """A point's value in every resample, shape ``(count,)``: the geometric mean of its rounds,
        with the distance from that of all rounds widened.

        A point that lacks a round of the resample uses the others; where none is left, all it has.
        A borrowed point varies with the rounds of its own run; of one round, it is a constant. A
        phase that took no time in a round has the geometric mean 0.
        """
        found = point.values(what)
        if not all(found.values()):
            return np.zeros(self.count)
        run = -1 if point.borrowed else run
        known = np.array([r in found for r in self.rounds[run]])
        logs = np.log([found[r] for r in self.rounds[run] if r in found])
        every = float((logs if len(logs) else np.log(list(found.values()))).mean())
        if self.count == 1 or not known.any() or point.borrowed > self.lent:
            return np.full(self.count, math.exp(every))
        weights = self.weights[run][:, known]
        weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0)
        distances = resampled(logs, weights, self.wider[run]) - logs.mean()
        values: Resampled = np.exp(every + distances)
        return values


ALL_ROUNDS: Final = Resamples((), (), np.zeros(0, dtype=np.int64))
"""No resample, for what does not vary from round to round."""


def resampled(logs: Resampled, weights: NDArray[np.float64], wider: float) -> Resampled:
    """Means of ``logs`` under each row of ``weights``, ``wider`` about the plain mean."""
    plain = float(logs.mean())
    means: Resampled = weights @ logs / weights.sum(axis=1)
    return plain + wider * (means - plain)


def widening(rounds: int, confidence: float = CONFIDENCE) -> float:
    """How much wider resamples of ``rounds`` rounds have to spread for intervals that cover.

    The standard deviation of resampled means is too small by sqrt((rounds - 1) / rounds), and it is
    used with the normal quantile of 95% instead of Student's of the ``confidence``.
    """
    from scipy.special import ndtri

    normal = float(ndtri(0.5 + CONFIDENCE / 2))
    return quantile(rounds, confidence) / (normal * math.sqrt((rounds - 1) / rounds))
