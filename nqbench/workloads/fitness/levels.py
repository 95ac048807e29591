"""From the levels a user gives to a level for every factor."""

from __future__ import annotations

from collections.abc import Mapping

from nqbench.errors import InfeasibleError, StudyError, WrongDeviceError
from nqbench.facts import DeviceFacts
from nqbench.point import Level
from nqbench.system.suggest import suggestion
from nqbench.workloads.fitness.boards import LEAST_VALID_N
from nqbench.workloads.fitness.factors import FACTORS, MAX_N, NOT_APPLICABLE
from nqbench.workloads.fitness.schemes import SCHEMES, Scheme
from nqbench.workloads.fitness.systems import CPU_SYSTEMS, SYSTEMS
from nqbench.workloads.levels import check_level

Levels = dict[str, Level]


def find_scheme(given: Mapping[str, Level], system: str | None) -> Scheme:
    """The scheme of a point. Raises ``StudyError`` for an unknown name, ``InfeasibleError`` for a
    scheme that is not the system's, or that needs its system to be named."""
    asked = given.get("scheme", NOT_APPLICABLE)
    if asked != NOT_APPLICABLE:
        check_level("fitness", FACTORS, "scheme", asked)
    if system is not None:
        if system not in SYSTEMS:
            raise StudyError(
                f"no system {system!r} in workload fitness; {suggestion(system, SYSTEMS)}"
            )
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
    if scheme.place == "host":
        home = next(name for name in CPU_SYSTEMS if SYSTEMS[name]["scheme"] == asked)
        raise InfeasibleError(
            f"scheme: {asked} runs on the processor, which only a system says; write system: {home}"
            " in place of the scheme",
            "scheme",
        )
    return scheme


def fill_levels(given: Mapping[str, Level], system: str | None) -> tuple[Scheme, Levels]:
    """The scheme, and every factor with its level (``auto`` may remain).

    A factor that means nothing to the scheme is refused when it was given and ``-`` when not.
    Raises ``StudyError`` for an unknown name and ``InfeasibleError`` for the rest.
    """
    scheme = find_scheme(given, system)
    explicit = {name: level for name, level in given.items() if level != NOT_APPLICABLE}
    for name, level in explicit.items():
        check_level("fitness", FACTORS, name, level)
    n = explicit.get("n")
    if not isinstance(n, int):
        raise StudyError("a point of workload fitness needs a number n")
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
        _settle_board(levels, explicit, n)
    return scheme, levels


def check_device(scheme: Scheme, system: str | None, device: DeviceFacts) -> None:
    """Refuse a GPU scheme on a device that is none (``WrongDeviceError``)."""
    if device.kind == "cpu" and scheme.place == "device":
        raise WrongDeviceError(
            f"{system or scheme.name} is a GPU scheme and device {device.name} is the host's CPU;"
            " use a GPU (--device cuda:0), a simulator, or a system of the processor"
            " (fitness_schemes.cpu_serial)"
        )


def _settle_board(levels: Levels, explicit: Mapping[str, Level], n: int) -> None:
    """Only random boards have a seed, only boards from a file have one."""
    kind = levels["board"]
    if kind == "valid" and n < LEAST_VALID_N and n != 1:
        raise InfeasibleError(
            f"board: valid does not exist at n: {n}; use board: random, or n from {LEAST_VALID_N}",
            "board",
        )
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
