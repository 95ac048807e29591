"""A GPU scheme as a program: its kernels and buffers, and the CPU's part of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import LaunchError
from nqbench.multi_launch import ProgramContext
from nqbench.plan import Buffer, Kernel
from nqbench.workloads.fitness.boards import Board

BOARD: Final = "board"
CONFLICTS: Final = "conflicts"


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
    return Buffer(BOARD, "int32", padded.size, data=padded.reshape(-1))


def evaluate(context: ProgramContext, *evaluation: Any) -> None:
    """Evaluate the plan's boards; ``evaluation`` are the last arguments of :func:`conflicts_of`.

    Keeps ``conflicts``: one 64-bit number per board.
    """
    context.keep(CONFLICTS, conflicts_of(context, None, *evaluation))


def conflicts_of(
    context: ProgramContext,
    candidate: NDArray[np.int32] | None,
    kernels: tuple[str, ...],
    per_call: tuple[str, ...],
    uploads: tuple[str, ...],
    clears: tuple[str, ...],
    nested: bool,
) -> NDArray[Any]:
    """Conflicts of ``candidate`` or, without one, of the plan's boards.

    Allocates (``per_call``), copies the boards, launches, fetches the conflicts, frees.

    ``nested``: the last number counts launches of sub-kernels that were refused; raises
    ``LaunchError`` if there are any, since their comparisons are missing.
    """
    if per_call:
        context.allocate(*per_call)
    for name in uploads:
        context.upload(name, candidate if name == BOARD else None)
    for name in clears:
        context.clear(name)
    for kernel in kernels:
        context.launch(kernel)
    conflicts = context.download(CONFLICTS)
    if per_call:
        context.free(*per_call)
    if nested:
        refused = int(conflicts[-1])
        conflicts = conflicts[:-1]
        if refused:
            raise LaunchError(
                f"the device refused {refused} launches of sub-kernels (too many wait at once, or"
                " its driver limits how deep they are nested), so comparisons are missing; use a"
                " larger threshold, less nesting, or gpu_coarse"
            )
    return conflicts
