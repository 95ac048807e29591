"""Deterministic counts of the fitness workload: what follows from n, without a run.

:func:`count` is what claims of papers call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from nqbench.errors import StudyError
from nqbench.system.suggest import suggestion
from nqbench.workloads.fitness import traffic
from nqbench.workloads.fitness.boards import conflicts, random_board

SAMPLE: Final = 2000
"""Random boards of a mean: at n = 100 its standard error is then about 0.3% of it."""
_SAMPLED_QUEENS: Final = 4_000_000
"""Queens of all boards of a sample: larger boards vary less, so that fewer of them do."""


def count(name: str, *, full: bool = False, **params: Any) -> int | float:  # noqa: ARG001 (none is long)
    """The count called ``name`` (a key of :data:`COUNTS`) at the size ``N``.

    Raises ``StudyError`` for a name, a parameter or a size that does not exist.
    """
    if name not in COUNTS:
        raise StudyError(f"no count is called {name!r}; {suggestion(name, COUNTS)}")
    n = params.pop("N", None)
    if params:
        raise StudyError(f"this count takes no parameter {next(iter(params))!r}, only N")
    if not isinstance(n, int) or n < 1:
        raise StudyError(f"a count needs a board size, a whole number N, not {n!r}")
    return COUNTS[name](n)


def expected_conflicts_random(n: int) -> float:
    """Mean conflicts over all permutations.

    Two queens at a distance d in columns have that distance in rows in 2(n-d) of n(n-1) cases, and
    there are n-d such pairs of columns: the sum over d is (2n-1)/3.
    """
    return (2 * n - 1) / 3 if n > 1 else 0.0


@lru_cache(maxsize=32)
def mean_conflicts_random(n: int) -> float:
    """Mean conflicts of boards drawn with the seeds 1, 2, ...: at most :data:`SAMPLE` of them."""
    boards = max(1, min(SAMPLE, _SAMPLED_QUEENS // n))
    return sum(conflicts(random_board(n, seed)) for seed in range(1, boards + 1)) / boards


COUNTS: Final[Mapping[str, Callable[[int], int | float]]] = MappingProxyType(
    {
        "pairs": traffic.pairs,
        "diagonals": traffic.diagonals,
        "mean_conflicts_random": mean_conflicts_random,
        "expected_conflicts_random": expected_conflicts_random,
    }
)
""":func:`count` by name."""
