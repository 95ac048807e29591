"""The split on the CPU: every valid placement of the first rows becomes one job.

Sources: feinbube2010 section V.A and Figure 3 (``rows``), tanaka2011 sections 3.1 and 3.2
(``base_n``), zhang2011 section 3 (``masks``; k = N - 11 and depth-first order reproduce that
paper's numbers).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from nqbench.system.machine import timed

Encoding = Literal["rows", "base_n", "masks", "packed"]
Symmetry = Literal["none", "mirror", "full"]
"""``full``: all eight symmetries of the square, by the rule of ``border``."""
OddRule = Literal["restrict_second", "full_middle"]
"""Odd N under mirror symmetry, first queen in the middle column: the second queen is kept left of
the middle (all jobs weigh 2), or is free (these jobs weigh 1)."""

ODD_RULES: Final[dict[str, OddRule]] = {
    "rows": "restrict_second",
    "base_n": "restrict_second",
    "masks": "full_middle",
    "packed": "full_middle",
}
"""tanaka2011 bounds the first two digits by N^m / 2, which is the first rule; feinbube2010 must do
the same, since its kernel doubles every result; zhang2011's 7432 jobs at N = 15 need the second."""

_ENCODINGS: Final = ("rows", "base_n", "masks")
CLOSED_JOBS: Final = {
    (16, 8): 3_564_316,
    (17, 8): 8_993_143,
    (18, 8): 20_877_118,
    (19, 8): 70_061_315,
    (20, 8): 146_337_522,
}
"""Jobs of a board and a number of rows for `loop: unrolled` (`border.count_jobs`, closed), of
boards that are searched so fast that counting the jobs would show in the total."""

_COUNTED: Final[dict[tuple[int, int, Symmetry, OddRule, bool], tuple[int, int, float]]] = {
    (n, depth, "full", "full_middle", True): (jobs, jobs, 0.0)
    for (n, depth), jobs in CLOSED_JOBS.items()
}
"""Numbers of jobs known so far (one more than the limit where there are more), the limit, and the
seconds to count them: a point's are counted under several limits."""

_KEPT_BYTES: Final = 64 * 2**20
_KEPT: Final = 4
"""Job arrays kept in memory, and the size of each at most: enough for the points of a study of a
few N to share them."""


@dataclass(frozen=True, slots=True, eq=False)
class Jobs:
    """Encoded jobs, in depth-first order.

    ``words``       read-only, shape ``(count * words_per_job,)``: int32 one-hot rows, int32 base-N
                    numbers, or uint32 (columns, left, right)
    ``light_from``  first job that counts once instead of twice; ``count`` if there is none
    ``split_s``     seconds to make them, without compilation; median of up to five
    """

    words: NDArray[Any]
    count: int
    light_from: int
    split_s: float


def words_per_job(encoding: Encoding, depth: int) -> int:
    """32-bit words that one job takes."""
    return {"rows": depth, "base_n": 1, "masks": 3, "packed": 4}[encoding]


def _first_columns(n: int, symmetry: Symmetry) -> int:
    return n if symmetry == "none" else (n + 1) // 2


def count_jobs(
    n: int,
    depth: int,
    symmetry: Symmetry = "mirror",
    odd_rule: OddRule = "restrict_second",
    limit: int = 2**62,
    closed: bool = False,
) -> int:
    """Number of jobs for ``depth >= 2``, or ``limit + 1`` once there are more than ``limit``.

    ``closed``: with more rows where the rule of ``symmetry: full`` asks for it (``border``).
    """
    if symmetry == "full":
        odd_rule = "full_middle"
    key = (n, depth, symmetry, odd_rule, closed)
    found, up_to, _ = _COUNTED.get(key, (1, 0, 0.0))
    if found > up_to and limit > up_to:
        _count(5, 2, symmetry, odd_rule, limit, closed)  # compiles before the clock starts
        started = time.perf_counter()
        found = _count(n, depth, symmetry, odd_rule, limit, closed)
        _COUNTED[key] = found, limit, time.perf_counter() - started
    return min(found, limit + 1)


def counting_s(n: int, depth: int, closed: bool) -> float:
    """Seconds that it took to count the jobs of ``symmetry: full``; at least once they must be."""
    return _COUNTED[n, depth, "full", "full_middle", closed][2]


def _count(
    n: int, depth: int, symmetry: Symmetry, odd_rule: OddRule, limit: int, closed: bool
) -> int:
    if symmetry == "full":
        from nqbench.workloads.counting import border

        return border.count_jobs(n, depth, limit, closed)
    from nqbench.workloads.counting.search import prefixes  # numba: slow to import

    restrict = symmetry == "mirror" and odd_rule == "restrict_second"
    first = (1 << _first_columns(n, symmetry)) - 1
    return int(prefixes(n, depth, first, restrict, 0, limit, np.empty(0, np.int32)))


def make_jobs(
    n: int, depth: int, encoding: Encoding, symmetry: Symmetry = "mirror", closed: bool = False
) -> Jobs:
    """All jobs of a board in one encoding; the last ones are kept if they are not too large."""
    count = count_jobs(n, depth, symmetry, ODD_RULES[encoding], closed=closed)
    if 4 * words_per_job(encoding, depth) * count > _KEPT_BYTES:
        return split(n, depth, encoding, symmetry, closed)
    return _recent(n, depth, encoding, symmetry, closed)


def split(n: int, depth: int, encoding: Encoding, symmetry: Symmetry, closed: bool = False) -> Jobs:
    """Make the jobs (see :func:`make_jobs`) without the cache, on all cores, timed."""
    odd_rule = ODD_RULES[encoding]
    words_of_jobs(5, 2, encoding, symmetry, odd_rule, closed)  # compiles before the clock starts
    words, split_s = timed(lambda: words_of_jobs(n, depth, encoding, symmetry, odd_rule, closed))
    words.flags.writeable = False
    count = light_from = words.size // words_per_job(encoding, depth)
    if encoding == "masks" and symmetry == "mirror" and n % 2 == 1:
        light_from = 2 * count_jobs(n, depth) - count  # half of the others have a mirror image
    return Jobs(words, count, light_from, split_s)


def words_of_jobs(
    n: int,
    depth: int,
    encoding: Encoding,
    symmetry: Symmetry,
    odd_rule: OddRule,
    closed: bool = False,
) -> NDArray[Any]:
    """The words of all jobs (``Jobs``), under either rule for odd boards."""
    if symmetry == "full":
        from nqbench.workloads.counting import border

        return border.jobs(n, depth, closed)
    from nqbench.workloads.compiled import in_order
    from nqbench.workloads.counting.search import prefixes

    restrict = symmetry == "mirror" and odd_rule == "restrict_second"
    width, code = words_per_job(encoding, depth), _ENCODINGS.index(encoding)

    def below(first_queen: int, out: NDArray[Any]) -> int:
        return width * int(prefixes(n, depth, first_queen, restrict, code, 2**62, out))

    first_queens = [1 << c for c in range(_first_columns(n, symmetry))]
    return in_order(first_queens, below, np.uint32 if encoding == "masks" else np.int32)


_recent = lru_cache(maxsize=_KEPT)(split)
