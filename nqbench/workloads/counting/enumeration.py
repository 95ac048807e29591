"""The deterministic counts of a whole board, by enumeration on the CPU's cores.

One walk over all jobs gives each job's descents, dead descents and solutions; what each loop does
follows from them. Tests compare these formulas with the loops run step by step and with the
kernels' own counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import StudyError
from nqbench.system.files import digest, kept_json
from nqbench.workloads.counting.jobs import OddRule, Symmetry, words_of_jobs
from nqbench.workloads.counting.probe import Spread

Counts = NDArray[np.int64]
_CHUNK_JOBS: Final = 4096
"""Jobs handed to a thread at once: waiting for the last chunk costs little, handing out less."""
_SOURCES: Final = ("search.py", "jobs.py", "enumeration.py")

_DEAD_AND_SOLUTIONS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {"somers": (0, 0), "branchy": (0, 1), "place_first": (0, 1), "irrc": (-1, 0)}
)
"""By how much a dead descent and a solution lengthen a job beyond two iterations per descent.

Every row entered is left once. A solution leaves the last row in the iteration that finds it
(somers), in a separate one (the two-way loops, which are the same steps), or with the step up that
ends every iteration (irrc, which also never stands in a row without an open column)."""


def loop_iterations(loop: str, work: Counts) -> Counts:
    """Iterations of jobs with this ``work`` (``work_of``), shape ``(jobs,)``."""
    descents, dead, solutions = work
    per_dead, per_solution = _DEAD_AND_SOLUTIONS[loop]
    return np.asarray(1 + 2 * descents + per_dead * dead + per_solution * solutions)


@dataclass(frozen=True, slots=True)
class Split:
    """A set of jobs: the board, the rows already placed, and how symmetry restricts the tree."""

    n: int
    depth: int
    symmetry: Symmetry = "mirror"
    odd_rule: OddRule = "full_middle"


@dataclass(frozen=True, slots=True)
class Enumeration:
    """What the search does below all jobs of a split; ``iterations`` by loop, over jobs."""

    split: Split
    iterations: Mapping[str, Spread]
    descents: int
    dead: int
    solutions: int


def enumerate_jobs(split: Split) -> Enumeration:
    """Walk every job on all cores that this process may use; not cached.

    Half a second for N = 15, a few for 16, a minute or two for 18 on two cores. Raises
    ``StudyError`` for ``symmetry: full``, whose jobs also know their border queens.
    """
    if split.symmetry == "full":
        raise StudyError(
            "nothing is counted of symmetry: full without a run; run the system with"
            " probe: iterations, in the simulator or on a GPU"
        )
    from nqbench.workloads.compiled import on_all_cores  # numba: slow to import

    words = words_of_jobs(split.n, split.depth, "masks", split.symmetry, split.odd_rule)
    jobs = words.size // 3
    work = np.empty((3, jobs), np.int64)

    def walk(begin: int) -> None:
        end = min(begin + _CHUNK_JOBS, jobs)
        work[:, begin:end] = work_of(split, words, begin, end)

    on_all_cores(walk, range(0, jobs, _CHUNK_JOBS))
    descents, dead, solutions = work
    return Enumeration(
        split=split,
        iterations={loop: Spread.of(loop_iterations(loop, work)) for loop in _DEAD_AND_SOLUTIONS},
        descents=int(descents.sum()),
        dead=int(dead.sum()),
        solutions=int(solutions.sum()),
    )


def work_of(split: Split, words: NDArray[Any], begin: int, end: int) -> Counts:
    """Descents, dead descents and solutions of some jobs, shape ``(3, end - begin)``."""
    from nqbench.workloads.counting.search import work_of_jobs  # numba: slow to import

    out = np.empty((end - begin, 3), np.int64)
    work_of_jobs(split.n, split.depth, words, begin, end, out)
    return out.T


def kept(split: Split) -> Enumeration:
    """An enumeration, from the disk if the same code has made it before."""
    code = digest(Path(__file__).with_name(name) for name in _SOURCES)[:12]
    name = f"n{split.n}-d{split.depth}-{split.symmetry}-{split.odd_rule}-{code}.json"
    found = kept_json(f"counts/{name}", lambda: asdict(enumerate_jobs(split)))
    spreads = {loop: Spread(**spread) for loop, spread in found["iterations"].items()}
    return Enumeration(**{**found, "split": split, "iterations": spreads})
