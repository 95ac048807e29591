"""From the levels that a user gives to a level for every factor, and the limits that a scheme must
meet, checked before anything is made, compiled or allocated.
"""

from __future__ import annotations

from nqbench.errors import InfeasibleError, StudyError, WrongDeviceError
from nqbench.facts import DeviceFacts
from nqbench.point import FactorLevels
from nqbench.system.machine import free_memory_bytes
from nqbench.workloads.base import NOT_APPLICABLE
from nqbench.workloads.fitness.boards import check_valid_exists
from nqbench.workloads.fitness.counts import PAIR_BYTES, pairs
from nqbench.workloads.fitness.factors import FACTORS, SCHEMES, SYSTEMS, Scheme
from nqbench.workloads.levels import Levels, applied, given_levels, number


def find_scheme(given: FactorLevels, system: str | None) -> Scheme:
    """The scheme of a system. Raises ``StudyError`` without one, ``InfeasibleError`` for another
    scheme than its own."""
    if system is None:
        raise StudyError("a point of workload fitness needs a system; name one")
    own = SYSTEMS[system]["scheme"]
    if given.get("scheme", own) != own:
        said = f"scheme: {given['scheme']} is not the scheme of {system}; leave scheme out"
        raise InfeasibleError(said, "scheme")
    return SCHEMES[str(own)]


def fill_levels(
    given: FactorLevels, system: str | None, device: DeviceFacts
) -> tuple[Scheme, Levels]:
    """The scheme, and every factor with its level (``auto`` may remain).

    A factor without meaning for the scheme is refused if it was given, and else ``-``.
    Raises ``StudyError`` for an unknown name, ``WrongDeviceError`` for a GPU scheme on a CPU and
    ``InfeasibleError`` for the rest.
    """
    explicit = given_levels("fitness", FACTORS, SYSTEMS, given, system)
    scheme, n = find_scheme(explicit, system), number(explicit, "n")
    levels = applied(FACTORS, {**scheme.levels, "scheme": scheme.name}, explicit, str(system))
    if levels["board"] == "valid":
        _resolve_valid(levels, explicit, n)
    if device.kind == "cpu" and scheme.place == "device":
        raise WrongDeviceError(
            f"{system} is a GPU scheme and device {device.name} is a CPU; use a GPU"
            " (--device cuda:0), a simulator, or a CPU system"
            " (fitness_schemes.cpu_serial)"
        )
    return scheme, levels


def _resolve_valid(levels: Levels, explicit: FactorLevels, n: int) -> None:
    """Only random boards have a seed."""
    check_valid_exists(n)
    if "seed" in explicit:
        raise InfeasibleError(
            f"seed: {explicit['seed']} means nothing with board: valid; leave seed out, or use"
            " board: random",
            "seed",
        )
    levels["seed"] = NOT_APPLICABLE


def check_grid(levels: FactorLevels, blocks: int, device: DeviceFacts) -> None:
    """Raise ``InfeasibleError`` beyond the grid's limit."""
    if blocks > device.max_grid_x:
        raise InfeasibleError(
            f"n: {levels['n']} needs {blocks} blocks of {levels['block_size']} for"
            f" {levels['scheme']}, over the {device.max_grid_x} blocks of a grid on"
            f" {device.name}; use a larger block_size, or {_instead(levels)}",
            "n",
        )


def check_nesting(levels: FactorLevels) -> None:
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


def check_bytes(levels: FactorLevels, device: DeviceFacts, needed: int, on_host: int) -> None:
    """All buffers against the device's memory, and what the host needs against what is available.

    A simulated device keeps its memory on the host.
    """
    on_host += needed if device.kind == "sim" else 0
    free = free_memory_bytes()
    boards = "" if levels["batch"] in ("-", 1) else f" ({levels['batch']} boards)"
    if levels["scheme"] == "gpu_fine1":
        boards = f" ({PAIR_BYTES} bytes for each of {pairs(number(levels, 'n'))} pairs)"
    for taken, of, most, there in (
        (needed, "device", device.memory_bytes or None, f"{device.name} has {device.memory_bytes}"),
        (on_host, "host", free, f"{free} are available"),
    ):
        if most is not None and taken > most:
            raise InfeasibleError(
                f"n: {levels['n']} needs {taken} bytes of {of} memory for"
                f" {levels['scheme']}{boards}, and {there}; use {_instead(levels)}",
                "batch" if boards.endswith("boards)") else "n",
            )


def _instead(levels: FactorLevels) -> str:
    others = {"gpu_fine1": ", or gpu_fine2 or gpu_coarse, which have no pair list"}
    others["gpu_fine2"] = ", or gpu_coarse, which has a thread per queen"
    return f"a smaller n or batch{others.get(str(levels['scheme']), '')}"
