"""The assembly of one step of ``loop: unrolled`` against its plain form, from random states."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nqbench.plan import Buffer, KernelPlan
from nqbench.workloads.counting.plans import OPTIONS, SOURCE
from tests.workloads.running import SIM

STATES, STEPS, ENTRIES = 1024, 5, 11
NODE = [("open", "u4"), ("left", "u4"), ("right", "u4"), ("candidates", "u4")]
STACK = ("stack", "u4", (ENTRIES, 4))
STATE = np.dtype([*NODE, STACK, ("distance", "u4"), ("returned", "u4"), ("unused", "u4", 2)])
OUTCOME = np.dtype(
    [*NODE, STACK, ("top", "u4"), ("found", "u4"), ("solutions", "u4", STEPS), ("unused", "u4")]
)


def random_nodes(draw: np.random.Generator, n: int, count: int) -> np.ndarray:
    """Nodes in any row, every third of them in one of the last two."""
    board = 2**32 - 2 ** (32 - n)
    open_columns = draw.integers(0, 2**32, count, np.uint32) & np.uint32(board)
    number = draw.integers(1, n, count, np.uint32)
    number[::3] = draw.choice([n - 1, n - 2], number[::3].size)
    row = (number + (n // 2 - 1) % 2) * 2
    left, right = (draw.integers(0, 2**32, count, np.uint32) for _ in range(2))
    left &= draw.integers(0, 2**32, count, np.uint32) & np.uint32(board)
    right &= draw.integers(0, 2**32, count, np.uint32) & np.uint32(board)
    candidates = open_columns & ~left & ~right
    return np.stack([open_columns | row, left, right, candidates], axis=1).astype(np.uint32)


@pytest.mark.parametrize(("n", "lookahead"), [(8, 1), (9, 2), (10, 3)])
def test_the_assembly_does_what_the_plain_step_does(n: int, lookahead: int) -> None:
    draw = np.random.default_rng(n)
    states = np.zeros(STATES, STATE)
    nodes = random_nodes(draw, n, STATES * (ENTRIES + 1)).reshape(STATES, ENTRIES + 1, 4)
    for i, (name, _) in enumerate(NODE):
        states[name] = nodes[:, 0, i]
    states["stack"] = nodes[:, 1:]
    states["distance"] = draw.integers(0, (n - 1) // 2 + 1, STATES)
    states["returned"] = draw.choice([0, 2**31 - 1, 2**31 + 2 ** (32 - n) - 1], STATES)
    config = f".n = {n}, .depth = 2, .symmetry = Symmetry::full, .lookahead = {lookahead}"
    plan = KernelPlan(
        Path(__file__).with_name("step.cu"),
        f"steps<Config{{{config}}}>",
        ("states", np.uint32(1), "fast", "plain"),
        buffers=(
            Buffer("states", "uint8", states.nbytes, data=states.view(np.uint8)),
            Buffer("fast", "uint8", STATES * OUTCOME.itemsize, output=True),
            Buffer("plain", "uint8", STATES * OUTCOME.itemsize, output=True),
        ),
        grid=(STATES // 32, 1, 1),
        block=(32, 1, 1),
        options=OPTIONS,
        include=(SOURCE.parent,),
    )
    with SIM.prepare(plan) as prepared:
        prepared.launch()
        fast, plain = (prepared.fetch()[name].view(OUTCOME) for name in ("fast", "plain"))
    for name in (OUTCOME.names or ())[:-1]:
        np.testing.assert_array_equal(fast[name], plain[name], name)
    # Every branch was taken: nodes pushed and taken back, solutions, ties.
    assert set(np.unique(plain["top"])) >= {STEPS - 2, STEPS, STEPS + 2}
    assert plain["found"].any()
