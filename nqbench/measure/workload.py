"""Finding a workload by name: one of nqbench's, or anybody's ``package.module:object``."""

from __future__ import annotations

import importlib
from functools import cache
from typing import cast

from nqbench.errors import StudyError
from nqbench.point import Point
from nqbench.workloads.base import Workload, host_systems


@cache
def find_workload(name: str) -> Workload:
    """The workload called ``name``. Raises ``StudyError`` if there is none."""
    if ":" not in name:
        from nqbench.workloads import get

        return get(name)
    module_name, _, attribute = name.partition(":")
    try:
        return cast(Workload, getattr(importlib.import_module(module_name), attribute))
    except (ImportError, AttributeError) as error:
        raise StudyError(f"workload {name!r} cannot be loaded: {error}") from error


def runs_on_host(point: Point) -> bool:
    """Whether a point runs on the processor, whatever the device, as its workload says."""
    return point.system in host_systems(find_workload(point.workload))
