"""The schemes, and the systems named after them.

A scheme says where it runs and which factors apply to it. A CPU scheme is built by
``cpu.plans``, one that anneals by ``annealing.points``, a kernel by ``gpu``. To add a factor to a
scheme, add it to ``factors.FACTORS`` and, with its default, to the scheme's ``levels`` here.

A paper's schemes are systems under its name, the others under the workload's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from nqbench.point import Level
from nqbench.workloads.fitness.search_factors import (
    CPU_EVALUATOR_LEVELS,
    GPU_EVALUATOR_LEVELS,
    SCHEDULE,
)

Task = Literal["evaluate", "anneal"]
Place = Literal["cpu", "device"]


@dataclass(frozen=True, slots=True)
class Scheme:
    """``levels``: the factors that apply to it (besides ``n``), with their defaults."""

    name: str
    place: Place
    task: Task
    levels: Mapping[str, Level]


_BOARD: Final[Mapping[str, Level]] = {"board": "random", "board_file": "-", "seed": 1}
_LAUNCH: Final[Mapping[str, Level]] = {**_BOARD, "allocation": "per_call", "block_size": 512}
"""The paper allocates in every call and takes blocks of 512 threads for every kernel."""
_OWN: Final[Mapping[str, Level]] = {
    **_BOARD,
    "allocation": "once",
    "block_size": "auto",
    "counters": "auto",
    "tally": "arrival",
}


def _cpu(name: str, **levels: Level) -> Scheme:
    return Scheme(name, "cpu", "evaluate", MappingProxyType({**_BOARD, **levels}))


def _kernel(name: str, base: Mapping[str, Level], **levels: Level) -> Scheme:
    return Scheme(name, "device", "evaluate", MappingProxyType({**base, **levels}))


def _search(name: str, place: Place, **levels: Level) -> Scheme:
    return Scheme(name, place, "anneal", MappingProxyType({"seed": 1, **SCHEDULE, **levels}))


_ALL: Final = (
    _cpu("cpu_serial", optimization="default"),
    _cpu("cpu_threads", threads="auto"),
    _cpu("cpu_tbb"),
    _cpu("cpu_forkjoin", threshold=4),
    _cpu("cpu_histogram", batch=1),
    _kernel("gpu_fine1", _LAUNCH),
    _kernel("gpu_fine2", _LAUNCH),
    _kernel("gpu_coarse", _LAUNCH, atomics="per_conflict"),
    _kernel("gpu_cdp", _LAUNCH, threshold=4096, child_block_size=32, nesting=1),
    _kernel("histogram", _OWN),
    _kernel("batched", _OWN, batch=256),
    _search("sa_cpu", "cpu", evaluator="cpu_serial", **CPU_EVALUATOR_LEVELS),
    _search("sa_gpu", "device", evaluator="gpu_coarse", **GPU_EVALUATOR_LEVELS),
    _search("sa_delta", "cpu", proposal="uniform"),
    _search(
        "sa_chains",
        "device",
        proposal="uniform",
        chains="auto",
        stop="first",
        block_size=32,
        counters="auto",
    ),
)

SCHEMES: Final[Mapping[str, Scheme]] = MappingProxyType({scheme.name: scheme for scheme in _ALL})


_OF_PAPER: Final = (
    *("cpu_serial", "cpu_threads", "cpu_tbb", "cpu_forkjoin"),
    *("gpu_fine1", "gpu_fine2", "gpu_coarse", "gpu_cdp"),
    *("sa_cpu", "sa_gpu"),
)

_INPUT: Final = ("board", "board_file", "seed")
"""The input, which is not part of a scheme."""

SYSTEMS: Final[Mapping[str, Mapping[str, Level]]] = MappingProxyType(
    {
        f"{'fitness_schemes' if name in _OF_PAPER else 'fitness'}.{name}": MappingProxyType(
            {"scheme": name, **{f: level for f, level in scheme.levels.items() if f not in _INPUT}}
        )
        for name, scheme in SCHEMES.items()
    }
)

CPU_SYSTEMS: Final = frozenset(
    name for name, levels in SYSTEMS.items() if SCHEMES[str(levels["scheme"])].place == "cpu"
)
"""They run on the CPU, whatever the device."""
