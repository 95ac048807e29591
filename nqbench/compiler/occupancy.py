"""Theoretical occupancy: how many blocks of a kernel fit on one multiprocessor, and what limits it.

The rules are those of NVIDIA's occupancy calculator: warps, blocks, registers and shared memory
(allocated per block in units, out of the part of the L1 cache given to shared memory). Registers
are allocated per warp in units, within the multiprocessor's partitions; on compute capability 1.x
per block, whose warps are first rounded up (CUDA C Programming Guide 4.2, section 4.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nqbench.facts import DeviceFacts
from nqbench.plan import CachePreference

Limiter = Literal["warps", "blocks", "registers", "shared"]


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What fits on one multiprocessor.

    ``blocks_per_multiprocessor`` is 0 if not even one block fits. ``fraction`` is ``warps`` over
    the most that the multiprocessor can hold. ``limiter`` names what allows the fewest blocks: of
    equal limits the first of warps, blocks, registers, shared.
    """

    blocks_per_multiprocessor: int
    warps: int
    fraction: float
    limiter: Limiter


def occupancy(
    facts: DeviceFacts,
    registers: int,
    shared_bytes: int,
    block_size: int,
    cache: CachePreference = "default",
) -> Occupancy:
    """Occupancy of a kernel that uses ``registers`` per thread.

    ``shared_bytes`` is static plus dynamic shared memory per block, without what the driver
    reserves. ``cache`` matters where the L1 cache and shared memory share their storage:
    ``prefer_l1`` leaves shared memory the smallest share that still holds one block.
    """
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}; it must be at least 1")
    warps_per_block = -(-block_size // facts.warp_size)
    fits = block_size <= facts.max_threads_per_block
    limits: dict[Limiter, int | None] = {
        "warps": facts.max_warps_per_multiprocessor // warps_per_block if fits else 0,
        "blocks": facts.max_blocks_per_multiprocessor,
        "registers": _by_registers(facts, registers, warps_per_block),
        "shared": _by_shared(facts, shared_bytes, cache),
    }
    bounded = {name: limit for name, limit in limits.items() if limit is not None}
    limiter = min(bounded, key=lambda name: bounded[name])
    blocks = bounded[limiter]
    warps = blocks * warps_per_block
    return Occupancy(blocks, warps, warps / facts.max_warps_per_multiprocessor, limiter)


def _by_registers(facts: DeviceFacts, registers: int, warps_per_block: int) -> int | None:
    if registers == 0:
        return None
    partitions = facts.warp_allocation_granularity
    if registers > facts.max_registers_per_thread:
        return 0
    if facts.register_allocation == "block":
        threads = facts.warp_size * _round_up(warps_per_block, partitions)
        per_block = _round_up(registers * threads, facts.register_allocation_unit)
        return facts.registers_per_multiprocessor // per_block
    per_warp = _round_up(registers * facts.warp_size, facts.register_allocation_unit)
    # The launch check counts a block's warps as if they filled every partition evenly.
    checked = per_warp * _round_up(warps_per_block, partitions)
    if checked > facts.registers_per_block:
        return 0
    per_partition = facts.registers_per_multiprocessor // partitions // per_warp
    return per_partition * partitions // warps_per_block


def _by_shared(facts: DeviceFacts, shared_bytes: int, cache: CachePreference) -> int | None:
    """Blocks by shared memory; ``None`` where a block takes none at all."""
    if shared_bytes > facts.shared_per_block_optin:
        return 0
    per_block = _round_up(
        shared_bytes + facts.shared_reserved_per_block, facts.shared_allocation_unit
    )
    if per_block == 0:
        return None
    return shared_storage(facts, per_block, cache) // per_block


def shared_storage(facts: DeviceFacts, per_block: int, cache: CachePreference) -> int:
    """Shared memory that a multiprocessor is given, for blocks that allocate ``per_block``."""
    if cache != "prefer_l1":
        return facts.shared_per_multiprocessor
    for size in facts.shared_carveouts:
        if size >= per_block:
            return size
    return facts.shared_per_multiprocessor


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
