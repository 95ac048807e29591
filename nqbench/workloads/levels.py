"""Checks of levels that reach a workload without passing a study's checks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from nqbench.errors import InfeasibleError, StudyError
from nqbench.facts import DeviceFacts
from nqbench.point import Level
from nqbench.system.suggest import listing, suggestion
from nqbench.workloads.base import NOT_APPLICABLE, Factor

Levels = dict[str, Level]


def given_levels(
    workload: str,
    factors: Mapping[str, Factor],
    systems: Collection[str],
    given: Mapping[str, Level],
    system: str | None,
) -> Levels:
    """The given levels, each checked, without those that do not apply (``-``).

    Raises ``StudyError`` for a name that does not exist or a size ``n`` that is missing,
    ``InfeasibleError`` for a number out of range.
    """
    if system is not None and system not in systems:
        raise StudyError(
            f"no system {system!r} in workload {workload}; {suggestion(system, systems)}"
        )
    explicit = {name: level for name, level in given.items() if level != NOT_APPLICABLE}
    for name, level in explicit.items():
        check_level(workload, factors, name, level)
    n = explicit.get("n")
    if not isinstance(n, int):
        raise StudyError(f"a point of workload {workload} needs a number n")
    least, most = factors["n"].number or (n, n)
    if not least <= n <= most:
        raise InfeasibleError(f"n: {n} is outside {least} to {most}; choose n in that range", "n")
    return explicit


def check_level(workload: str, factors: Mapping[str, Factor], name: str, level: Level) -> None:
    """Refuse an unknown factor, a level that it does not have, a number out of its range.

    Raises ``StudyError``, and ``InfeasibleError`` for a number other than ``n``.
    """
    if name not in factors:
        raise StudyError(f"workload {workload} has no factor {name!r}; {suggestion(name, factors)}")
    factor, whole = factors[name], isinstance(level, int) and not isinstance(level, bool)
    words = (*factor.levels, *(("auto",) if factor.auto else ()))
    fits = whole and factor.number is not None
    if isinstance(level, str):
        fits = level in words or factor.text
    elif isinstance(level, Mapping):
        shares = level.get("per_sm")
        fits = factor.per_sm and len(level) == 1 and isinstance(shares, int) and shares >= 1
    if not fits:
        choices = ["{per_sm: k} with k >= 1"] * factor.per_sm + ["the name of a file"] * factor.text
        if factor.number:
            choices.append("a number from {} to {}".format(*factor.number))
        said = suggestion(str(level), (*words, *choices))
        raise StudyError(f"{name}: {level!r} is not a level; {said}")
    if whole and factor.only and level not in factor.only:
        said = f"'{name}' is {level}, but takes {listing(map(str, factor.only))}"
        raise StudyError(said, factor=name)
    least, most = factor.number or (0, 0)
    if isinstance(level, int) and name != "n" and not least <= level <= most:
        raise InfeasibleError(f"{name}: {level} is outside {least} to {most}", name)


def applied(
    factors: Iterable[str], own: Mapping[str, Level], given: Mapping[str, Level], who: str
) -> Levels:
    """Every factor with its level: the given one, else its ``own`` default, else ``-``.

    Raises ``InfeasibleError`` for a given level of a factor, other than ``n``, that ``who`` lacks.
    """
    for name, level in given.items():
        if name != "n" and name not in own:
            raise InfeasibleError(f"{name}: {level} means nothing to {who}; leave {name} out", name)
    return {**dict.fromkeys(factors, NOT_APPLICABLE), **own, **given}


def check_block(
    levels: Mapping[str, Level], device: DeviceFacts, names: Collection[str] = ("block_size",)
) -> None:
    """Refuse block sizes over the device's limit: ``InfeasibleError``."""
    most = device.max_threads_per_block
    for name in names:
        size = levels[name]
        if isinstance(size, int) and size > most:
            raise InfeasibleError(
                f"{name}: {size} is over the {most} threads per block of {device.name}; choose at"
                f" most {most}",
                name,
            )


def blocks_held(device: DeviceFacts, threads: int, shared_bytes: int) -> int:
    """Blocks that a multiprocessor holds at once by all of its limits but registers."""
    limits = [
        device.max_blocks_per_multiprocessor,
        device.max_threads_per_multiprocessor // threads,
    ]
    if shared_bytes:
        unit = device.shared_allocation_unit
        units = -(-(shared_bytes + device.shared_reserved_per_block) // unit)
        limits.append(device.shared_per_multiprocessor // (units * unit))
    return min(limits)


def number(levels: Mapping[str, Level], name: str) -> int:
    """The level of a factor that is resolved to a number."""
    level = levels[name]
    assert isinstance(level, int)
    return level
