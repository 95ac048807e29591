"""Deterministic counts of the counting workload, computed on the CPU: no GPU, no timing.

:func:`count` is what claims of the papers call. Where the numbers come from:

- *by formula or a short walk*, at any size: ``jobs``, ``tasks``, ``h2d_bytes``, and
  ``occupancy_percent`` of a launch on the papers' GPUs (:func:`occupancy_percent`);
- *exact, by walking the whole tree* (``enumeration``): iterations, nodes, accesses, solutions.
  Computed on demand up to N = 16 (seconds); beyond only with ``full=True``: two minutes for N = 18
  on two cores, a factor of 8 per row, then from the disk.
  The instrumented kernels (``probe: iterations``, ``accesses``) give the same numbers on a GPU;
- *sampled*: ``warp_utilization``, ``split_iteration_share``, ``warp_iterations``, of warps whose
  lanes run in step; ``probe: iterations`` gives the first for all warps.

The sampled counts model the hardware: every iteration of the loop is one pass of the whole warp, in
which some lanes place a queen and others step back. Jobs are handed out in depth-first order, as by
``assignment: one_per_thread`` with blocks of whole warps, or in a random order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, Literal, cast

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import AnalysisError, StudyError
from nqbench.point import Level
from nqbench.system.suggest import suggestion
from nqbench.workloads.counting import enumeration, resolve
from nqbench.workloads.counting import jobs as jobs_of
from nqbench.workloads.counting.configuration import check_depth
from nqbench.workloads.counting.enumeration import Enumeration, Split, Spread
from nqbench.workloads.counting.jobs import Encoding, Symmetry
from nqbench.workloads.counting.systems import SYSTEMS, is_cpu

Value = int | float | dict[str, Any]

MAX_N_ON_THE_FLY: Final = 16
"""Largest board that is walked without ``full``: 10 seconds on one core."""

_WORD: Final = 4
_UTILIZATION_WARPS: Final = 5000
_DIVERGENCE_WARPS: Final = 400
"""Sampled warps where none are asked for: the share of split passes is then known to 0.006, the
mean utilization to 0.002 (standard errors at N = 18)."""

_SAMPLE: Final = ("warps", "seed", "order")
STATISTICS: Final = ("min", "max", "mean", "variance", "sd", "total")
JobOrder = Literal["consecutive", "random"]
WARP: Final = 32
_TRACED: Final = {"somers": 0, "branchy": 1, "place_first": 1, "irrc": 2}
"""The numbers of ``search.trace``."""

_TASKS_OF: Final = "tanaka2011.both"
_JOBS_OF: Final = "zhang2011.low_divergence"
_ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {"N": "n", "m": "depth", "k": "depth", "iterations_total": "iterations"}
)
_ENCODING_ALIASES: Final = {"one_hot_rows": "rows"}


@dataclass(frozen=True, slots=True)
class Sample:
    """Which warps: ``warps`` full ones (or all, if fewer exist), drawn by ``seed``."""

    warps: int
    seed: int = 1
    order: JobOrder = "consecutive"


def sample_jobs(jobs: int, sample: Sample) -> NDArray[np.int64]:
    """Job numbers of the sampled warps, shape ``(warps, 32)``; a last, short warp is left out."""
    draw = np.random.default_rng(sample.seed)
    full = jobs // WARP
    order = np.arange(full * WARP)
    if sample.order == "random":
        order = draw.permutation(jobs)[: full * WARP]
    chosen = np.sort(draw.choice(full, min(sample.warps, full), replace=False))
    return order.reshape(full, WARP)[chosen]


def sampled_utilization(split: Split, loop: str, sample: Sample) -> dict[str, float]:
    """Warp utilization (zhang2011, equation 1) by iterations.

    Keys: ``warps``; ``value``, work over possible work of all sampled warps together; and ``min``,
    ``max``, ``mean``, ``sd`` of the warps' own utilizations.
    """
    _, iterations = _sampled(split, loop, sample)
    longest = iterations.max(axis=1)
    share = iterations.sum(axis=1) / (WARP * longest)
    return {
        "warps": len(iterations),
        "value": float(iterations.sum() / (WARP * longest.sum())),
        **{name: float(getattr(share, name)()) for name in ("min", "max", "mean")},
        "sd": float(share.std()),
    }


def sampled_divergence(split: Split, loop: str, sample: Sample) -> dict[str, float]:
    """How often the place-or-retreat branch splits a warp.

    Keys: ``warps``; ``warp_iterations_mean``, passes of a warp; ``share``, passes that split over
    all passes of the sampled warps; ``standard_error`` of the share, over warps.
    """
    from nqbench.workloads.counting.search import lockstep, trace  # numba: slow to import

    words, iterations = _sampled(split, loop, sample)
    passes = iterations.max(axis=1)
    split_passes = np.empty(len(iterations), np.int64)
    for warp, lengths in enumerate(iterations):
        places = np.zeros((WARP, passes[warp]), np.bool_)
        for lane in range(WARP):
            trace(split.n, split.depth, _TRACED[loop], words, warp * WARP + lane, places[lane])
        split_passes[warp] = lockstep(lengths, places)
    share = split_passes.sum() / passes.sum()
    residual = split_passes - share * passes
    return {
        "warps": len(iterations),
        "warp_iterations_mean": float(passes.mean()),
        "share": float(share),
        "standard_error": float(residual.std() / passes.mean() / len(iterations) ** 0.5),
    }


def _sampled(
    split: Split, loop: str, sample: Sample
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Masks of the sampled warps' jobs, warp by warp, and iterations, shape ``(warps, 32)``."""
    words = jobs_of.masks_of_jobs(split.n, split.depth, split.symmetry, split.odd_rule)
    chosen = sample_jobs(words.size // 3, sample)
    words = words.reshape(-1, 3)[chosen.ravel()].ravel()
    work = enumeration.work_of(split, words, 0, chosen.size)
    return words, enumeration.loop_iterations(loop, work).reshape(chosen.shape)


@dataclass(frozen=True, slots=True)
class CountRequest:
    """A request for a count, with all names resolved; ``sample``: what is given of a ``Sample``."""

    levels: Mapping[str, Level]
    split: Split
    stat: str | None
    full: bool
    sample: Mapping[str, Any]

    @property
    def loop(self) -> str:
        """The search loop."""
        return cast(str, self.levels["loop"])

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        split = self.split
        return jobs_of.count_jobs(split.n, split.depth, split.symmetry, split.odd_rule)

    def enumerated(self) -> Enumeration:
        """The walk over all jobs, from the disk if it was done before.

        Raises ``AnalysisError`` if it takes minutes and ``full`` was not given, even if it is on
        the disk: a report must not depend on what was walked on this machine.
        """
        n = self.split.n
        if n > MAX_N_ON_THE_FLY and not self.full:
            raise AnalysisError(
                f"this count walks the whole tree of n = {n}, minutes beyond n ="
                f" {MAX_N_ON_THE_FLY}: ask with full=True (minutes, once), or run the system with"
                " probe: iterations on a GPU"
            )
        found = enumeration.cached(self.split)
        if found is None:
            found = enumeration.enumerate_jobs(self.split)
            enumeration.keep(found)
        return found

    def statistic(self, spread: Spread) -> Value:
        """The statistic asked for, or all of them by name."""
        values: dict[str, Any] = {name: getattr(spread, name) for name in STATISTICS}
        return values if self.stat is None else cast(Value, values[self.stat])


def _nodes(stat: str) -> Callable[[CountRequest], Value]:
    return lambda request: cast(Value, getattr(request.enumerated().nodes, stat))


def _solutions(request: CountRequest) -> int:
    """Solutions of the whole board: twice those of jobs that all weigh the same."""
    split = replace(request.split, odd_rule="restrict_second")
    return 2 * replace(request, split=split).enumerated().solutions


def _h2d_bytes(request: CountRequest) -> int:
    """Bytes of all encoded jobs, or of what a GPU makes them from."""
    if request.levels["jobs_made"] == "gpu":
        from nqbench.workloads.counting import border

        return border.starts(request.split.n, request.split.depth)[1].nbytes
    encoding = cast(Encoding, request.levels["encoding"])
    return request.jobs * _WORD * jobs_of.words_per_job(encoding, request.split.depth)


def _workspace(request: CountRequest) -> tuple[int, int]:
    """32-bit loads and stores of all threads, as the listings write them.

    A descent reads the three masks above and writes the three below; the open columns are read
    once per iteration and written by a placement and into the row it enters. Somers' loop keeps
    them in a register: a stack word is written by a descent and read on the way back.
    """
    found = request.enumerated()
    jobs, descents = found.nodes.count, found.descents
    if request.loop != "somers":
        loads = found.iterations[request.loop].total + 3 * descents
        return loads, 4 * jobs + 5 * descents + found.solutions
    loads, stores = jobs + 4 * descents, 4 * jobs + 4 * descents
    if request.levels["rows"] != "remaining" and request.levels["encoding"] == "rows":
        # Listing 4 replays the rows given: a descent each.
        return loads + 3 * request.split.depth * jobs, stores + 4 * request.split.depth * jobs
    return loads, stores


def _utilization(request: CountRequest) -> Value:
    sample = Sample(**{"warps": _UTILIZATION_WARPS, **request.sample})
    found = sampled_utilization(request.split, request.loop, sample)
    return dict(found) if request.stat is None else found[request.stat]


def _divergence(request: CountRequest) -> dict[str, float]:
    sample = Sample(**{"warps": _DIVERGENCE_WARPS, **request.sample})
    return sampled_divergence(request.split, request.loop, sample)


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """What one multiprocessor holds at a time."""

    blocks: int
    warps: int
    registers: int
    shared_bytes: int


OCCUPANCY: Final = "occupancy_percent"
MULTIPROCESSORS: Final = MappingProxyType(
    {
        "1.1": Multiprocessor(8, 24, 8192, 16384),
        "1.3": Multiprocessor(8, 32, 16384, 16384),
    }
)
"""By compute capability (CUDA C Programming Guide 4, technical specifications)."""


def occupancy_percent(
    compute_capability: str, block_size: int, registers: int = 0, shared_bytes: int = 0
) -> float:
    """Most warps of one kernel that fit on a multiprocessor, percent of all that it can hold.

    ``registers`` per thread and ``shared_bytes`` per block bind nothing where they are 0. They are
    not rounded up to what the hardware allocates, so that the true occupancy may be lower.
    """
    if compute_capability not in MULTIPROCESSORS:
        known = suggestion(compute_capability, MULTIPROCESSORS)
        raise StudyError(
            f"limits of compute capability {compute_capability} are not known; {known}"
        )
    holds = MULTIPROCESSORS[compute_capability]
    warps = -(-block_size // WARP)
    blocks = min(
        holds.blocks,
        holds.warps // warps,
        holds.registers // (registers * warps * WARP) if registers else holds.blocks,
        holds.shared_bytes // shared_bytes if shared_bytes else holds.blocks,
    )
    return 100 * blocks * warps / holds.warps


def count(name: str, **params: Any) -> Value:
    """The deterministic count called ``name`` (a key of :data:`COUNTS`, or ``occupancy_percent``).

    ``n`` (or ``N``)            board size, always needed
    ``system``                  named system, with or without its paper (``low_divergence``)
    ``depth`` (or ``m``, ``k``) rows placed on the CPU; default: the system's own rule
    ``encoding``                of the jobs (``one_hot_rows`` is ``rows``); default: the system's
    ``stat``                    ``min``, ``max``, ``mean``, ``variance``, ``sd`` or ``total``;
                                without it a count that has statistics gives all of them
    ``full``                    walk trees beyond n = 16 (minutes)
    ``warps``, ``seed``, ``order``  of sampled counts (``order``: ``consecutive`` or ``random``)

    ``StudyError`` for a name, parameter, system or level that does not exist, ``InfeasibleError``
    for a depth out of range, ``AnalysisError`` for a tree too large to walk without ``full``.
    """
    if name == OCCUPANCY:
        launch = {key: value for key, value in params.items() if key not in ("N", "n", "full")}
        return occupancy_percent(**launch)
    known = _ALIASES.get(name, name)
    if known not in COUNTS:
        raise StudyError(f"no count is called {name!r}; {suggestion(name, [*COUNTS, OCCUPANCY])}")
    wanted = COUNTS[known]
    return wanted.value(_resolve(wanted, {_ALIASES.get(key, key): v for key, v in params.items()}))


def _resolve(wanted: Count, params: dict[str, Any]) -> CountRequest:
    accepted = ("n", "depth", "system", "encoding", "full", *wanted.takes)
    for key in params:
        if key not in accepted:
            raise StudyError(f"this count takes no parameter {key!r}; {suggestion(key, accepted)}")
    n = params.get("n")
    if not isinstance(n, int):
        raise StudyError(f"a count needs a board size, a whole number n, not {n!r}")
    name = params.get("system", wanted.system)
    kernels = [system for system in SYSTEMS if not is_cpu(system)]
    found = [system for system in kernels if name in (system, system.partition(".")[2])]
    if len(found) != 1:
        raise StudyError(f"no system {name!r} has such counts; {suggestion(name, kernels)}")
    (system,) = found
    given: dict[str, Level] = {"n": n}
    if "encoding" in params:
        given["encoding"] = _ENCODING_ALIASES.get(params["encoding"], params["encoding"])
    levels = resolve.fill_levels(given, system)
    depth = params.get("depth")
    if depth is None:
        depth = resolve.auto_depth(levels, system)
    check_depth(n, depth)
    odd_rule = jobs_of.ODD_RULES[str(levels["encoding"])]
    stat = params.get("stat")
    if stat is not None and stat not in STATISTICS:
        raise StudyError(f"no statistic is called {stat!r}; {suggestion(str(stat), STATISTICS)}")
    return CountRequest(
        levels,
        Split(n, depth, cast(Symmetry, levels["symmetry"]), odd_rule),
        stat,
        bool(params.get("full", False)),
        {key: params[key] for key in _SAMPLE if key in params},
    )


@dataclass(frozen=True, slots=True)
class Count:
    """One count: its meaning, its function, its default system, its further parameters."""

    about: str
    value: Callable[[CountRequest], Value]
    system: str = _JOBS_OF
    takes: tuple[str, ...] = ()


COUNTS: Final[Mapping[str, Count]] = MappingProxyType(
    {
        "solutions": Count("solutions of the board, by walking it", _solutions, _TASKS_OF),
        "jobs": Count("jobs of the split on the CPU; odd boards as in zhang2011", lambda a: a.jobs),
        "tasks": Count(
            "jobs of the split on the CPU; odd boards as in tanaka2011", lambda a: a.jobs, _TASKS_OF
        ),
        "h2d_bytes": Count(
            "bytes of all encoded jobs, copied to the device", _h2d_bytes, _TASKS_OF
        ),
        "iterations": Count(
            "passes of the search loop, all jobs (also iterations_total)",
            lambda a: a.enumerated().iterations[a.loop].total,
        ),
        "iterations_per_job": Count(
            "passes of the search loop per job",
            lambda a: a.statistic(a.enumerated().iterations[a.loop]),
            takes=("stat",),
        ),
        "nodes_per_task": Count(
            "queens placed below a job's own rows",
            lambda a: a.statistic(a.enumerated().nodes),
            _TASKS_OF,
            ("stat",),
        ),
        **{
            f"{stat}_nodes_per_task": Count(
                f"the {word} of nodes_per_task", _nodes(stat), _TASKS_OF
            )
            for stat, word in (("min", "minimum"), ("max", "maximum"), ("mean", "mean"))
        },
        "workspace_loads": Count("32-bit loads from the work space", lambda a: _workspace(a)[0]),
        "workspace_stores": Count("32-bit stores to the work space", lambda a: _workspace(a)[1]),
        "workspace_accesses": Count("both together", lambda a: sum(_workspace(a))),
        "warp_utilization": Count(
            "mean work of a warp's threads over that of its longest, by iterations (zhang2011,"
            " equation 1), of sampled warps",
            _utilization,
            takes=("stat", *_SAMPLE),
        ),
        "split_iteration_share": Count(
            "passes in which the place-or-retreat branch splits the warp, over all passes of"
            " sampled warps",
            lambda a: _divergence(a)["share"],
            takes=_SAMPLE,
        ),
        "warp_iterations": Count(
            "passes of a warp, mean over sampled warps",
            lambda a: _divergence(a)["warp_iterations_mean"],
            takes=_SAMPLE,
        ),
    }
)
"""Every count by name."""
