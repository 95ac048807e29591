"""Annealing walks on the CPU, compiled by numba.

A proposal exchanges the rows of two queens. Step t (from 0) of a stream draws two words: the first
names the queens, the second decides on a rise (see ``cooling``).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.workloads.compiled import compiled

Words = NDArray[Any]
Whole = int | np.int64
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)
_LOW: Final = np.uint64(0xFFFFFFFF)
_TRIES: Final = 32  # cooling.TRIES; numba takes no attribute of another module

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
def count_diagonals(board: Words, rising: Words, falling: Words) -> Whole:
    """Queens of every diagonal, shape ``(2n - 1,)`` each; returns the conflicts."""
    n = board.size
    for column in range(n):
        rising[column + board[column]] += 1
        falling[column - board[column] + n - 1] += 1
    total = np.int64(0)
    for diagonal in range(2 * n - 1):
        total += rising[diagonal] * (rising[diagonal] - 1) // 2
        total += falling[diagonal] * (falling[diagonal] - 1) // 2
    return total


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
    rising = np.zeros(2 * n - 1, np.int32)
    falling = np.zeros(2 * n - 1, np.int32)
    conflicts = count_diagonals(board, rising, falling)
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
    board: Words,
    key: np.uint64,
    table: Words,
    moves: int,  # noqa: ARG001 (one temperature; the signature is that of delta_walk)
    limit: int,
) -> tuple[Whole, Whole, Whole]:
    """The same, but the first queen is one in conflict.

    Cycles through the columns; a queen in conflict tries up to ``_TRIES`` partners while it stays
    in conflict.
    """
    n = board.size
    rising = np.zeros(2 * n - 1, np.int32)
    falling = np.zeros(2 * n - 1, np.int32)
    conflicts = count_diagonals(board, rising, falling)
    step = 0
    accepted = 0
    while conflicts > 0 and step < limit:
        for i in range(n):
            for _ in range(_TRIES):
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
    board: Words,
    state: Words,
    table: Words,
    key: np.uint64,
    moves: int,
    limit: int,
    measured: int,
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
