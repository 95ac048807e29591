"""Searches that evaluate every board in full, on the CPU (``sa_cpu``) or a GPU (``sa_gpu``).

With a single-threaded CPU scheme the search is compiled as a whole (:func:`full_walk`). A
multi-threaded scheme is called for every board, as in the paper's programs: it starts its threads,
or wakes TBB's, each time. A GPU scheme becomes a program that the search drives.

``sa_delta``, which evaluates a move and not a board, is here too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import InfeasibleError
from nqbench.facts import DeviceFacts
from nqbench.multi_launch import ProgramContext
from nqbench.plan import CpuPlan, CpuResult, MultiLaunchPlan, Outputs
from nqbench.point import Level
from nqbench.workloads.base import NOT_APPLICABLE
from nqbench.workloads.fitness import gpu, search_factors
from nqbench.workloads.fitness.annealing.cooling import Cooling, Walk, chain_key, shuffle_key, walk
from nqbench.workloads.fitness.cpu import evaluators
from nqbench.workloads.fitness.cpu.plans import check_packages, cpu_plan
from nqbench.workloads.fitness.programs import conflicts_of
from nqbench.workloads.fitness.schemes import SCHEMES
from nqbench.workloads.levels import Levels, number

COMPILED: Final[Mapping[str, str]] = MappingProxyType(
    {"cpu_serial": "serial_conflicts", "cpu_histogram": "histogram_conflicts"}
)
"""Schemes that are compiled into the search: the function of each in ``cpu.compiled``."""

EVALUATION: Final = "evaluation"
"""The phase of whole evaluations: allocation, copies and kernels, and the CPU's part in them."""

KEPT: Final = 1 << 20
"""Values kept for the second walk; longer walks are extrapolated from these (8 MB)."""

REPEATS: Final = 3
"""Repeats of the second walk; the shortest time counts, since the walk is short."""

_PLACES: Final = {
    "sa_cpu": (
        *(search_factors.CPU_EVALUATORS, search_factors.CPU_EVALUATOR_LEVELS),
        *("not a CPU scheme", "fitness_schemes.sa_gpu"),
    ),
    "sa_gpu": (
        *(search_factors.GPU_EVALUATORS, search_factors.GPU_EVALUATOR_LEVELS),
        *("a CPU scheme", "fitness_schemes.sa_cpu"),
    ),
}
"""By search: its evaluators, the factors that it leaves to them, what any other evaluator is, and
which search takes that."""

_HERE: Final = "nqbench.workloads.fitness.annealing.evaluated"
_WARM_N: Final = 8
_WARM_LIMIT: Final = 16
"""Proposals of a warm-up, which only compiles; each may start a thread per core."""

Evaluate = Callable[[NDArray[np.int32]], int]
_Compiled = Callable[..., int]


def evaluator_levels(levels: Mapping[str, Level]) -> Levels:
    """A point of the evaluator's scheme: its defaults, and the levels given to the search.

    Raises ``InfeasibleError`` for a scheme of the other device or for many boards at once, and a
    factor that the scheme does not have.
    """
    evaluator = str(levels["evaluator"])
    here, owned, what, other = _PLACES[str(levels["scheme"])]
    if evaluator not in here:
        raise InfeasibleError(
            f"evaluator: {evaluator} is {what}; use {', '.join(here)}, or system: {other}",
            "evaluator",
        )
    scheme = SCHEMES[evaluator]
    given = {name: levels[name] for name in owned if levels[name] != NOT_APPLICABLE}
    for name in given:
        if name not in scheme.levels:
            raise InfeasibleError(
                f"{name}: {levels[name]} means nothing to evaluator: {evaluator}; leave {name} out",
                name,
            )
    blank = dict.fromkeys(levels, NOT_APPLICABLE)
    return {**blank, **scheme.levels, **given, "n": levels["n"], "scheme": evaluator}


def resolve_evaluator(levels: Levels, device: DeviceFacts) -> dict[str, int | float | str]:
    """Resolve the evaluator's factors in place; of a GPU's the numbers of one evaluation.

    Raises ``InfeasibleError`` for what cannot evaluate here and for a factor that the evaluator
    does not have, and ``WrongDeviceError`` for ``cpu_tbb`` without TBB.
    """
    own, derived = evaluator_levels(levels), dict[str, int | float | str]()
    if levels["scheme"] == "sa_cpu":
        check_packages(own)
    else:
        derived = gpu.resolve_scheme(own, device)
    levels |= {name: own[name] for name in _PLACES[str(levels["scheme"])][1]}
    return derived


def search_on_cpu(levels: Mapping[str, Level], key: int, cooling: Cooling) -> CpuPlan:
    """The search for resolved ``levels``; ``threads: auto`` is looked up, or measured first."""
    n, evaluator, schedule = number(levels, "n"), str(levels["evaluator"]), astuple(cooling)
    if evaluator in COMPILED:
        rest = (key, evaluator, *schedule)
        return CpuPlan("fitness.anneal_full", f"{_HERE}:anneal_full", (n, *rest), (_WARM_N, *rest))
    one = cpu_plan(evaluator_levels(levels), np.arange(n, dtype=np.int32)[np.newaxis, :])
    setting = one.arguments[1] if len(one.arguments) > 1 else 0
    warm_up = astuple(replace(cooling, max_evaluations=_WARM_LIMIT))
    return CpuPlan(
        "fitness.anneal_in_threads",
        f"{_HERE}:anneal_in_threads",
        (n, key, evaluator, setting, *schedule),
        (_WARM_N, key, evaluator, min(setting, 2), *warm_up),
        one.about,
    )


def search_with_gpu(levels: Levels, device: DeviceFacts) -> MultiLaunchPlan:
    """The evaluator's plan, driven by the search."""
    n, key = number(levels, "n"), chain_key(number(levels, "seed"))
    start = np.arange(n, dtype=np.int32)[np.newaxis, :]
    base = gpu.program_plan(evaluator_levels(levels), start, device)
    schedule = astuple(Cooling.from_levels(levels))
    _compile_walk()
    return replace(
        base,
        name="fitness.anneal",
        function=f"{_HERE}:anneal",
        arguments=(n, key, schedule, *base.arguments),
        groups=(EVALUATION,),
    )


def anneal_full(n: int, key: int, evaluator: str, *schedule: float) -> CpuResult:
    """``sa_cpu``: the paper's search. Phases ``evaluation``, ``other`` and ``total`` (seconds).

    ``schedule`` are the fields of ``Cooling``.
    """
    ended, _, phases = full_walk(n, key, cooling_of(schedule), evaluator)
    return CpuResult(ended.conflicts, phases, outputs_of(ended))


def anneal_delta(n: int, key: int, *schedule: float) -> CpuResult:
    """``sa_delta``: the same walk, each proposal in constant time by the counts of diagonals."""
    ended = walk(n, key, cooling_of(schedule))
    return CpuResult(ended.conflicts, {}, outputs_of(ended))


def full_walk(
    n: int, key: int, cooling: Cooling, evaluator: str
) -> tuple[Walk, Callable[[], tuple[Walk, float]], Callable[[], dict[str, float]]]:
    """Anneal, every board evaluated in full by ``evaluator``, compiled as a whole.

    Gives how it ended; a function that walks again without evaluating, as far as the conflicts of
    the first boards were kept, and gives how that ended and its seconds; and one for the seconds by
    phase. Evaluation and the rest alternate every few microseconds, so reading clocks between them
    would distort both: the second walk is the time of everything else.
    """
    loop, kept = _loop(evaluator), np.empty(KEPT, np.int64)

    def go(known: int) -> tuple[Walk, float]:
        began = time.perf_counter()
        board, state, rest = _fresh(n, key, cooling)
        loop(board, state, *rest, kept, known)
        return _walk_of(board, state), time.perf_counter() - began

    def again() -> tuple[Walk, float]:
        return go(kept.size)

    def phases() -> dict[str, float]:
        longer = max(1.0, (ended.evaluations + 1) / kept.size)
        other_s = min(total_s, longer * min(again()[1] for _ in range(REPEATS)))
        return {"evaluation": total_s - other_s, "other": other_s, "total": total_s}

    ended, total_s = go(0)
    return ended, again, phases


def _walk_of(board: NDArray[Any], state: NDArray[Any]) -> Walk:
    from nqbench.workloads.fitness.annealing import walks

    return Walk(board, *(int(state[at]) for at in (walks.CONFLICTS, walks.STEP, walks.ACCEPTED)))


def _fresh(n: int, key: int, cooling: Cooling) -> tuple[NDArray[Any], NDArray[Any], Any]:
    from nqbench.workloads.fitness.annealing import walks  # numba: slow to import

    state = np.zeros(walks.STATE_WORDS, np.int64)
    state[walks.FIRST] = -1
    board = walks.shuffled(n, np.uint64(shuffle_key(key)))
    rest = (cooling.table(), np.uint64(key), cooling.moves(n), cooling.limit(n))
    return board, state, rest


@lru_cache
def _loop(evaluator: str) -> _Compiled:
    """The compiled walk: it evaluates and keeps values or, if some are ``known``, looks them up and
    ends behind them."""
    from nqbench.workloads.compiled import compiled_in_process
    from nqbench.workloads.fitness.annealing import walks
    from nqbench.workloads.fitness.cpu import compiled

    evaluate, advance = getattr(compiled, COMPILED[evaluator]), walks.advance

    def loop(board, state, table, key, moves, limit, kept, known):  # type: ignore[no-untyped-def]
        count = 0
        going = True
        while going and (known == 0 or count < known):
            measured = kept[count] if known else evaluate(board)
            if count < kept.size:
                kept[count] = measured
            count += 1
            going = advance(board, state, table, key, moves, limit, measured)
        return count

    return compiled_in_process(loop)


def anneal_in_threads(
    n: int, key: int, evaluator: str, setting: int, *schedule: float
) -> CpuResult:
    """The search, every board evaluated by several threads.

    ``setting``: the threads of ``cpu_threads``, the threshold of ``cpu_forkjoin``. Phases
    ``evaluation`` (clocked around each call, which is many times longer than reading the clock),
    ``other`` and ``total``, in seconds.
    """
    several: dict[str, Evaluate] = {
        "cpu_threads": lambda board: evaluators.threads(board, setting),
        "cpu_forkjoin": lambda board: evaluators.fork_join(board, setting),
    }
    evaluate: Evaluate = several.get(evaluator, evaluators.tbb)
    spent = 0.0

    def clocked(board: NDArray[np.int32]) -> int:
        nonlocal spent
        began = time.perf_counter()
        conflicts = evaluate(board)
        spent += time.perf_counter() - began
        return conflicts

    began = time.perf_counter()
    ended = walk_measured(n, key, cooling_of(schedule), clocked)
    total = time.perf_counter() - began
    phases = {"evaluation": spent, "other": total - spent, "total": total}
    return CpuResult(ended.conflicts, phases, outputs_of(ended))


def anneal(
    context: ProgramContext, n: int, key: int, schedule: tuple[float, ...], *evaluation: Any
) -> None:
    """The search; ``evaluation`` are the arguments of ``programs.evaluate``."""

    def evaluate(board: NDArray[np.int32]) -> int:
        with context.group(EVALUATION):
            return int(conflicts_of(context, board, *evaluation)[0])

    ended = walk_measured(n, key, cooling_of(schedule), evaluate)
    for name, values in outputs_of(ended).items():
        context.keep(name, values)


def walk_measured(n: int, key: int, cooling: Cooling, evaluate: Evaluate) -> Walk:
    """Anneal with every board evaluated in full by ``evaluate``.

    The walk is that of ``cooling.walk``, since evaluations are exact.
    """
    from nqbench.workloads.fitness.annealing import walks  # numba: slow to import

    board, state, (table, word, moves, limit) = _fresh(n, key, cooling)
    while walks.advance(board, state, table, word, moves, limit, evaluate(board)):
        pass
    return _walk_of(board, state)


@lru_cache
def _compile_walk() -> None:
    """Compile what :func:`anneal` runs on the CPU: its first run must not pay for that.

    Where nothing is cached yet this takes longer than a short search, which would then look too
    long to be timed.
    """
    walk_measured(_WARM_N, chain_key(0), Cooling.constant(1, limit=1), lambda _: 1)


def cooling_of(schedule: Sequence[float]) -> Cooling:
    """The schedule from the plain numbers of a plan."""
    start, end, factor, moves, limit, attacked = schedule
    return Cooling(start, end, factor, int(moves), int(limit), attacked=bool(attacked))


def outputs_of(ended: Walk) -> Outputs:
    """What ``points.answer`` and ``points.findings`` read; arrays of shape ``(1,)`` and the
    board of shape ``(1, n)``."""
    return {
        "boards": ended.board[np.newaxis, :],
        "conflicts": np.array([ended.conflicts], np.uint64),
        "steps": np.array([ended.evaluations], np.uint32),
        "accepted": np.array([ended.accepted], np.uint32),
    }
