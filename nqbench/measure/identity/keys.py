"""The identity of a measurement: a hash over everything that can change its number.

A record whose key no longer occurs is not reused, so a point is measured again as soon as its
kernel, the code that makes its input, its levels, the protocol, the device, the driver, the
compiler or a version changes. What cannot matter does not: reports, other workloads, comments, the
study's text, how many rounds there are, or when a launch would have been given up.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from nqbench.errors import StoreError
from nqbench.measure.identity.environment import source_hash, versions
from nqbench.measure.identity.sources import Sources, bases_of, module_of
from nqbench.measure.workload import find_workload, runs_on_host
from nqbench.point import Point

LENGTH: Final = 20  # hex digits: no collision among billions of points
MEASURING: Final = ("nqbench.measure.worker.session",)
"""The code between a request and a number, with all it imports except devices and workloads."""
ELSEWHERE: Final = frozenset(
    {"nqbench.devices", "nqbench.measure.workload", "nqbench.workloads", "nqbench.study"}
)
SAMPLING: Final = frozenset(
    {
        "nqbench.measure.sampling.sampling",
        "nqbench.measure.sampling.statistics",
        "nqbench.measure.sampling.timer",
    }
)
"""Without influence where nothing is sampled."""
DEVICE_MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "cuda": ("nqbench.devices.cuda.device",),
    "sim": ("nqbench.devices.sim", "nqbench.devices.sim.device"),
    "cpu": ("nqbench.devices.cpu",),
    "fake": ("nqbench.devices.fake.device",),
    "replay": ("nqbench.devices.replay",),
}
NOT_OF_DEVICES: Final = frozenset({"nqbench.runs.folder", "nqbench.record", "nqbench.study"})
"""What a replay reads with: its numbers are the recorded run's, whose digest is in the key."""
BEYOND_WORKLOADS: Final = frozenset({"nqbench.study", "nqbench.measure", "nqbench.devices"})
"""A workload gives plans, whoever asks for them and wherever they run."""
COMPILERS: Final = (
    *("cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc-cu13"),
    *("nvidia-nvjitlink", "nvidia-nvjitlink-cu12"),
    *("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12"),
    "pycuda",
)
CONTENTS: Final = "_sha256"
"""Ending of a derived number that stands for a user's file: its name is a level, its contents are
not."""
HOST_COMPILERS: Final = ("numba", "llvmlite", "numpy")
"""They make the jobs of a kernel (its ``split`` phase), run the simulator and the baselines."""
HOST_LIBRARIES: Final = ("tbb",)
"""They take part in some baselines only."""


class Keys:
    """Makes the keys of one run's points, and knows whether they still hold."""

    def __init__(self, hello: Mapping[str, Any], protocol: Mapping[str, Any]) -> None:
        """``hello`` is how a worker introduced its device; ``protocol`` how blocks are sampled.

        A deterministic device is not sampled, so the protocol does not enter its keys.
        """
        self._digests: dict[Sources, str] = {}
        family = str(hello["spec"]).partition(":")[0]
        exact = bool(hello["deterministic"])
        self._device = _hash(
            {
                "identity": hello["identity"],
                "facts": hello["facts"],
                "sources": self._all(measuring_sources(family, exact=exact)),
                "versions": versions((*COMPILERS, *HOST_COMPILERS)),
                "protocol": {} if exact else protocol,
            }
        )
        self._host = _hash(
            {
                "identity": hello["host"],
                "sources": self._all(measuring_sources("cpu", exact=False)),
                "versions": {
                    **versions((*HOST_COMPILERS, *HOST_LIBRARIES)),
                    "python": platform.python_version(),
                },
                "protocol": protocol,
            }
        )

    def of(self, point: Point) -> str:
        """The key of a point; differs between sweeps, so that each keeps its own blocks."""
        host = runs_on_host(point)
        sources = workload_sources(point.workload, host=host)
        parts = {
            "sweep": point.sweep,
            "workload": point.workload,
            "workload_sources": source_hash() if sources is None else self._digest(sources),
            "system": point.system,
            "factors": dict(point.factors),
            "where": self._host if host else self._device,
        }
        # Only where there are any, so that the keys of all other points stay as they are.
        contents = {name: v for name, v in point.derived.items() if name.endswith(CONTENTS)}
        return _hash({**parts, **contents})

    def check(self) -> None:
        """Raise ``StoreError`` if a source has changed since the keys were made.

        Each round is a new process that reads the sources anew: what it measures from then on
        would be stored under the key of something else.
        """
        if any(sources.digest() != digest for sources, digest in self._digests.items()):
            raise StoreError(
                "the sources of the kernels or of the measuring code were changed while they were"
                " measured; the blocks before are kept, run again to measure the changed version"
            )

    def _all(self, several: Iterable[Sources]) -> list[str]:
        return [self._digest(sources) for sources in several]

    def _digest(self, sources: Sources) -> str:
        if sources not in self._digests:
            self._digests[sources] = sources.digest()
        return self._digests[sources]


def _hash(parts: Mapping[str, Any]) -> str:
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def measuring_sources(family: str, *, exact: bool) -> tuple[Sources, Sources]:
    """The code that measures, and the device's; ``exact`` if nothing is sampled."""
    elsewhere = ELSEWHERE | SAMPLING if exact else ELSEWHERE
    return (
        Sources(MEASURING, elsewhere),
        Sources(DEVICE_MODULES[family], NOT_OF_DEVICES | {"nqbench.workloads"}),
    )


def workload_sources(name: str, *, host: bool) -> Sources | None:
    """The workload's module and all it imports, with the kernels in its folder unless ``host``.

    ``None`` for a workload that was typed in somewhere: there is no file to go by.
    """
    module = module_of(find_workload(name))
    if module is None or module.__file__ is None:
        return None
    kernels: Literal["folder", "none"] = "none" if host else "folder"
    return Sources((module.__name__,), BEYOND_WORKLOADS, bases_of(module), kernels)
