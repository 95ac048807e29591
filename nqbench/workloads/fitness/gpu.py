"""The GPU schemes as programs: buffers, kernels and grids, the CPU's part of an evaluation, and the
variants of their main kernels.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import InfeasibleError, LaunchError, WrongDeviceError
from nqbench.facts import DeviceFacts
from nqbench.multi_launch import ProgramContext
from nqbench.plan import Argument, Buffer, Kernel, KernelPlan, MultiLaunchPlan, Plan
from nqbench.workloads.base import Variant
from nqbench.workloads.fitness import counts
from nqbench.workloads.fitness import levels as limits
from nqbench.workloads.fitness.boards import Board
from nqbench.workloads.levels import Levels, check_block, number
from nqbench.workloads.variants import alone, built_as

PAIRWISE: Final = Path(__file__).with_name("pairwise.cu")
DYNAMIC: Final = Path(__file__).with_name("dynamic.cu")
HISTOGRAM: Final = Path(__file__).with_name("histogram.cu")
HISTOGRAMS: Final = ("histogram", "batched")
"""The schemes that count queens on diagonals; the others compare pairs."""
BOARD, PAIRS, COUNTERS, CONFLICTS = "board", "pairs", "counters", "conflicts"
"""Buffers."""
_NESTING: Final = ("threshold", "nesting", "child_block_size")
_BLOCKS: Final = ("block_size", "child_block_size")

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

Numbers = dict[str, int | float | str]
Made = tuple[dict[str, Kernel], tuple[Buffer, ...]]
"""Kernels by name, the main one first, and the buffers that they take."""


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
        resolve_counters(levels, device)
    elif levels["block_size"] == "auto":
        levels["block_size"] = 512  # the paper's
    check_block(levels, device, _BLOCKS)
    kernels, made = _made(levels, device)
    sizes = {buffer.name: buffer.nbytes for buffer in made}
    main, counters = next(iter(kernels.values())), sizes.get(COUNTERS, 0)
    for kernel in kernels.values():
        limits.check_grid(levels, kernel.grid[0], device)
    # On the host: of a histogram the boards and their padded copy, else a board with its pairs.
    copies = 2 if scheme in HISTOGRAMS else 1 if PAIRS in sizes else 0
    on_host = copies * sizes[BOARD] + sizes.get(PAIRS, 0)
    limits.check_bytes(levels, device, sum(sizes.values()), on_host)
    more: Numbers = {}
    if scheme in HISTOGRAMS:
        more["shared_bytes"] = main.shared_bytes and main.shared_bytes + STATIC_BYTES
        more["counter_bytes"] = main.shared_bytes or counters // counts.batch_of(levels)
    if scheme == "gpu_cdp":
        limits.check_nesting(levels)
        threshold = number(levels, "threshold")
        more["sub_threads"] = counts.sub_threads(n, threshold)
        more["sub_kernels"] = counts.sub_kernels(n, threshold, number(levels, "nesting"))
    return {
        "blocks": main.grid[0],
        "gpu_threads": main.grid[0] * number(levels, "block_size"),
        "device_bytes": sum(sizes.values()),
        "transfer_bytes": sum(sizes.values()) - counters,
        **counts.traffic(levels),
        **more,
    }


def resolve_counters(levels: Levels, device: DeviceFacts) -> tuple[int, int]:
    """Resolve ``counters`` and ``block_size`` in place. Raises ``InfeasibleError``.

    Returns how many counters share a 32-bit word, and the words of a board. In shared memory a word
    is one counter if that fits without opting in, else two.
    """
    n = number(levels, "n")
    per_word, words = 1, _fours(counts.diagonals(n))
    if counts.WORD_BYTES * words + STATIC_BYTES > device.shared_per_block and n <= _HALF_LIMIT:
        per_word, words = 2, _fours(-(-counts.diagonals(n) // 2))
    needed = counts.WORD_BYTES * words + STATIC_BYTES
    if levels["counters"] == "auto":
        fits = needed <= device.shared_per_block_optin and n <= _HALF_LIMIT
        levels["counters"] = "shared" if fits else "global"
    if levels["block_size"] == "auto":
        memory = str(levels["counters"])
        of_board = levels["batch"] in ("-", 1) or memory == "global"
        levels["block_size"] = _BLOCK[memory] if of_board else _batch_block(needed, device)
    if levels["counters"] == "shared":
        limits.check_shared(n, needed, device)
        return per_word, words
    return 1, _fours(counts.diagonals(n))


def _batch_block(shared_bytes: int, device: DeviceFacts) -> int:
    taken = shared_bytes + device.shared_reserved_per_block
    resident = max(1, device.shared_per_multiprocessor // taken)
    wanted = device.max_threads_per_multiprocessor // resident
    most = min(_BATCH_BLOCKS[-1], device.max_threads_per_block)
    return next((size for size in _BATCH_BLOCKS if size >= wanted), most)


def _fours(count: int) -> int:
    """Rounded up to a multiple of four: a thread reads four queens, or clears four counters."""
    return -(-count // 4) * 4


def program_plan(levels: Levels, boards: Board, device: DeviceFacts) -> MultiLaunchPlan:
    """The program of a GPU scheme for ``boards`` of shape ``(batch, n)``."""
    scheme, derived = str(levels["scheme"]), resolve_scheme(levels, device)
    per_call = levels["allocation"] == "per_call"
    started = time.perf_counter()
    kernels, made = _made(levels, device, boards)
    split_s = time.perf_counter() - started
    buffers = tuple(replace(buffer, per_run=per_call) for buffer in made)
    order = ("clear", *(name for name in kernels if name != "clear"))
    return MultiLaunchPlan(
        kernels=kernels,
        buffers=buffers,
        name="fitness.evaluate",
        function=f"{__name__}:evaluate",
        arguments=(
            tuple(name for name in order if name in kernels),
            tuple(buffer.name for buffer in buffers if per_call),
            tuple(buffer.name for buffer in buffers if buffer.data is not None),
            () if scheme in HISTOGRAMS else (CONFLICTS,),
            scheme == "gpu_cdp",
        ),
        split_s=split_s,
        about={**derived, "scheme": scheme, "task": "evaluate"},
    )


def _made(levels: Levels, device: DeviceFacts, boards: Board | None = None) -> Made:
    """The kernels and buffers of a scheme; without ``boards`` the buffers have no contents."""
    if levels["scheme"] in HISTOGRAMS:
        return _histogram(levels, boards, device)
    return _pairwise(levels, boards)


def pair_buffer(n: int, *, filled: bool) -> Buffer:
    """Room for all pairs, and them in it if wanted."""
    size = 2 * max(1, counts.pairs(n))  # a buffer must not be empty
    listed = pair_list(n).reshape(-1) if filled and n > 1 else np.zeros(size * filled, np.int32)
    return Buffer(PAIRS, "int32", size, data=listed if filled else None)


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


def _pairwise(levels: Levels, boards: Board | None) -> Made:
    """One kernel over one board, with one counter that is cleared before."""
    scheme, n, block = str(levels["scheme"]), number(levels, "n"), number(levels, "block_size")
    of_pairs = scheme in ("gpu_fine1", "gpu_fine2")
    nested = scheme == "gpu_cdp"
    queens, pairs = np.int32(n), np.int64(counts.pairs(n))
    nesting = [number(levels, name) for name in _NESTING] if nested else []
    kernels: dict[str, tuple[str, tuple[Argument, ...]]] = {
        "gpu_fine1": ("fine1<Full>", (PAIRS, pairs)),
        "gpu_fine2": ("fine2<Full>", (queens, pairs)),
        "gpu_coarse": (f"coarse<Full, Atomics::{levels['atomics']}>", (queens,)),
        "gpu_cdp": ("dynamic", (queens, *map(np.int32, nesting))),
    }
    entry, middle = kernels[scheme]
    kernel = Kernel(
        source=DYNAMIC if nested else PAIRWISE,
        entry=entry,
        arguments=(BOARD, *middle, CONFLICTS),
        # One queen has no pairs; a grid has at least one block.
        grid=(max(1, -(-(int(pairs) if of_pairs else n) // block)), 1, 1),
        block=(block, 1, 1),
        device_launch=nested,
        # All may be pending at once: a kernel ends only after those that it launched.
        pending_launches=counts.sub_kernels(n, *nesting[:2]) if nested else 0,
    )
    listed = [pair_buffer(n, filled=boards is not None)] if scheme == "gpu_fine1" else []
    results = Buffer(CONFLICTS, "uint64", 2 if nested else 1)
    return {entry.partition("<")[0]: kernel}, (board_buffer(n, boards), *listed, results)


def _histogram(levels: Levels, boards: Board | None, device: DeviceFacts) -> Made:
    """``count``; with counters in global memory ``clear`` before it."""
    per_word, words = resolve_counters(levels, device)
    n, batch, block = number(levels, "n"), counts.batch_of(levels), number(levels, "block_size")
    columns = _fours(n)
    board, results = board_buffer(columns, boards, batch), Buffer(CONFLICTS, "uint64", batch)
    shape = BOARD, np.int32(n), np.int32(columns)
    kernel = partial(Kernel, HISTOGRAM, block=(block, 1, 1), static_shared_bytes=STATIC_BYTES)
    if levels["counters"] == "shared":
        given = (*shape, np.int32(words), CONFLICTS)
        entry, shared = f"count_shared<Full, {per_word}>", counts.WORD_BYTES * words
        count = kernel(entry, given, grid=(batch, 1, 1), shared_bytes=shared)
        return {"count": count}, (board, results)
    # A thread counts four queens. A thread of "clear" clears four counters: there are at least as
    # many as boards, whose results are cleared with them.
    blocks, quads = -(-columns // (4 * block)), words * batch // 4
    kernels = {
        "count": kernel(
            "count_global<Full>",
            (*shape, np.int32(blocks), np.int64(words), COUNTERS, CONFLICTS),
            grid=(blocks * batch, 1, 1),
        ),
        "clear": kernel(
            *("clear", (COUNTERS, np.int64(quads), CONFLICTS, np.int32(batch))),
            grid=(-(-quads // block), 1, 1),
            static_shared_bytes=0,
        ),
    }
    return kernels, (board, Buffer(COUNTERS, "uint32", words * batch), results)


def board_buffer(columns: int, boards: Board | None, batch: int = 1) -> Buffer:
    """Boards of shape ``(batch, n)`` one after the other, each padded to ``columns``."""
    if boards is None:
        return Buffer(BOARD, "int32", batch * columns)
    padded = np.zeros((batch, columns), np.int32)
    padded[:, : boards.shape[1]] = boards
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


def variant_of(plan: Plan, variant: Variant) -> KernelPlan:
    """The main kernel of a scheme, built as ``variant``; its conflicts start at zero.

    Raises ``InfeasibleError`` for a search and for a scheme on the CPU.
    """
    if not isinstance(plan, MultiLaunchPlan) or plan.about.get("task") != "evaluate":
        raise InfeasibleError(
            "only a GPU scheme that evaluates a board has variants without arithmetic or memory,"
            " such as fitness_schemes.gpu_coarse; a search or a CPU scheme has none"
        )
    main = next(iter(plan.kernels))
    return built_as(alone(plan, main, cleared=(CONFLICTS, COUNTERS), outputs=(CONFLICTS,)), variant)
