"""How long points will take: from launches already seen, or from nominal rates for a dry run."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nqbench.errors import DeviceError
from nqbench.measure.run_state import StudyLike
from nqbench.measure.variants import runs_on_cpu
from nqbench.point import Point
from nqbench.system.cpu import cpu_count
from nqbench.workloads import get as find_workload

WORKER_START_S: Final = 2.0
"""Imports, the device's start and the first use of compiled host code, per worker process."""
BLOCK_OVERHEAD_S: Final = 0.05
"""Making a plan, loading a compiled kernel, copying and checking, per block."""
COMPILE_S: Final = 0.3
"""One kernel through the compiler, per core; less where the cache has it."""
TYPICAL_SAMPLES: Final = 30
"""Samples a block takes until its interval is narrow, where launches are short."""
HOST_WORK_PER_S: Final = 5e7
SIM_WORK_PER_S: Final = 1e7
GPU_WORK_PER_S_AND_SM: Final = 3e7
"""Nominal units of a workload's work (search-tree nodes) per second: one core running the
sequential search, one core simulating, one multiprocessor. Good to a factor of a few."""
SHORT_LAUNCH_S: Final = 1e-3
"""Below this a launch is mostly fixed cost (starting, filling the chip, waiting for its last
threads): its time per unit of work is far above that of a larger size, and says little about it."""
WORK_STEP: Final = 1.5
"""Sizes whose work differs by less do not tell the fixed cost from the work."""


class TimeBook:
    """Times seen in this run, and predictions from them.

    ``work_per_s`` is the device's nominal rate, for want of a launch long enough to tell.
    """

    def __init__(self, work_per_s: float | None = None) -> None:
        self._work_per_s = work_per_s
        self._seen: dict[str, float] = {}
        self._families: dict[str, dict[int, list[_Seen]]] = defaultdict(lambda: defaultdict(list))
        self._overheads_s: list[float] = []

    def observe(self, point: Point, launch_s: float, wall_s: float | None = None) -> None:
        """Note the seconds of one launch of a point, and those of the block it was in."""
        self._seen[_identity(point)] = launch_s
        work = max(work_of(point), 1.0)
        self._families[_family(point)][point.n].append(_Seen(work, launch_s))
        if wall_s:
            self._overheads_s.append(max(0.0, wall_s - launch_s))

    def seen(self, point: Point) -> float | None:
        """Seconds of a launch of this very point, if there was one."""
        return self._seen.get(_identity(point))

    def overhead_s(self) -> float:
        """Seconds of a block outside its launches: the median of those seen."""
        return statistics.median(self._overheads_s) if self._overheads_s else BLOCK_OVERHEAD_S

    def predict(self, point: Point) -> tuple[float, int] | None:
        """Seconds of one launch and the size it is predicted from; ``None`` if nothing is known.

        A fixed cost and a cost per unit of work, from the two nearest smaller sizes of the same
        system and levels (numbers such as the depth may differ). With one size only, all of its
        time is put down to the work, unless it is a short launch: work then costs no more than
        the device's nominal rate says.
        """
        family = self._families[_family(point)]
        sizes = sorted((n for n in family if n < point.n), reverse=True)
        if not sizes:
            return None
        near = _middle(family[sizes[0]])
        per_work_s = near.launch_s / near.work
        far = _middle(family[sizes[1]]) if len(sizes) > 1 else None
        if far is not None and near.work >= WORK_STEP * far.work:
            slope = (near.launch_s - far.launch_s) / (near.work - far.work)
            per_work_s = min(per_work_s, max(0.0, slope))
        elif near.launch_s < SHORT_LAUNCH_S and self._work_per_s is not None:
            per_work_s = min(per_work_s, 1 / self._work_per_s)
        return near.launch_s + per_work_s * max(0.0, work_of(point) - near.work), sizes[0]


@dataclass(frozen=True, slots=True)
class _Seen:
    """A launch: the workload's measure of its work, and its seconds."""

    work: float
    launch_s: float


def _middle(seen: Sequence[_Seen]) -> _Seen:
    """The median work and time of launches of one size."""
    return _Seen(
        statistics.median(one.work for one in seen), statistics.median(one.launch_s for one in seen)
    )


def nominal_rate(spec: str, multiprocessors: int) -> float | None:
    """Units of work per second that a device does; ``None`` for one that does none."""
    kind = spec.partition(":")[0]
    rates = {"cuda": GPU_WORK_PER_S_AND_SM * multiprocessors, "sim": SIM_WORK_PER_S}
    return rates.get(kind)


def work_of(point: Point) -> float:
    """The workload's own measure of a point's work, in the time of search-tree nodes."""
    workload = find_workload(point.workload)
    return HOST_WORK_PER_S * workload.work(point.configuration) / workload.core_work_per_s


def _identity(point: Point) -> str:
    return json.dumps([point.sweep, point.system, dict(point.factors)], sort_keys=True)


def _family(point: Point) -> str:
    """What a point shares with the same configuration at other sizes: names, not numbers."""
    levels = {name: level for name, level in point.factors.items() if isinstance(level, str)}
    return json.dumps([point.workload, point.system, levels], sort_keys=True)


def block_s(
    launch_s: float, share_s: float, samples: int, overhead_s: float = BLOCK_OVERHEAD_S
) -> float:
    """Seconds that one block will take, given the seconds of a launch."""
    wanted = max(samples, TYPICAL_SAMPLES) * launch_s
    return overhead_s + max(2 * launch_s, min(share_s, wanted))


def estimate(points: Sequence[Point], study: StudyLike, spec: str) -> float | None:
    """Rough seconds for measuring ``points`` on the device ``spec``, for a dry run.

    From nominal rates, so good to a factor of a few; ``None`` if the device cannot be asked.
    """
    from nqbench.devices.registry import facts_for

    try:
        facts, kind = facts_for(spec)
    except DeviceError:
        return None
    measure = study.measure
    share_s = measure.budget_s / measure.rounds
    timed = exact = 0.0
    for point in points:
        if point.skip:
            continue
        work = work_of(point)
        if runs_on_cpu(point):
            parallel = point.system in find_workload(point.workload).parallel_systems
            cores = cpu_count() if parallel else 1
            launch_s = work / (HOST_WORK_PER_S * cores)
        elif kind == "sim":
            exact += (BLOCK_OVERHEAD_S + COMPILE_S + work / SIM_WORK_PER_S) / cpu_count()
            continue
        else:
            launch_s = work / (GPU_WORK_PER_S_AND_SM * facts.multiprocessors)
            timed += COMPILE_S / cpu_count()
        if (
            launch_s <= share_s or point.sweep in measure.long
        ):  # longer ones are verified at a smaller size and skipped
            timed += launch_s + measure.rounds * block_s(launch_s, share_s, measure.samples)
    starts = 1 + (measure.rounds if timed else 0)
    return starts * WORKER_START_S + timed + exact
