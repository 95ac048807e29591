"""The histogram kernels: one board or a batch, counters in shared or global memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np

from nqbench.facts import DeviceFacts
from nqbench.plan import Argument, Buffer, Kernel
from nqbench.workloads.fitness.boards import Board
from nqbench.workloads.fitness.counts import COUNTER_BYTES, QUEEN_BYTES, batch_of, diagonals
from nqbench.workloads.fitness.levels import (
    check_device_bytes,
    check_grid,
    check_host_bytes,
    check_shared,
    check_threads,
)
from nqbench.workloads.fitness.programs import BOARD, CONFLICTS, Layout, board_buffer
from nqbench.workloads.levels import Levels, number

SOURCE: Final = Path(__file__).with_name("histogram.cu")
_WAVES: Final = 4
"""Blocks of the last sum per multiprocessor, over all boards: enough to fill it, few enough that
their sums cost nothing."""
_RESULT_BYTES: Final = 8

STATIC_BYTES: Final = 32 * 8
"""Shared memory of the sum over a block: a 64-bit word for each of at most 32 warps."""

_HALF_LIMIT: Final = 65_535
"""Queens on one diagonal that a 16-bit counter holds."""

_BLOCK: Final = {"shared": 1024, "global": 256}
"""Default threads per block: one block does all the work on a board whose counters
are in shared memory; otherwise blocks are small, so that the multiprocessors get equal work."""

_BATCH_BLOCKS: Final = (256, 512, 1024)
"""The same for a batch, whose boards share a multiprocessor: the smallest that fills it with
threads although its shared memory holds few blocks."""


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


def resolve_counters(levels: Levels, device: DeviceFacts) -> Counters:
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
        check_shared(n, shared.nbytes + STATIC_BYTES, device)
        return shared
    return Counters("global", 1, _rounded(diagonals(n)))


def shared_counters(n: int, device: DeviceFacts) -> Counters:
    """One counter per word if this fits without opting in, else two counters in a word."""
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


def _rounded(words: int) -> int:
    return -(-words // 4) * 4


def resolve_histogram(levels: Levels, device: DeviceFacts) -> dict[str, int | float | str]:
    """Check against the device, resolve ``auto`` in place; the derived numbers."""
    counters = resolve_counters(levels, device)
    check_threads(levels, device)
    n, batch, block = number(levels, "n"), batch_of(levels), number(levels, "block_size")
    sent = QUEEN_BYTES * pitch(n) * batch
    counted = counters.nbytes * batch if counters.memory == "global" else 0
    needed = sent + counted + _RESULT_BYTES * batch
    check_device_bytes(levels, needed, device)
    check_host_bytes(levels, 2 * sent, device)  # the boards, and their padded copy
    blocks = batch
    if counters.memory == "global":
        blocks = batch * _blocks_per_board(n, block)
        check_grid(levels, max(blocks * block, _quads(counters, batch)), device)
    return {
        "blocks": blocks,
        "gpu_threads": blocks * block,
        "shared_bytes": counters.nbytes + STATIC_BYTES if counters.memory == "shared" else 0,
        "counter_bytes": counters.nbytes,
        "device_bytes": needed,
        "transfer_bytes": sent + _RESULT_BYTES * batch,
    }


def layout(levels: Levels, boards: Board, device: DeviceFacts) -> Layout:
    """Kernels and buffers for ``boards`` of shape ``(batch, n)``."""
    counters = resolve_counters(levels, device)
    n, batch, block = number(levels, "n"), batch_of(levels), number(levels, "block_size")
    tally, words = levels["tally"], counters.words
    board = board_buffer(boards, pitch(n))
    results = Buffer(CONFLICTS, "uint64", batch)

    def kernel(
        entry: str, blocks: int, *arguments: Argument, shared: int = 0, static: int = STATIC_BYTES
    ) -> Kernel:
        return Kernel(SOURCE, entry, arguments, (blocks, 1, 1), (block, 1, 1), shared, static)

    shape = (BOARD, np.int32(n), np.int32(pitch(n)))
    arguments: tuple[Argument, ...]
    if counters.memory == "shared":
        entry = f"count_shared<Full, {counters.per_word}, Tally::{tally}>"
        arguments = (*shape, np.int32(words), CONFLICTS)
        count = kernel(entry, batch, *arguments, shared=counters.nbytes)
        return Layout({"count": count}, ("count",), (board, results))
    blocks, quads = _blocks_per_board(n, block), _quads(counters, batch)
    arguments = (*shape, np.int32(blocks), np.int64(words), "counters", CONFLICTS)
    kernels = {
        "count": kernel(
            f"count_global<Full, Tally::{tally}>",
            *(blocks * batch, *arguments),
            static=STATIC_BYTES if tally == "arrival" else 0,
        ),
        "clear": kernel(
            *("clear", -(-quads // block)),
            *("counters", np.int64(quads), CONFLICTS, np.int32(batch)),
            static=0,
        ),
    }
    if tally == "final":
        per_board = -(-_WAVES * device.multiprocessors // batch)
        blocks = max(1, min(per_board, -(-words // (4 * block))))
        arguments = ("counters", np.int32(blocks), np.int64(words), CONFLICTS)
        kernels["sum"] = kernel("sum_global", blocks * batch, *arguments)
    order = tuple(name for name in ("clear", "count", "sum") if name in kernels)
    space = Buffer("counters", "uint32", words * batch)
    return Layout(kernels, order, (board, space, results))


def _blocks_per_board(n: int, block: int) -> int:
    """Each thread counts four queens."""
    return -(-pitch(n) // (4 * block))


def _quads(counters: Counters, batch: int) -> int:
    """Groups of four counters; at least one for each board, whose result is cleared with it."""
    return counters.words * batch // 4
