"""Known numbers of solutions, with their source, and sizes of the search tree."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

TREND: Final = 4
"""Rows over which the trend of a ratio is taken; even, since odd boards differ a little."""


_TABLES: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_BY_SIZE: Final[Mapping[str, Mapping[int, int]]] = {
    name: dict(enumerate(_TABLES[name], first)) for name, first in _TABLES["first"].items()
}
"""By board size; ``known.toml`` says where they come from."""
SOLUTIONS, NODES, EIGHTH_NODES = _BY_SIZE.values()


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
