"""The workloads, one folder each. A workload is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Final, cast

from nqbench.errors import StudyError
from nqbench.point import MEASURING
from nqbench.system.suggest import nearest, suggestion
from nqbench.workloads.base import Workload

__all__ = ["find_system", "get", "launch_factors", "names", "with_systems"]

_NAMES: Final = ("counting", "fitness", "local_search", "ceilings")


def names() -> tuple[str, ...]:
    """Names of the workloads there are."""
    return _NAMES


def get(name: str) -> Workload:
    """The workload of that name; ``StudyError`` with the nearest name if there is none."""
    if name not in _NAMES:
        raise StudyError(f"no workload {name!r}; {suggestion(name, _NAMES)}")
    return cast(Workload, import_module(f"nqbench.workloads.{name}").WORKLOAD)


def launch_factors(name: str) -> tuple[str, ...]:
    """Factors that the name of a system leaves open, in the order of the workload, and those about
    measuring. A workload that is not installed here (of somebody's recorded run) has the latter."""
    factors = get(name).factors.values() if name in _NAMES else ()
    return (*(factor.name for factor in factors if factor.launch), *MEASURING)


def with_systems() -> list[Workload]:
    """The workloads that have named systems."""
    return [workload for name in _NAMES if (workload := get(name)).systems]


def find_system(name: str) -> tuple[Workload, str]:
    """The workload that has the system ``name``. Raises ``StudyError`` with the nearest one."""
    workloads = with_systems()
    for workload in workloads:
        if name in workload.systems:
            return workload, name
    known = [system for workload in workloads for system in workload.systems]
    close = nearest(name, known)
    hint = f"did you mean {close!r}? " if close else ""
    raise StudyError(f"no system {name!r}: {hint}`nqbench kernels` lists them")
