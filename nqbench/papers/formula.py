"""The language of claims: Python expressions over measured values, read safely.

``expr`` gives ``value``, ``expect`` says what must hold of it. The text is parsed once and every
node checked against a short list; ``lambda`` and generators are rewritten into the comprehensions
that simpleeval works out, so that ``over([15, 16], lambda N: ...)`` can be written.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from nqbench.errors import StudyError
from nqbench.study.expressions import tree_depth
from nqbench.system.suggest import listing, shown, suggestion

FUNCTIONS: Final = {
    "time": "kernel time of a system in its main configuration (seconds)",
    "times": "list of the times of all its configurations",
    "best": "time of the configuration that is fastest over all rounds",
    "argbest": "the level of a factor in the fastest configuration",
    "phase": "seconds of one phase",
    "counter": "a recorded counter or resource",
    "recorded": "list of a recorded number (found, evaluations, ...) over all its configurations",
    "count": "a deterministic count that needs no run",
    "rank": "whether the systems' times increase strictly in this order",
    "fails": "whether a system ends with an error or a wrong answer",
    "product_of_growth": "product of the growth factors from one N to another, extrapolated",
    "sizes_of": "sizes at which all of the systems were timed",
    "over": "list of a formula's values over sizes",
    "mean": "arithmetic mean of a list",
    "min": "least of a list or of the arguments",
    "max": "largest of them",
    "abs": "absolute value",
}
NAMES: Final = {
    "N": "problem size",
    "value": "what `expr` gave (only in `expect`)",
    "hw": "device of the run",
    "devices": "devices of all runs given",
    "sizes": "problem sizes of the run",
    "logical_cores": "logical CPU cores of the run's host",
}
DEVICE: Final = "device"
"""What ``counter`` takes in the place of a system, for numbers of the run's device."""
DEVICE_NUMBERS: Final = {
    "multiprocessors": "number of multiprocessors",
    "peak_gflops_single": "peak in single precision",
    "ideal_instruction_byte_ratio": "instructions per byte at its limits",
}
OF_SYSTEM: Final = ("time", "times", "best", "argbest", "phase", "counter", "fails", "recorded")
"""Functions whose first argument is a system."""
OF_SYSTEMS: Final = ("rank", "sizes_of")
"""Functions all of whose arguments are systems."""
OF_TIME: Final = frozenset(
    {"time", "times", "best", "argbest", "phase", "rank", "fails", "product_of_growth", "sizes_of"}
)
"""Functions that need measured times."""

UNDRAWN: Final = frozenset({"fails", "sizes_of"})
"""Of these, functions whose answer no draw of rounds changes."""

MAX_LENGTH: Final = 1000
"""Characters; the longest claim of the papers has about 300."""
MAX_DEPTH: Final = 40
"""Nesting; keeps the recursive evaluator far from Python's own limit."""

_NODES: Final = (
    *(ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow),
    *(ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn),
    *(ast.Call, ast.keyword, ast.Name, ast.Load, ast.Store, ast.Constant, ast.List, ast.Tuple),
    *(ast.IfExp, ast.ListComp, ast.comprehension, ast.Dict, ast.Subscript),
)
_LISTS: Final = (ast.List, ast.Tuple, ast.Name, ast.Call)


@dataclass(frozen=True, slots=True)
class Formula:
    """A checked formula. ``names`` are all names in it, functions included."""

    text: str
    tree: ast.Expression
    names: frozenset[str]

    def calls(self) -> Iterator[ast.Call]:
        """Every call in it."""
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.Call))

    @property
    def sized(self) -> bool:
        """Whether its value depends on the size N that it is asked at.

        It does not where N is only the variable of ``over`` and every function is told its size.
        """
        return _sized(self.tree.body, bound=False)


@lru_cache(maxsize=1024)
def parse(text: str) -> Formula:
    """Check a formula's form. Raises ``StudyError`` (without a place)."""
    if len(text) > MAX_LENGTH:
        raise StudyError(f"the formula is longer than {MAX_LENGTH} characters; split the claim")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        raise StudyError(f"`{text}` is not a formula: {said}") from error
    if tree_depth(tree) > MAX_DEPTH:
        raise StudyError(f"`{text}` is nested deeper than {MAX_DEPTH} levels; split the claim")
    tree = ast.fix_missing_locations(_Rewrite(text).visit(tree))
    _check(tree, text)
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return Formula(text, tree, frozenset(found))


class _Rewrite(ast.NodeTransformer):
    """``over(ns, lambda v: f)`` and generators become list comprehensions."""

    def __init__(self, text: str) -> None:
        self.text = text

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        self.generic_visit(node)
        return ast.ListComp(node.elt, node.generators)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not (isinstance(node.func, ast.Name) and node.func.id == "over"):
            return node
        form = node.args[1] if len(node.args) == 2 and not node.keywords else None
        if not isinstance(form, ast.Lambda) or len(form.args.args) != 1:
            raise StudyError(f"in `{self.text}`: write over([15, 16], lambda N: ...)")
        target = ast.Name(form.args.args[0].arg, ast.Store())
        loop = ast.comprehension(target, node.args[0], [], 0)
        return ast.ListComp(form.body, [loop])


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
        asks = node.func.id in (*OF_SYSTEM, "rank", "count")
        if asks and not any(k.arg == "N" for k in node.keywords):
            return True
    return any(_sized(child, bound=bound) for child in ast.iter_child_nodes(node))


def _check(tree: ast.Expression, text: str) -> None:
    bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and _stored(n)}
    functions = set()
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            raise StudyError(
                f"`{text}` is not allowed: a formula is made of numbers, quoted words, names,"
                f" arithmetic, comparisons, and/or/not, lists and {listing(FUNCTIONS, 'and')}"
            )
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else "this"
            if name not in FUNCTIONS:
                raise StudyError(
                    f"`{text}` calls {name}(), which there is not; {suggestion(name, FUNCTIONS)}"
                )
            functions.add(id(node.func))
        if isinstance(node, ast.comprehension) and not isinstance(node.iter, _LISTS):
            # Written lists and recorded sweeps are short: so every formula ends soon.
            raise StudyError(f"`{text}` is not allowed: a list to go through is written out")
        if isinstance(node, ast.keyword) and node.arg is None:
            raise StudyError(f"`{text}` is not allowed: name every argument")
    known = {*NAMES, *bound, "True", "False"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in functions and node.id not in known:
            raise StudyError(
                f"`{text}` uses the unknown name '{node.id}'; {suggestion(node.id, NAMES)}"
            )


def _stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def evaluate(
    formula: Formula, functions: Mapping[str, Callable[..., Any]], names: Mapping[str, Any]
) -> Any:
    """The value of a formula. ``functions`` are those of :data:`FUNCTIONS` that are not built in.

    Raises ``StudyError`` (without a place) for an impossible operation; errors of the functions
    pass through.
    """
    from simpleeval import EvalWithCompoundTypes, InvalidExpression

    evaluator = EvalWithCompoundTypes(functions={**_BUILT_IN, **functions}, names=dict(names))
    try:
        return evaluator.eval(formula.text, previously_parsed=formula.tree.body)
    except (InvalidExpression, ArithmeticError, TypeError, ValueError, LookupError) as error:
        raise StudyError(f"`{formula.text}` has no value here: {_said(error)}") from error


def _said(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"it says nothing about {shown(error.args[0])}"
    return str(error) or type(error).__name__


def _mean(values: Any) -> float:
    listed = [float(v) for v in values]
    return sum(listed) / len(listed)


_BUILT_IN: Final[dict[str, Callable[..., Any]]] = {
    "mean": _mean,
    "min": min,
    "max": max,
    "abs": abs,
}
