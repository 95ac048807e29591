"""From the levels a user gives to a level for every factor, and the limits that a scheme must meet.

Limits are checked before anything is made, compiled or allocated.
"""

from __future__ import annotations

from collections.abc import Mapping

from nqbench.errors import InfeasibleError, StudyError, WrongDeviceError
from nqbench.facts import DeviceFacts
from nqbench.point import Level
from nqbench.system.machine import free_memory_bytes
from nqbench.workloads.base import NOT_APPLICABLE
from nqbench.workloads.fitness.boards import check_valid_exists
from nqbench.workloads.fitness.counts import PAIR_BYTES, QUEEN_BYTES, batch_of, pairs
from nqbench.workloads.fitness.factors import FACTORS, MAX_N
from nqbench.workloads.fitness.schemes import CPU_SYSTEMS, SCHEMES, SYSTEMS, Scheme
from nqbench.workloads.levels import Levels, given_levels, number


def find_scheme(given: Mapping[str, Level], system: str | None) -> Scheme:
    """The scheme of a point. Raises ``StudyError`` for an unknown name, ``InfeasibleError`` for a
    scheme that is not the system's, or that needs its system to be named."""
    asked = given.get("scheme", NOT_APPLICABLE)
    if system is not None:
        own = str(SYSTEMS[system]["scheme"])
        if asked not in (NOT_APPLICABLE, own):
            raise InfeasibleError(
                f"scheme: {asked} is not the scheme of {system}; leave scheme out, or name the"
                " system that has it",
                "scheme",
            )
        return SCHEMES[own]
    if asked == NOT_APPLICABLE:
        raise StudyError("a point of workload fitness needs a system or a scheme; name one of them")
    scheme = SCHEMES[str(asked)]
    if scheme.place == "cpu":
        home = next(name for name in CPU_SYSTEMS if SYSTEMS[name]["scheme"] == asked)
        raise InfeasibleError(
            f"scheme: {asked} runs on the CPU, which only a system says; write system: {home}"
            " instead of the scheme",
            "scheme",
        )
    return scheme


def fill_levels(
    given: Mapping[str, Level], system: str | None, device: DeviceFacts
) -> tuple[Scheme, Levels]:
    """The scheme, and every factor with its level (``auto`` may remain).

    A factor without meaning for the scheme is refused if it was given, and else ``-``.
    Raises ``StudyError`` for an unknown name, ``WrongDeviceError`` for a GPU scheme on a CPU and
    ``InfeasibleError`` for the rest.
    """
    explicit = given_levels("fitness", FACTORS, SYSTEMS, given, system)
    scheme, n = find_scheme(explicit, system), number(explicit, "n")
    if not 1 <= n <= MAX_N:
        raise InfeasibleError(f"n: {n} is outside 1 to {MAX_N}; choose n in that range", "n")
    levels: Levels = dict.fromkeys(FACTORS, NOT_APPLICABLE)
    levels |= scheme.levels
    for name, level in explicit.items():
        if name not in ("n", "scheme") and name not in scheme.levels:
            raise InfeasibleError(
                f"{name}: {level} means nothing to {system or f'scheme: {scheme.name}'}; leave"
                f" {name} out",
                name,
            )
        levels[name] = level
    levels["scheme"] = scheme.name
    if "board" in scheme.levels:
        _resolve_board(levels, explicit, n)
    if device.kind == "cpu" and scheme.place == "device":
        raise WrongDeviceError(
            f"{system or scheme.name} is a GPU scheme and device {device.name} is a CPU; use a GPU"
            " (--device cuda:0), a simulator, or a CPU system"
            " (fitness_schemes.cpu_serial)"
        )
    return scheme, levels


def _resolve_board(levels: Levels, explicit: Mapping[str, Level], n: int) -> None:
    """Only random boards have a seed, only boards from a file a file name."""
    kind = levels["board"]
    if kind == "valid":
        check_valid_exists(n)
    if kind == "file" and "board_file" not in explicit:
        raise InfeasibleError("board: file needs board_file, the file's name; add it", "board")
    for name, owner in (("seed", "random"), ("board_file", "file")):
        if kind != owner:
            if name in explicit:
                raise InfeasibleError(
                    f"{name}: {explicit[name]} means nothing with board: {kind}; leave {name} out,"
                    f" or use board: {owner}",
                    name,
                )
            levels[name] = NOT_APPLICABLE


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
    if device is not None and device.kind == "sim":
        needed *= 2
    free = free_memory_bytes()
    _check_bytes(levels, needed, "host", free, f"{free} are available")


def _check_bytes(
    levels: Mapping[str, Level], needed: int, of: str, most: int | None, there: str
) -> None:
    if most is not None and needed > most:
        raise InfeasibleError(
            f"n: {levels['n']} needs {needed} bytes of {of} memory for"
            f" {levels['scheme']}{_why(levels)}, and {there}; use {_instead(levels)}",
            "batch" if levels["batch"] not in ("-", 1) else "n",
        )


def check_host_boards(levels: Mapping[str, Level]) -> None:
    """Boards that a CPU scheme evaluates: one by one, then all together."""
    check_host_bytes(levels, 2 * QUEEN_BYTES * number(levels, "n") * batch_of(levels))


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
