"""The workloads, one folder each. A workload is imported when it is asked for."""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import Final, cast

from nqbench.errors import StudyError
from nqbench.workloads.base import Workload

__all__ = ["get", "names"]

_NAMES: Final = ("counting", "fitness", "local_search", "ceilings")


def names() -> tuple[str, ...]:
    """Names of the workloads there are."""
    return _NAMES


def get(name: str) -> Workload:
    """The workload of that name; ``StudyError`` with the nearest name if there is none."""
    if name not in _NAMES:
        near = difflib.get_close_matches(name, _NAMES, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}?" if near else f"there is {', '.join(_NAMES)}"
        raise StudyError(f"no workload {name!r}; {hint}")
    return cast(Workload, import_module(f"nqbench.workloads.{name}").WORKLOAD)
