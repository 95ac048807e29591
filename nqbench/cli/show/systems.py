"""Named systems and what they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nqbench.cli.show.console import say
from nqbench.cli.show.tables import show_table
from nqbench.point import text

if TYPE_CHECKING:
    from nqbench.workloads.base import Workload


def show_systems(workloads: Sequence[Workload]) -> None:
    """All systems, a table of factors for each workload."""
    for workload in workloads:
        systems = workload.systems
        factors = list(dict.fromkeys(k for levels in systems.values() for k in levels))
        rows = [
            [name, *(text(levels.get(f, "")) for f in factors)] for name, levels in systems.items()
        ]
        say(f"workload: {workload.name}")
        show_table(["system", *factors], rows)


def show_system(workload: Workload, system: str) -> None:
    """One system in full."""
    levels = workload.systems[system]
    if system in workload.cpu_systems:
        say(f"{system} runs on the CPU{'' if levels else ' and takes no factor but n'}")
    for name, level in levels.items():
        factor = workload.factors.get(name)
        meaning = factor.meaning if factor else ""
        say(f"{name:>14} = {level!s:<16} {meaning}".rstrip(), hang=34)
