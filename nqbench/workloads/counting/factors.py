"""The factor space of the counting workload: every axis, its levels, and its name in CUDA."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nqbench.facts import DeviceFacts
from nqbench.point import Level
from nqbench.workloads.base import Factor

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

_MANY: Final = 2**31 - 1


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


_FACTORS: Final = (
    Factor("n", "board size", number=(1, MAX_N)),
    Factor(
        "memory",
        "where the four per-row quantities live",
        ("local", "shared_stack", "shared", "global"),
    ),
    Factor("rows", "how many rows are reserved per thread", ("max", "n", "remaining")),
    Factor("allocation", "how shared memory is allocated", ("static", "dynamic")),
    Factor("storage", "order of a thread's words", ("arrays", "chunk", "struct", "vector")),
    Factor(
        "layout",
        "which index runs fastest, the row's or the thread's",
        ("per_thread", "interleaved", "padded"),
    ),
    Factor("loop", "control flow of the search", (*LOOPS, *FRONTIER_LOOPS)),
    Factor(
        "assignment",
        "which thread works on which job",
        (*("one_per_thread", "strided", "contiguous"), *("block_pool", "global_pool", "warp_pool")),
    ),
    Factor("encoding", "how a job is encoded", ("rows", "base_n", "masks", "packed")),
    Factor(
        "cache",
        "preferred split between L1 and shared memory",
        ("default", "prefer_l1", "prefer_shared"),
    ),
    Factor("symmetry", "which part of the tree is searched", ("none", "mirror", "full")),
    Factor("depth", "rows placed on the CPU", number=(2, MAX_N - 3), auto=True, launch=True),
    Factor("adders", "which pipes of `loop: unrolled` add", ("alu", "both")),
    Factor("steps", "queens between two votes of `loop: unrolled`", number=(1, 15)),
    Factor(
        "lookahead",
        "rows in which a queen of `loop: unrolled` must leave a column",
        number=(1, 3),
        auto=True,
    ),
    Factor("block_size", "threads per block", number=(1, 1024), launch=True),
    Factor(
        "blocks",
        "blocks of the grid",
        ("from_jobs", "from_jobs_plus_one"),
        number=(1, _MANY),
        per_sm=True,
        launch=True,
    ),
    Factor("pool_size", "jobs in the pool of one block", number=(1, _MANY), launch=True),
    Factor("jobs_per_thread", "jobs of a thread's static share", number=(1, _MANY), launch=True),
    Factor("jobs_made", "where jobs are made", ("cpu", "gpu"), launch=True),
    Factor("max_board", "rows reserved by `rows: max`", number=(MIN_N, 64)),
    Factor(
        "probe",
        "what an instrumented kernel counts; such a point is counted once and never timed",
        ("none", "iterations", "clocks", "divergence", "accesses"),
        launch=True,
    ),
)
FACTORS: Final[Mapping[str, Factor]] = MappingProxyType({f.name: f for f in _FACTORS})

DEFAULTS: Final[Mapping[str, Level]] = MappingProxyType(
    {
        "memory": "shared",
        "rows": "remaining",
        "allocation": "static",
        "storage": "struct",
        "layout": "interleaved",
        "loop": "irrc",
        "assignment": "one_per_thread",
        "encoding": "masks",
        "cache": "default",
        "symmetry": "mirror",
        "adders": "alu",
        "steps": 15,
        "lookahead": "auto",
        "depth": "auto",
        "block_size": 128,
        "max_board": MAX_BOARD,
        "jobs_made": "cpu",
        "probe": "none",
    }
)
"""Levels of a sweep without a system. The launch factors missing here depend on others."""

CONFIG_FIELDS: Final = (
    *("n", "depth", "block_size", "max_board", "memory", "rows", "allocation", "storage", "layout"),
    *("loop", "assignment", "encoding", "symmetry", "adders", "steps", "lookahead"),
)
"""Factors that are fields of the kernel's ``Config`` (``config.cuh``), in its order. A field's
enumeration has the same name: ``Memory``."""

RESERVED_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {"static": "fixed", "dynamic": "at_launch", "struct": "records"}
)
"""Levels with another name in CUDA, where the word is reserved."""
