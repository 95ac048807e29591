"""Operations and bytes of one move: what the hardware's limits on a search follow from.

An operation is an addition, subtraction, multiplication or square root in single precision, a
fused multiply-add is two; a distance takes six. Bytes are those that a thread asks for, wherever
they are served from: all data of an instance fit the L2 cache, so that device memory sees them
once per launch at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nqbench.point import Level

_DISTANCE: Final = 6
_CITY_BYTES: Final = 4 + 8  # its number in the tour, and its coordinates
_PLACE_BYTES: Final = 8 + 4  # coordinates in tour order, and the cost of its two edges
_MAPPING: Final = {"quadratic": 6, "rearranged": 7}
"""Of the mapping: multiply 2 k, b b - 8 k, root, and the row from it."""


def traffic(levels: Mapping[str, Level]) -> dict[str, int | float | str]:
    """``operations_per_move``, ``roots_per_move`` and ``bytes_per_move`` of the evaluation, and the
    ``fp32_instructions_per_move`` that the operations take at least: one each, but that tiles fuse
    two of a distance and leave its root to the special function units.

    For two positions that are not neighbours, with whole tiles: eight distances and seven
    additions, or, tiled, (X + 2) / X distances and four additions, and one for each row. The few
    moves that tiles look at twice are not in it.
    """
    kernel = levels["kernel"]
    if kernel in ("tiled", "resident"):
        across = int(str(levels["tile_x"]))
        distances = (across + 2) / across
        return {
            "operations_per_move": _DISTANCE * distances + 4 + 1 / across,
            "fp32_instructions_per_move": 4 * distances + 4 + 1 / across,
            "roots_per_move": distances,
            "bytes_per_move": _PLACE_BYTES / across,
        }
    mapping = _MAPPING.get(str(levels["mapping"]), 0)
    operations = 8 * _DISTANCE + 7 + mapping
    return {
        "operations_per_move": operations,
        "fp32_instructions_per_move": operations,
        "roots_per_move": 8 + (1 if mapping else 0),
        "bytes_per_move": 6 * _CITY_BYTES,
    }
