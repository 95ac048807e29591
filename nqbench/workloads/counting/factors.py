"""The factor space of the counting workload: every axis, its levels, and its name in CUDA."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nqbench.facts import DeviceFacts
from nqbench.point import Level
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

_MANY: Final = 2**31 - 1

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


FACTORS: Final[Mapping[str, Factor]] = factor_table(f"""
n 1..{MAX_N}: board size
memory local|shared_stack|shared|global =shared: where the four per-row quantities live
rows max|n|remaining =remaining: how many rows are reserved per thread
allocation static|dynamic =static: how shared memory is allocated
storage arrays|chunk|struct|vector =struct: order of a thread's words
layout per_thread|interleaved|padded =interleaved:
    which index runs fastest, the row's or the thread's
loop {"|".join((*LOOPS, *FRONTIER_LOOPS))} =irrc: control flow of the search
assignment one_per_thread|strided|contiguous|block_pool|global_pool|warp_pool =one_per_thread:
    which thread works on which job
encoding rows|base_n|masks|packed =masks: how a job is encoded
cache default|prefer_l1|prefer_shared =default: preferred split between L1 and shared memory
symmetry none|mirror|full|quarter|middle =mirror: which part of the tree is searched
listing walk|quarters: how `middle` lists half boards
order none|plain|gray: order of the half boards of `middle`
masks none|and|and_or: which masks of `middle` spare pairs of tiles a test
pair_test words|shuffle: how `middle` tests pairs of half boards
split 0..4 auto: diagonals by which `middle` cuts the lists of a group
depth 2..{MAX_N - 3} auto launch =auto: rows placed on the CPU
adders alu|both =alu: which pipes of `loop: unrolled` add
steps 1..15 =15: queens between two votes of `loop: unrolled`
lookahead 1..3 auto =auto: rows in which a queen of `loop: unrolled` must leave a column
block_size 1..1024 launch =128: threads per block
blocks from_jobs|from_jobs_plus_one 1..{_MANY} per_sm launch: blocks of the grid
pool_size 1..{_MANY} launch: jobs in the pool of one block
jobs_per_thread 1..{_MANY} launch: jobs of a thread's static share
jobs_made cpu|gpu launch =cpu: where jobs are made
max_board {MIN_N}..64 ={MAX_BOARD}: rows reserved by `rows: max`
probe none|iterations|clocks|divergence|accesses launch =none:
    what an instrumented kernel counts; such a point is counted once and never timed
""")

DEFAULTS: Final[Mapping[str, Level]] = {
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
    {"static": "fixed", "dynamic": "at_launch", "struct": "records"}
)
"""Levels with another name in CUDA, where the word is reserved."""
