"""What the tests of this workload are held against."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def brute_force(board: NDArray[np.integer[Any]]) -> int:
    """Conflicts of a board, by comparing all pairs. O(n^2) time, O(n) memory."""
    row = board.astype(np.int64)
    return sum(
        int(np.count_nonzero(np.abs(row[i + 1 :] - row[i]) == np.arange(1, row.size - i)))
        for i in range(row.size)
    )
