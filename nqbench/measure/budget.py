"""What fits the available time: a point's own budget, and the budget of the whole run.

How long points take is predicted from launches already seen.
"""

from __future__ import annotations

import json
import math
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from nqbench.facts import DeviceFacts
from nqbench.measure.run_state import Task
from nqbench.measure.variants import runs_on_cpu
from nqbench.point import Point
from nqbench.system.machine import cpu_count
from nqbench.workloads import get as find_workload

if TYPE_CHECKING:
    from nqbench.study.model import Measure

WORKER_START_S: Final = 2.0
"""Imports, the device's start and the first use of compiled Python code, per worker process."""
OVERHEAD_S: Final = 0.05
"""Making a plan, loading a compiled kernel, copying and checking, per measurement."""
TYPICAL_SAMPLES: Final = 30
"""Samples a measurement takes until its interval is narrow, where launches are short."""
SIM_CORES: Final = 0.2
CORES_PER_SM: Final = 0.6
"""Work of one simulating core, and of one multiprocessor of a GPU, over that of one CPU core with
compiled code; good to a factor of a few."""
SHORT_LAUNCH_S: Final = 1e-3
"""Below this a launch is mostly fixed cost (starting, filling the chip, waiting for its last
threads): its time per unit of work is far above that of a larger size, and says little about it."""
MIN_WORK_S: Final = 1e-9
"""Work of a point without any, by its workload: predictions divide by it."""
WORK_STEP: Final = 1.5
"""Sizes whose work differs by less cannot separate the fixed cost from the work."""


class TimeBook:
    """Times seen in this run, and predictions from them.

    ``cores``: how many CPU cores would do the device's work (:func:`nominal_cores`), used until a
    launch is long enough to measure it. Devices of one model share a book, each with a thread.
    """

    def __init__(self, cores: float | None = None) -> None:
        self._cores = cores
        self._seen: dict[str, float] = {}
        # By size: the work of a launch in seconds of a CPU core, and its own seconds.
        self._families: dict[str, dict[int, list[tuple[float, float]]]] = defaultdict(
            lambda: defaultdict(list)
        )
        self._overheads_s: list[float] = []
        self._lock = threading.RLock()

    def observe(self, point: Point, launch_s: float, wall_s: float | None = None) -> None:
        """Note the seconds of one launch of a point, and those of the measurement it was in."""
        seen = max(core_s(point), MIN_WORK_S), launch_s
        with self._lock:
            self._seen[_identity(point)] = launch_s
            self._families[_family(point)][point.n].append(seen)
            if wall_s:
                self._overheads_s.append(max(0.0, wall_s - launch_s))

    def seen(self, point: Point) -> float | None:
        """Seconds of a launch of this point, if there was one."""
        return self._seen.get(_identity(point))

    def overhead_s(self) -> float:
        """Seconds of a measurement outside its launches: the median of those seen."""
        return statistics.median(self._overheads_s) if self._overheads_s else OVERHEAD_S

    def predict(self, point: Point) -> tuple[float, int] | None:
        """Seconds of one launch and the size it is predicted from; ``None`` if nothing is known.

        A fixed cost and a cost per unit of work, from the two nearest smaller sizes of the same
        system and levels (numbers such as the depth may differ). With only one size, all of its
        time is attributed to the work, unless it is a short launch: work then costs no more than at
        the device's nominal rate.
        """
        with self._lock:
            family = self._families[_family(point)]
            sizes = sorted((n for n in family if n < point.n), reverse=True)[:2]
            nearest = [tuple(map(statistics.median, zip(*family[n], strict=True))) for n in sizes]
        if not nearest:
            return None
        (work, launch_s), (far_work, far_launch_s) = nearest[0], nearest[-1]
        per_work_s = launch_s / work
        if work >= WORK_STEP * far_work:
            slope = (launch_s - far_launch_s) / (work - far_work)
            per_work_s = min(per_work_s, max(0.0, slope))
        elif launch_s < SHORT_LAUNCH_S and (cores := _cores_of(point) or self._cores):
            per_work_s = min(per_work_s, 1 / cores)
        return launch_s + per_work_s * max(0.0, core_s(point) - work), sizes[0]


def nominal_cores(facts: DeviceFacts) -> float:
    """How many CPU cores would do the work of a device."""
    return CORES_PER_SM * facts.multiprocessors if facts.kind == "cuda" else SIM_CORES


def core_s(point: Point) -> float:
    """Seconds that one CPU core would take for a point, by its workload's estimate."""
    workload = find_workload(point.workload)
    return workload.work(point.configuration) / workload.core_work_per_s


def _identity(point: Point) -> str:
    return json.dumps([point.sweep, point.system, dict(point.factors)], sort_keys=True)


def _family(point: Point) -> str:
    """What a point shares with the same configuration at other sizes: names, not numbers."""
    levels = {name: level for name, level in point.factors.items() if isinstance(level, str)}
    return json.dumps([point.workload, point.system, levels], sort_keys=True)


def _cores_of(point: Point) -> int:
    """How many cores a CPU system uses; 0 for a kernel."""
    if not runs_on_cpu(point):
        return 0
    if point.program is not None:
        return 1
    parallel = point.system in find_workload(point.workload).parallel_systems
    return cpu_count() if parallel else 1


SLACK: Final = 3.0
"""A prediction from another size is good to this factor: only what exceeds it is skipped."""
MIN_ROUNDS: Final = 2
"""Fewer rounds give no interval; the longest points are skipped instead."""
COMPILE_SHARE: Final = 0.5
"""Largest share of the budget for compiling: kernels that are never launched are of no use."""
RESERVE: Final = 2.0
"""Time kept free for one round while points are still verified, over its predicted time: on a busy
machine a worker's start and a measurement vary by this much."""


@dataclass
class Budget:
    """The time limits of one run.

    ``total_s`` is ``--budget``, which counts from ``started``; ``clock`` is monotonic seconds.
    ``worker_start_s`` is what a worker takes to open the device, as this run's first one did.
    """

    measure: Measure
    total_s: float | None = None
    clock: Callable[[], float] = time.monotonic
    book: TimeBook = field(default_factory=TimeBook)
    started: float | None = None
    worker_start_s: float = WORKER_START_S

    def __post_init__(self) -> None:
        started = self.clock() if self.started is None else self.started
        self.end = math.inf if self.total_s is None else started + self.total_s
        """When the whole run's budget ends, on the clock."""
        self.compile_end = self.end - (1 - COMPILE_SHARE) * (self.total_s or 0.0)
        """When compiling must end, to leave time to measure."""
        self.share_s = self.measure.budget_s / self.measure.rounds
        self._named = f"--budget {_text(self.total_s or 0)}"
        self._committed: dict[str, float] = {}

    def left_s(self) -> float:
        """Seconds left of the whole run's budget."""
        return max(0.0, self.end - self.clock())

    def not_compiled(self) -> str:
        """Why a kernel that was not compiled in time is skipped."""
        return f"half of {self._named} went into compiling; run again to resume, or raise it"

    def used_up(self, when: str = "before this point") -> str:
        """Why a measurement is not started, or not finished at the end."""
        return f"{self._named} was used up {when}; run again to resume, or raise it"

    def reserved_s(self) -> float:
        """Seconds that one round of the points verified so far will take."""
        if not self._committed:
            return 0.0
        return RESERVE * (self.worker_start_s + sum(self._committed.values()))

    def commit(self, task: Task) -> None:
        """Keep time for one measurement of a point that was verified."""
        if not task.exact:
            self._committed[task.key] = self.cost_s(task)

    def too_long_to_try(self, task: Task) -> str:
        """Why a point should not be launched at all; empty if it may."""
        left_s = self.left_s() - self.reserved_s()
        if left_s <= 0:
            return self.used_up()
        predicted = self.book.predict(task.point)
        if predicted is None:
            return ""
        launch_s, from_n = predicted
        said = f"one launch is predicted to take {_text(launch_s)} (from N={from_n}),"
        own_s = self.measure.budget_s if task.exact else self.share_s
        long = task.point.sweep in self.measure.long  # regardless of the time of a launch
        limit_s = min(self.measure.timeout_s, math.inf if long else own_s)
        if launch_s > SLACK * limit_s:
            return (
                f"{said} far over the {_text(limit_s)} that a launch may take here;"
                " raise measure.budget, or lower n"
            )
        if launch_s + (0.0 if task.exact else self._measurement_s(launch_s)) > left_s:
            return (
                f"{said} for which {self._named} leaves no time after the points before it; raise"
                " it"
            )
        return ""

    def too_long_to_time(self, task: Task) -> str:
        """Why a verified point cannot be timed in every round; empty if it can."""
        launch_s = self.book.seen(task.point)
        if launch_s is None or launch_s <= self.share_s or task.point.sweep in self.measure.long:
            return ""
        rounds = self.measure.rounds
        return (
            f"one launch takes {_text(launch_s)}, so {rounds} rounds need"
            f" {_text(rounds * launch_s)}, over the point's budget of"
            f" {_text(self.measure.budget_s)}; raise measure.budget, or lower n"
        )

    def plan_rounds(self, tasks: Sequence[Task]) -> tuple[int, dict[str, str]]:
        """How many rounds fit, and why some points (by key) must be skipped.

        With too little time the number of rounds is reduced first, then the longest points are
        skipped; a single round is the last resort.
        """
        rounds = self.measure.rounds
        if self.total_s is None or not tasks:
            return rounds, {}
        left_s = self.left_s()
        costs = {task.key: self.cost_s(task) for task in tasks}
        round_s = self.worker_start_s + sum(costs.values())
        if round_s * rounds <= left_s:
            return rounds, {}
        for least in (min(MIN_ROUNDS, rounds), 1):
            dropped = self._drop_longest(costs, least)
            if len(dropped) < len(costs):
                break
        round_s = self.worker_start_s + sum(s for key, s in costs.items() if key not in dropped)
        return max(least, min(rounds, int(left_s / round_s))), dropped

    def _drop_longest(self, costs: Mapping[str, float], rounds: int) -> dict[str, str]:
        """The longest points, by key, to skip so that ``rounds`` rounds of the others fit."""
        round_s = self.worker_start_s + sum(costs.values())
        dropped: dict[str, str] = {}
        if rounds * self.worker_start_s >= self.left_s():  # no point is too long: there is no time
            return dict.fromkeys(costs, self.used_up())
        for key, cost_s in sorted(costs.items(), key=lambda item: item[1], reverse=True):
            if round_s * rounds <= self.left_s():
                break
            round_s -= cost_s
            dropped[key] = (
                f"{rounds} rounds of this point take about {_text(rounds * cost_s)}, which does"
                f" not fit {self._named} with the shorter points; raise it"
            )
        return dropped

    def cost_s(self, task: Task) -> float:
        """Expected seconds of one measurement of a verified point."""
        return self._measurement_s(self.book.seen(task.point) or 0.0)

    def _measurement_s(self, launch_s: float) -> float:
        """Seconds that one measurement will take, given the seconds of a launch."""
        wanted = max(self.measure.samples, TYPICAL_SAMPLES) * launch_s
        return self.book.overhead_s() + max(2 * launch_s, min(self.share_s, wanted))


def _text(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
