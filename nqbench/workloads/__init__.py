"""The workloads, one folder each; they are found by their folders, without a list.

A workload is imported when it is asked for. It is the object ``WORKLOAD`` of a package in this
folder, or an object of any module, named ``package.module:object``. A study may have its own
(:func:`register`): ``./file.py:object``, or a block ``kernel``.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module, invalidate_caches
from pathlib import Path, PurePath
from threading import Lock
from types import ModuleType
from typing import Any, Final

from nqbench import vocabulary
from nqbench.errors import StudyError
from nqbench.point import MEASURING
from nqbench.system.crash import where_raised
from nqbench.system.python_files import load_file, module_name
from nqbench.system.suggest import nearest, suggestion
from nqbench.workloads.base import KERNEL as KERNEL
from nqbench.workloads.base import Workload

OWN: Final = "own"
"""The package for workloads that studies describe themselves; no workload of its own."""
_registered: dict[str, Workload] = {}
"""Workloads of studies that this process knows."""
_external: dict[str, ExternalWorkload] = {}
"""How they were registered, for its workers."""
_SEARCHED: Final = Lock()


@cache  # every phase of every quantity asks for all workloads
def names() -> tuple[str, ...]:
    """Names of nqbench's workloads: the packages in this folder."""
    packages = (module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)
    return tuple(sorted({*packages} - {OWN}))


def get(name: str) -> Workload:
    """The workload of that name; ``package.module:object`` once a study has registered it, so that
    a run folder, which names workloads too, cannot have a module imported.

    Raises ``StudyError`` with the nearest name if there is none, or if it is not a ``Workload``.
    """
    return _registered.get(name) or _get(name)


@cache
def _get(name: str) -> Workload:
    module, attribute = _place(name)
    try:
        imported = import_module(module)
    except Exception as error:  # of a user's module
        raise StudyError(f"workload {name!r} cannot be loaded: {where_raised(error)}") from error
    return _object(name, imported, attribute)


def _place(name: str) -> tuple[str, str]:
    """The module and the attribute of a workload. Raises ``StudyError`` for an unknown name."""
    own = f"{__name__}.{name}:WORKLOAD" if name in names() else name
    module, colon, attribute = own.partition(":")
    if colon and name not in {*names(), *_external}:
        raise StudyError(f"workload {name!r} is one of a study that is not loaded here")
    if not colon:
        hint = "name its object too, as in ./file.py:WORKLOAD or package.module:WORKLOAD"
        if "." not in name:
            hint = f"{suggestion(name, names())}; another package's is package.module:WORKLOAD"
        raise StudyError(f"no workload {name!r}; {hint}")
    return module, attribute


def _object(name: str, module: ModuleType, attribute: str) -> Workload:
    found = getattr(module, attribute, None)
    if found is None:
        known = [n for n, value in vars(module).items() if isinstance(value, Workload)]
        hint = suggestion(attribute, known) if known else "it has no workload"
        file = PurePath(module.__file__ or name).name
        said = f"workload {name!r} cannot be loaded: {file} has no object {attribute!r}; {hint}"
        raise StudyError(said)
    if not isinstance(found, Workload):
        raise StudyError(
            f"workload {name!r} is a {type(found).__name__}, not a Workload; let its class inherit"
            " from nqbench.workloads.base.Workload"
        )
    return found


@dataclass(frozen=True, slots=True)
class ExternalWorkload:
    """A study's own workload, as plain data for workers.

    ``folder`` is that of the study (absolute), ``workload`` its key of that name, ``kernel`` its
    block of that name, ``study`` its own, and ``lines`` where that gives the kernel's arguments.
    """

    study: str
    folder: str
    workload: str
    kernel: Mapping[str, Any] | None = None
    lines: Mapping[str, str] = field(default_factory=dict)


def register(external: ExternalWorkload) -> Workload:
    """Make a study's workload known to this process; :func:`get` finds it from then on.

    The study's folder is searched for modules of its own Python files, after all others. Raises
    ``StudyError``.
    """
    folder, name = external.folder, external.workload
    if ":" in name:
        _external[name] = external
        with _SEARCHED:  # two threads that invalidate at once may both remove an entry
            if folder not in sys.path:
                sys.path.append(folder)  # last: no file there stands in for a library
                invalidate_caches()
    if external.kernel is not None:
        own = of_block(external.study, external.kernel, Path(folder), external.lines)
        _registered[own.name] = own
        return own
    try:
        return _load(name, Path(folder))
    except StudyError:
        _external.pop(name, None)  # workers that start later are not to load it
        raise


def _load(name: str, folder: Path) -> Workload:
    """The workload ``name``, of a Python file in ``folder`` if it names one."""
    file, colon, attribute = name.partition(":")
    if colon and file.endswith(".py"):
        try:
            module = load_file(folder / file)
        except StudyError as error:
            raise StudyError(f"workload {name!r} cannot be loaded: {error.message}") from error
        _registered[name] = _object(name, module, attribute)
    return get(name)


def named(name: str) -> Workload:
    """The workload that a caller of nqbench names, whose own modules may be imported."""
    return register(ExternalWorkload("", str(Path.cwd()), name))


def registered() -> tuple[ExternalWorkload, ...]:
    """What studies have registered in this process, for its workers."""
    return tuple(_external.values())


def of_block(
    study: str,
    block: Mapping[str, Any],
    folder: Path | None = None,
    lines: Mapping[str, str] | None = None,
) -> Workload:
    """The workload of a study's block ``kernel``; without its folder it cannot be planned."""
    from nqbench.workloads.own.kernel import OwnKernel

    return OwnKernel(study, block, folder, lines)


def of_study(study: Mapping[str, Any]) -> Workload:
    """The workload of a recorded study, by its plain form. Raises ``StudyError``."""
    if study.get(KERNEL):
        return of_block(str(study.get("name", "")), study[KERNEL])
    return get(str(study.get("workload", "counting")))


def module_of(name: str) -> str:
    """The module that holds a workload's object; empty for the kernel of a study."""
    if name in _registered:
        file = name.partition(":")[0]
        return module_name(Path(file)) if file.endswith(".py") else ""
    return _place(name)[0]


def launch_factors(study: str | Mapping[str, Any]) -> tuple[str, ...]:
    """Factors that the name of a system leaves open, in the order of the workload, and those of the
    measurement. ``study``: the name of a workload, or a recorded study. For a workload that cannot
    be loaded here only the latter are known."""
    try:
        found = get(study) if isinstance(study, str) else of_study(study)
        factors = tuple(found.factors.values())
    except StudyError:
        factors = ()
    return (*(factor.name for factor in factors if factor.launch), *MEASURING)


def with_systems() -> list[Workload]:
    """The workloads that have named systems, those with the most first."""
    found = [workload for workload in map(get, names()) if workload.systems]
    return sorted(found, key=lambda workload: -len(workload.systems))


def find_system(name: str) -> Workload:
    """The workload that has the system ``name``. Raises ``StudyError`` with the nearest one."""
    known = {system: workload for workload in with_systems() for system in workload.systems}
    if name in known:
        return known[name]
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
