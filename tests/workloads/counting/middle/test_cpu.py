"""Counting from the middle on the CPU, by every set of instructions that this one has."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from nqbench.workloads.counting.cpu import count_middle_multicore
from nqbench.workloads.counting.known import SOLUTIONS
from nqbench.workloads.counting.middle import cpu, groups, vectors
from tests.workloads.counting import oracle

CASES = [*range(cpu.MIN_N, 15)]


def counted(path: int, n: int, some: slice = slice(None)) -> int:
    sets = np.ascontiguousarray(groups.groups(n)[some])  # else numba compiles it all again
    return int(cpu.solutions_of_groups(path, cpu.board_of(n), sets, 0, len(sets)))


@pytest.mark.parametrize("name", vectors.PATHS)
def test_every_path_counts_every_board(name: str) -> None:
    path = vectors.PATHS[name]
    if path not in vectors.paths():
        pytest.skip(f"this CPU has no {name}")
    assert [counted(path, n) for n in CASES] == [SOLUTIONS[n] for n in CASES]


@pytest.mark.full
@pytest.mark.parametrize("n", range(8, 18))
def test_boards_counted_whole_on_all_cores(n: int) -> None:
    assert count_middle_multicore(n) == SOLUTIONS[n]


@pytest.mark.parametrize("n", [16, 17, 20, 21])
def test_paths_agree_on_groups_of_larger_boards(n: int) -> None:
    """A few of some thousand groups: long lists, most look-ups."""
    step = len(groups.groups(n)) // (12 if n == 17 else 2)
    found = {counted(path, n, slice(step // 2, None, step)) for path in vectors.paths()}
    assert len(found) == 1
    assert found != {0}


@pytest.mark.parametrize("n", [6, 7, 8, 9])
def test_every_group_has_the_solutions_of_the_definition(n: int) -> None:
    expected = oracle.from_the_middle(n, transposed=n % 2 == 1)
    for k, (upper, _, middle, weight) in enumerate(groups.groups(n).tolist()):
        found = counted(vectors.PORTABLE, n, slice(k, k + 1))
        assert found == weight * expected[upper, middle]


def test_numba_told_of_another_cpu_takes_the_portable_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CPU_NAME", "x86-64", raising=False)
    assert vectors.paths() == (vectors.PORTABLE,)
