"""The parts of a GPU scheme that its program puts together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nqbench.plan import Buffer, Kernel
from nqbench.workloads.fitness.boards import Board


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """``kernels`` the main one first, ``order`` as launched, ``clears`` the buffers set to zero."""

    kernels: Mapping[str, Kernel]
    order: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    clears: tuple[str, ...] = ()


def board_buffer(boards: Board, columns: int = 0) -> Buffer:
    """Boards of shape ``(batch, n)`` one after the other, each padded to ``columns``."""
    batch, n = boards.shape
    padded = np.zeros((batch, max(n, columns)), np.int32)
    padded[:, :n] = boards
    return Buffer("board", "int32", padded.size, data=padded.reshape(-1))
