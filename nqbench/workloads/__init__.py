"""The workloads, one folder each. A workload is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Final, cast

from nqbench.errors import StudyError
from nqbench.point import MEASURING
from nqbench.system.suggest import suggestion
from nqbench.workloads.base import Workload

__all__ = ["get", "launch_factors", "names"]

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
