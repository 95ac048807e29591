"""Finding a workload by name: one of nqbench's, or anybody's ``package.module:object``."""

from __future__ import annotations

import importlib
from functools import cache

from nqbench.errors import StudyError
from nqbench.point import Point
from nqbench.workloads.base import Workload


@cache
def find_workload(name: str) -> Workload:
    """The workload called ``name``. Raises ``StudyError`` if there is none."""
    if ":" not in name:
        from nqbench.workloads import get

        return get(name)
    module_name, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise StudyError(f"workload {name!r} cannot be loaded: {error}") from error
    if not isinstance(found, Workload):
        raise StudyError(
            f"workload {name!r} is a {type(found).__name__}; its class must inherit from"
            " nqbench.workloads.base.Workload"
        )
    return found


def runs_on_host(point: Point) -> bool:
    """Whether a point runs on the processor, whatever the device, as its workload says."""
    return point.system in find_workload(point.workload).cpu_systems
