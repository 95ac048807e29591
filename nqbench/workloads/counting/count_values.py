"""The values of the deterministic counts, each of one resolved configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from nqbench.errors import AnalysisError
from nqbench.point import Level
from nqbench.workloads.counting import enumeration, lockstep
from nqbench.workloads.counting.enumeration import Enumeration, Split, Spread
from nqbench.workloads.counting.jobs import Encoding, count_jobs, words_per_job

Value = int | float | dict[str, Any]

MAX_N_ON_THE_FLY: Final = 16
"""Largest board that is walked without being asked to: 10 seconds on one core."""

_WORD: Final = 4
_UTILIZATION_WARPS: Final = 5000
_DIVERGENCE_WARPS: Final = 400
"""Sampled warps where none are asked for: the share of split passes is then known to 0.006, the
mean utilization to 0.002 (standard errors at N = 18)."""

STATISTICS: Final = ("min", "max", "mean", "variance", "sd", "total")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a count is of, all names resolved."""

    system: str
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
    def encoding(self) -> Encoding:
        """How jobs are written down."""
        return cast(Encoding, self.levels["encoding"])

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        split = self.split
        return count_jobs(split.n, split.depth, split.symmetry, split.odd_rule)

    def enumerated(self) -> Enumeration:
        """The walk over all jobs, from the disk if it was done before.

        ``AnalysisError`` where it takes minutes that nobody asked for. Also where the disk has it:
        what a page says must not depend on what was walked on this machine.
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


def _statistic(spread: Spread, stat: str | None) -> Value:
    values: dict[str, Any] = {name: getattr(spread, name) for name in STATISTICS}
    return values if stat is None else cast(Value, values[stat])


def iterations_per_job(asked: Asked) -> Value:
    return _statistic(asked.enumerated().iterations[asked.loop], asked.stat)


def nodes_per_task(asked: Asked) -> Value:
    return _statistic(asked.enumerated().nodes, asked.stat)


def solutions(asked: Asked) -> int:
    """Solutions of the whole board: twice those of jobs that all weigh the same."""
    split = replace(asked.split, odd_rule="restrict_second")
    return 2 * replace(asked, split=split).enumerated().solutions


def h2d_bytes(asked: Asked) -> int:
    """Bytes of all encoded jobs."""
    return asked.jobs * _WORD * words_per_job(asked.encoding, asked.split.depth)


def workspace(asked: Asked) -> tuple[int, int]:
    """32-bit loads and stores of all threads, as the listings write them.

    A descent reads the three masks above and writes the three below; the open columns are read
    once per iteration and written by a placement and into the row it enters. Somers' loop keeps
    them in a register: a stack word is written by a descent and read on the way back.
    """
    found = asked.enumerated()
    jobs, descents = found.nodes.count, found.descents
    if asked.loop != "somers":
        loads = found.iterations[asked.loop].total + 3 * descents
        return loads, 4 * jobs + 5 * descents + found.solutions
    loads, stores = jobs + 4 * descents, 4 * jobs + 4 * descents
    if asked.levels["rows"] != "remaining" and asked.encoding == "rows":
        # Listing 4 replays the rows given: a descent each.
        return loads + 3 * asked.split.depth * jobs, stores + 4 * asked.split.depth * jobs
    return loads, stores


def utilization(asked: Asked) -> Value:
    sample = lockstep.Sample(**{"warps": _UTILIZATION_WARPS, **asked.sample})
    found = lockstep.utilization(asked.split, asked.loop, sample)
    return dict(found) if asked.stat is None else found[asked.stat]


def divergence(asked: Asked) -> dict[str, float]:
    sample = lockstep.Sample(**{"warps": _DIVERGENCE_WARPS, **asked.sample})
    return lockstep.divergence(asked.split, asked.loop, sample)
