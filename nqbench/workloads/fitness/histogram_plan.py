"""The histogram kernels as a program: one board or a batch, counters in shared or global memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from nqbench.facts import DeviceFacts
from nqbench.plan import Buffer, Kernel
from nqbench.point import Level
from nqbench.workloads.fitness import limits
from nqbench.workloads.fitness.boards import Board
from nqbench.workloads.fitness.counters import (
    STATIC_BYTES,
    Counters,
    batch_of,
    pitch,
    settle_counters,
)
from nqbench.workloads.fitness.layout import Layout, board_buffer
from nqbench.workloads.fitness.levels import Levels
from nqbench.workloads.fitness.programs import CONFLICTS
from nqbench.workloads.fitness.traffic import QUEEN_BYTES
from nqbench.workloads.levels import number

SOURCE: Final = Path(__file__).with_name("histogram.cu")
_WAVES: Final = 4
"""Blocks of the last sum per multiprocessor, over all boards: enough to fill it, few enough that
their sums cost nothing."""
_RESULT_BYTES: Final = 8


def settle(levels: Levels, device: DeviceFacts) -> dict[str, int | float | str]:
    """Check against the device, resolve ``auto`` in place, and derive."""
    counters = settle_counters(levels, device)
    limits.check_threads(levels, device)
    n, batch, block = number(levels, "n"), batch_of(levels), number(levels, "block_size")
    sent = QUEEN_BYTES * pitch(n) * batch
    counted = counters.nbytes * batch if counters.memory == "global" else 0
    needed = sent + counted + _RESULT_BYTES * batch
    limits.check_device_bytes(levels, needed, device)
    limits.check_host_bytes(levels, 2 * sent, device)  # the boards, and their padded copy
    blocks = batch
    if counters.memory == "global":
        blocks = batch * _blocks_per_board(n, block)
        limits.check_grid(levels, max(blocks * block, _quads(counters, batch)), device)
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
    counters = settle_counters(levels, device)
    board = board_buffer(boards, pitch(number(levels, "n")))
    results = Buffer(CONFLICTS, "uint64", batch_of(levels))
    if counters.memory == "shared":
        kernel = _count_shared(levels, counters)
        return Layout({"count": kernel}, ("count",), (board, results))
    space = Buffer("counters", "uint32", counters.words * batch_of(levels))
    kernels = {
        "count": _count_global(levels, counters),
        "clear": _clear(levels, counters),
    }
    order: tuple[str, ...] = ("clear", "count")
    if levels["tally"] == "final":
        kernels["sum"] = _sum(levels, counters, device)
        order = (*order, "sum")
    return Layout(kernels, order, (board, space, results))


def _count_shared(levels: Mapping[str, Level], counters: Counters) -> Kernel:
    n = number(levels, "n")
    return Kernel(
        source=SOURCE,
        entry=f"count_shared<{counters.per_word}, Tally::{levels['tally']}>",
        arguments=(
            *("board", np.int32(n), np.int32(pitch(n)), np.int32(counters.words)),
            CONFLICTS,
        ),
        grid=(batch_of(levels), 1, 1),
        block=(number(levels, "block_size"), 1, 1),
        shared_bytes=counters.nbytes,
        static_shared_bytes=STATIC_BYTES,
    )


def _count_global(levels: Mapping[str, Level], counters: Counters) -> Kernel:
    n, block = number(levels, "n"), number(levels, "block_size")
    blocks = _blocks_per_board(n, block)
    return Kernel(
        source=SOURCE,
        entry=f"count_global<Tally::{levels['tally']}>",
        arguments=(
            *("board", np.int32(n), np.int32(pitch(n)), np.int32(blocks)),
            *(np.int64(counters.words), "counters", CONFLICTS),
        ),
        grid=(blocks * batch_of(levels), 1, 1),
        block=(block, 1, 1),
        static_shared_bytes=STATIC_BYTES if levels["tally"] == "arrival" else 0,
    )


def _clear(levels: Mapping[str, Level], counters: Counters) -> Kernel:
    block, batch = number(levels, "block_size"), batch_of(levels)
    quads = _quads(counters, batch)
    return Kernel(
        source=SOURCE,
        entry="clear",
        arguments=("counters", np.int64(quads), CONFLICTS, np.int32(batch)),
        grid=(-(-quads // block), 1, 1),
        block=(block, 1, 1),
    )


def _sum(levels: Mapping[str, Level], counters: Counters, device: DeviceFacts) -> Kernel:
    block, batch = number(levels, "block_size"), batch_of(levels)
    per_board = -(-_WAVES * device.multiprocessors // batch)
    blocks = max(1, min(per_board, -(-counters.words // (4 * block))))
    return Kernel(
        source=SOURCE,
        entry="sum_global",
        arguments=("counters", np.int32(blocks), np.int64(counters.words), CONFLICTS),
        grid=(blocks * batch, 1, 1),
        block=(block, 1, 1),
        static_shared_bytes=STATIC_BYTES,
    )


def _blocks_per_board(n: int, block: int) -> int:
    """Each thread counts four queens."""
    return -(-pitch(n) // (4 * block))


def _quads(counters: Counters, batch: int) -> int:
    """Groups of four counters; at least one for each board, whose result is cleared with it."""
    return counters.words * batch // 4
