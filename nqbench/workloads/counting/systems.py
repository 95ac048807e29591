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

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nqbench.point import Level

Levels = Mapping[str, Level]

_COMMON: Final[Mapping[str, dict[str, Level]]] = {
    "feinbube2010": {"block_size": 64, "blocks": "from_jobs_plus_one"},
    "tanaka2011": {"block_size": 160, "blocks": {"per_sm": 1}},
    "zhang2011": {"block_size": 128},
    "frontier": {"block_size": 128, "symmetry": "full", "jobs_made": "gpu"},
}

_TABLE: Final = """
system memory rows allocation storage layout loop assignment encoding cache
feinbube2010.base               local        max       -       arrays -           somers      one_per_thread rows   default
feinbube2010.opt1_shared_stack  shared_stack max       static  arrays per_thread  somers      one_per_thread rows   default
feinbube2010.opt2_shared_all    shared       max       static  arrays per_thread  somers      one_per_thread rows   default
feinbube2010.opt3_shared_extern shared       max       dynamic chunk  per_thread  somers      one_per_thread rows   default
feinbube2010.opt4_compact       shared       remaining dynamic chunk  per_thread  somers      one_per_thread rows   default
tanaka2011.none                 shared       n         static  arrays per_thread  place_first contiguous     base_n prefer_shared
tanaka2011.conflict_free        shared       n         static  arrays interleaved place_first contiguous     base_n prefer_shared
tanaka2011.dynamic              shared       n         static  arrays per_thread  place_first global_pool    base_n prefer_shared
tanaka2011.both                 shared       n         static  arrays interleaved place_first global_pool    base_n prefer_shared
zhang2011.naive_l1_16k          global       remaining -       struct per_thread  branchy     one_per_thread masks  prefer_shared
zhang2011.naive_l1_48k          global       remaining -       struct per_thread  branchy     one_per_thread masks  prefer_l1
zhang2011.shared_conflict       shared       remaining static  struct per_thread  branchy     one_per_thread masks  prefer_shared
zhang2011.shared_no_conflict    shared       remaining static  struct interleaved branchy     one_per_thread masks  prefer_shared
zhang2011.low_divergence        shared       remaining static  struct interleaved irrc        one_per_thread masks  prefer_shared
zhang2011.pool_distributed      shared       remaining static  struct interleaved irrc        block_pool     masks  prefer_shared
zhang2011.pool_monolithic       shared       remaining static  struct interleaved irrc        global_pool    masks  prefer_shared
frontier.predicated             shared       remaining static  vector interleaved predicated  global_pool    masks  prefer_shared
frontier.lookahead              shared       remaining static  vector interleaved lookahead   global_pool    masks  prefer_shared
frontier.unrolled               shared       remaining static  vector interleaved unrolled    warp_pool      packed prefer_shared
"""  # noqa: E501 - a table is read by column


def paper_of(system: str | None) -> str:
    """Slug of the paper that a system comes from; empty for a point without a system."""
    return system.partition(".")[0] if system else ""


def is_cpu(system: str | None) -> bool:
    """Whether the system runs on the CPU."""
    return paper_of(system) == "cpu"


def _read_table() -> dict[str, Levels]:
    (_, *names), *rows = (line.split() for line in _TABLE.strip().splitlines())
    return {
        system: MappingProxyType(
            {**dict(zip(names, levels, strict=True)), "symmetry": "mirror", "depth": "auto"}
            | _COMMON[paper_of(system)]
        )
        for system, *levels in rows
    }


_MIDDLE: Final[Levels] = {
    "listing": "quarters",
    "order": "gray",
    "masks": "and_or",
    "pair_test": "shuffle",
    "symmetry": "middle",
    "split": "auto",
}

_ON_CPU: Final = (
    *("cpu.somers", "cpu.multicore", "cpu.frontier", "cpu.frontier_multicore"),
    *("cpu.middle", "cpu.middle_multicore"),
)
MIDDLE_N: Final = 23
"""The largest board of ``cpu.middle``: its diagonals fill a word (``middle.cpu``)."""

SYSTEMS: Final[Mapping[str, Levels]] = MappingProxyType(
    _read_table()
    | {"middle": MappingProxyType(_MIDDLE)}
    | {name: MappingProxyType({}) for name in _ON_CPU}
)
