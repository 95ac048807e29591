"""Fitness points resolved and made executable."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from nqbench.facts import DeviceFacts
from nqbench.plan import Plan
from nqbench.point import Level
from nqbench.workloads.base import NOT_APPLICABLE, Resolved
from nqbench.workloads.fitness import boards, gpu
from nqbench.workloads.fitness.annealing import points
from nqbench.workloads.fitness.counts import batch_of, traffic
from nqbench.workloads.fitness.cpu.plans import check_packages, cpu_plan
from nqbench.workloads.fitness.levels import check_host_boards, fill_levels
from nqbench.workloads.levels import Levels, number


def resolve(given: Mapping[str, Level], system: str | None, device: DeviceFacts) -> Resolved:
    """Levels and derived numbers of a point, all limits checked."""
    scheme, levels = fill_levels(given, system, device)
    if scheme.task == "anneal":
        return Resolved(levels, points.resolve(levels, device))
    if scheme.place == "cpu":
        check_packages(levels)
        check_host_boards(levels)
        return Resolved(levels, {**traffic(levels), **_of_file(levels)})
    derived = gpu.resolve_scheme(levels, device)
    return Resolved(levels, {**derived, **_of_file(levels)})


def make_plan(factors: Mapping[str, Level], system: str | None, device: DeviceFacts) -> Plan:
    """The plan of a point; refuses what its limits forbid, as :func:`resolve` does."""
    scheme, levels = fill_levels(factors, system, device)
    if scheme.task == "anneal":
        return points.make_plan(levels, device)
    if scheme.place == "cpu":
        check_host_boards(levels)
        return cpu_plan(levels, boards_of(levels))
    return gpu.program_plan(levels, boards_of(levels), device)


def boards_of(levels: Mapping[str, Level]) -> boards.Board:
    """The boards of a point, shape ``(batch, n)``."""
    return boards.make_batch(
        str(levels["board"]),
        number(levels, "n"),
        _seed(levels),
        batch_of(levels),
        str(levels["board_file"]),
    )


def expected(levels: Mapping[str, Level]) -> int:
    """The right answer, from the boards alone."""
    kind, n, batch = str(levels["board"]), number(levels, "n"), batch_of(levels)
    if kind == "file":  # its contents may change between runs: nothing is remembered
        found = boards.conflicts(boards.make_board(kind, n, 0, str(levels["board_file"])))
        return boards.combined([found] * batch)
    return boards.expected_answer(kind, n, _seed(levels), batch)


def _seed(levels: Mapping[str, Level]) -> int:
    seed = levels["seed"]
    return seed if isinstance(seed, int) else 0


def _of_file(levels: Levels) -> dict[str, str]:
    """What identifies the contents of a board file."""
    if levels["board_file"] == NOT_APPLICABLE:
        return {}
    board = boards.make_board("file", number(levels, "n"), 0, str(levels["board_file"]))
    return {"board_sha256": hashlib.sha256(board.tobytes()).hexdigest()[:16]}
