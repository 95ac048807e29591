"""The factor space of the counting workload: every axis, its levels, and its name in CUDA."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from nqbench.facts import DeviceFacts
from nqbench.point import FactorLevels, Level
from nqbench.workloads.base import Factor, factor_table

MIN_N: Final = 5
MAX_N: Final = 27
"""Boards the kernels take; 27 is the largest N whose answer is known."""

MAX_BOARD: Final = 32
"""Default rows of ``rows: max``. The paper names the constant but not its value; one word holds a
row, so 32 is the largest board that its program could handle."""

LOOPS: Final = ("somers", "branchy", "place_first", "irrc")
"""The papers' loops (``search.cuh``)."""

FRONTIER_LOOPS: Final = (
    *("registers", "siblings", "predicated", "selected", "lookahead", "unrolled"),
)
"""Loops with the current row in registers (``frontier.cuh``), each one step from the one before;
the last one is ``unrolled.cuh``."""

UNROLLED_N: Final = 24
"""Boards that ``unrolled`` takes: beyond, a word has no room for a row, its number and its ties."""
UNROLLED_CAPABILITY: Final = (7, 0)
"""Of the GPUs whose ``lop3`` also gives a predicate (PTX manual, "lop3": ``.BoolOp``)."""

MIDDLE: Final = "middle"
"""The system that counts pairs of half boards, with factors of its own."""
TREE_SYMMETRIES: Final = ("none", "mirror", "full")
"""Levels of ``symmetry`` of a tree; the others, and ``MIDDLE_FACTORS``, are of ``MIDDLE`` alone."""
MIDDLE_FACTORS: Final = ("listing", "order", "masks", "pair_test", "split")


def takes_closed_jobs(loop: Level) -> bool:
    """Whether a loop needs jobs with rows enough that the border columns never close below them
    (``border``)."""
    return loop == "unrolled"


def has_instructions(device: DeviceFacts, loop: Level) -> bool:
    """Whether a GPU has the instructions that a loop is written in."""
    own = device.compute_capability
    return loop != "unrolled" or bool(device.compiled_for) or own >= UNROLLED_CAPABILITY


def most_n(loop: Level) -> int:
    """The largest board that a loop takes."""
    return UNROLLED_N if loop == "unrolled" else MAX_N


FACTORS: Final[Mapping[str, Factor]] = factor_table(
    Path(__file__).with_name("factors.txt"),
    loops="|".join((*LOOPS, *FRONTIER_LOOPS)),
    max_n=MAX_N,
    max_depth=MAX_N - 3,
    max_board=MAX_BOARD,
    min_n=MIN_N,
    many=2**31 - 1,
)

DEFAULTS: Final[FactorLevels] = {
    name: factor.default for name, factor in FACTORS.items() if factor.default is not None
}
"""Levels of a sweep without a system. The launch factors missing here depend on others."""

CONFIG_FIELDS: Final = (
    *("n", "depth", "block_size", "max_board", "memory", "rows", "allocation", "storage", "layout"),
    *("loop", "assignment", "encoding", "symmetry", "adders", "steps", "lookahead"),
)
"""Factors that are fields of the kernel's ``Config`` (``config.cuh``), in its order. A field's
enumeration has the same name: ``Memory``."""

RESERVED_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {"static": "fixed", "dynamic": "at_launch", "struct": "records", "and": "and_"}
)
"""Levels with another name in CUDA, where the word is reserved."""
