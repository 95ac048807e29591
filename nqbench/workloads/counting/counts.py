"""Deterministic counts of the counting workload, computed on the host: no GPU, no timing.

:func:`count` is what claims of the papers call. Where the numbers come from:

- *by formula or a short walk*, at any size: ``jobs``, ``tasks``, ``h2d_bytes``;
- *exact, by walking the whole tree* (``enumeration``): iterations, nodes, accesses, solutions.
  On the fly up to N = 16 (seconds); beyond only with ``full=True``: two minutes for N = 18 on two
  cores, a factor of 8 per row, once, then from the disk.
  The instrumented kernels (``probe: iterations``, ``accesses``) give the same numbers on a GPU;
- *sampled* (``lockstep``): ``warp_utilization``, ``split_iteration_share``, ``warp_iterations``, of
  warps whose lanes run in step; ``probe: iterations`` gives the first for all warps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, cast

from nqbench.errors import StudyError
from nqbench.point import Level
from nqbench.system.suggest import suggestion
from nqbench.workloads.counting import count_values as values
from nqbench.workloads.counting import feasibility
from nqbench.workloads.counting.count_values import STATISTICS, Asked, Value
from nqbench.workloads.counting.enumeration import Split
from nqbench.workloads.counting.jobs import ODD_RULES, Encoding, Symmetry
from nqbench.workloads.counting.levels import auto_depth, fill_levels
from nqbench.workloads.counting.systems import SYSTEMS, is_host

_TASKS_OF: Final = "tanaka2011.both"
_JOBS_OF: Final = "zhang2011.low_divergence"
_ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {"N": "n", "m": "depth", "k": "depth", "iterations_total": "iterations"}
)
_ENCODING_ALIASES: Final = {"one_hot_rows": "rows"}


def count(name: str, **params: Any) -> Value:
    """The deterministic count called ``name`` (a key of :data:`COUNTS`).

    ``n`` (or ``N``)            board size, always needed
    ``system``                  named system, with or without its paper (``low_divergence``)
    ``depth`` (or ``m``, ``k``) rows placed on the host; default: the system's own rule
    ``encoding``                of the jobs (``one_hot_rows`` is ``rows``); default: the system's
    ``stat``                    ``min``, ``max``, ``mean``, ``variance``, ``sd`` or ``total``;
                                without it a count that has statistics gives all of them
    ``full``                    walk trees beyond n = 16 (minutes)
    ``warps``, ``seed``, ``order``  of sampled counts (``order``: ``consecutive`` or ``random``)

    ``StudyError`` for a name, parameter, system or level that does not exist, ``InfeasibleError``
    for a depth that makes no sense, ``AnalysisError`` for a tree too large to walk unasked.
    """
    known = _ALIASES.get(name, name)
    if known not in COUNTS:
        raise StudyError(f"no count is called {name!r}; {suggestion(name, COUNTS)}")
    kind = COUNTS[known]
    return kind.value(_resolve(kind, {_ALIASES.get(key, key): v for key, v in params.items()}))


def _resolve(kind: Kind, params: dict[str, Any]) -> Asked:
    accepted = ("n", "depth", "system", "encoding", "full", *kind.takes)
    for key in params:
        if key not in accepted:
            raise StudyError(f"this count takes no parameter {key!r}; {suggestion(key, accepted)}")
    n = params.get("n")
    if not isinstance(n, int):
        raise StudyError(f"a count needs a board size, a whole number n, not {n!r}")
    system = _system(params.get("system", kind.system))
    given: dict[str, Level] = {"n": n}
    if "encoding" in params:
        given["encoding"] = _ENCODING_ALIASES.get(params["encoding"], params["encoding"])
    levels = fill_levels(given, system)
    encoding = cast(Encoding, levels["encoding"])
    symmetry = cast(Symmetry, levels["symmetry"])
    depth = params.get("depth")
    if depth is None:
        depth = auto_depth(n, system, encoding, symmetry)
    feasibility.check_depth(n, depth)
    stat = params.get("stat")
    if stat is not None and stat not in STATISTICS:
        raise StudyError(f"no statistic is called {stat!r}; {suggestion(str(stat), STATISTICS)}")
    return Asked(
        system,
        levels,
        Split(n, depth, symmetry, ODD_RULES[encoding]),
        stat,
        bool(params.get("full", False)),
        {key: params[key] for key in ("warps", "seed", "order") if key in params},
    )


def _system(name: str) -> str:
    """The full name of a system that is given with or without its paper's."""
    kernels = [system for system in SYSTEMS if not is_host(system)]
    found = [system for system in kernels if name in (system, system.partition(".")[2])]
    if len(found) != 1:
        raise StudyError(f"no system {name!r} has such counts; {suggestion(name, kernels)}")
    return found[0]


@dataclass(frozen=True, slots=True)
class Kind:
    """One count: its meaning, its function, the system it is of by default, what else it takes."""

    about: str
    value: Callable[[Asked], Value]
    system: str = _JOBS_OF
    takes: tuple[str, ...] = ()


_SAMPLE: Final = ("warps", "seed", "order")

COUNTS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "solutions": Kind("solutions of the board, by walking it", values.solutions, _TASKS_OF),
        "jobs": Kind("jobs of the host split; odd boards as in zhang2011", lambda a: a.jobs),
        "tasks": Kind(
            "jobs of the host split; odd boards as in tanaka2011", lambda a: a.jobs, _TASKS_OF
        ),
        "h2d_bytes": Kind(
            "bytes of all encoded jobs, copied to the device",
            values.h2d_bytes,
            _TASKS_OF,
        ),
        "iterations": Kind(
            "passes of the search loop, all jobs (also iterations_total)",
            lambda a: a.enumerated().iterations[a.loop].total,
        ),
        "iterations_per_job": Kind(
            "passes of the search loop per job", values.iterations_per_job, takes=("stat",)
        ),
        "nodes_per_task": Kind(
            "queens placed below a job's own rows", values.nodes_per_task, _TASKS_OF, ("stat",)
        ),
        "min_nodes_per_task": Kind(
            "the least of nodes_per_task", lambda a: a.enumerated().nodes.min, _TASKS_OF
        ),
        "max_nodes_per_task": Kind(
            "the most of nodes_per_task", lambda a: a.enumerated().nodes.max, _TASKS_OF
        ),
        "mean_nodes_per_task": Kind(
            "the mean of nodes_per_task", lambda a: a.enumerated().nodes.mean, _TASKS_OF
        ),
        "workspace_loads": Kind(
            "32-bit loads from the work space", lambda a: values.workspace(a)[0]
        ),
        "workspace_stores": Kind(
            "32-bit stores to the work space", lambda a: values.workspace(a)[1]
        ),
        "workspace_accesses": Kind("both together", lambda a: sum(values.workspace(a))),
        "warp_utilization": Kind(
            "mean work of a warp's threads over that of its longest, by iterations (zhang2011,"
            " equation 1), of sampled warps",
            values.utilization,
            takes=("stat", *_SAMPLE),
        ),
        "split_iteration_share": Kind(
            "passes in which the place-or-retreat branch splits the warp, over all passes of"
            " sampled warps",
            lambda a: values.divergence(a)["share"],
            takes=_SAMPLE,
        ),
        "warp_iterations": Kind(
            "passes of a warp, mean over sampled warps",
            lambda a: values.divergence(a)["warp_iterations_mean"],
            takes=_SAMPLE,
        ),
    }
)
"""Every count by name."""
