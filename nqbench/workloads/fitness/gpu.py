"""The GPU schemes as programs: buffers, kernels, grids, and variants of their main kernels."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import InfeasibleError, WrongDeviceError
from nqbench.facts import DeviceFacts
from nqbench.plan import Buffer, Kernel, KernelPlan, MultiLaunchPlan, Plan
from nqbench.point import Level
from nqbench.workloads.base import Variant
from nqbench.workloads.fitness import counts
from nqbench.workloads.fitness.boards import Board
from nqbench.workloads.fitness.histogram import layout, resolve_histogram
from nqbench.workloads.fitness.levels import (
    check_device_bytes,
    check_grid,
    check_host_bytes,
    check_nesting,
    check_threads,
)
from nqbench.workloads.fitness.programs import CONFLICTS, Layout, board_buffer
from nqbench.workloads.levels import Levels, number
from nqbench.workloads.variants import alone, built_as

PAIRWISE: Final = Path(__file__).with_name("pairwise.cu")
DYNAMIC: Final = Path(__file__).with_name("dynamic.cu")
PROGRAM: Final = "nqbench.workloads.fitness.programs:evaluate"
HISTOGRAMS: Final = ("histogram", "batched")
RESULT_BYTES: Final = 8

Numbers = dict[str, int | float | str]


def resolve_scheme(levels: Levels, device: DeviceFacts) -> Numbers:
    """Check a GPU scheme against the device, resolve ``auto`` in place; the derived numbers.

    Returns ``blocks`` and ``gpu_threads`` of the main kernel, ``device_bytes``, ``transfer_bytes``
    and what ``traffic`` counts. Raises ``InfeasibleError``.
    """
    scheme, n = str(levels["scheme"]), number(levels, "n")
    if scheme == "gpu_cdp" and device.kind == "sim":
        raise WrongDeviceError(
            "gpu_cdp launches kernels from a kernel (dynamic parallelism), which is not simulated;"
            " use a GPU (--device cuda:0), or gpu_coarse, which makes the same comparisons"
        )
    if scheme in HISTOGRAMS:
        return {**resolve_histogram(levels, device), **counts.traffic(levels)}
    if levels["block_size"] == "auto":
        levels["block_size"] = 512  # the paper's
    check_threads(levels, device)
    threads = counts.pairs(n) if scheme in ("gpu_fine1", "gpu_fine2") else n
    # One queen has no pairs; a grid has at least one block.
    blocks = max(1, check_grid(levels, threads, device))
    sent = counts.QUEEN_BYTES * n + (
        counts.PAIR_BYTES * counts.pairs(n) if scheme == "gpu_fine1" else 0
    )
    results = RESULT_BYTES * (2 if scheme == "gpu_cdp" else 1)
    check_device_bytes(levels, sent + results, device)
    if scheme == "gpu_fine1":
        check_host_bytes(levels, sent, device)
    derived: Numbers = {
        "blocks": blocks,
        "gpu_threads": blocks * number(levels, "block_size"),
        "device_bytes": sent + results,
        "transfer_bytes": sent + results,
        **counts.traffic(levels),
    }
    if scheme == "gpu_cdp":
        check_nesting(levels)
        threshold = number(levels, "threshold")
        derived["sub_threads"] = counts.sub_threads(n, threshold)
        derived["sub_kernels"] = counts.sub_kernels(n, threshold, number(levels, "nesting"))
    return derived


def program_plan(levels: Levels, boards: Board, device: DeviceFacts) -> MultiLaunchPlan:
    """The program of a GPU scheme for ``boards`` of shape ``(batch, n)``."""
    derived = resolve_scheme(levels, device)
    started = time.perf_counter()
    made = _LAYOUTS.get(str(levels["scheme"]), layout)(levels, boards, device)
    split_s = time.perf_counter() - started
    per_call = levels["allocation"] == "per_call"
    buffers = tuple(replace(buffer, per_run=per_call) for buffer in made.buffers)
    return MultiLaunchPlan(
        kernels=made.kernels,
        buffers=buffers,
        name="fitness.evaluate",
        function=PROGRAM,
        arguments=(
            made.order,
            tuple(buffer.name for buffer in buffers) if per_call else (),
            tuple(buffer.name for buffer in buffers if buffer.data is not None),
            made.clears,
            levels["scheme"] == "gpu_cdp",
        ),
        split_s=split_s,
        about={**derived, "scheme": str(levels["scheme"]), "task": "evaluate"},
    )


def pair_list(n: int) -> NDArray[np.int32]:
    """All pairs (p, q) with p < q in lexicographic order, shape ``(n(n-1)/2, 2)`` (Algorithm 7)."""
    listed = np.empty((counts.pairs(n), 2), np.int32)
    second = np.arange(n, dtype=np.int32)
    start = 0
    for p in range(n - 1):
        end = start + n - 1 - p
        listed[start:end, 0] = p
        listed[start:end, 1] = second[p + 1 :]
        start = end
    return listed


def _fine1(levels: Levels, boards: Board, device: DeviceFacts) -> Layout:  # noqa: ARG001
    n = number(levels, "n")
    listed = pair_list(n).reshape(-1)
    if not listed.size:
        listed = np.zeros(2, np.int32)  # a buffer must not be empty
    count = np.int64(counts.pairs(n))
    arguments = ("board", "pairs", count, CONFLICTS)
    pair_buffer = Buffer("pairs", "int32", listed.size, data=listed)
    return _pairwise("fine1<Full>", arguments, counts.pairs(n), levels, boards, pair_buffer)


def _fine2(levels: Levels, boards: Board, device: DeviceFacts) -> Layout:  # noqa: ARG001
    n = number(levels, "n")
    arguments = ("board", np.int32(n), np.int64(counts.pairs(n)), CONFLICTS)
    return _pairwise("fine2<Full>", arguments, counts.pairs(n), levels, boards)


def _coarse(levels: Levels, boards: Board, device: DeviceFacts) -> Layout:  # noqa: ARG001
    n = number(levels, "n")
    entry = f"coarse<Full, Atomics::{levels['atomics']}>"
    return _pairwise(entry, ("board", np.int32(n), CONFLICTS), n, levels, boards)


def _cdp(levels: Levels, boards: Board, device: DeviceFacts) -> Layout:  # noqa: ARG001
    n = number(levels, "n")
    numbers = tuple(
        np.int32(number(levels, name)) for name in ("n", "threshold", "nesting", "child_block_size")
    )
    # All may be pending at once: a kernel ends only after those that it launched.
    pending = counts.sub_kernels(n, number(levels, "threshold"), number(levels, "nesting"))
    arguments = ("board", *numbers, CONFLICTS)
    return _pairwise("dynamic", arguments, n, levels, boards, pending=pending)


_LAYOUTS: Final = {
    "gpu_fine1": _fine1,
    "gpu_fine2": _fine2,
    "gpu_coarse": _coarse,
    "gpu_cdp": _cdp,
}


def _pairwise(
    entry: str,
    arguments: tuple[Any, ...],
    threads: int,
    levels: Mapping[str, Level],
    boards: Board,
    *more: Buffer,
    pending: int | None = None,
) -> Layout:
    """One kernel over one board, with one counter that is cleared before.

    ``pending``: the launches that a kernel with dynamic parallelism may have pending.
    """
    nested = pending is not None
    block = number(levels, "block_size")
    kernel = Kernel(
        source=DYNAMIC if nested else PAIRWISE,
        entry=entry,
        arguments=arguments,
        grid=(max(1, -(-threads // block)), 1, 1),
        block=(block, 1, 1),
        device_launch=nested,
        pending_launches=pending or 0,
    )
    name = entry.partition("<")[0]
    results = Buffer(CONFLICTS, "uint64", 2 if nested else 1)
    return Layout(
        kernels={name: kernel},
        order=(name,),
        buffers=(board_buffer(boards), *more, results),
        clears=(CONFLICTS,),
    )


COUNTERS: Final = "counters"


def variant_of(plan: Plan, variant: Variant) -> KernelPlan:
    """The main kernel of a scheme, built as ``variant``; its conflicts start at zero.

    Raises ``InfeasibleError`` for a search, for a scheme on the CPU, and where another
    kernel finishes the count.
    """
    if not isinstance(plan, MultiLaunchPlan) or plan.about.get("task") != "evaluate":
        raise InfeasibleError(
            "only a GPU scheme that evaluates a board has variants without arithmetic or memory,"
            " such as fitness_schemes.gpu_coarse; a search or a CPU scheme has none"
        )
    if "sum" in plan.kernels:
        raise InfeasibleError(
            "tally: with final another kernel sums the counters, so that the count is not all there"
            " is to it; take tally=arrival",
            "tally",
        )
    main = next(iter(plan.kernels))
    kernel = alone(plan, main, cleared=(CONFLICTS, COUNTERS), outputs=(CONFLICTS,))
    return built_as(kernel, variant)
