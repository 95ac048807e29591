"""Deterministic counts of the counting workload, computed on the CPU: no GPU, no timing.

:func:`count` is what claims of the papers call. Where the numbers come from:

- *by formula or a short walk*, at any size: ``jobs``, ``h2d_bytes`` (of all encoded jobs, copied to
  the device), and ``occupancy_percent`` of a launch (:func:`occupancy_percent`);
- *exact, by walking the whole tree* (``enumeration``): ``iterations`` of the search loop, also by
  statistics ``iterations_per_job``; ``workspace_accesses``, ``solutions``. Computed on demand up to
  N = 16 (seconds). The instrumented kernels (``probe: iterations``, ``accesses``) give the same
  numbers on a GPU, of larger boards too, and what depends on warps as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, cast

from nqbench.errors import AnalysisError, StudyError
from nqbench.point import FactorLevels, Level
from nqbench.system.suggest import suggestion
from nqbench.workloads.counting import enumeration, resolve
from nqbench.workloads.counting import jobs as jobs_of
from nqbench.workloads.counting.configuration import check_depth
from nqbench.workloads.counting.enumeration import Enumeration, Split
from nqbench.workloads.counting.jobs import Encoding, Symmetry
from nqbench.workloads.counting.probe import COUNTERS, Spread
from nqbench.workloads.counting.systems import SYSTEMS, is_cpu

Value = int | float | dict[str, Any]

MAX_N_ON_THE_FLY: Final = 16
"""Largest board that is walked: 10 seconds on one core, and a factor of 8 for each row more."""

STATISTICS: Final = ("min", "max", "mean", "variance", "sd", "total")
_WORD: Final = 4
_WARP: Final = 32
_SYSTEM: Final = "zhang2011.low_divergence"


@dataclass(frozen=True, slots=True)
class CountRequest:
    """A request for a count, with all names resolved."""

    levels: FactorLevels
    split: Split

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        split = self.split
        return jobs_of.count_jobs(split.n, split.depth, split.symmetry, split.odd_rule)

    @property
    def h2d_bytes(self) -> int:
        """Bytes of all encoded jobs, or of what a GPU makes them from."""
        if self.levels["jobs_made"] == "gpu":
            from nqbench.workloads.counting import border

            return border.starts(self.split.n, self.split.depth)[1].nbytes
        encoding = cast(Encoding, self.levels["encoding"])
        return self.jobs * _WORD * jobs_of.words_per_job(encoding, self.split.depth)

    @property
    def iterations(self) -> Spread:
        """Passes of the search loop per job."""
        return self._walked(self.split).iterations[str(self.levels["loop"])]

    @property
    def solutions(self) -> int:
        """Solutions of the whole board: twice those of jobs that all weigh the same."""
        return 2 * self._walked(replace(self.split, odd_rule="restrict_second")).solutions

    @property
    def workspace_accesses(self) -> int:
        """32-bit loads and stores of all threads, as the listings write them.

        A descent reads the three masks above and writes the three below; the open columns are read
        once per iteration and written by a placement and into the row it enters. Somers' loop keeps
        them in a register: a stack word is written by a descent and read on the way back.
        """
        found, iterations = self._walked(self.split), self.iterations
        if self.levels["loop"] != "somers":
            own = iterations.total + 4 * iterations.count
            return own + 8 * found.descents + found.solutions
        # Listing 4 replays the rows given: a descent each.
        replays = self.levels["rows"] != "remaining" and self.levels["encoding"] == "rows"
        return (5 + 7 * self.split.depth * replays) * iterations.count + 8 * found.descents

    def _walked(self, split: Split) -> Enumeration:
        """The walk over all jobs, from the disk if it was done before.

        Raises ``AnalysisError`` if it takes minutes.
        """
        if split.n > MAX_N_ON_THE_FLY:
            raise AnalysisError(
                f"this count walks the whole tree of n = {split.n}, minutes beyond n ="
                f" {MAX_N_ON_THE_FLY}: run the system with probe: iterations on a GPU"
            )
        return enumeration.kept(split)


COUNTS: Final = (
    *("solutions", "jobs", "h2d_bytes", "iterations", "iterations_total", "iterations_per_job"),
    "workspace_accesses",
)
"""Every count by name, but ``occupancy_percent``."""
OCCUPANCY: Final = "occupancy_percent"


def occupancy_percent(
    compute_capability: str, block_size: int, registers: int = 0, shared_bytes: int = 0
) -> float:
    """Most warps of one kernel that fit on a multiprocessor, percent of all that it can hold.

    ``registers`` per thread and ``shared_bytes`` per block bind nothing where they are 0. They are
    not rounded up to what the hardware allocates, so that the true occupancy may be lower.
    """
    from nqbench.simulator.models import capability_facts

    numbers = [int(part) for part in str(compute_capability).split(".") if part.isdecimal()]
    holds = capability_facts(*numbers) if len(numbers) == 2 else None
    if holds is None or holds.compute_capability != tuple(numbers):
        raise StudyError(f"limits of compute capability {compute_capability} are not known")
    warps = -(-block_size // _WARP)
    blocks = [holds.max_blocks_per_multiprocessor, holds.max_warps_per_multiprocessor // warps]
    if registers:
        blocks.append(holds.registers_per_multiprocessor // (registers * warps * _WARP))
    if shared_bytes:
        blocks.append(holds.shared_per_multiprocessor // shared_bytes)
    return 100 * min(blocks) * warps / holds.max_warps_per_multiprocessor


def count(name: str, **params: Any) -> Value:
    """The deterministic count called ``name`` (a key of :data:`COUNTS`, or ``occupancy_percent``).

    ``n`` (or ``N``)  board size, always needed
    ``system``        named system, with or without its paper; default: low_divergence
    ``depth``         rows placed on the CPU; default: the system's own rule
    ``encoding``      of the jobs; default: the system's
    ``stat``          of ``iterations_per_job``: ``min``, ``max``, ``mean``, ``variance``, ``sd`` or
                      ``total``; without it all of them

    ``StudyError`` for a name, parameter, system or level that does not exist, ``InfeasibleError``
    for a depth out of range, ``AnalysisError`` for a tree too large to walk.
    """
    if name == OCCUPANCY:
        launch = {key: value for key, value in params.items() if key not in ("N", "n")}
        return occupancy_percent(**launch)
    if name in COUNTERS and name not in COUNTS:
        raise StudyError(f"{name} is not counted without a run; run the system with a probe")
    if name not in COUNTS:
        hint = suggestion(name, [*COUNTS, OCCUPANCY])
        raise StudyError(f"no count is called {name!r}; {hint}")
    given = {"n" if key == "N" else key: value for key, value in params.items()}
    accepted = ("n", "depth", "system", "encoding", *("stat",) * name.endswith("per_job"))
    for key in given:
        if key not in accepted:
            raise StudyError(f"this count takes no parameter {key!r}; {suggestion(key, accepted)}")
    statistic = str(given.pop("stat", ""))
    request = _resolved(**given)
    if not name.startswith("iterations"):
        return cast(Value, getattr(request, name))
    if statistic and statistic not in STATISTICS:
        said = f"no statistic is called {statistic!r}; {suggestion(statistic, STATISTICS)}"
        raise StudyError(said)
    found: dict[str, Any] = {stat: getattr(request.iterations, stat) for stat in STATISTICS}
    if name == "iterations_per_job":
        return cast(Value, found[statistic]) if statistic else found
    return cast(Value, found["total"])


def _resolved(
    n: object = None, system: str = _SYSTEM, depth: int | None = None, encoding: str | None = None
) -> CountRequest:
    if not isinstance(n, int):
        raise StudyError(f"a count needs a board size, a whole number n, not {n!r}")
    kernels = [kernel for kernel in SYSTEMS if not is_cpu(kernel)]
    found = [kernel for kernel in kernels if system in (kernel, kernel.partition(".")[2])]
    if len(found) != 1:
        raise StudyError(f"no system {system!r} has such counts; {suggestion(system, kernels)}")
    given: dict[str, Level] = {"n": n}
    if encoding is not None:
        given["encoding"] = encoding
    levels = resolve.fill_levels(given, found[0])
    if depth is None:
        depth = resolve.auto_depth(levels, found[0])
    check_depth(n, depth)
    odd_rule = jobs_of.ODD_RULES[str(levels["encoding"])]
    return CountRequest(levels, Split(n, depth, cast(Symmetry, levels["symmetry"]), odd_rule))
