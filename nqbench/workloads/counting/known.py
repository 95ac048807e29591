"""Known numbers of solutions, with their source, and sizes of the search tree."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

TREND: Final = 4
"""Rows over which the trend of a ratio is taken; even, since odd boards differ a little."""


def _from(first: int, *values: int) -> Mapping[int, int]:
    """The values by board size, from the first size on."""
    return MappingProxyType(dict(enumerate(values, first)))


SOLUTIONS: Final[Mapping[int, int]] = _from(1,
    1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2_680, 14_200, 73_712, 365_596, 2_279_184, 14_772_512,
    95_815_104, 666_090_624, 4_968_057_848, 39_029_188_884, 314_666_222_712, 2_691_008_701_644,
    24_233_937_684_440, 227_514_171_973_736, 2_207_893_435_808_352, 22_317_699_616_364_044,
    234_907_967_154_122_528,
)  # fmt: skip
"""a(n): OEIS A000170; N = 26 and 27: Preusser et al. (2009, 2016), FPGA searches."""

NODES: Final[Mapping[int, int]] = _from(1,
    1, 2, 5, 16, 53, 152, 551, 2_056, 8_393, 35_538, 166_925, 856_188, 4_674_889, 27_358_552,
    171_129_071, 1_141_190_302, 8_017_021_931,
)  # fmt: skip
"""Nodes of the whole search tree: valid placements of 1..N rows, by enumeration."""


EIGHTH_NODES: Final[Mapping[int, int]] = _from(5,
    11, 31, 112, 420, 1_601, 6_812, 29_928, 154_026, 806_258, 4_776_682, 29_029_342,
    195_070_674, 1_344_617_467, 10_045_012_463,
)  # fmt: skip
"""Nodes of one eighth of the tree, by the rule of ``border``, by enumeration."""


def nodes(n: int, table: Mapping[int, int] = NODES) -> float:
    """Nodes of the whole search tree, or of the part that ``table`` has.

    Beyond the table by the ratio of nodes to solutions, which grows by about as much every row:
    that of the whole tree by 4.7 (63.4, 74.8, 75.1, 77.3, 83.7 at N = 13 .. 17), that of one eighth
    by 0.6 (13.1, 12.7, 13.2, 14.0, 15.1 at N = 14 .. 18).
    """
    if n in table:
        return float(table[n])
    last = max(table)
    ratio = {k: table[k] / SOLUTIONS[k] for k in range(last - TREND - 1, last + 1)}
    growth = sum(ratio[k] - ratio[k - TREND] for k in (last - 1, last)) / (2 * TREND)
    alike = last if (n - last) % 2 == 0 else last - 1
    return solutions(n) * (ratio[alike] + growth * (n - alike))


def solutions(n: int) -> float:
    """a(n); beyond the table by the growth per row, which itself grows by as much every row (9.29,
    9.70, 10.11, 10.53 at N = 24 .. 27)."""
    if n in SOLUTIONS:
        return float(SOLUTIONS[n])
    last = max(SOLUTIONS)
    growth = [SOLUTIONS[k] / SOLUTIONS[k - 1] for k in (last - 1, last)]
    found = float(SOLUTIONS[last])
    for row in range(1, n - last + 1):
        found *= growth[1] + (growth[1] - growth[0]) * row
    return found
