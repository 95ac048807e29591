"""How long points will take: from launches already seen, or from nominal rates for a dry run."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from nqbench.devices.cpu import cpu_count
from nqbench.errors import DeviceError
from nqbench.measure.study import StudyLike
from nqbench.measure.workload import find_workload, runs_on_host
from nqbench.point import Point

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


class TimeBook:
    """Launch times seen in this run, and predictions from them."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}
        self._families: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))

    def observe(self, point: Point, launch_s: float) -> None:
        """Note the seconds of one launch of a point."""
        self._seen[_identity(point)] = launch_s
        per_work = launch_s / max(work_of(point), 1.0)
        self._families[_family(point)][point.n].append(per_work)

    def seen(self, point: Point) -> float | None:
        """Seconds of a launch of this very point, if there was one."""
        return self._seen.get(_identity(point))

    def predict(self, point: Point) -> tuple[float, int] | None:
        """Seconds of one launch and the size it is predicted from; ``None`` if nothing is known.

        Taken from the nearest smaller size of the same system and levels (numbers such as the
        depth may differ), scaled by the work.
        """
        sizes = [n for n in self._families[_family(point)] if n < point.n]
        if not sizes:
            return None
        nearest = max(sizes)
        per_work = statistics.median(self._families[_family(point)][nearest])
        return per_work * work_of(point), nearest


def work_of(point: Point) -> float:
    """The workload's own measure of a point's work."""
    return find_workload(point.workload).work(point.configuration)


def _identity(point: Point) -> str:
    return json.dumps([point.sweep, point.system, dict(point.factors)], sort_keys=True)


def _family(point: Point) -> str:
    """What a point shares with the same configuration at other sizes: names, not numbers."""
    levels = {name: level for name, level in point.factors.items() if isinstance(level, str)}
    return json.dumps([point.workload, point.system, levels], sort_keys=True)


def block_s(launch_s: float, share_s: float, samples: int) -> float:
    """Seconds that one block will take, given the seconds of a launch."""
    wanted = max(samples, TYPICAL_SAMPLES) * launch_s
    return BLOCK_OVERHEAD_S + max(2 * launch_s, min(share_s, wanted))


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
        if runs_on_host(point):
            cores = cpu_count() if point.system == "cpu.multicore" else 1
            launch_s = work / (HOST_WORK_PER_S * cores)
        elif kind == "sim":
            exact += (BLOCK_OVERHEAD_S + COMPILE_S + work / SIM_WORK_PER_S) / cpu_count()
            continue
        else:
            launch_s = work / (GPU_WORK_PER_S_AND_SM * facts.multiprocessors)
            timed += COMPILE_S / cpu_count()
        if launch_s <= share_s:  # longer ones are verified at a smaller size and skipped
            timed += launch_s + measure.rounds * block_s(launch_s, share_s, measure.samples)
    starts = 1 + (measure.rounds if timed else 0)
    return starts * WORKER_START_S + timed + exact
