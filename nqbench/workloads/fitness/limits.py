"""The limits that a scheme must meet, checked before anything is made, compiled or allocated."""

from __future__ import annotations

from collections.abc import Mapping

from nqbench.errors import InfeasibleError
from nqbench.facts import DeviceFacts
from nqbench.point import Level
from nqbench.system.machine import free_memory_bytes
from nqbench.workloads.fitness.counts import PAIR_BYTES, QUEEN_BYTES, batch_of, pairs
from nqbench.workloads.levels import number


def check_grid(levels: Mapping[str, Level], threads: int, device: DeviceFacts) -> int:
    """Blocks for this many threads. Raises ``InfeasibleError`` beyond the grid's limit."""
    blocks = -(-threads // number(levels, "block_size"))
    if blocks > device.max_grid_x:
        raise InfeasibleError(
            f"n: {levels['n']} needs {threads} threads for {levels['scheme']}, {blocks} blocks of"
            f" {levels['block_size']}, over the {device.max_grid_x} blocks of a grid on"
            f" {device.name}; use a larger block_size, or {_instead(levels)}",
            "n",
        )
    return blocks


def check_nesting(levels: Mapping[str, Level]) -> None:
    """The longest row must have a sub-thread for each level, or the nesting would be shallower."""
    n, threshold, nesting = (number(levels, name) for name in ("n", "threshold", "nesting"))
    most = -(-(n - 1) // threshold)
    if nesting > max(1, most):
        raise InfeasibleError(
            f"nesting: {nesting} levels share the sub-threads of a row, and at n: {n} with"
            f" threshold: {threshold} no row has more than {most}; use a threshold of at most"
            f" {max(1, (n - 2) // (nesting - 1))}, or less nesting",
            "nesting",
        )


def check_shared(n: int, needed: int, device: DeviceFacts) -> None:
    """Counters in shared memory must fit one block."""
    if needed > device.shared_per_block_optin:
        raise InfeasibleError(
            f"counters: shared needs {needed} bytes of shared memory per block at n: {n}, over the"
            f" {device.shared_per_block_optin} of {device.name}; use counters: global or auto",
            "counters",
        )


def check_device_bytes(levels: Mapping[str, Level], needed: int, device: DeviceFacts) -> None:
    """All buffers against the device's memory."""
    there = f"{device.name} has {device.memory_bytes}"
    _check_bytes(levels, needed, "device", device.memory_bytes or None, there)


def check_host_bytes(
    levels: Mapping[str, Level], needed: int, device: DeviceFacts | None = None
) -> None:
    """Host memory needed against what is available now.

    A simulated ``device`` keeps its memory there as well: everything exists twice.
    """
    free = free_memory_bytes()
    needed *= 2 if device is not None and device.kind == "sim" else 1
    _check_bytes(levels, needed, "host", free, f"{free} are available")


def check_host_boards(levels: Mapping[str, Level]) -> None:
    """Boards that a CPU scheme evaluates: one by one, then all together."""
    check_host_bytes(levels, 2 * QUEEN_BYTES * number(levels, "n") * batch_of(levels))


def _check_bytes(
    levels: Mapping[str, Level], needed: int, of: str, most: int | None, there: str
) -> None:
    if most is None or needed <= most:
        return
    boards = "" if levels["batch"] in ("-", 1) else f" ({levels['batch']} boards)"
    if levels["scheme"] == "gpu_fine1":
        boards = f" ({PAIR_BYTES} bytes for each of {pairs(number(levels, 'n'))} pairs)"
    raise InfeasibleError(
        f"n: {levels['n']} needs {needed} bytes of {of} memory for {levels['scheme']}{boards}, and"
        f" {there}; use {_instead(levels)}",
        "n" if levels["batch"] in ("-", 1) else "batch",
    )


def _instead(levels: Mapping[str, Level]) -> str:
    if levels["scheme"] == "gpu_fine1":
        return "a smaller n, or gpu_fine2 or gpu_coarse, which have no pair list"
    if levels["scheme"] == "gpu_fine2":
        return "a smaller n, or gpu_coarse, which has a thread per queen"
    return "a smaller batch or n" if levels["batch"] not in ("-", 1) else "a smaller n"
