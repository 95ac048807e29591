"""``sa_chains``: many searches at once on a GPU, one warp each, as a plan of one kernel."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np

from nqbench.errors import InfeasibleError
from nqbench.facts import DeviceFacts
from nqbench.plan import Argument, Buffer, KernelPlan
from nqbench.point import FactorLevels
from nqbench.workloads.fitness.annealing.cooling import Cooling, seed_key
from nqbench.workloads.fitness.levels import check_bytes, check_shared
from nqbench.workloads.levels import Levels, blocks_held, check_block, number

SOURCE: Final = Path(__file__).with_name("chains.cu")
NOTHING_FOUND: Final = 2**64 - 1

_WARP: Final = 32
WORDS: Final = ((255, "uint8", "unsigned char"), (65535, "uint16", "unsigned short"),
                (2**31 - 1, "uint32", "unsigned"))  # fmt: skip
"""The narrowest word that holds every row and every count of a diagonal, by the largest n."""

_GLOBAL_WARPS: Final = 8
"""Chains per multiprocessor whose counters are in global memory: more share the caches, and the
latency of a chain is what a search waits for."""

_BOARDS_BYTES: Final = 1 << 28
"""Limit of `chains: auto` on the boards of all chains: every one is fetched and checked."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Word type and memory of the chains. ``shared_bytes`` per block, 0 in global memory."""

    dtype: str
    word: str
    memory: Literal["shared", "global"]
    warps: int
    shared_bytes: int


def resolve_chains(levels: Levels, device: DeviceFacts) -> dict[str, int | float | str]:
    """Resolve ``counters``, ``block_size`` and ``chains`` in place; numbers worth recording.

    Raises ``InfeasibleError`` for blocks that are not whole warps, and for too little memory.
    """
    n, size = number(levels, "n"), number(levels, "block_size")
    check_block(levels, device)
    if size % _WARP:
        raise InfeasibleError(
            f"block_size: {size} is not a multiple of {_WARP}, and a chain takes a whole warp; use"
            f" {size // _WARP * _WARP + _WARP}",
            "block_size",
        )
    shape = _shape(levels, device)
    levels["counters"] = shape.memory
    if levels["chains"] == "auto":
        most = _BOARDS_BYTES // (n * np.dtype(shape.dtype).itemsize)
        levels["chains"] = max(1, min(_filling(shape, device), most))
    needed = sum(buffer.nbytes for buffer in _buffers(n, number(levels, "chains"), shape))
    check_bytes(levels, device, needed, 0)
    chains = number(levels, "chains")
    return {
        "chains": chains,
        "blocks": -(-chains // shape.warps),
        "shared_bytes": shape.shared_bytes,
        "device_bytes": needed,
    }


def chains_plan(levels: FactorLevels, device: DeviceFacts) -> KernelPlan:
    """The plan of resolved levels."""
    n, chains = number(levels, "n"), number(levels, "chains")
    cooling = Cooling.from_levels(levels)
    shape = _shape(levels, device)
    table = cooling.table().reshape(-1)
    counters: Argument = np.uint64(0) if shape.memory == "shared" else "counters"
    nothing = np.array([NOTHING_FOUND], np.uint64)
    flags = [str(flag).lower() for flag in (shape.memory == "shared", cooling.attacked)]
    return KernelPlan(
        source=SOURCE,
        entry=f"anneal_chains<{shape.word}, {flags[0]}, {flags[1]}>",
        arguments=(
            *(np.int32(n), np.uint32(chains), np.uint64(seed_key(number(levels, "seed")))),
            *("table", np.uint32(cooling.moves(n)), np.uint32(cooling.limit(n))),
            np.int32(levels["stop"] == "first"),
            *("best", "conflicts", "steps", "accepted", "boards", counters),
        ),
        buffers=(
            Buffer("table", "uint32", table.size, data=table),
            Buffer("best", "uint64", 1, data=nothing, restore=True, output=True),
            *_buffers(n, chains, shape),
        ),
        grid=(-(-chains // shape.warps), 1, 1),
        block=(shape.warps * _WARP, 1, 1),
        shared_bytes=shape.shared_bytes,
    )


def _shape(levels: FactorLevels, device: DeviceFacts) -> Shape:
    n, warps = number(levels, "n"), number(levels, "block_size") // _WARP
    dtype, word = next((dtype, word) for most, dtype, word in WORDS if n <= most)
    needed = warps * (5 * n - 2) * np.dtype(dtype).itemsize
    wanted = levels["counters"]
    if wanted == "shared":
        check_shared(n, needed, device)
    if wanted == "shared" or (wanted == "auto" and needed <= device.shared_per_block_optin):
        return Shape(dtype, word, "shared", warps, needed)
    return Shape(dtype, word, "global", warps, 0)


def _buffers(n: int, chains: int, shape: Shape) -> tuple[Buffer, ...]:
    counters = Buffer("counters", shape.dtype, chains * (4 * n - 2))
    own = () if shape.memory == "shared" else (counters,)
    return (
        Buffer("conflicts", "uint64", chains, output=True),
        Buffer("steps", "uint32", chains, output=True),
        Buffer("accepted", "uint32", chains, output=True),
        Buffer("boards", shape.dtype, chains * n, output=True),
        *own,
    )


def _filling(shape: Shape, device: DeviceFacts) -> int:
    """Chains that the device works on at once."""
    blocks = blocks_held(device, shape.warps * _WARP, shape.shared_bytes)
    if not shape.shared_bytes:
        blocks = min(blocks, max(1, _GLOBAL_WARPS // shape.warps))
    return max(1, blocks) * shape.warps * device.multiprocessors
