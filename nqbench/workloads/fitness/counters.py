"""Where the histogram kernels count: words of the counters, and what they take of a block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from nqbench.facts import DeviceFacts
from nqbench.point import Level
from nqbench.workloads.fitness import limits
from nqbench.workloads.fitness.levels import Levels
from nqbench.workloads.fitness.traffic import COUNTER_BYTES, diagonals
from nqbench.workloads.levels import number

STATIC_BYTES: Final = 32 * 8
"""Shared memory of the sum over a block: a 64-bit word for each of at most 32 warps."""

_HALF_LIMIT: Final = 65_535
"""Queens on one diagonal that a 16-bit counter holds."""

_BLOCK: Final = {"shared": 1024, "global": 256}
"""Threads per block where none is asked for: one block does all the work on a board whose counters
are in shared memory; otherwise blocks are small, so that the multiprocessors get equal shares."""

_BATCH_BLOCKS: Final = (256, 512, 1024)
"""The same for a batch, whose boards share a multiprocessor: the least that fills it with threads
although its shared memory holds few blocks."""


@dataclass(frozen=True, slots=True)
class Counters:
    """``words`` of 32 bits for each board (a multiple of four, as they are cleared in fours)."""

    memory: Literal["shared", "global"]
    per_word: int
    words: int

    @property
    def nbytes(self) -> int:
        """Bytes for one board."""
        return COUNTER_BYTES * self.words


def pitch(n: int) -> int:
    """Columns of a board in memory: rounded up to four, which a thread reads at once."""
    return -(-n // 4) * 4


def settle_counters(levels: Levels, device: DeviceFacts) -> Counters:
    """Resolve ``counters`` and ``block_size`` in place. Raises ``InfeasibleError``."""
    n = number(levels, "n")
    shared = shared_counters(n, device)
    fits = shared.nbytes + STATIC_BYTES <= device.shared_per_block_optin
    if levels["counters"] == "auto":
        levels["counters"] = "shared" if fits and n <= _HALF_LIMIT else "global"
    if levels["block_size"] == "auto":
        single = levels["batch"] in ("-", 1)
        memory = str(levels["counters"])
        of_board = single or memory == "global"
        levels["block_size"] = _BLOCK[memory] if of_board else _batch_block(shared, device)
    if levels["counters"] == "shared":
        limits.check_shared(n, shared.nbytes + STATIC_BYTES, device)
        return shared
    return Counters("global", 1, _rounded(diagonals(n)))


def shared_counters(n: int, device: DeviceFacts) -> Counters:
    """Whole words where they fit what every block may take, else two counters in a word."""
    whole = Counters("shared", 1, _rounded(diagonals(n)))
    if whole.nbytes + STATIC_BYTES <= device.shared_per_block or n > _HALF_LIMIT:
        return whole
    return Counters("shared", 2, _rounded(-(-diagonals(n) // 2)))


def _batch_block(counters: Counters, device: DeviceFacts) -> int:
    taken = counters.nbytes + STATIC_BYTES + device.shared_reserved_per_block
    resident = max(1, device.shared_per_multiprocessor // taken)
    wanted = device.max_threads_per_multiprocessor // resident
    most = min(_BATCH_BLOCKS[-1], device.max_threads_per_block)
    return next((size for size in _BATCH_BLOCKS if size >= wanted), most)


def batch_of(levels: Mapping[str, Level]) -> int:
    """Boards in one launch."""
    batch = levels.get("batch")
    return batch if isinstance(batch, int) else 1


def _rounded(words: int) -> int:
    return -(-words // 4) * 4
