"""The workloads, one folder each; they are found by their folders, without a list.

A workload is imported when it is asked for. It is the object ``WORKLOAD`` of a package in this
folder, or an object of any module, named ``package.module:object``.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from nqbench import vocabulary
from nqbench.errors import StudyError
from nqbench.point import MEASURING
from nqbench.system.suggest import nearest, suggestion
from nqbench.workloads.base import Workload

__all__ = [
    "find_system",
    "get",
    "launch_factors",
    "names",
    "phases",
    "probe_counters",
    "program_name",
    "with_systems",
]


def names() -> tuple[str, ...]:
    """Names of nqbench's workloads: the packages in this folder."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg))


@cache
def get(name: str) -> Workload:
    """The workload of that name, or ``package.module:object``.

    Raises ``StudyError`` with the nearest name if there is none, or if it is not a ``Workload``.
    """
    module, colon, attribute = name.partition(":")
    if not colon:
        if name not in names():
            raise StudyError(f"no workload {name!r}; {suggestion(name, names())}")
        module, attribute = f"{__name__}.{name}", "WORKLOAD"
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise StudyError(f"workload {name!r} cannot be loaded: {error}") from error
    if not isinstance(found, Workload):
        raise StudyError(
            f"workload {name!r} is a {type(found).__name__}, not a Workload; let its class inherit"
            " from nqbench.workloads.base.Workload"
        )
    return found


def launch_factors(name: str) -> tuple[str, ...]:
    """Factors that the name of a system leaves open, in the order of the workload, and those of the
    measurement. For a workload that cannot be loaded here only the latter are known."""
    try:
        factors = tuple(get(name).factors.values())
    except StudyError:
        factors = ()
    return (*(factor.name for factor in factors if factor.launch), *MEASURING)


def program_name(name: str) -> str:
    """What a workload calls one run of its programs; ``run`` if it cannot be loaded here."""
    try:
        return get(name).program
    except StudyError:
        return Workload.program


def with_systems() -> list[Workload]:
    """The workloads that have named systems, those with the most first."""
    found = [workload for name in names() if (workload := get(name)).systems]
    return sorted(found, key=lambda workload: -len(workload.systems))


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


def phases() -> Mapping[str, str]:
    """Every phase that a study, figure or claim may name, with its meaning: the common ones and
    those of nqbench's workloads."""
    own = (get(name).phases for name in names())
    return {**vocabulary.PHASES, **{name: text for phases in own for name, text in phases.items()}}


def probe_counters() -> Mapping[str, str]:
    """What instrumented kernels of nqbench's workloads count, with its meaning."""
    own = (get(name).probe_counters for name in names())
    return {name: text for counters in own for name, text in counters.items()}
