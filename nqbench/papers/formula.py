"""The language of claims: expressions over measured values.

``expr`` gives ``value``, ``expect`` says what must hold for it.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import repeat
from typing import Any, Final

from nqbench.expressions import BASIC, Expression, Language

FUNCTIONS: Final = {
    "time": "kernel time of a system in its main configuration (seconds)",
    "times": "list of the times of all its configurations",
    "best": "time of the configuration that is fastest over all rounds",
    "argbest": "the level of a factor in the fastest configuration",
    "levels": "sorted list of the numeric levels of a factor that were timed",
    "phase": "seconds of one phase",
    "counter": "a recorded counter or resource",
    "recorded": "list of a recorded number (found, evaluations, ...) over all its configurations",
    "count": "a deterministic count that needs no run",
    "fails": "whether a system ends with an error or a wrong answer",
    "sizes_of": "sizes at which all of the systems were timed",
    "mean": "arithmetic mean of a list",
    "product": "product of a list",
    "min": "least of a list or of the arguments",
    "max": "greatest of a list or of the arguments",
    "abs": "absolute value",
}
NAMES: Final = {
    "N": "problem size",
    "value": "the value of `expr` (only in `expect`)",
    "hw": "device of the run",
    "devices": "devices of all runs given",
    "sizes": "problem sizes of the run",
    "logical_cores": "logical CPU cores of the run's machine",
}
DEVICE: Final = "device"
"""What ``counter`` takes instead of a system, for numbers of the run's device."""
DEVICE_NUMBERS: Final = {
    "multiprocessors": "number of multiprocessors",
    "peak_gflops_single": "peak in single precision",
    "ideal_instruction_byte_ratio": "instructions per byte at its limits",
}
OF_SYSTEM: Final = (
    *("time", "times", "best", "argbest", "levels", "phase", "counter", "fails", "recorded"),
)
"""Functions whose first argument is a system."""
OF_TIME: Final = frozenset(
    {"time", "times", "best", "argbest", "levels", "phase", "fails", "sizes_of"}
)
"""Functions that need measured times."""

OVER_ONE: Final = frozenset({"ratio", "ranking", "crossover", "invariance", "bound"})
"""Kinds of claims whose values are 1 without an effect."""
UNSAMPLED: Final = frozenset({"levels", "fails", "sizes_of"})
"""Of these, functions whose value does not change when rounds are resampled."""


CELL_FUNCTIONS: Final = (
    *("time", "best", "phase", "level", "counter", "probe", "count", "highest", "rest"),
    *("launch", "printed", "quantile", "seeds", "known", "least", "min", "max", "abs"),
)
"""What the formulas of tables and figures call; ``report.papers.cells.PointRow`` explains each."""
CELL_ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("time", "best", "launch"), ("system",)),
    "phase": ("phase", "system"),
    "level": ("", "system"),
    "counter": ("counter", "kernel", "system"),
}
"""What their arguments are, where those are names."""
CLAIM_ARGUMENTS: Final[Mapping[str, Iterable[str]]] = {
    **dict.fromkeys(OF_SYSTEM, ("system",)),
    "sizes_of": repeat("system"),
    "phase": ("system", "phase"),
}
"""Likewise in claims; some functions take any number of systems."""
SHOWN: Final = ("kernels", "others", "every")
"""Words for many systems (``Points.systems``)."""
CELL_NAMES: Final = (
    *("N", "system", "version", "device", "card", "cpu", "unknown", "each"),
    *("counted_at", "timed", "not_run", "slowest"),
    *("label", "counterpart", "scale", "scaled", "unit", "difference"),
    *("fp32_per_s", "roots_per_s", "bytes_per_s", "copy_per_s", "logic_per_s"),
)
RECORDED: Final = (
    *("threads", "occupancy", "bytes_moved", "operations", "evaluations", "moves_evaluated"),
    *("final_length", "fp32_instructions_per_move", "roots_per_move", "bytes_per_move"),
)
"""Recorded numbers of a point that a formula may read, as it may every factor."""
CELLS: Final = Language("formula", CELL_FUNCTIONS, loops=True)
"""The language of claims for one point: a formula has a value with its interval."""
CLAIMS: Final = Language("formula", FUNCTIONS, NAMES, loops=True)


def with_limits(condition: Expression, factor: float, kind: str, unit: str) -> Expression:
    """A claim's condition with the distance of each limit from no effect times ``factor``.

    No effect is 1 for ratios and bands about 1, the middle of other bands, the whole of shares and
    percentages above one half, and else 0. Equalities and computed limits stay.
    """
    return replace(condition, tree=_Limits(factor, kind, unit).visit(deepcopy(condition.tree)))


class _Limits(ast.NodeTransformer):
    def __init__(self, factor: float, kind: str, unit: str) -> None:
        self.factor, self.kind, self.whole = factor, kind, 100.0 if unit == "percent" else 1.0

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        ordered = all(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in node.ops)
        sides = [node.left, *node.comparators]
        limits = [s for s in sides if isinstance(s, ast.Constant) and type(s.value) is not str]
        plain = any(isinstance(side, ast.Name) and side.id == "value" for side in sides)
        for limit in limits if ordered else ():
            values = [float(str(one.value)) for one in limits]
            null = self._null(values) if plain else 0.0
            moved = ast.Constant(null + self.factor * (float(str(limit.value)) - null))
            sides[sides.index(limit)] = moved
        return ast.Compare(sides[0], node.ops, sides[1:])

    def _null(self, limits: Sequence[float]) -> float:
        if 1 in limits or min(limits) < 1 < max(limits) or self.kind in OVER_ONE:
            return 1.0
        if len(limits) > 1:
            return sum(limits) / len(limits)
        shared = self.kind == "share" or self.whole > 1
        return self.whole if shared and limits[0] > self.whole / 2 else 0.0


BUILT_IN: Final[Mapping[str, Callable[..., Any]]] = {
    **BASIC,
    "mean": lambda values: sum(map(float, values)) / len(values),
    "product": math.prod,
}
"""Functions of :data:`FUNCTIONS` that read no run."""


def sized(formula: Expression) -> bool:
    """Whether its value depends on the size N that it is evaluated at.

    It does not if N is only the variable of a list and every call gives its size.
    """
    return _sized(formula.tree.body, bound=False)


def _sized(node: ast.AST, *, bound: bool) -> bool:
    if isinstance(node, ast.Name):
        return node.id == "N" and not bound
    if isinstance(node, ast.ListComp):
        targets = [loop.target for loop in node.generators]
        own = bound or any(isinstance(t, ast.Name) and t.id == "N" for t in targets)
        lists = (_sized(loop.iter, bound=bound) for loop in node.generators)
        tests = (_sized(test, bound=own) for loop in node.generators for test in loop.ifs)
        return any(lists) or any(tests) or _sized(node.elt, bound=own)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        asks = node.func.id in (*OF_SYSTEM, "count")
        if asks and not any(k.arg == "N" for k in node.keywords):
            return True
    return any(_sized(child, bound=bound) for child in ast.iter_child_nodes(node))
