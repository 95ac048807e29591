"""Distinct valid boards by annealing, on any device: the same set for the same n, seed and count.

Search c of a seed walks the same way everywhere, and the set is the first ``count`` different
boards in the order of the searches, so a CPU can check the boards of a GPU.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import NqbenchError, StudyError, WrongAnswer
from nqbench.solve.launch import run_once

if TYPE_CHECKING:
    from nqbench.device import Device
    from nqbench.point import Level
    from nqbench.workloads.fitness.annealing.cooling import Cooling
    from nqbench.workloads.fitness.board_set import BoardSet

MIN_N: Final = 4
MAX_COUNT: Final = 1_000_000
BATCH: Final = 4096
"""Searches in one launch: several per resident warp of a large GPU."""

BATCH_BYTES: Final = 1 << 28
"""Boards of one batch, in memory: 256 MiB."""

SIMULATED_BATCH: Final = 16
"""A simulated GPU gains nothing from more, and would find boards that are not needed."""

SPARE_SEARCHES: Final = 10_000
SEARCHES_PER_BOARD: Final = 100
"""Searches after which a set is given up: to find all 92 boards of 8 queens by chance takes 10 for
each; beyond 12 queens nearly every search finds a new one."""

Found = tuple[int, int, NDArray[Any]]  # search, proposals, board


def find_boards(n: int, count: int, seed: int, spec: str) -> BoardSet:
    """``count`` different boards of ``n`` queens without conflicts, each verified on the CPU.

    Raises ``StudyError`` for numbers that cannot be met, ``WrongAnswer`` when a device claims a
    board that is not valid, ``NqbenchError`` when chance does not give enough different ones.
    """
    from nqbench.devices.registry import open_device
    from nqbench.system.versions import __version__
    from nqbench.workloads.fitness.board_set import BoardSet, fault_of

    check(n, count, seed, spec)
    device = open_device(spec)
    kept: dict[bytes, Found] = {}
    searches = 0
    try:
        for search, proposals, board in _searches(n, seed, count, device):
            searches = search + 1
            if proposals >= 0:
                kept.setdefault(board.tobytes(), (search, proposals, board))
            if len(kept) == count:
                break
        name, kind = device.facts.name, device.facts.kind
    finally:
        device.close()
    if len(kept) < count:
        raise NqbenchError(
            f"only {len(kept)} different boards of {n} queens in {searches} searches of seed"
            f" {seed}, not {count}; ask for fewer, or use another --seed"
        )
    chains, evaluations, boards = zip(*kept.values(), strict=True)
    found = BoardSet(
        np.stack(boards).astype(_word(n)),
        np.array(chains, np.int64),
        np.array(evaluations, np.int64),
        seed,
        searches,
        "fitness.sa_delta" if kind == "cpu" else "fitness.sa_chains",
        spec,
        name,
        __version__,
    )
    if fault := fault_of(found.boards):
        raise WrongAnswer(
            f"{spec} found boards that do not hold: {fault}; do not trust this device, run the GPU"
            " tests"
        )
    return found


def check(n: int, count: int, seed: int, spec: str) -> None:
    """Raise ``StudyError`` for a set that cannot be found."""
    from nqbench.system.machine import free_memory_bytes
    from nqbench.workloads.counting.known import SOLUTIONS
    from nqbench.workloads.fitness.factors import MAX_N, MAX_SEED

    if not MIN_N <= n <= MAX_N:
        raise StudyError(f"N must be from {MIN_N} to {MAX_N}, not {n}")
    if not 1 <= count <= MAX_COUNT:
        raise StudyError(f"--count must be from 1 to {MAX_COUNT}, not {count}")
    if not 0 <= seed <= MAX_SEED:
        raise StudyError(f"--seed must be from 0 to {MAX_SEED}, not {seed}")
    if count > SOLUTIONS.get(n, count):
        raise StudyError(
            f"--count {count} is more than the {SOLUTIONS[n]} boards of {n} queens there are"
        )
    needed, free = 3 * 4 * n * count, free_memory_bytes()
    if free is not None and needed > free:
        raise StudyError(
            f"{count} boards of {n} queens take {needed} bytes of memory while they are made, and"
            f" {free} are free; ask for fewer at a time, with another --seed each"
        )
    if spec.startswith("fake"):
        raise StudyError(f"--device {spec} computes nothing; use cuda:0, sim or cpu")


def check_target(path: Path, *, force: bool) -> None:
    """Raise ``StudyError`` for a file that cannot be written."""
    if path.is_dir():
        raise StudyError(f"--out {path} is a folder; name a file in it")
    if path.suffix != ".npz":
        raise StudyError(f"--out {path}: a set of boards is an .npz file; name it {path}.npz")
    if not path.absolute().parent.is_dir():
        raise StudyError(f"--out {path}: there is no folder {path.parent}; make it first")
    try:
        with tempfile.TemporaryFile(dir=path.absolute().parent):
            pass
    except OSError as error:
        raise StudyError(
            f"--out {path} cannot be written: {error.strerror}; choose another folder"
        ) from error
    if path.exists() and not force:
        raise StudyError(f"--out {path} exists; name another file, or replace it with --force")


def _searches(n: int, seed: int, count: int, device: Device) -> Iterator[Found]:
    """Searches 0, 1, 2, ... of a seed as (number, proposals or -1 without success, board)."""
    from nqbench.workloads.fitness.annealing.cooling import Cooling
    from nqbench.workloads.fitness.search_factors import ATTACKED

    cooling = Cooling.constant(int(str(ATTACKED["start_temperature"])))
    most = SPARE_SEARCHES + SEARCHES_PER_BOARD * count
    if device.facts.kind == "cpu":
        yield from (_cpu_search(n, seed, search, cooling) for search in range(most))
        return
    batch = SIMULATED_BATCH if device.facts.kind == "sim" else BATCH
    batch = max(1, min(batch, count, BATCH_BYTES // (4 * n)))
    for first in range(0, most, batch):
        yield from _device_searches(n, seed, first, batch, device)


def _cpu_search(n: int, seed: int, search: int, cooling: Cooling) -> Found:
    from nqbench.workloads.fitness.annealing.cooling import chain_key, walk

    ended = walk(n, chain_key(seed, search), cooling)
    return search, ended.evaluations if ended.conflicts == 0 else -1, ended.board


def _device_searches(n: int, seed: int, first: int, count: int, device: Device) -> Iterator[Found]:
    from nqbench.workloads import get
    from nqbench.workloads.fitness.annealing.chains import starting_at

    fitness, system = get("fitness"), "fitness.sa_chains"
    levels: dict[str, Level] = {
        "n": n,
        "seed": seed,
        "chains": count,
        "stop": "all",
        "proposal": "attacked",
    }
    factors = fitness.resolve(levels, system, device.facts).factors
    plan = starting_at(fitness.plan(factors, system, device.facts), seed, first)
    outputs = run_once(plan, device)
    boards = outputs["boards"].reshape(count, n)
    for chain in range(count):
        proposals = int(outputs["steps"][chain]) if outputs["conflicts"][chain] == 0 else -1
        yield first + chain, proposals, boards[chain]


def _word(n: int) -> type[np.unsignedinteger[Any]]:
    """The narrowest type that holds every row: files stay small."""
    return next(word for word in (np.uint8, np.uint16, np.uint32) if n - 1 <= np.iinfo(word).max)
