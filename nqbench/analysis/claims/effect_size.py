"""The second word of a verdict: is the effect as large as the paper prints it?

The first word says whether a sentence is true. "19 percent faster" is true of 1.3%, too, so where
the paper prints a size, the measured effect is set against it:

- ``gain``: share of the effect, (ours - 1) / (printed - 1). 1.013 is 7% of a printed 1.19.
- ``value``: ours / printed, for shares, percentages, differences and counters.

The printed number stands for all that round to it: half a unit of its last digit either way. Where
the paper gives one number for each of its devices, the effect may lie anywhere between them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from nqbench.analysis.data.estimate import Estimate
from nqbench.papers.schema import Claim, Paper

SizeWord = Literal["", "as large", "weaker", "stronger", "size unclear", "mixed sizes"]
SIZE_WORDS: Final[tuple[SizeWord, ...]] = get_args(SizeWord)[1:]
WEAKER: Final = 0.8
STRONGER: Final = 1.25
"""Limits of the share of an effect that still counts as large: a fifth less, or a quarter more,
which is the same on a logarithmic scale."""


@dataclass(frozen=True, slots=True)
class Printed:
    """The effect that a paper prints, as the smallest and the largest effect that it may mean.

    ``smallest`` and ``largest`` are distances from ``null``, rounding included, with one sign;
    ``near`` and ``far`` are the printed numbers themselves.
    """

    null: float
    smallest: float
    largest: float
    near: float
    far: float

    def share(self, value: float) -> float:
        """How much of the effect a value is: 1 between the printed numbers, below if smaller."""
        effect = value - self.null
        if effect / self.near < 1:
            return effect / self.near
        return max(1.0, effect / self.far)

    def word(self, value: float) -> SizeWord:
        """The word for a value without uncertainty."""
        effect = value - self.null
        if effect / self.smallest < WEAKER:
            return "weaker"
        return "stronger" if effect / self.largest > STRONGER else "as large"


def printed_effect(paper: Paper, claim: Claim, n: int | None, hw: str) -> Printed | None:
    """The effect that a claim prints at a size; ``None`` if it prints no number, or no effect.

    ``hw``  the run's device as the paper calls it: its own number is taken where there is one
    """
    if claim.size_as == "none":
        return None
    null = 1.0 if claim.size_as == "gain" else 0.0
    numbers = printed_numbers(paper, claim, n, hw)
    if not numbers:
        return None
    # Half a unit of the last printed digit either way; a whole number is printed in full.
    halves = [0.5 * 10.0 ** int(d.as_tuple().exponent) for d in numbers]
    ends = [float(d) + s * h - null for d, h in zip(numbers, halves, strict=True) for s in (-1, 1)]
    effects = [float(d) - null for d in numbers]
    if min(ends) <= 0 <= max(ends):
        return None  # printed as no effect, or with both signs
    near, far = min(effects, key=abs), max(effects, key=abs)
    return Printed(null, min(ends, key=abs), max(ends, key=abs), near, far)


def size_of(
    printed: Printed, value: Estimate, found: Sequence[float], times: NDArray[np.int64], sure: float
) -> tuple[SizeWord, Estimate]:
    """The word for an effect and its share, from the values of all resamples.

    ``found``  values in the distinct resamples, ``times`` how often each came up (both empty for an
    exact value); ``sure``  share of the resamples that a word needs
    """
    bounds = [printed.share(b) for b in (value.low, value.high) if b is not None]
    low, high = (min(bounds), max(bounds)) if len(bounds) == 2 else (None, None)
    share = Estimate(printed.share(value.value), low, high, value.rounds, value.exact)
    if not len(found):
        return printed.word(value.value), share
    words = np.array([printed.word(v) for v in found])
    weights = times / times.sum()
    for word in ("as large", "weaker", "stronger"):
        if float(weights[words == word].sum()) >= sure:
            return word, share
    return "size unclear", share


def together(words: Sequence[SizeWord]) -> SizeWord:
    """One word for several sizes."""
    known = {word for word in words if word}
    if len(known) < 2:
        return next(iter(known), "")
    return "mixed sizes"


def printed_numbers(paper: Paper, claim: Claim, n: int | None, hw: str = "") -> list[Decimal]:
    """The numbers that a claim prints at a size: one, that of the device ``hw``, or those of all
    the paper's devices. Texts are left out."""
    by_device = paper.by_device(claim)
    own = [by_device[hw]] if hw in by_device else list(by_device.values())
    found = []
    for text in own or [claim.published(n)]:
        with contextlib.suppress(InvalidOperation):
            found.append(Decimal(text))
    return [number for number in found if math.isfinite(number)]
