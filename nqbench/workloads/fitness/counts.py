"""What an evaluation moves and computes: bytes and operations as each scheme is written.

Both are counts of the algorithm, not measurements. ``bytes_moved`` sums what the threads load and
store (caches may serve a part of it), the initial clearing of counters included; transfers between
host and device are separate (``transfer_bytes``). The atomics of conflicts that are found are left
out, since their number depends on the board (2/3 n for a random one). ``operations`` counts
arithmetic on board values and indices; the bookkeeping of loops is left out.

With P = n(n-1)/2 pairs, and 4 bytes per queen:

========================  =======================  ==============================================
scheme                    bytes_moved              operations
========================  =======================  ==============================================
pairs, one by one         8 P                      4 P: two differences, an absolute value, a test
gpu_fine1                 16 P (8 are the pair)    4 P
gpu_fine2                 8 P                      4 P + 3 C(n+1, 3): a pair (x, y) takes x + 1
                                                   rounds of two subtractions and a test
row by row (coarse, cpu)  4 P + 4 n                4 P
gpu_cdp                   4 P + 4 n + 4 S          4 P; S sub-threads each read their row's queen
histogram                 4 n + 16 n + 4 (4n - 2)  6 n: for each diagonal its number (2), a count
                                                   and a sum
========================  =======================  ==============================================

The histogram reads the board, reads and writes a 4-byte counter for each of the two diagonals of a
queen, and clears 4n - 2 counters; with counters in shared memory only the board moves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import comb
from typing import Final

from nqbench.point import FactorLevels
from nqbench.workloads.fitness.boards import conflicts, random_board
from nqbench.workloads.levels import number

PAIR_BYTES: Final = 8
QUEEN_BYTES: Final = 4
WORD_BYTES: Final = 4
TESTS: Final = 4
"""Operations on one pair."""


def pairs(n: int) -> int:
    """Pairs of queens."""
    return n * (n - 1) // 2


def diagonals(n: int) -> int:
    """Diagonals in both directions."""
    return 2 * (2 * n - 1)


def sub_threads(n: int, threshold: int) -> int:
    """Sub-threads that ``gpu_cdp`` starts: ceil(w / threshold) for each row of w > threshold."""
    full, rest = divmod(n - 1, threshold)
    rows = sum(threshold * k for k in range(2, full + 1)) + rest * (full + 1)
    return rows if full else 0


def sub_kernels(n: int, threshold: int, nesting: int) -> int:
    """Kernels that ``gpu_cdp`` launches: one per level for each row of w > threshold.

    A row has ``nesting`` levels, or one for each of its sub-threads if these are fewer.
    """
    few = sum(
        levels * max(0, min(n - 1, threshold * levels) - threshold * (levels - 1))
        for levels in range(2, nesting)
    )
    return few + nesting * max(0, n - 1 - threshold * max(1, nesting - 1))


def batch_of(factors: FactorLevels) -> int:
    """Boards in one launch."""
    batch = factors.get("batch")
    return batch if isinstance(batch, int) else 1


def host_bytes(factors: FactorLevels) -> int:
    """Boards that a CPU scheme evaluates: one by one, then all together."""
    return 2 * QUEEN_BYTES * number(factors, "n") * batch_of(factors)


def traffic(factors: FactorLevels) -> dict[str, int]:
    """``bytes_moved``, ``operations`` and ``pairs`` of one evaluation (of the whole batch)."""
    n, scheme = number(factors, "n"), str(factors["scheme"])
    both = pairs(n)
    rows = {"bytes_moved": QUEEN_BYTES * (both + n), "operations": TESTS * both}
    if scheme == "gpu_fine1":
        rows["bytes_moved"] = (PAIR_BYTES + 2 * QUEEN_BYTES) * both
    elif scheme == "gpu_fine2":
        rows["bytes_moved"] = 2 * QUEEN_BYTES * both
        rows["operations"] += 3 * comb(n + 1, 3)
    elif scheme == "gpu_cdp":
        rows["bytes_moved"] += QUEEN_BYTES * sub_threads(n, number(factors, "threshold"))
    elif scheme in ("histogram", "batched", "cpu_histogram"):
        batch = batch_of(factors)
        counters = 4 * WORD_BYTES * n + WORD_BYTES * diagonals(n)
        moved = QUEEN_BYTES * n + (0 if factors.get("counters") == "shared" else counters)
        rows = {"bytes_moved": batch * moved, "operations": batch * 6 * n}
    return rows | {"pairs": both}


SAMPLE: Final = 2000
"""Random boards of a mean: at n = 100 its standard error is then about 0.3% of it."""
_SAMPLED_QUEENS: Final = 4_000_000
"""Queens of all boards of a sample: larger boards vary less, so fewer are enough."""


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


COUNTS: Final[Mapping[str, Callable[[int], int | float]]] = {
    "pairs": pairs,
    "diagonals": diagonals,
    "mean_conflicts_random": mean_conflicts_random,
    "expected_conflicts_random": expected_conflicts_random,
}
"""What claims of papers call: counts at a board size, by name."""
