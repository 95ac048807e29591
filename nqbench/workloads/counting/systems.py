"""The papers' systems and ours as named points of the factor space, and the CPU programs.

What a paper leaves open is chosen here, once, and stored in every record:

- Feinbube et al. sweep depth and block size and do not say which was best; 64 threads is the
  largest of their block sizes that fits all five versions into 48 KiB at 32 rows.
- Tanaka and Fujimoto use one block of 160 threads per multiprocessor; their static share is
  "a fixed number of tasks", read here as consecutive ones.
- Zhang et al. give neither block nor pool size: 128 threads, pools of four jobs per thread.

``frontier`` is no paper: one eighth of the tree, by loops written for speed (``frontier.cuh``).
``middle`` is none either, and searches no tree: it counts pairs of half boards (``middle``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from nqbench.point import FactorLevels, Level

_LAUNCH: Final[Mapping[str, dict[str, Level]]] = {
    "feinbube2010": {"block_size": 64, "blocks": "from_jobs_plus_one"},
    "tanaka2011": {"block_size": 160, "blocks": {"per_sm": 1}},
    "zhang2011": {"block_size": 128},
    "frontier": {"block_size": 128, "jobs_made": "gpu"},
}

MIDDLE_N: Final = 23
"""The largest board of ``cpu.middle``: its diagonals fill a word (``middle.cpu``)."""


def paper_of(system: str | None) -> str:
    """Slug of the paper that a system comes from; empty for a point without a system."""
    return system.partition(".")[0] if system else ""


def is_cpu(system: str | None) -> bool:
    """Whether the system runs on the CPU."""
    return paper_of(system) == "cpu"


def _read_table() -> Iterator[tuple[str, FactorLevels]]:
    text = Path(__file__).with_name("systems.txt").read_text(encoding="utf-8")
    for part in text.split("\n\n")[1:]:
        (_, *names), *rows = (line.split() for line in part.splitlines())
        for system, *words in rows:
            levels: dict[str, Level] = dict(zip(names, words, strict=True))
            yield system, MappingProxyType(levels | _LAUNCH.get(paper_of(system), {}))


SYSTEMS: Final[Mapping[str, FactorLevels]] = MappingProxyType(dict(_read_table()))
