"""Mutations: one operator, number or condition of a module is changed; its tests must notice.

    nice python -m benchmarks.mutations [--count 200] [--seed 0] [--minutes 60] [ROOM ...]

A room is a part of the project's arithmetic with the tests that are nearest to it; places that can
be changed are drawn at random from all of them. Each mutation runs in a process of its own, in a
copy of the project; it is killed if a test fails or they take ten times as long as without it.
Prints every survivor, which a person has to judge (some change nothing that can be seen), and a
table by room. ``results/README.md`` has the last one.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
ROOMS: Final = {
    "analysis": (
        "analysis/answer.py analysis/compare analysis/data analysis/factorial analysis/limits",
        "tests/analysis tests/cli/test_compare.py tests/papers/test_brodtkorb.py"
        " tests/papers/test_fitness.py tests/measure/test_device_threads.py",
    ),
    "claims": (
        "analysis/claims papers/formula.py",
        "tests/analysis/test_claims.py tests/analysis/test_scorecard.py"
        " tests/analysis/test_matrix.py tests/papers/test_formula.py",
    ),
    "measure": (
        "measure/sampling.py measure/budget.py measure/keys.py measure/telemetry.py"
        " measure/measurement.py measure/run_state.py",
        "tests/measure/test_sampling.py tests/measure/test_keys.py tests/measure/test_telemetry.py"
        " tests/measure/test_session.py tests/measure/test_stages.py tests/measure/test_runner.py"
        " tests/measure/test_resume.py tests/measure/test_budget.py"
        " tests/measure/test_programs.py",
    ),
    "counters": (
        "simulator/tally.py simulator/timing.py compiler/occupancy.py",
        "tests/simulator/test_timing.py tests/simulator/test_ptxas.py"
        " tests/simulator/test_control.py tests/simulator/test_memory.py"
        " tests/simulator/test_caches.py tests/compiler/test_occupancy.py tests/test_inspection.py",
    ),
    "count": (
        "count/chunks.py count/solutions.py count/choice.py",
        "tests/count/test_chunks.py tests/count/test_count.py tests/count/test_estimate.py",
    ),
}
"""Modules under nqbench/, and their tests, the quick ones first."""
LIBRARIES: Final = ("numpy", "pandas", "scipy.stats", "matplotlib.pyplot", "pydantic", "numba")
"""Loaded once for all."""
SLOWER: Final = 10
LONGEST_S: Final = 600.0
OTHER: Final[dict[type[ast.AST], Any]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq},
    **{ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot},
    **{ast.IsNot: ast.Is, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
    **{ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.And: ast.Or},
    **{ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift},
}
NAMES: Final = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}


def changed(node: ast.AST) -> ast.AST | None:
    """The node with one thing changed; ``None`` where nothing of it is."""
    new = copy.deepcopy(node)
    match new:
        case ast.Compare(ops=[op]) if type(op) in OTHER:
            new.ops = [OTHER[type(op)]()]
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in OTHER:
            new.op = OTHER[type(op)]()
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            return operand
        case ast.Constant(value=bool() as value):
            new.value = not value
        case ast.Constant(value=int() | float() as value):
            new.value = value + 1 if isinstance(value, int) else value * 2 or 1.0
        case ast.Name(id=name, ctx=ast.Load()) if name in NAMES:
            new.id = NAMES[name]
        case ast.IfExp(body=body, orelse=orelse):
            new.body, new.orelse = orelse, body
        case _:
            return None
    return new


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Where a module can be changed: a node, its field, and the index in that if it is a list.

    Annotations, messages of errors and what only type checkers read are left out.
    """
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list") or isinstance(tree, ast.Raise):
            continue
        listed = value if isinstance(value, list) else [value]
        for index, node in enumerate(listed):
            if not isinstance(node, ast.AST) or isinstance(node, ast.JoinedStr):
                continue
            if changed(node) is not None:
                yield tree, name, index if isinstance(value, list) else None
            yield from places(node)


def mutated(text: str, number: int) -> tuple[str, str]:
    """The text of a module with its place ``number`` changed, and the change in words."""
    tree = ast.parse(text)
    parent, name, index = list(places(tree))[number]
    value = getattr(parent, name)
    old = value if index is None else value[index]
    new = changed(old)
    assert new is not None
    if index is None:
        setattr(parent, name, new)
    else:
        value[index] = new
    said = f"{old.lineno}: `{ast.unparse(old)}` -> `{ast.unparse(new)}`"
    return ast.unparse(ast.fix_missing_locations(tree)), said


def modules(paths: str) -> list[Path]:
    """The Python files of some paths under nqbench/, relative to the project."""
    found = (ROOT / "nqbench" / path for path in paths.split())
    files = (sorted(one.rglob("*.py")) if one.is_dir() else [one] for one in found)
    return [file.relative_to(ROOT) for some in files for file in some]


def outcome(project: Path, tests: str, limit_s: float) -> str:
    """``passed``, ``failed`` or ``late``: the tests in a process of their own."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.chdir(project)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        sys.path.insert(0, str(project))
        os.environ["PYTHONPATH"] = str(project)
        import pytest

        options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
        os._exit(int(pytest.main([*options, *tests.split()])))
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "failed" if status else "passed"
        time.sleep(0.05)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "late"


def copied(project: Path) -> None:
    """The project, so that changes and what tests write are nobody's; data are links."""
    for path in ROOT.iterdir():
        if path.name in ("nqbench", "tests", "benchmarks"):
            shutil.copytree(path, project / path.name)
        elif path.name[0] != "." and path.name != "plots":
            (project / path.name).symlink_to(path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try mutations until there are enough or the time is over; print what became of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("rooms", nargs="*", default=list(ROOMS), metavar="ROOM")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0)
    given = parser.parse_args(arguments)
    sys.dont_write_bytecode = True
    for name in LIBRARIES:
        import_module(name)
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as name:
        project = Path(name)
        copied(project)
        limits, drawn = {}, []
        for room in given.rooms:
            paths, tests = ROOMS[room]
            began = time.monotonic()
            if outcome(project, tests, LONGEST_S) != "passed":
                sys.exit(f"{room}: its tests fail without a mutation: {tests}")
            limits[room] = max(60.0, SLOWER * (time.monotonic() - began))
            for file in modules(paths):
                text = (project / file).read_text(encoding="utf-8")
                drawn += [(room, file, n) for n in range(len(list(places(ast.parse(text)))))]
        sys.stdout.write(f"{len(drawn)} places in {', '.join(given.rooms)}\n")
        end = time.monotonic() + 60 * given.minutes
        counts = {room: [0, 0] for room in given.rooms}
        for room, file, number in chance.sample(drawn, min(given.count, len(drawn))):
            if time.monotonic() > end:
                break
            text = (project / file).read_text(encoding="utf-8")
            new, said = mutated(text, number)
            (project / file).write_text(new, encoding="utf-8")
            found = outcome(project, ROOMS[room][1], limits[room])
            (project / file).write_text(text, encoding="utf-8")
            counts[room][0] += 1
            counts[room][1] += found != "passed"
            if found == "passed":
                sys.stdout.write(f"survives: {file}:{said}\n")
                sys.stdout.flush()
    for room, (tried, killed) in counts.items():
        sys.stdout.write(f"| {room} | {tried} | {killed} | {killed / max(1, tried):.0%} |\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
