"""The language of claims: expressions over measured values.

``expr`` gives ``value``, ``expect`` says what must hold for it; ``formula.toml`` has the words.
"""

from __future__ import annotations

import ast
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any, Final

from nqbench.expressions import BASIC, Expression, Language

_WORDS: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_OF_CLAIMS, _OF_CELLS = _WORDS["claims"], _WORDS["cells"]
FUNCTIONS: Final[Mapping[str, str]] = _OF_CLAIMS["functions"]
DEVICE: Final = "device"
"""What ``counter`` takes instead of a system, for numbers of the run's device."""
DEVICE_NUMBERS: Final[Mapping[str, str]] = _OF_CLAIMS["device_numbers"]
OF_SYSTEM: Final = tuple(_OF_CLAIMS["of_system"])
OF_TIME: Final = frozenset(_OF_CLAIMS["of_time"])
UNSAMPLED: Final = frozenset(_OF_CLAIMS["unsampled"])
OVER_ONE: Final = frozenset(_OF_CLAIMS["over_one"])
CLAIM_ARGUMENTS: Final[Mapping[str, Iterable[str]]] = {
    **dict.fromkeys(OF_SYSTEM, ("system",)),
    "sizes_of": repeat("system"),
    "phase": ("system", "phase"),
}
"""What arguments are, where those are names; some functions take any number of systems."""
CELL_FUNCTIONS: Final = tuple(_OF_CELLS["functions"])
CELL_ARGUMENTS: Final[Mapping[str, Sequence[str]]] = _OF_CELLS["arguments"]
CELL_NAMES: Final = tuple(_OF_CELLS["names"])
RECORDED: Final = tuple(_OF_CELLS["recorded"])
SHOWN: Final = tuple(_WORDS["shown"])
CELLS: Final = Language("formula", CELL_FUNCTIONS, loops=True)
"""The language of claims for one point: a formula has a value with its interval."""
CLAIMS: Final = Language("formula", FUNCTIONS, _OF_CLAIMS["names"], loops=True)


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
