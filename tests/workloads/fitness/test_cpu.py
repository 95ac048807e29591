"""The CPU schemes against brute force: deques, TBB's library, the stored thread counts."""

from __future__ import annotations

import site
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from nqbench.devices.cpu import CpuDevice
from nqbench.errors import DeviceError, WrongDeviceError
from nqbench.plan import CpuResult
from nqbench.point import Level
from nqbench.system.machine import cpu_count
from nqbench.workloads.fitness import WORKLOAD
from nqbench.workloads.fitness.boards import (
    Board,
    boards_of,
    combined,
    conflicts,
    random_board,
    valid_board,
)
from nqbench.workloads.fitness.cpu import evaluators, plans, stealing
from nqbench.workloads.fitness.cpu import tbb as cpu_tbb
from tests.workloads.fitness import brute_force
from tests.workloads.running import CPU

needs_tbb = pytest.mark.skipif(bool(cpu_tbb.load_tbb()), reason=cpu_tbb.load_tbb() or "TBB is here")

Scheme = Callable[[Board], int]
SCHEMES = [
    pytest.param(evaluators.serial, id="serial"),
    pytest.param(evaluators.serial_unoptimized, id="serial_unoptimized"),
    *(pytest.param(partial(evaluators.threads, count=t), id=f"threads-{t}") for t in (1, 3, 60)),
    pytest.param(evaluators.tbb, id="tbb", marks=needs_tbb),
    *(
        pytest.param(partial(stealing.fork_join, threshold=t, workers=w), id=f"fork_join-{t}-{w}")
        for t, w in ((1, 1), (1, 3), (4, 2), (7, 8), (5000, 3))
    ),
    pytest.param(evaluators.histogram, id="histogram"),
]
DIAGONAL = np.arange(1237, dtype=np.int32)
"""All pairs conflict, so that a pair left out or taken twice shows."""
BOARDS = [
    *(random_board(n, seed) for n in (*range(1, 24), 61, 127, 500, 1999) for seed in (1, 2)),
    *(valid_board(n) for n in (*range(4, 24), 64, 500)),
    *(np.arange(n, dtype=np.int32) for n in (1, 2, 3)),
    *(DIAGONAL, DIAGONAL[::-1]),
]
TRUTHS = [brute_force(board) for board in BOARDS]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_scheme_counts_the_conflicts_of_any_board_and_leaves_it_as_it_is(scheme: Scheme) -> None:
    before = [board.copy() for board in BOARDS]
    assert [scheme(board) for board in BOARDS] == TRUTHS
    assert all(np.array_equal(*pair) for pair in zip(BOARDS, before, strict=True))


def test_counts_beyond_32_bits() -> None:
    n = 100_000
    diagonal = np.arange(n, dtype=np.int32)
    assert evaluators.histogram(diagonal) == n * (n - 1) // 2 == 4_999_950_000
    # Two diagonals of 30,000 and 70,000 queens; each of the 30,000 meets one of the others, on the
    # diagonals of the other direction.
    shifted = np.roll(diagonal, 30_000)
    assert evaluators.histogram(shifted) == (30_000 * 29_999 + 70_000 * 69_999) // 2 + 30_000
    assert evaluators.serial(diagonal[:70_000]) == 70_000 * 69_999 // 2


@pytest.mark.parametrize("count", [1, 2, 7, 64])
def test_a_batch_lists_the_conflicts_of_each_board(count: int) -> None:
    boards = boards_of({"board": "random", "n": 97, "seed": 5, "batch": count})
    result = evaluators.histogram_batch(boards)
    assert isinstance(result, CpuResult)
    each = [brute_force(board) for board in boards]
    assert result.outputs["conflicts"].tolist() == each
    assert result.answer == sum(each)


def test_without_optimisation_it_is_other_code() -> None:
    import numba
    from llvmlite import binding

    source = evaluators.row_conflicts.py_func  # type: ignore[attr-defined]
    optimized = numba.njit(source)  # not out of the cache, whose code cannot be inspected
    board = random_board(8, 1)
    first, n = np.uint32(0), np.uint32(8)
    assert optimized(board, first, n) == source(board, first, n)
    assert "x i32>" in optimized.inspect_llvm(optimized.signatures[0])  # vectors of queens
    machine = evaluators.target_machine()  # also initialises the target
    text = str(machine.emit_assembly(binding.parse_assembly(evaluators.IR)))
    assert not [word for word in ("xmm", "ymm", "zmm", "v0.4s", "v1.4s") if word in text]
    # Every variable in memory: the inner loop alone loads board, n, i and j more than once each.
    memory = [line for line in text.splitlines() if "(%rsp)" in line or "[sp" in line]
    assert len(memory) > 20


@pytest.mark.parametrize(
    ("levels", "batch", "used"),
    [
        ({"scheme": "cpu_serial", "optimization": "default"}, 1, None),
        ({"scheme": "cpu_serial", "optimization": "none"}, 1, None),
        ({"scheme": "cpu_threads", "threads": 5}, 1, 5),
        ({"scheme": "cpu_forkjoin", "threshold": 4}, 1, cpu_count()),
        ({"scheme": "cpu_histogram"}, 1, 1),
        ({"scheme": "cpu_histogram"}, 3, cpu_count()),
    ],
    ids=str,
)
def test_a_plan_runs_on_the_cpu(levels: dict[str, Level], batch: int, used: int | None) -> None:
    boards = boards_of({"board": "random", "n": 300, "seed": 4, "batch": batch})
    plan = plans.cpu_plan(levels, boards)
    with CpuDevice().prepare(plan) as prepared:
        prepared.launch()
        outputs = prepared.fetch()
    assert WORKLOAD.answer(plan, outputs) == combined([conflicts(board) for board in boards])
    assert plan.about.get("threads_used") == used
    assert plan.warm_up[0].size < 20, "the first call, which compiles, is of small boards"


@needs_tbb
def test_tbb_is_what_runs_it_and_the_size_of_pieces_is_put_back() -> None:
    import numba

    before = numba.get_parallel_chunksize()
    evaluators.tbb(random_board(100, 1))
    assert numba.threading_layer() == "tbb"  # type: ignore[attr-defined]
    assert numba.get_parallel_chunksize() == before


def ran(program: str, **environment: str) -> str:
    """What a program prints in an interpreter of its own."""
    command = [sys.executable, "-c", program]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, env={"PATH": "", **environment}
    ).stdout


@needs_tbb
def test_another_layer_in_the_process_is_an_error_and_not_another_system() -> None:
    program = (
        "import numpy as np\n"
        "from nqbench.errors import DeviceError\n"
        "from nqbench.workloads.fitness.cpu.evaluators import tbb\n"
        "try:\n    tbb(np.arange(9, dtype=np.int32))\nexcept DeviceError as e:\n    print(e)"
    )
    said = ran(program, NUMBA_THREADING_LAYER="workqueue")
    assert "use its workqueue layer in this process and not TBB" in said


def test_resolving_points_does_not_import_numba() -> None:
    program = (
        "import sys; from nqbench.facts import DeviceFacts; from nqbench.workloads import get\n"
        "gpu = DeviceFacts('a GPU', 'cuda', (9, 0), 4)\n"
        "for name in ('fitness', 'local_search'):\n"
        "    for system in get(name).systems:\n        get(name).resolve({'n': 20}, system, gpu)\n"
        "print('numba' in sys.modules, 'llvmlite' in sys.modules)"
    )
    assert ran(program).split() == ["False", "False"]


@pytest.mark.parametrize("started", [0, 1, 3])
def test_threads_the_system_refuses_are_told(monkeypatch: pytest.MonkeyPatch, started: int) -> None:
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
        stealing.fork_join(board, 4, workers=8)
    assert threading.active_count() == alive


def test_many_short_calls_lose_no_task() -> None:
    """Races of owner and thieves over the last task of a deque, 100 times, with leaves of 1."""
    board = random_board(40, 3)
    assert {stealing.fork_join(board, 1, 3) for _ in range(100)} == {conflicts(board)}


def test_a_worker_without_tasks_takes_those_of_another() -> None:
    board = evaluators.fixed(random_board(100, 1))
    ends, deques = np.zeros(4 * stealing.LINE, np.int64), np.zeros(2 * stealing.CAPACITY, np.int64)
    sums, ended = np.zeros((2, 2 << 5), np.int64)
    stealing.push(ends, deques, 0, 1)  # all queens, which worker 0 never begins with
    assert stealing.work(board, 4, 1, 2, (ends, deques, sums, ended)) == stealing.DONE
    assert sums[0] == conflicts(board)


NAME = "libtbb_of_a_test.so.12"
SITE = "lib/python3/site-packages"


@pytest.fixture
def prefix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An empty prefix of Python, with a library that the system's loader cannot know."""
    for name in ("prefix", "base_prefix"):
        monkeypatch.setattr(sys, name, str(tmp_path))
    monkeypatch.setattr(site, "getuserbase", lambda: str(tmp_path / "home/.local"))
    monkeypatch.setattr(cpu_tbb, "LIBRARY", NAME)
    cpu_tbb.load_tbb.cache_clear()
    yield tmp_path
    cpu_tbb.load_tbb.cache_clear()


def install(folder: Path, listed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package ``tbb`` in a folder of the import path; its list names the library so."""
    info = folder / "tbb-2099.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tbb\nVersion: 2099.1\n")
    (info / "RECORD").write_text(f"{listed},,\n")
    monkeypatch.syspath_prepend(str(folder))


def put(file: Path) -> Path:
    """A file that is no library, but is there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("not a library")
    return file


@pytest.mark.parametrize(
    ("packages", "listed", "library"),
    [
        (SITE, f"../../{NAME}", f"lib/{NAME}"),  # a virtual environment
        (f"home/.local/{SITE}", f"../../{NAME}", f"home/.local/lib/{NAME}"),  # pip install --user
        ("target", f"../{NAME}", f"target/lib/{NAME}"),  # pip install --target: the list is wrong
        ("links", f"../../../{NAME}", f"lib/{NAME}"),  # linked from another environment
    ],
)
def test_the_library_of_the_package_is_found(
    packages: str, listed: str, library: str, prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(prefix / packages, listed, monkeypatch)
    file = put(prefix / library)
    assert cpu_tbb.load_tbb().startswith(f"{file} cannot be loaded (")


def test_without_the_library_it_is_refused_in_a_sentence(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(prefix / "target", f"../{NAME}", monkeypatch)  # a package without its library
    with pytest.raises(WrongDeviceError, match=r"\(pip install --force-reinstall tbb\)") as raised:
        WORKLOAD.resolve({"n": 10}, "fitness_schemes.cpu_tbb", CPU)
    looked = str(raised.value).partition("neither in ")[2].partition(" nor ")[0].split(", ")
    assert {str(prefix / "target/lib"), str(prefix / "lib")} <= set(looked)
    with pytest.raises(DeviceError, match=f"cpu_tbb cannot run: its library {NAME} is neither"):
        evaluators.tbb(random_board(10, 1))
    cpu_tbb.load_tbb.cache_clear()
    file = put(prefix / "lib" / NAME)  # conda has the library without a package
    assert cpu_tbb.load_tbb().startswith(f"{file} cannot be loaded (")


Measured = list[int]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Measured:
    """The classes that were measured, each with a thread per 100 queens as the best count."""
    sizes: Measured = []

    def measure(size: int) -> dict[int, float]:
        sizes.append(size)
        return {count: 1.0 + abs(100 * count - size) for count in range(1, 61)}

    monkeypatch.setattr(plans, "measure_class", measure)
    monkeypatch.setenv("NQBENCH_CACHE_DIR", str(tmp_path / "deep"))
    plans.threads_of_class.cache_clear()
    return sizes


def in_a_new_process(n: int) -> int:
    plans.threads_of_class.cache_clear()
    return plans.best_threads(n)


def test_a_class_is_measured_once_and_then_read(
    measured: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [in_a_new_process(n) for n in (1000, 1000, 3000, 1000)] == [10, 10, 30, 10]
    assert measured == [1000, 3000]
    for file in (tmp_path / "deep").rglob("*.json"):
        file.write_bytes(b"\xff{")  # damaged
    assert [in_a_new_process(1000), in_a_new_process(1000)] == [10, 10]
    assert measured == [1000, 3000, 1000]
    monkeypatch.setattr(plans, "cpu_model", lambda: "another processor")
    assert in_a_new_process(1000) == 10
    assert len(measured) == 4, "another machine's count is not used"


def test_an_unwritable_folder_holds_for_this_process(measured: Measured, tmp_path: Path) -> None:
    (tmp_path / "deep").write_text("in the way", encoding="utf-8")
    assert [plans.best_threads(100) for _ in range(3)] == [1, 1, 1]
    assert measured == [100]


def test_a_board_takes_the_count_of_the_nearest_class_by_ratio(measured: Measured) -> None:
    for n in (1, 100, 170, 180, 600, 9_999, 10**6):
        plans.best_threads(n)
    assert measured == [100, 300, 1_000, 10_000, 30_000]
    board = random_board(300, 1)[np.newaxis]
    plan = plans.cpu_plan({"scheme": "cpu_threads", "threads": "auto"}, board)
    assert plan.about["threads_used"] == plan.arguments[1] == 3


def test_the_fewest_threads_among_equals_are_taken() -> None:
    assert plans.choose({1: 2.0, 4: 1.01, 8: 1.0, 16: 1.5}) == 4
    assert plans.choose({1: 1.03, 2: 1.0}) == 2
