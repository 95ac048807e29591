"""Checks of levels that reach a workload without passing a study's checks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from nqbench.errors import InfeasibleError, StudyError
from nqbench.facts import DeviceFacts
from nqbench.point import FactorLevels, Level
from nqbench.system.suggest import suggestion
from nqbench.workloads.base import NOT_APPLICABLE, Factor

Levels = dict[str, Level]


def given_levels(
    workload: str,
    factors: Mapping[str, Factor],
    systems: Collection[str],
    given: FactorLevels,
    system: str | None,
) -> Levels:
    """The given levels, each checked, without those that do not apply (``-``).

    Raises ``StudyError`` for a name or level that does not exist or a size ``n`` that is missing,
    ``InfeasibleError`` for a number out of range.
    """
    if system is not None and system not in systems:
        said = f"no system {system!r} in workload {workload}; {suggestion(system, systems)}"
        raise StudyError(said)
    explicit = {name: level for name, level in given.items() if level != NOT_APPLICABLE}
    for name, level in explicit.items():
        if name not in factors:
            said = f"workload {workload} has no factor {name!r}; {suggestion(name, factors)}"
            raise StudyError(said)
        if why := factors[name].problem(level):
            if isinstance(level, int) and factors[name].number and not factors[name].only:
                raise InfeasibleError(why, name)
            raise StudyError(why, factor=name)
    if not isinstance(explicit.get("n"), int):
        raise StudyError(f"a point of workload {workload} needs a number n")
    return explicit


def applied(factors: Iterable[str], own: FactorLevels, given: FactorLevels, who: str) -> Levels:
    """Every factor with its level: the given one, else its ``own`` default, else ``-``.

    Raises ``InfeasibleError`` for a given level of a factor, other than ``n``, that ``who`` lacks.
    """
    for name, level in given.items():
        if name != "n" and name not in own:
            raise InfeasibleError(f"{name}: {level} means nothing to {who}; leave {name} out", name)
    return {**dict.fromkeys(factors, NOT_APPLICABLE), **own, **given}


def check_block(
    levels: FactorLevels, device: DeviceFacts, names: Collection[str] = ("block_size",)
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


def number(levels: FactorLevels, name: str) -> int:
    """The level of a factor that is resolved to a number."""
    level = levels[name]
    assert isinstance(level, int)
    return level
