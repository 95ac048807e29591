"""The CPU's part of the searches: what happens between the kernels."""

from __future__ import annotations

import numpy as np

from nqbench.plan import ProgramContext

DONE, EVALUATIONS, APPLIED = 1, 2, 3


def iterate(context: ProgramContext, iterations: int, threshold: float) -> None:
    """Two kernels and one word back per iteration, as in the paper (section 5).

    Kernels ``evaluation`` and ``apply``; ``deltas[0]`` is the best change of an iteration, which
    ``apply`` has applied unless it is above the threshold.
    """
    limit = np.float32(threshold)
    changes: list[np.float32] = []
    evaluations = 0
    while len(changes) < iterations:
        context.launch("evaluation")
        context.launch("apply")
        evaluations += 1
        best = context.download("deltas", 1)[0]
        if best > limit:
            break
        changes.append(best)
    context.keep("changes", np.array(changes, np.float32))
    context.keep("applied", np.array([len(changes)], np.uint64))
    context.keep("evaluations", np.array([evaluations], np.uint64))


def iterate_unattended(context: ProgramContext, iterations: int, check_every: int) -> None:
    """One kernel per iteration, which applies the move itself; the CPU looks at the state
    (``State`` in ``tiled.cuh``) only every ``check_every`` launches."""
    left, done = iterations, False
    while left > 0 and not done:
        launches = min(left, check_every)
        for _ in range(launches):
            context.launch("evaluation")
        left -= launches
        state = context.download("state")
        done = bool(state[DONE])
    context.keep("evaluations", np.array([state[EVALUATIONS]], np.uint64))
    context.keep("applied", np.array([state[APPLIED]], np.uint64))
