"""Known numbers of solutions, with their source, and sizes of the search tree."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

TREND: Final = 4
"""Rows over which the trend of a ratio is taken; even, since odd boards differ a little."""

SOLUTIONS: Final[Mapping[int, int]] = MappingProxyType(
    {
        1: 1,
        2: 0,
        3: 0,
        4: 2,
        5: 10,
        6: 4,
        7: 40,
        8: 92,
        9: 352,
        10: 724,
        11: 2_680,
        12: 14_200,
        13: 73_712,
        14: 365_596,
        15: 2_279_184,
        16: 14_772_512,
        17: 95_815_104,
        18: 666_090_624,
        19: 4_968_057_848,
        20: 39_029_188_884,
        21: 314_666_222_712,
        22: 2_691_008_701_644,
        23: 24_233_937_684_440,
        24: 227_514_171_973_736,
        25: 2_207_893_435_808_352,
        26: 22_317_699_616_364_044,
        27: 234_907_967_154_122_528,
    }
)
"""a(n): OEIS A000170; N = 26 and 27: Preusser et al. (2009, 2016), FPGA searches."""

NODES: Final[Mapping[int, int]] = MappingProxyType(
    {
        1: 1,
        2: 2,
        3: 5,
        4: 16,
        5: 53,
        6: 152,
        7: 551,
        8: 2_056,
        9: 8_393,
        10: 35_538,
        11: 166_925,
        12: 856_188,
        13: 4_674_889,
        14: 27_358_552,
        15: 171_129_071,
        16: 1_141_190_302,
        17: 8_017_021_931,
    }
)
"""Nodes of the whole search tree: valid placements of 1..N rows, by enumeration."""


EIGHTH_NODES: Final[Mapping[int, int]] = MappingProxyType(
    {
        5: 11,
        6: 31,
        7: 112,
        8: 420,
        9: 1_601,
        10: 6_812,
        11: 29_928,
        12: 154_026,
        13: 806_258,
        14: 4_776_682,
        15: 29_029_342,
        16: 195_070_674,
        17: 1_344_617_467,
        18: 10_045_012_463,
    }
)
"""Nodes of one eighth of the tree, by the rule of ``border``, by enumeration."""


CLOSED_JOBS: Final[Mapping[tuple[int, int], int]] = MappingProxyType(
    {
        (16, 8): 3_564_316,
        (17, 8): 8_993_143,
        (18, 8): 20_877_118,
        (19, 8): 70_061_315,
        (20, 8): 146_337_522,
    }
)
"""Jobs of a board and a number of rows for `loop: unrolled` (`border.count_jobs`, closed), of
boards that are searched so fast that counting the jobs would show in the total."""


def nodes(n: int) -> float:
    """Nodes of the whole search tree; beyond the table by ``_with_trend``."""
    return _with_trend(NODES, n)


def eighth_nodes(n: int) -> float:
    """Nodes of one eighth of the tree; beyond the table by ``_with_trend``."""
    return _with_trend(EIGHTH_NODES, n)


def _with_trend(table: Mapping[int, int], n: int) -> float:
    """Nodes by the ratio of nodes to solutions, which grows by about as much every row: that of the
    whole tree by 4.7 (63.4, 74.8, 75.1, 77.3, 83.7 at N = 13 .. 17), that of one eighth by 0.6
    (13.1, 12.7, 13.2, 14.0, 15.1 at N = 14 .. 18)."""
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
