"""The CPU schemes against brute force and closed forms; fork/join and its deques."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nqbench.devices.cpu import CpuDevice
from nqbench.errors import DeviceError, WrongDeviceError
from nqbench.plan import CpuPlan, CpuResult
from nqbench.point import Level
from nqbench.workloads.fitness import WORKLOAD
from nqbench.workloads.fitness.boards import (
    Board,
    conflicts,
    make_batch,
    random_board,
    valid_board,
)
from nqbench.workloads.fitness.cpu import evaluators, plans
from nqbench.workloads.fitness.cpu import tbb as cpu_tbb
from nqbench.workloads.fitness.cpu.evaluators import fork_join_counted, leaf_level
from nqbench.workloads.fitness.cpu.unoptimized import IR, target_machine
from tests.workloads.fitness import brute_force

needs_tbb = pytest.mark.skipif(bool(cpu_tbb.load_tbb()), reason=cpu_tbb.load_tbb() or "TBB is here")

Scheme = Callable[[Board], int]
PAIR_SCHEMES = [
    pytest.param(evaluators.serial, id="serial"),
    pytest.param(evaluators.serial_unoptimized, id="serial_unoptimized"),
    *(
        pytest.param(lambda board, t=t: evaluators.threads(board, t), id=f"threads-{t}")
        for t in (1, 3, 60)
    ),
    pytest.param(evaluators.tbb, id="tbb", marks=needs_tbb),
    *(
        pytest.param(lambda board, t=t: evaluators.fork_join(board, t), id=f"fork_join-{t}")
        for t in (1, 3, 5000)
    ),
]
SCHEMES = [*PAIR_SCHEMES, pytest.param(evaluators.histogram, id="histogram")]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_random_and_valid_boards_of_every_small_size(scheme: Scheme) -> None:
    for n in (*range(4, 24), 61, 64, 127):
        board = random_board(n, seed=n)
        assert scheme(board) == brute_force(board), f"random, n = {n}"
        assert scheme(valid_board(n)) == 0, f"valid, n = {n}"


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("n", [500, 1999])
def test_random_and_valid_boards_of_larger_sizes(scheme: Scheme, n: int) -> None:
    for seed in (1, 2):
        board = random_board(n, seed)
        assert scheme(board) == brute_force(board)
    assert scheme(valid_board(n)) == 0


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_boards_that_are_hardly_any(scheme: Scheme, n: int) -> None:
    assert scheme(np.arange(n, dtype=np.int32)) == n * (n - 1) // 2


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("step", [1, -1])
def test_every_pair_is_counted_once_on_a_diagonal_board(scheme: Scheme, step: int) -> None:
    n = 1237  # all pairs conflict, so that a pair left out or taken twice shows
    assert scheme(np.arange(n, dtype=np.int32)[::step]) == n * (n - 1) // 2


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 80).flatmap(lambda n: st.permutations(range(n))))
def test_pairs_and_diagonals_agree(rows: list[int]) -> None:
    board = np.array(rows, np.int32)
    assert evaluators.serial(board) == evaluators.histogram(board) == brute_force(board)
    assert (
        evaluators.fork_join(board, 2)
        == evaluators.threads(board, 3)
        == evaluators.serial_unoptimized(board)
    )


def test_counts_beyond_32_bits() -> None:
    n = 100_000
    diagonal = np.arange(n, dtype=np.int32)
    assert evaluators.histogram(diagonal) == n * (n - 1) // 2 == 4_999_950_000
    # Two diagonals of 30,000 and 70,000 queens; each of the 30,000 meets one of the others, on the
    # diagonals of the other direction.
    shifted = np.roll(diagonal, 30_000)
    assert evaluators.histogram(shifted) == (30_000 * 29_999 + 70_000 * 69_999) // 2 + 30_000


@pytest.mark.parametrize("scheme", PAIR_SCHEMES)
def test_sums_over_rows_are_64_bit(scheme: Scheme) -> None:
    n = 70_000 if scheme is evaluators.serial else 2_000  # 2.4e9 pairs take 0.3 s on one core
    assert scheme(np.arange(n, dtype=np.int32)) == n * (n - 1) // 2


@pytest.mark.parametrize("count", [1, 2, 7, 64])
def test_a_batch_lists_the_conflicts_of_each_board(count: int) -> None:
    boards = make_batch("random", 97, 5, count)
    result = evaluators.histogram_batch(boards)
    assert isinstance(result, CpuResult)
    each = [brute_force(board) for board in boards]
    assert result.outputs["conflicts"].tolist() == each
    assert result.answer == sum(each)


def test_a_board_is_never_written_to() -> None:
    board = random_board(200, 1)
    before = board.copy()
    for scheme in (evaluators.serial, evaluators.histogram, evaluators.serial_unoptimized):
        scheme(board)
    evaluators.fork_join(board, 4)
    assert np.array_equal(board, before)


def test_without_optimisation_it_is_other_code() -> None:
    import numba
    from llvmlite import binding

    from nqbench.workloads.fitness.cpu.compiled import row_conflicts

    source = row_conflicts.py_func  # type: ignore[attr-defined]
    optimized = numba.njit(source)  # not out of the cache, whose code cannot be inspected
    board = random_board(8, 1)
    first, n = np.uint32(0), np.uint32(8)
    assert optimized(board, first, n) == source(board, first, n)
    assert "x i32>" in optimized.inspect_llvm(optimized.signatures[0])  # vectors of queens
    machine = target_machine(0)  # also initialises the target
    text = str(machine.emit_assembly(binding.parse_assembly(IR)))
    assert not [word for word in ("xmm", "ymm", "zmm", "v0.4s", "v1.4s") if word in text]
    # Every variable in memory: the inner loop alone loads board, n, i and j more than once each.
    memory = [line for line in text.splitlines() if "(%rsp)" in line or "[sp" in line]
    assert len(memory) > 20


LEVELS: list[dict[str, Level]] = [
    {"scheme": "cpu_serial", "optimization": "default"},
    {"scheme": "cpu_serial", "optimization": "none"},
    {"scheme": "cpu_threads", "threads": 5},
    {"scheme": "cpu_forkjoin", "threshold": 4},
    {"scheme": "cpu_histogram"},
]


@pytest.mark.parametrize("levels", LEVELS, ids=str)
def test_a_plan_runs_on_the_cpu(levels: dict[str, Level]) -> None:
    board = random_board(300, 4)
    plan = plans.cpu_plan(levels, board[np.newaxis])
    with CpuDevice().prepare(plan) as prepared:
        prepared.launch()
        assert int(prepared.fetch()["answer"][0]) == conflicts(board)
    if levels["scheme"] == "cpu_threads":
        assert plan.about["threads_used"] == 5


def test_a_plan_s_first_call_is_of_a_small_board_and_compiles_the_same_code() -> None:
    from nqbench.workloads.fitness.cpu.compiled import serial_conflicts

    plan = plans.cpu_plan(LEVELS[0], random_board(50, 1)[np.newaxis])
    CpuDevice().prepare(plan).close()
    compiled = list(serial_conflicts.signatures)  # type: ignore[attr-defined]
    evaluators.serial(*plan.arguments)
    assert list(serial_conflicts.signatures) == compiled  # type: ignore[attr-defined]
    assert plan.warm_up[0].size < 10


@needs_tbb
def test_tbb_is_what_runs_it() -> None:
    import numba

    evaluators.tbb(random_board(100, 1))
    assert numba.threading_layer() == "tbb"  # type: ignore[attr-defined]


@needs_tbb
def test_the_size_of_pieces_is_put_back() -> None:
    import numba

    before = numba.get_parallel_chunksize()
    evaluators.tbb(random_board(100, 1))
    assert numba.get_parallel_chunksize() == before


def test_without_the_package_tbb_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_tbb, "tbb_library", lambda: None)
    monkeypatch.setattr(cpu_tbb, "_package", lambda: None)
    monkeypatch.setitem(cpu_tbb.LIBRARIES, sys.platform, "libtbb_that_is_not_here.so")
    cpu_tbb.load_tbb.cache_clear()
    try:
        given: dict[str, Level] = {"n": 10}
        with pytest.raises(WrongDeviceError, match=r"package tbb is not installed \(pip install"):
            WORKLOAD.resolve(given, "fitness_schemes.cpu_tbb", CpuDevice().facts)
        with pytest.raises(DeviceError, match="cpu_tbb cannot run: the package tbb is not"):
            evaluators.tbb(random_board(10, 1))
    finally:
        cpu_tbb.load_tbb.cache_clear()


@needs_tbb
def test_another_layer_in_the_process_is_an_error_and_not_another_system() -> None:
    program = (
        "import numpy as np\n"
        "from nqbench.errors import DeviceError\n"
        "from nqbench.workloads.fitness.cpu.evaluators import tbb\n"
        "try:\n    tbb(np.arange(9, dtype=np.int32))\nexcept DeviceError as e:\n    print(e)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={"NUMBA_THREADING_LAYER": "workqueue", "PATH": ""},
        check=True,
    )
    assert "use its workqueue layer in this process and not TBB" in done.stdout


@pytest.mark.parametrize("started", [0, 1, 3])
def test_threads_that_the_system_refuses_are_told(
    monkeypatch: pytest.MonkeyPatch, started: int
) -> None:
    real, starts = threading.Thread.start, iter(range(started))

    def start(thread: threading.Thread) -> None:
        if next(starts, None) is None:
            raise RuntimeError("can't start new thread")
        real(thread)

    board, alive = random_board(300, 1), threading.active_count()
    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(DeviceError, match=f"only {started} of 8 threads .can't start new thread"):
        evaluators.threads(board, 8)
    starts = iter(range(started))
    with pytest.raises(DeviceError, match=f"only {started} of 7 threads"):
        evaluators.fork_join_counted(board, 4, workers=8)
    assert threading.active_count() == alive


def test_importing_the_schemes_does_not_import_numba() -> None:
    program = (
        "import sys; import nqbench.workloads.fitness.cpu.plans;"
        "print('numba' in sys.modules, 'llvmlite' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"], done.stderr


def test_plans_carry_arrays() -> None:
    plan = plans.cpu_plan({"scheme": "cpu_histogram"}, make_batch("random", 30, 1, 3))
    assert isinstance(plan, CpuPlan)
    assert plan.arguments[0].shape == (3, 30)
    assert plan.function.endswith(":histogram_batch")


@pytest.mark.parametrize(("workers", "threshold"), [(1, 1), (2, 4), (3, 1), (3, 10), (8, 7)])
def test_any_number_of_workers_finds_the_same(workers: int, threshold: int) -> None:
    for n in (5, 64, 777):
        board = random_board(n, seed=workers)
        assert fork_join_counted(board, threshold, workers).conflicts == conflicts(board)


@pytest.mark.parametrize(("n", "threshold"), [(1, 1), (8, 1), (9, 2), (1000, 4), (1001, 10)])
def test_leaves_are_as_many_as_halving_makes(n: int, threshold: int) -> None:
    def leaves(size_from: int, size_to: int) -> int:
        """Recursion as the paper has it, on the ranges themselves."""
        if size_to - size_from <= threshold:
            return 1
        middle = (size_from + size_to) // 2
        return leaves(size_from, middle) + leaves(middle, size_to)

    ran = sum(fork_join_counted(np.arange(n, dtype=np.int32), threshold, 2).leaves)
    # Ranges are cut at n p / 2**l, which may shift a cut by one queen: some ranges of a level that
    # has both threshold and threshold + 1 queens are cut elsewhere, none is larger.
    assert -(-n // threshold) <= ran <= 2 ** leaf_level(n, threshold)
    if n & (n - 1) == 0:
        assert ran == leaves(0, n)


@pytest.mark.parametrize(("n", "threshold", "level"), [(1, 1, 0), (2, 1, 1), (9, 2, 3), (8, 2, 2)])
def test_levels(n: int, threshold: int, level: int) -> None:
    assert leaf_level(n, threshold) == level


def test_one_worker_steals_nothing_and_several_do() -> None:
    board = random_board(20_000, 1)
    assert fork_join_counted(board, 4, 1).steals == (0,)
    assert any(sum(fork_join_counted(board, 4, 4).steals) > 0 for _ in range(100))


def test_threads_end_with_the_call() -> None:
    before = threading.active_count()
    fork_join_counted(random_board(500, 1), 2, 6)
    assert threading.active_count() == before


def test_many_short_calls_lose_no_task() -> None:
    """Races of owner and thieves over the last task of a deque, 100 times, with leaves of 1."""
    board = random_board(40, 3)
    want = conflicts(board)
    for _ in range(100):
        joined = fork_join_counted(board, 1, 3)
        assert joined.conflicts == want
        assert sum(joined.leaves) == 40


def test_a_deque_gives_its_owner_the_youngest_and_thieves_the_oldest() -> None:
    from nqbench.workloads.fitness.cpu.stealing import CAPACITY, LINE, pop, push, steal

    ends, deques = np.zeros(2 * 2 * LINE, np.int64), np.zeros(2 * CAPACITY, np.int64)
    for task in (11, 12, 13):
        push(ends, deques, 1, task)
    assert steal(ends, deques, 0) == 0  # another worker's is empty
    assert (pop(ends, deques, 1), steal(ends, deques, 1)) == (13, 11)
    assert (pop(ends, deques, 1), pop(ends, deques, 1), steal(ends, deques, 1)) == (12, 0, 0)
    for task in range(1, 5 * CAPACITY):  # round and round the buffer
        push(ends, deques, 1, task)
        assert steal(ends, deques, 1) == task
