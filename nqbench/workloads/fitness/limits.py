"""Limits of the GPU schemes, checked before anything is made, compiled or allocated."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nqbench.errors import InfeasibleError
from nqbench.facts import DeviceFacts
from nqbench.point import Level
from nqbench.workloads.fitness.traffic import PAIR_BYTES, QUEEN_BYTES, pairs
from nqbench.workloads.levels import number

_MEMINFO: Final = Path("/proc/meminfo")
_CGROUP: Final = Path("/sys/fs/cgroup")


def check_threads(levels: Mapping[str, Level], device: DeviceFacts) -> None:
    """Block sizes against the device's limit."""
    for name in ("block_size", "child_block_size"):
        size = levels[name]
        if isinstance(size, int) and size > device.max_threads_per_block:
            raise InfeasibleError(
                f"{name}: {size} is over the {device.max_threads_per_block} threads per block of"
                f" {device.name}; choose at most {device.max_threads_per_block}",
                name,
            )


def check_grid(levels: Mapping[str, Level], threads: int, device: DeviceFacts) -> int:
    """Blocks for so many threads, refused if the grid cannot have them."""
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
    """The longest row must have a sub-thread for each level, or the nesting would be less."""
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
    if device.memory_bytes and needed > device.memory_bytes:
        raise InfeasibleError(
            f"n: {levels['n']} needs {needed} bytes of device memory for"
            f" {levels['scheme']}{_why(levels)}, and {device.name} has {device.memory_bytes};"
            f" use {_instead(levels)}",
            "batch" if levels["batch"] not in ("-", 1) else "n",
        )


def check_host_bytes(
    levels: Mapping[str, Level], needed: int, device: DeviceFacts | None = None
) -> None:
    """What is made on the host against the memory that is free there now.

    A simulated ``device`` has its memory there as well: everything is there twice.
    """
    if device is not None and device.kind == "sim":
        needed *= 2
    free = free_host_bytes()
    if free is not None and needed > free:
        raise InfeasibleError(
            f"n: {levels['n']} needs {needed} bytes of host memory for"
            f" {levels['scheme']}{_why(levels)}, and {free} are available; use"
            f" {_instead(levels)}",
            "batch" if levels["batch"] not in ("-", 1) else "n",
        )


def check_host_boards(levels: Mapping[str, Level]) -> None:
    """Boards that a scheme of the processor evaluates: one by one, then all together."""
    batch = levels["batch"]
    boards = batch if isinstance(batch, int) else 1
    check_host_bytes(levels, 2 * QUEEN_BYTES * number(levels, "n") * boards)


def free_host_bytes(meminfo: Path = _MEMINFO, cgroup: Path = _CGROUP) -> int | None:
    """Bytes of host memory that this process may still take, or ``None`` if nobody says.

    The least of what the kernel holds available and what the container's limit leaves.
    """
    found = [
        int(line.split()[1]) * 1024
        for line in _text(meminfo).splitlines()
        if line.startswith("MemAvailable:")
    ]
    limit, used = _text(cgroup / "memory.max"), _text(cgroup / "memory.current")
    if limit.strip().isdigit() and used.strip().isdigit():
        found.append(max(0, int(limit) - int(used)))
    if not found and "SC_AVPHYS_PAGES" in os.sysconf_names:
        found.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(found, default=None)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _why(levels: Mapping[str, Level]) -> str:
    n = number(levels, "n")
    if levels["scheme"] == "gpu_fine1":
        return f" ({PAIR_BYTES} bytes for each of {pairs(n)} pairs)"
    return f" ({levels['batch']} boards)" if levels["batch"] not in ("-", 1) else ""


def _instead(levels: Mapping[str, Level]) -> str:
    if levels["scheme"] == "gpu_fine1":
        return "a smaller n, or gpu_fine2 or gpu_coarse, which have no pair list"
    if levels["scheme"] == "gpu_fine2":
        return "a smaller n, or gpu_coarse, which has a thread per queen"
    return "a smaller batch or n" if levels["batch"] not in ("-", 1) else "a smaller n"
