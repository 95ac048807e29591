"""Expressions in a study: ``max(4, n - 11)``, ``shared_bytes <= device.shared_per_block``.

The text is parsed once and every node checked against a short list before simpleeval works it out,
so that a study can neither reach Python objects nor build huge numbers.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Final

from nqbench.errors import StudyError
from nqbench.facts import DeviceFacts
from nqbench.system.suggest import listing, nearest, shown, suggestion

FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "min": lambda *values: min(_several("min", values)),
    "max": lambda *values: max(_several("max", values)),
    "abs": abs,
    "ceil": math.ceil,
    "floor": math.floor,
    "log2": math.log2,
}
DEVICE_FACTS: Final = (*(f.name for f in fields(DeviceFacts)), "arch")

MAX_LENGTH: Final = 500
"""Characters; a condition longer than six lines belongs in several `where` entries."""

MAX_DEPTH: Final = 40
"""Nesting; keeps the recursive evaluator far from Python's own limit."""

MAX_BITS: Final = 1024
"""Largest power that is worked out: beyond this no quantity of a study can lie."""

_NODES: Final = (
    *(ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow),
    *(ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn),
    *(ast.Call, ast.Name, ast.Load, ast.Attribute, ast.Constant, ast.List, ast.Tuple, ast.IfExp),
)


@dataclass(frozen=True, slots=True)
class Expression:
    """A checked expression. ``names`` are those it reads, ``device.*`` facts apart."""

    text: str
    names: frozenset[str]


def parse(text: str) -> Expression:
    """Check an expression's form. Raises ``StudyError`` (without a place)."""
    tree = _tree(text)
    inside = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return Expression(text, frozenset(inside) - FUNCTIONS.keys() - {"device"})


def comparisons(expression: Expression) -> Iterator[tuple[str, str | int]]:
    """Pairs of a name and a constant that the expression compares it with (``==``, ``in``, ...)."""
    for node in ast.walk(_tree(expression.text)):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        names = [side.id for side in sides if isinstance(side, ast.Name)]
        parts = [p for side in sides for p in getattr(side, "elts", [side])]
        for part in parts:
            if isinstance(part, ast.Constant) and type(part.value) in (str, int):
                yield from ((name, part.value) for name in names)  # type: ignore[misc]


def evaluate(expression: Expression, names: Mapping[str, Any], device: DeviceFacts) -> Any:
    """The value of an expression, given the names it may read.

    ``device.compute_capability`` is a number here (90 for 9.0), so that it can be compared.
    Raises ``StudyError`` (without a place) for an unknown name or an impossible operation.
    """
    from simpleeval import EvalWithCompoundTypes, InvalidExpression, NameNotDefined

    evaluator = EvalWithCompoundTypes(
        operators=_OPERATORS,
        functions=dict(FUNCTIONS),
        names={**names, "device": _facts(device)},
    )
    text = expression.text
    try:
        return evaluator.eval(text, previously_parsed=_tree(text).body)
    except NameNotDefined as error:
        raise StudyError(unknown_name(text, error.name, names)) from error
    except (InvalidExpression, ArithmeticError, TypeError, ValueError) as error:
        values = ", ".join(f"{name} = {shown(names[name])}" for name in sorted(expression.names))
        raise StudyError(
            f"the expression `{text}` has no value{f' for {values}' if values else ''}: {error}"
        ) from error


def unknown_name(text: str, name: str, known: Mapping[str, Any] | tuple[str, ...]) -> str:
    """The sentence for a name that means nothing, with what was probably meant."""
    close = nearest(name, [*known, *FUNCTIONS])
    if close:
        hint = f"did you mean '{close}'?"
    elif name in DEVICE_FACTS or nearest(name, DEVICE_FACTS):
        hint = f"did you mean 'device.{nearest(name, DEVICE_FACTS)}'?"
    else:
        hint = f"it may use {listing(sorted(set(known)))}, or device.*"
    return f"the expression `{text}` uses the unknown name '{name}'; {hint}"


@lru_cache(maxsize=1024)
def _tree(text: str) -> ast.Expression:
    if len(text) > MAX_LENGTH:
        raise StudyError(f"the expression is longer than {MAX_LENGTH} characters; split it")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's advice on style is not for studies
            tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise StudyError(f"`{text}` is not an expression{_hint(text)}") from error
    if tree_depth(tree) > MAX_DEPTH:
        raise StudyError(f"the expression is nested deeper than {MAX_DEPTH} levels; split it")
    for node in ast.walk(tree):
        _check(node, text)
    _check_calls(tree, text)
    return tree


def tree_depth(tree: ast.AST) -> int:
    """Nodes on the longest way from the root; counted without recursion."""
    depth, level = 0, [tree]
    while level:
        depth += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return depth


def _check(node: ast.AST, text: str) -> None:
    if not isinstance(node, _NODES):
        raise StudyError(
            f"`{text}` is not allowed: an expression is made of numbers, quoted levels, names,"
            f" + - * / // % **, comparisons, and/or/not, and {listing(FUNCTIONS, 'and')}"
        )
    if isinstance(node, ast.Constant) and type(node.value) not in (int, float, str):
        raise StudyError(f"`{text}` is not allowed: {node.value!r} means nothing in a study")
    if isinstance(node, ast.Attribute):
        if not (isinstance(node.value, ast.Name) and node.value.id == "device"):
            raise StudyError(f"`{text}` is not allowed: only device has parts, such as device.arch")
        if node.attr not in DEVICE_FACTS:
            raise StudyError(
                f"the expression `{text}` uses the unknown device.{node.attr};"
                f" {suggestion(node.attr, DEVICE_FACTS)}"
            )


def _check_calls(tree: ast.Expression, text: str) -> None:
    called = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    owned = {id(node.func) for node in called}
    owned |= {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    for call in called:
        name = call.func.id if isinstance(call.func, ast.Name) else "this"
        if name not in FUNCTIONS or call.keywords:
            raise StudyError(
                f"the expression `{text}` calls {name}(), which is not available;"
                f" {suggestion(name, FUNCTIONS)}"
            )
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in owned:
            if node.id in FUNCTIONS:
                raise StudyError(f"in `{text}`, {node.id} is a function: write {node.id}(...)")
            if node.id == "device":
                raise StudyError(f"in `{text}`, device needs a fact, such as device.warp_size")


def _hint(text: str) -> str:
    if "&&" in text or "||" in text or "!" in text.replace("!=", ""):
        return "; write and, or, not in words"
    if re.search(r"(?<![=<>!])=(?!=)", text):
        return "; write == to compare"
    return "; it takes the form of max(4, n - 11) or memory == 'shared' and depth < 5"


@lru_cache(maxsize=64)
def _facts(device: DeviceFacts) -> SimpleNamespace:
    major, minor = device.compute_capability
    values = {f.name: getattr(device, f.name) for f in fields(device)}
    return SimpleNamespace(
        **values | {"compute_capability": 10 * major + minor, "arch": device.arch}
    )


def _several(name: str, values: tuple[Any, ...]) -> list[Any]:
    """The numbers of ``min`` and ``max``: two or more, or one list of them."""
    numbers = values[0] if len(values) == 1 and isinstance(values[0], list | tuple) else values
    if not numbers or (numbers is values and len(values) < 2):
        raise TypeError(f"{name} needs two numbers or more, such as {name}(4, n - 11)")
    return [_number(value) for value in numbers]


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        what = "does not apply to this system" if value == "-" else "is not a number"
        raise TypeError(f"{shown(value)} {what}")
    return value


def _numeric(function: Callable[..., Any]) -> Callable[..., Any]:
    """Numbers only: Python would also repeat text, join lists and compare words."""
    return lambda *values: function(*map(_number, values))


def _power(base: float, exponent: float) -> float:
    size = math.log2(abs(base)) if base else 0.0
    if abs(size * exponent) > MAX_BITS:
        raise ValueError(f"{base} ** {exponent} is out of range")
    result = base**exponent
    if isinstance(result, complex):
        raise ValueError(f"{base} ** {exponent} is not a real number")
    return float(result) if isinstance(result, float) else result


_OPERATORS: Final[dict[type[ast.AST], Callable[..., Any]]] = {
    ast.Add: _numeric(operator.add),
    ast.Sub: _numeric(operator.sub),
    ast.Mult: _numeric(operator.mul),
    ast.Div: _numeric(operator.truediv),
    ast.FloorDiv: _numeric(operator.floordiv),
    ast.Mod: _numeric(operator.mod),
    ast.Pow: _numeric(_power),
    ast.USub: _numeric(operator.neg),
    ast.UAdd: _numeric(operator.pos),
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: _numeric(operator.lt),
    ast.LtE: _numeric(operator.le),
    ast.Gt: _numeric(operator.gt),
    ast.GtE: _numeric(operator.ge),
    ast.In: lambda value, options: _member(value, options),
    ast.NotIn: lambda value, options: not _member(value, options),
}


def _member(value: Any, options: Any) -> bool:
    if not isinstance(options, list | tuple):
        raise TypeError("the right side of `in` must be a list, such as ['shared', 'global']")
    return value in options
