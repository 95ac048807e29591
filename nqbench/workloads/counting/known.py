"""Known numbers of solutions, with their source, and sizes of the search tree."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

SOURCE: Final = "OEIS A000170; N = 26 and 27: Preusser et al. (2009, 2016), FPGA searches"

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


def nodes(n: int) -> float:
    """Nodes of the whole search tree; beyond the table by the ratio of nodes to solutions, which
    grows by a few units per row (75.1, 77.3, 83.7 at N = 15, 16, 17)."""
    if n in NODES:
        return float(NODES[n])
    last = max(NODES)
    ratio = NODES[last] / SOLUTIONS[last]
    growth = ratio - NODES[last - 1] / SOLUTIONS[last - 1]
    return SOLUTIONS[n] * (ratio + growth * (n - last))
