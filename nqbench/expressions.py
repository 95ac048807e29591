"""Expressions: ``max(4, n - 11)`` in a study, ``time("a") / time("b")`` in a claim.

A :class:`Language` says what an expression may call and read. The text is parsed once and every
node checked against a short list before simpleeval evaluates it, so that a file can neither reach
Python objects nor build huge numbers.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from numbers import Real
from types import SimpleNamespace
from typing import Any, Final

from nqbench.errors import StudyError
from nqbench.facts import DeviceFacts
from nqbench.system.suggest import listing, nearest, shown, suggestion

MAX_LENGTH: Final = 1000
"""Characters: three times the longest claim of the papers."""

MAX_DEPTH: Final = 40
"""Levels of nesting; keeps the recursive evaluator far from Python's recursion limit."""

MAX_BITS: Final = 1024
"""Bits of the largest power that is evaluated: no quantity of a study is larger."""

_NODES: Final = (
    *(ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow),
    *(ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn),
    *(ast.Call, ast.Name, ast.Load, ast.Attribute, ast.Constant, ast.List, ast.Tuple, ast.IfExp),
)
_LOOP_NODES: Final = (
    *(ast.keyword, ast.Store, ast.ListComp, ast.comprehension, ast.Dict, ast.Subscript),
)
_LISTS: Final = (ast.List, ast.Tuple, ast.Name, ast.Call)


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """What an expression may call and read.

    ``word``       its name in messages
    ``functions``  names that it may call
    ``names``      names that it may read; ``None`` if they are known only at evaluation
    ``parts``      names with attributes: ``{"device": ("name", ...)}``
    ``loops``      whether it has list comprehensions, look-ups and named arguments
    ``example``    shown for a text that is not an expression
    """

    word: str
    functions: Collection[str]
    names: Collection[str] | None = None
    parts: Mapping[str, Collection[str]] = field(default_factory=dict)
    loops: bool = False
    example: str = ""


@dataclass(frozen=True, slots=True)
class Expression:
    """A checked expression. ``names`` are those it reads, without ``device.*``."""

    text: str
    tree: ast.Expression = field(repr=False, compare=False)
    names: frozenset[str]

    def calls(self) -> Iterator[ast.Call]:
        """Every call in it."""
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.Call))

    def comparisons(self) -> Iterator[tuple[str, str | int]]:
        """Pairs of a name and a constant that it is compared with (``==``, ``in``, ...)."""
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.Compare):
                continue
            sides = [node.left, *node.comparators]
            names = [side.id for side in sides if isinstance(side, ast.Name)]
            parts = [p for side in sides for p in getattr(side, "elts", [side])]
            for part in parts:
                if isinstance(part, ast.Constant) and type(part.value) in (str, int):
                    yield from ((name, part.value) for name in names)  # type: ignore[misc]


@lru_cache(maxsize=1024)
def parse(text: str, language: Language) -> Expression:
    """Check an expression's form. Raises ``StudyError`` (without a place)."""
    tree = tree_of(text, language.word, lambda error: _hint(text, language, error))
    return Expression(text, tree, _Syntax(text, language).names(tree))


def tree_of(text: str, word: str, hint: Callable[[Exception], str]) -> ast.Expression:
    """The syntax tree of a text that is Python in form. Raises ``StudyError`` (without a place);
    ``word`` says what it should be, ``hint`` what may be wrong."""
    if len(text) > MAX_LENGTH:
        raise StudyError(f"the {word} is longer than {MAX_LENGTH} characters; split it")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's advice on style is not for studies
            tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise StudyError(f"`{text}` is not a valid {word}{hint(error)}") from error
    depth, level = 0, list[ast.AST]([tree])
    while level:  # counted without recursion
        depth += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if depth > MAX_DEPTH:
        raise StudyError(f"the {word} is nested deeper than {MAX_DEPTH} levels; split it")
    return tree


def evaluate(
    expression: Expression,
    language: Language,
    names: Mapping[str, Any],
    functions: Mapping[str, Callable[..., Any]],
) -> Any:
    """The value of an expression, given what it may read and call.

    Raises ``StudyError`` (without a place) for an unknown name or an impossible operation; other
    errors of the functions pass through.
    """
    from simpleeval import EvalWithCompoundTypes, InvalidExpression, NameNotDefined

    own = {"functions": dict(functions), "names": dict(names)}
    evaluator = EvalWithCompoundTypes(operators=_OPERATORS, **own)
    text = expression.text
    try:
        return evaluator.eval(text, previously_parsed=expression.tree.body)
    except NameNotDefined as error:
        known = sorted(names.keys() - language.parts.keys())
        raise StudyError(unknown_name(text, error.name, known, language)) from error
    except (InvalidExpression, ArithmeticError, TypeError, ValueError, LookupError) as error:
        read = sorted(expression.names & names.keys())
        values = ", ".join(f"{name} = {shown(names[name])}" for name in read)
        said = str(error)
        if isinstance(error, ZeroDivisionError):
            said = "division by zero"
        elif isinstance(error, LookupError) and error.args:
            said = f"it has no entry for {shown(error.args[0])}"
        raise StudyError(
            f"the {language.word} `{text}` has no value{f' for {values}' if values else ''}: {said}"
        ) from error


def unknown_name(text: str, name: str, known: Collection[str], language: Language) -> str:
    """The sentence for an unknown name, with the name that was probably meant."""
    close = nearest(name, [*known, *language.functions])
    hint = f"did you mean '{close}'?" if close else ""
    for whole, parts in language.parts.items():
        if not hint and (part := nearest(name, parts)):
            hint = f"did you mean '{whole}.{part}'?"
    if not hint:
        hint = f"it may use {listing([*sorted(known), *(f'{w}.*' for w in language.parts)])}"
    return f"the {language.word} `{text}` uses the unknown name '{name}'; {hint}"


def _hint(text: str, language: Language, error: Exception) -> str:
    if "&&" in text or "||" in text or "!" in text.replace("!=", ""):
        return "; write and, or, not in words"
    if re.search(r"(?<![=<>!])=(?!=)", text) and not language.loops:
        return "; write == to compare"
    if language.example:
        return f"; it takes the form of {language.example}"
    return f": {error.msg if isinstance(error, SyntaxError) else error}"


@dataclass(slots=True)
class _Syntax:
    """Whether every node of a tree belongs to the language. Raises ``StudyError`` if not."""

    text: str
    language: Language

    def names(self, tree: ast.Expression) -> frozenset[str]:
        """Check the tree; the names that it reads."""
        nodes = list(ast.walk(tree))
        owned = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        owned |= {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        for node in nodes:
            self.node(node)
        read = [n for n in nodes if isinstance(n, ast.Name) and id(n) not in owned]
        bound = {name.id for name in read if isinstance(name.ctx, ast.Store)}
        for name in {name.id: None for name in read if name.id not in bound}:
            self.name(name)
        return frozenset(name.id for name in read) - bound

    def node(self, node: ast.AST) -> None:
        if not isinstance(node, (*_NODES, *_LOOP_NODES) if self.language.loops else _NODES):
            raise self.refused(
                f"the {self.language.word} is made of numbers, quoted words, names, arithmetic,"
                f" comparisons, and/or/not, lists and {listing(self.language.functions, 'and')}"
            )
        if isinstance(node, ast.Constant) and type(node.value) not in (int, float, str):
            raise self.refused(f"{node.value!r} has no meaning here")
        if isinstance(node, ast.Attribute):
            self.part(node)
        if isinstance(node, ast.Call):
            self.call(node)
        if isinstance(node, ast.comprehension) and not isinstance(node.iter, _LISTS):
            # Written lists and recorded sweeps are short, so every loop ends soon.
            raise self.refused("a loop needs a list that is written out")

    def part(self, node: ast.Attribute) -> None:
        whole = node.value.id if isinstance(node.value, ast.Name) else ""
        if whole not in self.language.parts:
            names = listing(self.language.parts) or "nothing"
            raise self.refused(f"only {names} has parts")
        if node.attr not in self.language.parts[whole]:
            raise StudyError(
                f"the {self.language.word} `{self.text}` uses the unknown {whole}.{node.attr};"
                f" {suggestion(node.attr, self.language.parts[whole])}"
            )

    def call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if not name:
            raise self.refused("only functions by name can be called")
        if name not in self.language.functions:
            raise StudyError(
                f"the {self.language.word} `{self.text}` calls {name}(), which is not available;"
                f" {suggestion(name, self.language.functions)}"
            )
        if not self.language.loops and node.keywords:
            raise self.refused(f"{name} takes no named arguments")
        if any(keyword.arg is None for keyword in node.keywords):
            raise self.refused("name every argument")

    def name(self, name: str) -> None:
        language = self.language
        if name in language.functions:
            raise StudyError(f"in `{self.text}`, {name} is a function: write {name}(...)")
        if name in language.parts:
            example = f"{name}.{next(iter(language.parts[name]))}"
            raise StudyError(f"in `{self.text}`, {name} needs a part, such as {example}")
        if language.names is not None and name not in language.names:
            raise StudyError(unknown_name(self.text, name, language.names, language))

    def refused(self, why: str) -> StudyError:
        return StudyError(f"`{self.text}` is not allowed: {why}")


def _several(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """``min`` or ``max`` of two numbers or more, or of one list of them."""

    def chosen(*values: Any) -> Any:
        numbers = values[0] if len(values) == 1 and isinstance(values[0], list | tuple) else values
        if not numbers or (numbers is values and len(values) < 2):
            raise TypeError(f"{name} needs two numbers or more, such as {name}(4, n - 11)")
        return function(map(_number, numbers))

    return chosen


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, Real):
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


def _member(value: Any, options: Any) -> bool:
    if not isinstance(options, list | tuple):
        raise TypeError("the right side of `in` must be a list, such as ['shared', 'global']")
    return value in options


PYTHON: Final[Mapping[type[ast.AST], Callable[..., Any]]] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul},
    **{ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod},
    **{ast.Pow: operator.pow, ast.USub: operator.neg, ast.UAdd: operator.pos},
    **{ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge},
    **{ast.Not: operator.not_, ast.Eq: operator.eq, ast.NotEq: operator.ne},
}
"""What Python's own operators do."""
_OPERATORS: Final[dict[type[ast.AST], Callable[..., Any]]] = {
    **{kind: _numeric(of) for kind, of in PYTHON.items()},
    **{kind: PYTHON[kind] for kind in (ast.Not, ast.Eq, ast.NotEq)},
    ast.Pow: _numeric(_power),
    ast.In: _member,
    ast.NotIn: lambda value, options: not _member(value, options),
}
BASIC: Final[Mapping[str, Callable[..., Any]]] = {
    "min": _several("min", min),
    "max": _several("max", max),
    "abs": _numeric(abs),
}
"""Functions that every language has."""

FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **BASIC,
    "ceil": _numeric(math.ceil),
    "floor": _numeric(math.floor),
    "log2": _numeric(math.log2),
}
"""Functions that expressions in a study may call."""
DEVICE_FACTS: Final = (*(f.name for f in fields(DeviceFacts)), "arch")
"""Parts of ``device`` that they may read, in addition to the factors."""

STUDY: Final = Language(
    "expression",
    FUNCTIONS,
    parts={"device": DEVICE_FACTS},
    example="max(4, n - 11) or memory == 'shared' and depth < 5",
)
NUMBER: Final = replace(STUDY, example="max(4, n - 11)")
"""The same where a number is wanted."""


def value_in_study(
    expression: Expression, names: Mapping[str, Any], device: DeviceFacts | None
) -> Any:
    """The value of a study's expression, given the factors that it may read, and the device where
    it is known. Raises as :func:`evaluate`."""
    known = {"device": _facts(device)} if device else {}
    return evaluate(expression, STUDY, {**names, **known}, FUNCTIONS)


@lru_cache(maxsize=64)
def _facts(device: DeviceFacts) -> SimpleNamespace:
    """``compute_capability`` is a number here (90 for 9.0), so that it can be compared."""
    major, minor = device.compute_capability
    values = {f.name: getattr(device, f.name) for f in fields(device)}
    values |= {"compute_capability": 10 * major + minor, "arch": device.arch}
    return SimpleNamespace(**values)
