"""The protocol of simulated annealing: temperatures, acceptance, and the numbers it draws.

Everything here is integer arithmetic that a CPU, a GPU and the simulator do identically, so one
seed gives one walk, whatever evaluates the boards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import InfeasibleError
from nqbench.point import FactorLevels
from nqbench.workloads.fitness.factors import ATTACKED, COOLED, MILLI
from nqbench.workloads.levels import Levels, number

MAX_RISE: Final = 32
"""A move that adds more conflicts than this is always refused. At the highest temperature allowed,
2, its chance would be 1e-7, which changes no walk in practice."""

ATTACKED_LIMIT: Final = 2000
"""Proposals per queen after which `proposal: attacked` gives up. It needs about 8 per queen from
100 queens on, at temperature 0.2; 0.15 needs as many and 0.25 a quarter more."""

ATTACKED_MIN: Final = 500_000
"""The least limit, for boards so small that chance dominates: the longest of 5,000 runs with 6
queens, which have 4 solutions among 720 permutations, took 28,030 proposals."""

MAX_EVALUATIONS: Final = 2**32 - 2**16
"""Proposals are numbered in 32 bits, and a warp looks a little ahead."""

_MASK: Final = (1 << 64) - 1
GOLDEN: Final = 0x9E3779B97F4A7C15
_SHUFFLE: Final = 0xD1B54A32D192ED03


@dataclass(frozen=True, slots=True)
class Cooling:
    """Temperatures of a run, geometric from ``start`` down to ``end`` (conflicts), and its length.

    ``factor``           ratio of successive temperatures
    ``moves_per_queen``  proposals at each temperature, over n
    ``max_evaluations``  an earlier end, 0: no limit
    ``attacked``         the first queen of a proposal is one in conflict, at ``start`` throughout
    """

    start: float
    end: float
    factor: float
    moves_per_queen: int
    max_evaluations: int = 0
    attacked: bool = False

    @classmethod
    def constant(cls, temperature: int, limit: int = 0) -> Cooling:
        """`proposal: attacked`, at one temperature (thousandths)."""
        at = temperature / MILLI
        return cls(at, at, 1.0, 1, limit, attacked=True)

    @classmethod
    def from_levels(cls, levels: FactorLevels) -> Cooling:
        """From the factors of a point."""
        start, limit = number(levels, "start_temperature"), number(levels, "max_evaluations")
        if levels.get("proposal") == "attacked":
            return cls.constant(start, limit)
        end, factor = number(levels, "end_temperature"), number(levels, "cooling")
        moves = number(levels, "moves_per_queen")
        return cls(start / MILLI, end / MILLI, factor / MILLI, moves, limit)

    @property
    def temperatures(self) -> list[float]:
        """Every temperature, the highest first."""
        if self.attacked:
            return [self.start]
        steps = math.log(self.end / self.start) / math.log(self.factor)
        return [self.start * self.factor**k for k in range(math.floor(steps + 1e-9) + 1)]

    def moves(self, n: int) -> int:
        """Proposals at each temperature; no run has more than ``MAX_EVALUATIONS`` of them."""
        return self.limit(n) if self.attacked else min(self.moves_per_queen * n, MAX_EVALUATIONS)

    def full_length(self, n: int) -> int:
        """Proposals of a run without an earlier limit that finds nothing."""
        if self.attacked:
            return min(max(ATTACKED_LIMIT * n, ATTACKED_MIN), MAX_EVALUATIONS)
        return min(len(self.temperatures) * self.moves_per_queen * n, MAX_EVALUATIONS)

    def limit(self, n: int) -> int:
        """Proposals after which a run ends without success."""
        full = self.full_length(n)
        return min(full, self.max_evaluations) if self.max_evaluations else full

    def table(self) -> NDArray[np.uint32]:
        """Chances of acceptance, shape ``(temperatures, MAX_RISE)``: at temperature T a rise of
        d conflicts is accepted when a 32-bit random number is below ``table[., d - 1]``, which is
        2^32 exp(-d / T) (Metropolis)."""
        rises = np.arange(1, MAX_RISE + 1)
        chances: NDArray[np.float64] = np.exp(-rises / np.array(self.temperatures)[:, np.newaxis])
        return np.minimum(chances * 2.0**32, 2.0**32 - 1).astype(np.uint32)


def resolve_schedule(levels: Levels) -> None:
    """Resolve ``auto`` of the schedule in place.

    Raises ``InfeasibleError`` for a schedule that never cools, or for factors of cooling without
    cooling.
    """
    attacked = levels.get("proposal") == "attacked"
    own = ATTACKED if attacked else COOLED
    for name in COOLED:
        if levels[name] not in ("auto", "-"):
            if name not in own:
                raise InfeasibleError(
                    f"{name}: {levels[name]} means nothing with proposal: attacked, which keeps"
                    f" start_temperature; leave {name} out",
                    name,
                )
        else:
            levels[name] = own.get(name, "-")
    if not attacked and number(levels, "end_temperature") > number(levels, "start_temperature"):
        raise InfeasibleError(
            f"end_temperature: {levels['end_temperature']} is above start_temperature:"
            f" {levels['start_temperature']}, and a search cools down; exchange them",
            "end_temperature",
        )


def mix(word: int) -> int:
    """The output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a 64-bit bijection.

    ``mix(key + t * GOLDEN)`` is number t of the stream ``key``: any number, without those before.
    """
    word &= _MASK
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & _MASK
    return word ^ (word >> 31)


def seed_key(seed: int) -> int:
    """The key that all chains of a seed share."""
    return mix(seed + GOLDEN)


def chain_key(seed: int, chain: int = 0) -> int:
    """The stream of one chain: its moves. A single walk is chain 0."""
    return mix(seed_key(seed) + chain * GOLDEN)


def shuffle_key(key: int) -> int:
    """The stream that shuffles the start of the chain ``key``."""
    return mix(key ^ _SHUFFLE)
