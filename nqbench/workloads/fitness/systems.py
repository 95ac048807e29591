"""Named systems: the paper's schemes under its name, the others under the workload's."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nqbench.point import Level
from nqbench.workloads.fitness.schemes import SCHEMES

_OF_PAPER: Final = (
    *("cpu_serial", "cpu_threads", "cpu_tbb", "cpu_forkjoin"),
    *("gpu_fine1", "gpu_fine2", "gpu_coarse", "gpu_cdp"),
    *("sa_cpu", "sa_gpu"),
)

_INPUT: Final = ("board", "board_file", "seed")
"""What is evaluated, which is no part of a scheme."""

SYSTEMS: Final[Mapping[str, Mapping[str, Level]]] = MappingProxyType(
    {
        f"{'fitness_schemes' if name in _OF_PAPER else 'fitness'}.{name}": MappingProxyType(
            {"scheme": name, **{f: level for f, level in scheme.levels.items() if f not in _INPUT}}
        )
        for name, scheme in SCHEMES.items()
    }
)

CPU_SYSTEMS: Final = frozenset(
    name for name, levels in SYSTEMS.items() if SCHEMES[str(levels["scheme"])].place == "host"
)
"""They run on the processor, whatever the device."""
