"""Mutations: one operator, number or condition of a module is changed; its tests must notice.

    nice python -m benchmarks.mutations [--count 200] [--seed 0] [--minutes 60] [ROOM ...]

A room is a part of the project's arithmetic with the tests that are nearest to it; places that can
be changed are drawn at random from all of them. Each mutation runs in a process of its own, in a
copy of the project with its own cache; it is killed if a test fails, or if they take a minute more
than five times as long as without it. A run without a mutation shows which tests call which
functions: of a changed one only the files with such tests are run, these tests first, and the first
failure ends it. Prints what became of each (a person has to judge the survivors: some change
nothing that can be seen) and a table by room. ``results/README.md`` has the last one.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import pickle
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[1]
WRITTEN: Final = "tests/docs/test_build.py::test_what_the_program_writes_is_up_to_date"
"""Of every threshold its value is in the reference; changed there too, it is meant."""
METRICS: Final = "test_a_metric_that_is_no_number_is_left_out"
ROOMS: Final = {
    "analysis": (
        "analysis/answer.py analysis/compare analysis/data analysis/factorial analysis/limits",
        "tests/analysis tests/cli/test_compare.py tests/papers/test_brodtkorb.py"
        " tests/papers/test_fitness.py tests/measure/test_device_threads.py"
        f" tests/report/test_tables.py tests/workloads/own/test_own_kernel.py::{METRICS} {WRITTEN}",
    ),
    "claims": (
        "analysis/claims papers/formula.py",
        "tests/analysis/test_claims.py tests/analysis/test_scorecard.py"
        " tests/analysis/test_matrix.py tests/papers/test_formula.py"
        f" {WRITTEN}",
    ),
    "measure": (
        "measure/sampling.py measure/budget.py measure/keys.py measure/telemetry.py"
        " measure/measurement.py measure/run_state.py",
        "tests/measure/test_sampling.py tests/measure/test_keys.py tests/measure/test_telemetry.py"
        " tests/measure/test_session.py tests/measure/test_stages.py tests/measure/test_runner.py"
        " tests/measure/test_resume.py tests/measure/test_budget.py"
        f" tests/measure/test_programs.py {WRITTEN}",
    ),
    "counters": (
        "simulator/tally.py simulator/timing.py compiler/compiled.py:Occupancy",
        "tests/simulator/test_timing.py tests/simulator/test_ptxas.py"
        " tests/simulator/test_control.py tests/simulator/test_memory.py"
        " tests/simulator/test_caches.py tests/simulator/test_device.py"
        " tests/simulator/test_program.py tests/compiler/test_occupancy.py"
        " tests/test_inspection.py",
    ),
    "count": (
        "count/chunks.py count/solutions.py count/choice.py",
        "tests/count/test_chunks.py tests/count/test_count.py tests/count/test_estimate.py"
        f" {WRITTEN}",
    ),
}
"""Modules under nqbench/, one of them from a class on, and their tests."""
LIBRARIES: Final = ("numpy", "pandas", "scipy.stats", "matplotlib.pyplot", "pydantic", "numba")
"""Loaded once for all."""
SLOWER: Final = 5
LEAST_S: Final = 60.0
LONGEST_S: Final = 3600.0
CALLS: Final = "calls.pickle"
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


def at(place: tuple[ast.AST, str, int | None]) -> Any:
    """The node of a place."""
    parent, name, index = place
    return getattr(parent, name) if index is None else getattr(parent, name)[index]


def mutated(text: str, number: int) -> tuple[str, str]:
    """The text of a module with its place ``number`` changed, and the change in words."""
    tree = ast.parse(text)
    place = parent, name, index = list(places(tree))[number]
    old = at(place)
    new = changed(old)
    assert new is not None
    if index is None:
        setattr(parent, name, new)
    else:
        getattr(parent, name)[index] = new
    said = f"{old.lineno}: `{ast.unparse(old)}` -> `{ast.unparse(new)}`"
    return ast.unparse(ast.fix_missing_locations(tree)), said


def around(text: str, number: int) -> range:
    """The lines of the innermost function or class that has a place, or of the module."""
    tree = ast.parse(text)
    line = at(list(places(tree))[number]).lineno
    found = [range(len(text.splitlines()) + 1)]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min(one.lineno for one in (node, *node.decorator_list))
            found.append(range(first, (node.end_lineno or 0) + 1))
    return min((lines for lines in found if line in lines), key=len)


def places_of(room: str) -> Iterator[tuple[str, Path, int]]:
    """The room, a file relative to the project and the number of a place in it, for each place."""
    for name, _, start in (path.partition(":") for path in ROOMS[room][0].split()):
        path = ROOT / "nqbench" / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            text = file.read_text(encoding="utf-8")
            first = text[: text.index(f"class {start}")].count("\n") if start else 0
            for number, place in enumerate(places(ast.parse(text))):
                if at(place).lineno > first:
                    yield room, file.relative_to(ROOT), number


@dataclass
class Calls:
    """Plugin of pytest: which tests call which functions, and how long they take."""

    tests: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    """Of each file's path and first line of a function, the tests that call it."""
    seconds: dict[str, float] = field(default_factory=dict)
    test: str = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        began = time.monotonic()
        self.test = item.nodeid
        threading.settrace(self.note)
        sys.settrace(self.note)
        done = yield
        sys.settrace(None)
        self.seconds[item.nodeid] = time.monotonic() - began
        return done

    def note(self, frame: FrameType, _event: str, _what: object) -> None:
        code = frame.f_code
        if "nqbench" in code.co_filename:
            self.tests.setdefault((code.co_filename, code.co_firstlineno), set()).add(self.test)

    def near(self, file: Path, lines: range) -> set[str]:
        """The tests that call what these lines of a file define."""
        found = (self.tests.get((str(file), line), set()) for line in lines)
        return {test for some in found for test in some}


@dataclass
class NearestFirst:
    """Plugin of pytest: the tests of ``near`` before the others, file by file; of a function's
    (``alone``) no file without any, if there are some."""

    near: set[str]
    alone: bool
    seconds: dict[str, float]

    @property
    def costs(self) -> dict[str, float]:
        """Seconds of the tests of each file that is run."""
        costs: dict[str, float] = {}
        files = {test.partition("::")[0] for test in self.near if self.alone}
        for test, seconds in self.seconds.items():
            file = test.partition("::")[0]
            if not files or file in files:
                costs[file] = costs.get(file, 0.0) + seconds
        return costs

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        costs = self.costs
        chosen = [(item, item.nodeid.partition("::")[0]) for item in items]
        chosen = [(item, file) for item, file in chosen if file in costs]
        chosen.sort(key=lambda one: (one[0].nodeid not in self.near, costs[one[1]]))
        items[:] = [item for item, _ in chosen]


def outcome(project: Path, tests: str, limit_s: float, plugin: object) -> str:
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
        options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
        status = int(pytest.main([*options, *tests.split()], plugins=[plugin]))
        if isinstance(plugin, Calls):
            (project / CALLS).write_bytes(pickle.dumps(plugin))
        os._exit(status)
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
    """The project, so that changes and what tests write are nobody's, and nobody's are its own."""
    ignored = shutil.ignore_patterns(".*", "__pycache__")
    shutil.copytree(ROOT, project, ignore=ignored, dirs_exist_ok=True)


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
        project, cache = Path(name).resolve(), Path(name).resolve() / "cache"
        copied(project)
        os.environ["NQBENCH_CACHE_DIR"] = str(cache)
        tests = dict.fromkeys(test for room in given.rooms for test in ROOMS[room][1].split())
        if outcome(project, " ".join(tests), LONGEST_S, Calls()) != "passed":
            sys.exit(f"tests fail without a mutation: {' '.join(tests)}")
        calls: Calls = pickle.loads((project / CALLS).read_bytes())
        shutil.copytree(cache, project / "filled")
        drawn = [place for room in given.rooms for place in places_of(room)]
        sys.stdout.write(f"{len(drawn)} places in {', '.join(given.rooms)}\n")
        end = time.monotonic() + 60 * given.minutes
        counts = {room: [0, 0] for room in given.rooms}
        for room, file, number in chance.sample(drawn, min(given.count, len(drawn))):
            if time.monotonic() > end:
                break
            text = (project / file).read_text(encoding="utf-8")
            new, said = mutated(text, number)
            lines = around(text, number)
            near = calls.near(project / file, lines)
            (project / file).write_text(new, encoding="utf-8")
            plugin = NearestFirst(near, lines.start > 0, calls.seconds)
            limit_s = LEAST_S + SLOWER * sum(plugin.costs.values())
            found = outcome(project, ROOMS[room][1], limit_s, plugin)
            (project / file).write_text(text, encoding="utf-8")
            shutil.rmtree(cache)
            shutil.copytree(project / "filled", cache)
            counts[room][0] += 1
            counts[room][1] += found != "passed"
            word = "survives" if found == "passed" else "killed"
            sys.stdout.write(f"{word}: {file}:{said}\n")
            sys.stdout.flush()
    for room, (tried, killed) in counts.items():
        sys.stdout.write(f"| {room} | {tried} | {killed} | {killed / max(1, tried):.0%} |\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
