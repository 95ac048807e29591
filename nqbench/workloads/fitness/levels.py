"""From the levels that a user gives to a level for every factor."""

from __future__ import annotations

from collections.abc import Mapping

from nqbench.errors import InfeasibleError, StudyError, WrongDeviceError
from nqbench.facts import DeviceFacts
from nqbench.point import Level
from nqbench.workloads.base import NOT_APPLICABLE
from nqbench.workloads.fitness.boards import check_valid_exists
from nqbench.workloads.fitness.factors import CPU_SYSTEMS, FACTORS, SCHEMES, SYSTEMS, Scheme
from nqbench.workloads.levels import Levels, applied, check_size, given_levels, number


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
    check_size(FACTORS, n)
    own = {**scheme.levels, "scheme": scheme.name}
    levels = applied(FACTORS, own, explicit, system or f"scheme: {scheme.name}")
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
