"""The identity of a measurement: a hash over everything that can change its number.

A record whose key no longer occurs is not reused: a point is measured again as soon as its kernel,
the code that makes its input, its levels, the protocol, the device, the driver, the compiler or a
version changes. Reports, other workloads, the study's text, the number of rounds and the time limit
of a launch do not enter.

What is executed follows from a point's levels and its workload's code, so the files of the
workload stand for it. (Making every plan and hashing that would be exact, but takes up to 22 s for
a study of the largest boards on a GPU.) No module paths of nqbench's enter.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from nqbench.compiler.includes import find_headers
from nqbench.errors import StoreError
from nqbench.measure.manifest import COMPILERS, CPU_COMPILERS, CPU_LIBRARIES, versions
from nqbench.measure.variants import runs_on_cpu
from nqbench.measure.worker.messages import Hello
from nqbench.point import Point
from nqbench.system.files import contents, digest
from nqbench.system.versions import PACKAGE, __version__
from nqbench.workloads import get as find_workload
from nqbench.workloads import module_of

KEY_VERSION: Final = 2
"""Of the way keys are made; 1 hashed the Python modules of nqbench itself."""
LENGTH: Final = 20  # hex digits: no collision among billions of points
CONTENTS: Final = "_sha256"
"""Ending of a derived value that identifies a user's file: its name is a level, its contents are
not."""
LARGEST_SOURCE: Final = 1_000_000
"""Bytes of a file that a manifest holds: a longer one is data."""
NOT_DEFINING: Final = frozenset({"builtins", "abc", "typing", "nqbench.workloads.base"})
"""Modules of base classes that have no part in a plan."""


class Keys:
    """Makes the keys of one run's points, and knows whether they still hold."""

    def __init__(
        self, hello: Hello, protocol: Mapping[str, Any], order: Sequence[str] = ()
    ) -> None:
        """``hello`` is how a worker introduced its device; ``protocol`` how it is sampled;
        ``order`` that of an own kernel's arguments, which a sorted mapping does not show.

        A deterministic device is not sampled, so the protocol does not enter its keys.
        """
        self._order = {"order": [*order]} if order else {}
        self._sources: dict[object, Watched] = {}
        self._device = {
            "identity": hello.identity,
            "facts": hello.facts.as_dict(),
            "versions": versions((*COMPILERS, *CPU_COMPILERS)),
            "protocol": {} if hello.deterministic else dict(protocol),
        }
        self._cpu = {
            "identity": hello.host,
            "versions": versions((*CPU_COMPILERS, *CPU_LIBRARIES)),
            "python": platform.python_version(),
            "protocol": dict(protocol),
        }

    def of(self, point: Point) -> str:
        """The key of a point; differs between sweeps, so that each keeps its own records."""
        on_cpu = runs_on_cpu(point)
        program = point.program
        own = {"program": program.as_json()} if program else {}
        made_of: object = (point.workload, on_cpu)
        find: Callable[[], list[Path]] = partial(workload_files, point.workload, on_cpu=on_cpu)
        if program:
            find, made_of = program.files, (program.folder, program.command, program.depends)
        if made_of not in self._sources:
            self._sources[made_of] = Watched(find)
        parts: dict[str, Any] = {
            "key_version": KEY_VERSION,
            "nqbench": __version__,
            "sweep": point.sweep,
            "workload": point.workload,
            "sources": self._sources[made_of].digest,
            "system": point.system,
            "factors": dict(point.factors),
            "contents": {k: v for k, v in point.derived.items() if k.endswith(CONTENTS)},
            "where": self._cpu if on_cpu else self._device,
            **own,
            **self._order,
        }
        if described := find_workload(point.workload).identity():
            parts["described"] = dict(described)
        text = json.dumps(parts, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]

    def check(self) -> None:
        """Raise ``StoreError`` if a source has changed since the keys were made.

        Each round is a new process that reads the sources anew: what it measures from then on
        would be stored under the key of something else.
        """
        if any(files.changed() for files in self._sources.values()):
            raise StoreError(
                "the sources of the workload or a program were changed while it was measured; the"
                " measurements before are kept, run again to measure the changed version"
            )


class Watched:
    """Files that may change. ``digest`` is a hash of their names and bytes at the start."""

    def __init__(self, find: Callable[[], list[Path]]) -> None:
        """``find`` lists the files, in a fixed order."""
        self._find = find
        self._stamps: dict[Path, tuple[int, int]] = {}
        self.digest = self._now = self._read_all()

    def changed(self) -> bool:
        """Whether any of them differs from the start. Reads none as long as none is touched."""
        if any(_stat(path) != stamp for path, stamp in self._stamps.items()):
            self._now = self._read_all()
        return self._now != self.digest

    def _read_all(self) -> str:
        """The digest of now. Notes when each file changed, and its folder: a file may be added."""
        files = self._find()
        watched = dict.fromkeys((*files, *(path.parent for path in files)))
        self._stamps = {path: _stat(path) for path in watched}
        return digest(files)


def workload_files(name: str, *, on_cpu: bool) -> list[Path]:
    """The files that a workload's plans follow from, in a fixed order.

    Those in the folders of the modules that define it (:func:`_folder`): Python files and, unless
    ``on_cpu``, kernels with all that these include. A workload without a file (typed in somewhere)
    has none.
    """
    workload = find_workload(name)
    modules = {base.__module__ for base in type(workload).__mro__} - NOT_DEFINING
    modules.add(module_of(name))
    # Editors keep temporary files in the folder; their names begin with a dot.
    named = {*workload.files()}
    inside = {path for module in modules for path in _folder(module)} | named
    found = sorted(path for path in inside if not path.name.startswith("."))
    python = [path for path in found if path.suffix == ".py"]
    if on_cpu:
        return python
    kernels = {path for path in found if path.suffix in (".cu", ".cuh")}
    other = named - {*python, *kernels}
    for path in kernels:
        headers = find_headers(path, _text(path), _text, workload.include)
        other |= {path.resolve(), *(header.path for header in headers)}
    return python + sorted(other)


def own_sources(points: Iterable[Point], folder: Path) -> dict[str, str]:
    """The text files of a study's folder that its kernels, workloads and programs are made of, by
    their names: what somebody else needs besides nqbench and the study to measure it again."""
    points, folder = list(points), folder.resolve()
    names = {point.workload for point in points if not point.program}
    found = {file.resolve() for name in names for file in workload_files(name, on_cpu=False)}
    found |= {file.resolve() for p in points if p.program for file in p.program.files()}
    texts: dict[str, str] = {}
    for file in sorted(file for file in found if file.is_relative_to(folder) and file.is_file()):
        if not file.is_relative_to(PACKAGE) and file.stat().st_size <= LARGEST_SOURCE:
            with suppress(UnicodeDecodeError):
                texts[file.relative_to(folder).as_posix()] = file.read_text(encoding="utf-8")
    return texts


def _text(path: Path) -> str:
    return contents(path).decode(errors="surrogateescape")


def _folder(name: str) -> Iterable[Path]:
    """What is in a module's folder, and below it if the module is part of a package.

    For a single module in a folder of installed libraries it is that module only.
    """
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None:
        return ()
    own = Path(file).resolve()
    if sys.modules[name].__package__:
        return own.parent.rglob("*")
    installed = {Path(sysconfig.get_paths()[kind]) for kind in ("purelib", "platlib", "stdlib")}
    return (own,) if own.parent in installed else own.parent.glob("*")


def _stat(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return found.st_mtime_ns, found.st_size
