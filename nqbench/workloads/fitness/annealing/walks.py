"""Annealing walks on the CPU, compiled by numba, and the searches that plans name.

A proposal exchanges the rows of two queens. Step t (from 0) of a stream draws two words: the first
names the queens, the second decides on a rise (see ``cooling``).

``sa_delta`` evaluates a move (:func:`anneal_delta`), the other searches every board in full: on the
CPU compiled as a whole (:func:`anneal_full`), with a GPU scheme as a program that the search drives
(:func:`anneal`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.multi_launch import ProgramContext
from nqbench.plan import CpuResult, Outputs
from nqbench.workloads.compiled import compiled, compiled_in_process
from nqbench.workloads.fitness.annealing.cooling import Cooling, chain_key, shuffle_key
from nqbench.workloads.fitness.cpu import evaluators
from nqbench.workloads.fitness.gpu import conflicts_of

Words = NDArray[Any]
Whole = int | np.int64
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)
_LOW: Final = np.uint64(0xFFFFFFFF)
TRIES: Final = 32
"""Partners that `proposal: attacked` tries for one queen: one per lane of a warp, which tries them
all at once. Any number from 4 to 128 needs the same 8 proposals per queen, within 7%, from 1,000
queens on."""

STEP, ACCEPTED, CONFLICTS, FIRST, SECOND, STATE_WORDS = range(6)
"""Places in the state of ``advance``; FIRST is -1 while nothing is proposed."""


@compiled
def draw(key: np.uint64, number: np.uint64) -> np.uint64:
    """Number ``number`` (from 1) of the stream ``key``."""
    word = key + number * _GOLDEN
    word = (word ^ (word >> np.uint64(30))) * _FIRST
    word = (word ^ (word >> np.uint64(27))) * _SECOND
    return word ^ (word >> np.uint64(31))


@compiled
def below(word: np.uint64, bound: int) -> Whole:
    """A 32-bit random number scaled to 0 .. bound - 1."""
    return np.int64((word * np.uint64(bound)) >> np.uint64(32))


@compiled
def shuffled(n: int, key: np.uint64) -> Words:
    """The permutation 0..n-1 shuffled by Fisher and Yates, ``int32``."""
    board = np.arange(n).astype(np.int32)
    for last in range(n - 1, 0, -1):
        other = below(draw(key, np.uint64(last)) >> np.uint64(32), last + 1)
        board[last], board[other] = board[other], board[last]
    return board


@compiled
def first_queen(word: np.uint64, n: int) -> Whole:
    """The first queen of a proposal, from the high half of its word."""
    return below(word >> np.uint64(32), n)


@compiled
def partner(word: np.uint64, n: int, first: Whole) -> Whole:
    """Another queen than ``first``, from the low half."""
    other = below(word & _LOW, n - 1)
    return other + 1 if other >= first else other


@compiled
def accepts(change: Whole, table: Words, level: int, key: np.uint64, step: int) -> bool:
    """Metropolis: a rise is accepted with its chance, any other change always."""
    if change <= 0:
        return True
    if change > table.shape[1]:
        return False
    word = draw(key, np.uint64(2 * step + 2)) >> np.uint64(32)
    return bool(word < np.uint64(table[level, change - 1]))


@compiled
def diagonals_of(board: Words) -> tuple[Words, Words, Whole]:
    """Queens of every rising and falling diagonal, shape ``(2n - 1,)`` each, and the conflicts."""
    n = board.size
    rising = np.zeros(2 * n - 1, np.int32)
    falling = np.zeros(2 * n - 1, np.int32)
    for column in range(n):
        rising[column + board[column]] += 1
        falling[column - board[column] + n - 1] += 1
    total = np.int64(0)
    for diagonal in range(2 * n - 1):
        total += rising[diagonal] * (rising[diagonal] - 1) // 2
        total += falling[diagonal] * (falling[diagonal] - 1) // 2
    return rising, falling, total


@compiled
def change_of(board: Words, rising: Words, falling: Words, i: Whole, j: Whole) -> Whole:
    """Conflicts that exchanging the rows of queens ``i`` and ``j`` adds.

    A queen leaves as many partners as its diagonals hold others, and meets those of its new ones.
    Two queens on one diagonal lose each other once, not twice, and meet again on the other.
    """
    n = board.size
    a = np.int64(board[i])
    b = np.int64(board[j])
    off = n - 1
    lost = rising[i + a] + rising[j + b] + falling[i - a + off] + falling[j - b + off] - 4
    met = rising[i + b] + rising[j + a] + falling[i - b + off] + falling[j - a + off]
    change = np.int64(met - lost)
    if i + a == j + b:
        change += 2
    if i + b == j + a:
        change += 2
    return change


@compiled
def exchange(board: Words, rising: Words, falling: Words, i: Whole, j: Whole) -> None:
    """Exchange the rows of two queens and update their diagonals."""
    off = board.size - 1
    a = np.int64(board[i])
    b = np.int64(board[j])
    rising[i + a] -= 1
    rising[j + b] -= 1
    falling[i - a + off] -= 1
    falling[j - b + off] -= 1
    rising[i + b] += 1
    rising[j + a] += 1
    falling[i - b + off] += 1
    falling[j - a + off] += 1
    board[i] = b
    board[j] = a


@compiled
def delta_walk(
    board: Words, key: np.uint64, table: Words, moves: int, limit: int
) -> tuple[Whole, Whole, Whole]:
    """Anneal ``board`` in place, each proposal in constant time.

    ``moves`` proposals at each row of ``table``, ``limit`` in all. Returns conflicts, proposals
    and accepted ones.
    """
    n = board.size
    rising, falling, conflicts = diagonals_of(board)
    step = 0
    accepted = 0
    while conflicts > 0 and step < limit:
        word = draw(key, np.uint64(2 * step + 1))
        i = first_queen(word, n)
        j = partner(word, n, i)
        change = change_of(board, rising, falling, i, j)
        if accepts(change, table, step // moves, key, step):
            exchange(board, rising, falling, i, j)
            conflicts += change
            accepted += 1
        step += 1
    return conflicts, step, accepted


@compiled
def attacked_walk(
    board: Words, key: np.uint64, table: Words, _moves: int, limit: int
) -> tuple[Whole, Whole, Whole]:
    """The same, but the first queen is one in conflict, and there is one temperature (``_moves``:
    the signature is that of ``delta_walk``).

    Cycles through the columns; a queen in conflict tries up to ``TRIES`` partners while it stays
    in conflict.
    """
    n = board.size
    rising, falling, conflicts = diagonals_of(board)
    step = 0
    accepted = 0
    while conflicts > 0 and step < limit:
        for i in range(n):
            for _ in range(TRIES):
                row = np.int64(board[i])
                if rising[i + row] == 1 and falling[i - row + n - 1] == 1:
                    break
                if step >= limit:
                    return conflicts, step, accepted
                j = partner(draw(key, np.uint64(2 * step + 1)), n, i)
                change = change_of(board, rising, falling, i, j)
                if accepts(change, table, 0, key, step):
                    exchange(board, rising, falling, i, j)
                    conflicts += change
                    accepted += 1
                step += 1
            if conflicts == 0:
                break
    return conflicts, step, accepted


@compiled
def advance(
    board: Words, state: Words, table: Words, key: np.uint64, moves: int, limit: int, measured: int
) -> bool:
    """One step of a walk whose boards are evaluated elsewhere.

    ``measured`` are the conflicts of ``board``: decides the current proposal by them (or takes
    them for the start's) and makes the next one. False when the walk has ended; the board is then
    the last accepted one. ``state``: ``int64``, shape ``(STATE_WORDS,)``.
    """
    step = state[STEP]
    i = state[FIRST]
    if i < 0:
        state[CONFLICTS] = measured
    else:
        j = state[SECOND]
        change = measured - state[CONFLICTS]
        if accepts(change, table, step // moves, key, step):
            state[CONFLICTS] = measured
            state[ACCEPTED] += 1
        else:
            board[i], board[j] = board[j], board[i]
        step += 1
        state[STEP] = step
    if state[CONFLICTS] == 0 or step >= limit:
        state[FIRST] = -1
        return False
    word = draw(key, np.uint64(2 * step + 1))
    i = first_queen(word, board.size)
    j = partner(word, board.size, i)
    board[i], board[j] = board[j], board[i]
    state[FIRST] = i
    state[SECOND] = j
    return True


EVALUATION: Final = "evaluation"
"""The phase of whole evaluations: allocation, copies and kernels, and the CPU's part in them."""

KEPT: Final = 1 << 20
"""Values kept for the second walk; longer walks are extrapolated from these (8 MB)."""

REPEATS: Final = 3
"""Repeats of the second walk; the shortest time counts, since the walk is short."""

Evaluate = Callable[[NDArray[np.int32]], int]


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """How one run ended: the board (``int32``, shape ``(n,)``) and its conflicts as the walk kept
    them; proposals evaluated (without the start's own evaluation) and accepted."""

    board: NDArray[Any]
    conflicts: int
    evaluations: int
    accepted: int

    @property
    def outputs(self) -> Outputs:
        """As ``points.answer`` and ``points.findings`` read them; arrays of shape ``(1,)`` and the
        board of shape ``(1, n)``."""
        return {
            "boards": self.board[np.newaxis, :],
            "conflicts": np.array([self.conflicts], np.uint64),
            "steps": np.array([self.evaluations], np.uint32),
            "accepted": np.array([self.accepted], np.uint32),
        }


def walk(n: int, key: int, cooling: Cooling) -> Walk:
    """The walk of a stream, by incremental evaluation on the CPU: a few milliseconds at n = 3000.

    Every other evaluator must end with the same result.
    """
    board = shuffled(n, np.uint64(shuffle_key(key)))
    table, limit = cooling.table(), cooling.limit(n)
    anneal = attacked_walk if cooling.attacked else delta_walk
    ended = anneal(board, np.uint64(key), table, cooling.moves(n), limit)
    return Walk(board, *(int(value) for value in ended))


@lru_cache(maxsize=1 << 14)
def reference(n: int, seed: int, chain: int, cooling: Cooling) -> tuple[int, int]:
    """Conflicts at the end of the walk of a seed's chain, and its evaluations."""
    ended = walk(n, chain_key(seed, chain), cooling)
    return ended.conflicts, ended.evaluations


def anneal_delta(n: int, key: int, cooling: Cooling) -> CpuResult:
    """``sa_delta``: each proposal in constant time by the counts of diagonals."""
    ended = walk(n, key, cooling)
    return CpuResult(ended.conflicts, {}, ended.outputs)


def anneal_full(n: int, key: int, cooling: Cooling) -> CpuResult:
    """``sa_cpu``: the paper's search. Phases ``evaluation``, ``other`` and ``total`` (seconds).

    Evaluation and the rest alternate every few microseconds, so reading clocks between them would
    distort both. A second walk without evaluations is the time of everything else.
    """
    kept = np.empty(KEPT, np.int64)
    ended, total_s = full_walk(n, key, cooling, kept)

    def phases() -> dict[str, float]:
        longer = max(1.0, (ended.evaluations + 1) / kept.size)
        again = (full_walk(n, key, cooling, kept, kept.size) for _ in range(REPEATS))
        other_s = min(total_s, longer * min(seconds for _, seconds in again))
        return {EVALUATION: total_s - other_s, "other": other_s, "total": total_s}

    return CpuResult(ended.conflicts, phases, ended.outputs)


def full_walk(
    n: int, key: int, cooling: Cooling, kept: NDArray[np.int64], known: int = 0
) -> tuple[Walk, float]:
    """Anneal, every board evaluated in full; how it ended, and its seconds.

    The conflicts of the first boards are ``kept``. With the first ``known`` of them it walks the
    same way without evaluating, and ends behind them.
    """
    loop, began = _loop(), time.perf_counter()
    board, state, rest = _fresh(n, key, cooling)
    loop(board, state, *rest, kept, known)
    return _walk_of(board, state), time.perf_counter() - began


def _walk_of(board: NDArray[Any], state: NDArray[Any]) -> Walk:
    return Walk(board, *(int(state[at]) for at in (CONFLICTS, STEP, ACCEPTED)))


def _fresh(n: int, key: int, cooling: Cooling) -> tuple[NDArray[Any], NDArray[Any], Any]:
    state = np.zeros(STATE_WORDS, np.int64)
    state[FIRST] = -1
    board = shuffled(n, np.uint64(shuffle_key(key)))
    return board, state, (cooling.table(), np.uint64(key), cooling.moves(n), cooling.limit(n))


@lru_cache
def _loop() -> Callable[..., int]:
    """The compiled walk: it evaluates and keeps values or, if some are ``known``, looks them up and
    ends behind them."""
    evaluate: Any = evaluators.serial_conflicts

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


def anneal(context: ProgramContext, n: int, key: int, cooling: Cooling, *evaluation: Any) -> None:
    """``sa_gpu``: the same search; ``evaluation`` are the arguments of ``gpu.evaluate``."""

    def evaluate(board: NDArray[np.int32]) -> int:
        with context.group(EVALUATION):
            return int(conflicts_of(context, board, *evaluation)[0])

    for name, values in walk_measured(n, key, cooling, evaluate).outputs.items():
        context.keep(name, values)


def walk_measured(n: int, key: int, cooling: Cooling, evaluate: Evaluate) -> Walk:
    """Anneal with every board evaluated in full by ``evaluate``.

    The walk is that of :func:`walk`, since evaluations are exact.
    """
    board, state, (table, word, moves, limit) = _fresh(n, key, cooling)
    while advance(board, state, table, word, moves, limit, evaluate(board)):
        pass
    return _walk_of(board, state)


@lru_cache
def compile_walk() -> None:
    """Compile what :func:`anneal` runs on the CPU: its first run must not pay for that.

    Where nothing is cached yet this takes longer than a short search, which would then look too
    long to be timed.
    """
    walk_measured(8, chain_key(0), Cooling.constant(1, limit=1), lambda _: 1)
