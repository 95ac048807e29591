"""The scheme ``fork_join``: fork and join with work stealing, Algorithm 6 (lost).

A task is a range of queens. It is split in halves down to the threshold: the worker puts the upper
half on its own deque (fork) and continues with the lower one. It takes its next task from the end
where it puts them; a worker without tasks steals the oldest, and so the largest, from another's
other end (Chase and Lev, "Dynamic circular work-stealing deque", SPAA 2005, with a fixed buffer).
Joining blocks no thread: the half of a task that ends last passes the sum to the parent.

Tasks are numbered as nodes of a binary heap: node 1 is all queens, node k has the halves 2k and
2k + 1. At level l (2**l nodes), node 2**l + p holds the queens from n p >> l up to, and without,
n (p + 1) >> l.

Shared state, all ``int64`` and zero at the start:

``ends``    (workers * LINE * 2,): top and bottom of each deque, on cache lines of their own
``deques``  (workers * CAPACITY,): the tasks on them
``sums``    (nodes,): conflicts found in the halves of a task that have ended; [0] is the answer
``ended``   (nodes,): how many halves have ended; [0] is 1 once everything has

Numba has atomic operations on the elements of arrays for GPUs only; LLVM has them for CPUs too.
Here they take contiguous ``int64`` arrays of one dimension, are sequentially consistent and do not
check indices.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from nqbench.system.machine import cpu_count
from nqbench.workloads.compiled import compiled_in_process
from nqbench.workloads.fitness.cpu.evaluators import fixed, row_conflicts, run_in_threads

ORDER: Final = "seq_cst"
WORD_BYTES: Final = 8


def _typed(result: Any, array: Any, words: int, emit: Callable[..., Any]) -> tuple[Any, Any]:
    """Signature and code of an operation on ``(array, index, *words)``, all ``int64``;
    ``emit(builder, address, *words)`` makes its instruction."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, given[0]).data
        made = emit(builder, builder.gep(data, [given[1]]), *given[2:])
        return context.get_dummy_value() if result is types.void else made

    return result(array, *[types.int64] * (1 + words)), generate


def _load(_typing: Any, array: Any, index: Any) -> Any:  # noqa: ARG001 (numba reads the names)
    return _typed(types.int64, array, 0, lambda b, at: b.load_atomic(at, ORDER, WORD_BYTES))


def _store(_typing: Any, array: Any, index: Any, value: Any) -> Any:  # noqa: ARG001
    return _typed(
        types.void, array, 1, lambda b, at, value: b.store_atomic(value, at, ORDER, WORD_BYTES)
    )


def _add(_typing: Any, array: Any, index: Any, value: Any) -> Any:  # noqa: ARG001
    """Returns the previous value."""
    return _typed(types.int64, array, 1, lambda b, at, value: b.atomic_rmw("add", at, value, ORDER))


def _replace(_typing: Any, array: Any, index: Any, old: Any, new: Any) -> Any:  # noqa: ARG001
    """Returns whether the element was ``old``."""

    def emit(builder: Any, at: Any, old: Any, new: Any) -> Any:
        return builder.extract_value(builder.cmpxchg(at, old, new, ORDER, ORDER), 1)

    return _typed(types.boolean, array, 2, emit)


atomic_load, atomic_store, atomic_add, atomic_replace = (
    cast(Callable[..., Any], intrinsic(function)) for function in (_load, _store, _add, _replace)
)

Task = int | np.int64

LINE: Final = 8
"""Words of 8 bytes in a cache line of 64 bytes."""

CAPACITY: Final = 64
"""Tasks that a deque holds: one per level at most, and 2**31 queens have 32 levels."""

IDLE_SWEEPS: Final = 64
"""Rounds without a task before a worker yields the core (a few microseconds)."""

DONE: Final = 0
IDLE: Final = 1

State = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]
"""What the workers share, 64-bit words: the ends of the deques and their tasks; by node of the tree
of tasks the sum and how many of its halves have ended."""


@compiled_in_process
def push(ends: NDArray[Any], deques: NDArray[Any], worker: int, task: Task) -> None:
    """Put a task on the worker's own deque."""
    at = 2 * LINE * worker + LINE
    bottom = atomic_load(ends, at)
    atomic_store(deques, worker * CAPACITY + bottom % CAPACITY, task)
    atomic_store(ends, at, bottom + 1)


@compiled_in_process
def pop(ends: NDArray[Any], deques: NDArray[Any], worker: int) -> Task:
    """The youngest task of the worker's own deque, or 0."""
    at = 2 * LINE * worker
    bottom = atomic_load(ends, at + LINE) - 1
    atomic_store(ends, at + LINE, bottom)
    top = atomic_load(ends, at)
    task: Task = 0
    if top <= bottom:
        task = np.int64(atomic_load(deques, worker * CAPACITY + bottom % CAPACITY))
        if top < bottom:
            return task
        if not atomic_replace(ends, at, top, top + 1):
            task = 0  # a thief was faster with the last one
    atomic_store(ends, at + LINE, bottom + 1)
    return task


@compiled_in_process
def steal(ends: NDArray[Any], deques: NDArray[Any], victim: int) -> Task:
    """The oldest task of another worker's deque, or 0 (also when another thief was faster)."""
    at = 2 * LINE * victim
    top = atomic_load(ends, at)
    bottom = atomic_load(ends, at + LINE)
    if top >= bottom:
        return 0
    task = np.int64(atomic_load(deques, victim * CAPACITY + top % CAPACITY))
    return task if atomic_replace(ends, at, top, top + 1) else 0


@compiled_in_process
def join(sums: NDArray[Any], ended: NDArray[Any], node: Task, value: Task) -> None:
    """Pass the result of a task up the tree, as far as both halves have ended."""
    while node > 1:
        node >>= 1
        atomic_add(sums, node, value)
        if atomic_add(ended, node, 1) == 0:
            return
        value = atomic_load(sums, node)
    atomic_store(sums, 0, value)
    atomic_store(ended, 0, 1)


@compiled_in_process
def run_task(board: NDArray[Any], threshold: int, worker: int, node: Task, state: State) -> None:
    """Split a task down to the threshold, evaluate the leaf and join."""
    ends, deques, sums, ended = state
    n = board.shape[0]
    level = 0
    while node >> (level + 1):
        level += 1
    place = node - (1 << level)
    first = (n * place) >> level
    last = (n * (place + 1)) >> level
    while last - first > threshold:
        push(ends, deques, worker, 2 * node + 1)
        node *= 2
        level += 1
        place *= 2
        last = (n * (place + 1)) >> level
    total = np.int64(0)
    for queen in range(first, last):
        total += row_conflicts(board, np.uint32(queen), np.uint32(n))
    join(sums, ended, node, total)


@compiled_in_process
def work(board: NDArray[Any], threshold: int, worker: int, workers: int, state: State) -> int:
    """Run tasks until all is ``DONE``, or until there is none to steal (``IDLE``: call again)."""
    ends, deques, _, ended = state
    failed = 0
    while True:
        node = pop(ends, deques, worker)
        if node == 0:
            if atomic_load(ended, 0) != 0:
                return DONE
            for step in range(1, workers):
                node = steal(ends, deques, (worker + step) % workers)
                if node != 0:
                    break
        if node == 0:
            failed += 1
            if failed > IDLE_SWEEPS:
                return IDLE
            continue
        failed = 0
        run_task(board, threshold, worker, node, state)


def fork_join(board: NDArray[Any], threshold: int, workers: int = 0) -> int:
    """Conflicts of a board by fork and join.

    ``threshold`` is the most queens of a leaf task, ``workers`` the threads (0: one per core, as
    Java's pool has). They are started and joined inside the call: the published 12 ms at n = 100,
    where one thread needs 46 microseconds, suggest that the paper's pool was not running before.
    """
    queens, workers = fixed(board), workers or cpu_count()
    # As many levels as halvings after which no range holds more than ``threshold`` queens.
    nodes = 2 << (-(-queens.size // threshold) - 1).bit_length()
    lengths = workers * 2 * LINE, workers * CAPACITY, nodes, nodes
    ends, deques, sums, ended = (np.zeros(length, np.int64) for length in lengths)
    state = ends, deques, sums, ended

    def run(worker: int) -> None:
        while work(queens, threshold, worker, workers, state) != DONE:
            time.sleep(0)  # nothing to steal: another worker may need this core

    push(ends, deques, 0, 1)
    join_threads = run_in_threads(run, range(1, workers))
    run(0)
    join_threads()
    return int(sums[0])
