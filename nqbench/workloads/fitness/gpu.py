"""The GPU schemes as programs: buffers, kernels, grids, and variants of their main kernels."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import InfeasibleError, WrongDeviceError
from nqbench.facts import DeviceFacts
from nqbench.plan import Argument, Buffer, Kernel, KernelPlan, MultiLaunchPlan, Plan
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
from nqbench.workloads.fitness.programs import BOARD, CONFLICTS, Layout, board_buffer
from nqbench.workloads.levels import Levels, number
from nqbench.workloads.variants import alone, built_as

PAIRWISE: Final = Path(__file__).with_name("pairwise.cu")
DYNAMIC: Final = Path(__file__).with_name("dynamic.cu")
HISTOGRAMS: Final = ("histogram", "batched")
RESULT_BYTES: Final = 8
_NESTING: Final = ("threshold", "nesting", "child_block_size")

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
    make = layout if levels["scheme"] in HISTOGRAMS else _pairwise
    made = make(levels, boards, device)
    split_s = time.perf_counter() - started
    per_call = levels["allocation"] == "per_call"
    buffers = tuple(replace(buffer, per_run=per_call) for buffer in made.buffers)
    return MultiLaunchPlan(
        kernels=made.kernels,
        buffers=buffers,
        name="fitness.evaluate",
        function="nqbench.workloads.fitness.programs:evaluate",
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


def _pairwise(levels: Levels, boards: Board, device: DeviceFacts) -> Layout:  # noqa: ARG001 (histogram's)
    """One kernel over one board, with one counter that is cleared before."""
    scheme, n, block = str(levels["scheme"]), number(levels, "n"), number(levels, "block_size")
    of_pairs = scheme in ("gpu_fine1", "gpu_fine2")
    nested = scheme == "gpu_cdp"
    queens, pairs = np.int32(n), np.int64(counts.pairs(n))
    nesting = [number(levels, name) for name in _NESTING] if nested else []
    kernels: Mapping[str, tuple[str, tuple[Argument, ...]]] = {
        "gpu_fine1": ("fine1<Full>", ("pairs", pairs)),
        "gpu_fine2": ("fine2<Full>", (queens, pairs)),
        "gpu_coarse": (f"coarse<Full, Atomics::{levels['atomics']}>", (queens,)),
        "gpu_cdp": ("dynamic", (queens, *map(np.int32, nesting))),
    }
    entry, middle = kernels[scheme]
    kernel = Kernel(
        source=DYNAMIC if nested else PAIRWISE,
        entry=entry,
        arguments=(BOARD, *middle, CONFLICTS),
        grid=(max(1, -(-(int(pairs) if of_pairs else n) // block)), 1, 1),
        block=(block, 1, 1),
        device_launch=nested,
        # All may be pending at once: a kernel ends only after those that it launched.
        pending_launches=counts.sub_kernels(n, *nesting[:2]) if nested else 0,
    )
    name = entry.partition("<")[0]
    buffers = [board_buffer(boards), Buffer(CONFLICTS, "uint64", 2 if nested else 1)]
    if scheme == "gpu_fine1":
        listed = pair_list(n).reshape(-1)
        if not listed.size:
            listed = np.zeros(2, np.int32)  # a buffer must not be empty
        buffers.insert(1, Buffer("pairs", "int32", listed.size, data=listed))
    return Layout({name: kernel}, (name,), tuple(buffers), clears=(CONFLICTS,))


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
    kernel = alone(plan, main, cleared=(CONFLICTS, "counters"), outputs=(CONFLICTS,))
    return built_as(kernel, variant)
