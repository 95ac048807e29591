"""The identity of a measurement: a hash over everything that can change its number.

A record whose key no longer occurs is not reused, so a point is measured again as soon as its
kernel, the code that makes its input, its levels, the protocol, the device, the driver, the
compiler or a version changes. Unrelated code (reports, studies) does not matter.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from nqbench.measure.environment import PACKAGE, digest, versions
from nqbench.measure.workload import find_workload, runs_on_host
from nqbench.point import Point

LENGTH: Final = 20  # hex digits: no collision among billions of points
MEASURING: Final = tuple(
    f"measure/{name}.py" for name in ("session", "timer", "sampling", "statistics")
)
"""The code between a request and a number."""
COMPILING: Final = ("compile*.py", "nvrtc.py")
DEVICE_SOURCES: Final[Mapping[str, tuple[str, ...]]] = {
    "cuda": ("devices/cuda*.py", *COMPILING),
    "sim": ("devices/sim", "devices/models", *COMPILING),
    "cpu": ("devices/cpu.py",),
    "fake": ("devices/fake.py",),
    "replay": ("devices/replay.py",),
}
COMPILERS: Final = (
    *("cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc-cu13"),
    "pycuda",
)
HOST_COMPILERS: Final = ("numba", "llvmlite", "numpy")


class Keys:
    """Makes the keys of one run's points."""

    def __init__(self, hello: Mapping[str, Any], protocol: Mapping[str, Any]) -> None:
        """``hello`` is how a worker introduced its device; ``protocol`` how blocks are sampled.

        A deterministic device is not sampled, so the protocol does not enter its keys.
        """
        family = str(hello["spec"]).partition(":")[0]
        self._device = _hash(
            {
                "identity": hello["identity"],
                "facts": hello["facts"],
                "sources": _sources(family),
                "versions": versions(COMPILERS),
                "protocol": {} if hello["deterministic"] else protocol,
            }
        )
        self._host = _hash(
            {
                "identity": hello["host"],
                "sources": _sources("cpu"),
                "versions": {**versions(HOST_COMPILERS), "python": platform.python_version()},
                "protocol": protocol,
            }
        )

    def of(self, point: Point) -> str:
        """The key of a point; differs between sweeps, so that each keeps its own blocks."""
        parts = {
            "sweep": point.sweep,
            "workload": point.workload,
            "workload_sources": _workload_sources(point.workload),
            "system": point.system,
            "factors": dict(point.factors),
            "where": self._host if runs_on_host(point) else self._device,
        }
        return _hash(parts)


def _hash(parts: Mapping[str, Any]) -> str:
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


@cache
def _digest_once(paths: tuple[Path, ...]) -> str:
    return digest(paths)


def _sources(family: str) -> str:
    patterns = (*MEASURING, *DEVICE_SOURCES[family])
    return _digest_once(tuple(path for pattern in patterns for path in PACKAGE.glob(pattern)))


def _workload_sources(name: str) -> str:
    """Hash of the folder (for a foreign workload: the module) that the workload lives in."""
    module = inspect.getmodule(type(find_workload(name)))
    file = Path(str(module.__file__)) if module and module.__file__ else PACKAGE
    return _digest_once((file.parent if PACKAGE in file.parents else file,))
