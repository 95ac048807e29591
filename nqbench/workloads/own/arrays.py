"""Expressions over arrays: ``a.T``, ``np.cumsum(x)``, ``rng.integers(0, 256, n)``.

A study's own kernel says with them what its buffers hold and what they should hold afterwards. The
text is parsed, every node checked against the lists below, and evaluated by simpleeval: no loops,
no strings but names of types and subscripts of ``einsum``, no functions that touch files or make
Python objects. What needs more is a Python function (``function: check.py:expected``).
"""

from __future__ import annotations

import ast
import math
import operator
import re
import tomllib
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from simpleeval import EvalWithCompoundTypes

from nqbench.errors import StudyError
from nqbench.expressions import MAX_BITS, PYTHON, tree_of
from nqbench.system.suggest import nearest, suggestion

Shape = tuple[int, ...] | None
KEPT_BYTES: Final = 2**30
"""Of arrays kept for the next points: two sizes of a few hundred megabytes."""
_WORDS: Final[Mapping[str, Sequence[str]]] = {
    key: words.split()
    for key, words in tomllib.loads(
        Path(__file__).with_name("numpy.toml").read_text(encoding="utf-8")
    ).items()
}
DTYPES: Final = tuple(_WORDS["dtypes"])
"""Types of buffers and scalars, as numpy names them."""
IN_CUDA: Final = dict(pair.split("=") for pair in _WORDS["in_cuda"])
"""The same by their names in CUDA C++."""
STANDARD: Final = ("zeros", "ones", "arange", "random")
"""Contents with a name."""
_UFUNCS: Final = {name for name, found in vars(np).items() if isinstance(found, np.ufunc)}
FUNCTIONS: Final = _UFUNCS.union(_WORDS["functions"])
INNER: Final = {name: _WORDS[name] for name in ("linalg", "fft")}
CONSTANTS: Final = {*_WORDS["constants"], *DTYPES}
DRAWS: Final = _WORDS["draws"]
OF_ARRAYS: Final = {*_WORDS["methods"], *_WORDS["properties"], *DRAWS}
PLAIN: Final[Mapping[str, Callable[..., Any]]] = {
    **{"abs": abs, "float": float, "int": int, "len": len, "max": max, "min": min, "round": round}
}
_OBJECTS: Final = ("object", "o", "str", "bytes")
"""Types that hold Python's objects and texts."""
_ARITHMETIC: Final[Mapping[type[ast.AST], Callable[[Any, Any], Any]]] = {
    **{kind: of for kind, of in PYTHON.items() if issubclass(kind, ast.operator)},
    **{ast.MatMult: operator.matmul, ast.LShift: operator.lshift, ast.RShift: operator.rshift},
    **{ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor},
}
_OTHERS: Final[Mapping[type[ast.AST], Callable[..., Any]]] = {
    **{kind: of for kind, of in PYTHON.items() if kind not in _ARITHMETIC},
    ast.Invert: operator.invert,
}
_NODES: Final = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Attribute, ast.Call, ast.keyword),
    *(ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Slice, ast.Tuple),
    ast.List,
    *(*_ARITHMETIC, *_OTHERS),
)
_LOOPS: Final = (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)
_NUMBERS: Final = (int, float, complex, np.ndarray, np.generic)


@lru_cache(maxsize=256)
def parse(text: str) -> ast.Expression:
    """Check the form of an expression. Raises ``StudyError`` (without a place)."""
    tree = tree_of(text, "expression over arrays", lambda _: ", such as a.T or np.cumsum(x)")
    nodes = list(ast.walk(tree))
    for node in nodes:  # loops first: what is said of their parts would mislead
        if not isinstance(node, _NODES):
            what = "a loop" if isinstance(node, _LOOPS) else type(node).__name__
            raise StudyError(
                f"`{text}` is not allowed: {what} is not part of expressions over arrays, which"
                " have numpy's functions, operators and slices"
            )
    for node in nodes:
        _check(node, text)
    return tree


def names_in(text: str) -> set[str]:
    """The names that an expression reads, ``np`` and ``rng`` excluded. Raises ``StudyError``."""
    read = {node.id for node in ast.walk(parse(text)) if isinstance(node, ast.Name)}
    return read - {"np", "rng", *PLAIN}


def check_names(text: str, known: Collection[str], also: Collection[str] = ()) -> None:
    """Raise ``StudyError`` for a name that is not one of ``known``; the hint names ``also`` too."""
    for name in sorted(names_in(text) - set(known)):
        hint = suggestion(name, dict.fromkeys((*also, *known, "np", "rng")))
        raise StudyError(f"`{text}` uses the unknown name '{name}'; {hint}")


def value(text: str, names: Mapping[str, Any], seed: Any = 0) -> Any:
    """The value of an expression. Raises ``StudyError`` with numpy's reason if it has none."""
    tree = parse(text)
    known = {**names, "rng": np.random.default_rng(seed)}
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = _Evaluator(known).eval(text, previously_parsed=tree.body)
    except MemoryError as error:
        raise StudyError(f"`{text}` needs more memory than there is") from error
    except Exception as error:  # numpy raises many kinds
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise StudyError(f"`{text}` has no value: {said}") from error
    if isinstance(found, SimpleNamespace | np.random.Generator):
        raise StudyError(f"`{text}` has no value: it is no array")
    return found


def _check(node: ast.AST, text: str) -> None:
    if isinstance(node, ast.keyword) and (node.arg is None or node.arg == "out"):
        raise StudyError(f"`{text}` is not allowed: name every argument, and do not give `out`")
    if isinstance(node, ast.Attribute):
        _check_attribute(node, text)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in PLAIN:
        name = node.func.id
        close = name if name in FUNCTIONS else nearest(name, sorted(FUNCTIONS))
        hint = f"; write np.{name}" if name in FUNCTIONS else f"; did you mean 'np.{close}'?"
        raise StudyError(f"`{text}` calls {name}(), which is not available{hint * bool(close)}")
    if isinstance(node, ast.Call) and not isinstance(node.func, ast.Name | ast.Attribute):
        raise StudyError(f"`{text}` is not allowed: only functions by name can be called")
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        word = node.value
        subscripts = re.fullmatch(r"[a-z, .]*(->[a-z, .]*)?", word) and word not in _OBJECTS
        if word not in DTYPES and not subscripts:
            said = f"`{text}` is not allowed: {word!r} is no type and no subscripts of einsum"
            raise StudyError(said)


def _check_attribute(node: ast.Attribute, text: str) -> None:
    owner, name = ast.unparse(node.value), node.attr
    if ast.unparse(node).startswith("np.random"):
        raise StudyError(f"`{text}` uses np.random; draw from rng, as in rng.random(n)")
    known: Collection[str] = OF_ARRAYS
    if owner == "np":
        known = FUNCTIONS | CONSTANTS | INNER.keys()
    elif owner == "rng":
        known = DRAWS
    elif owner.startswith("np.") and owner[3:] in INNER:
        known = INNER[owner[3:]]
    if name not in known:
        whole = ast.unparse(node)
        used = whole if re.fullmatch(r"[\w.]+", whole) else f"{name} of an array"
        close = f"np.{name}" if name in FUNCTIONS else nearest(name, sorted(known))
        hint = f"; did you mean '{close}'?" if close else ""
        raise StudyError(f"`{text}` uses {used}, which is not available{hint}")


def _checked(kind: type[ast.AST], left: Any, right: Any) -> Any:
    """Arithmetic that neither repeats a text nor makes a huge number."""
    if not (isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS)):
        raise TypeError("arithmetic takes numbers and arrays")
    if isinstance(left, int) and isinstance(right, int):
        grown: dict[type[ast.AST], int] = {
            ast.Pow: left.bit_length() * abs(right),
            ast.LShift: left.bit_length() + right,
        }
        if grown.get(kind, 0) > MAX_BITS:
            raise ValueError("the number is out of range")
    return _ARITHMETIC[kind](left, right)


def _namespace(module: Any, names: Collection[str], **more: Any) -> SimpleNamespace:
    return SimpleNamespace(**{name: getattr(module, name) for name in names}, **more)


_INNER_OF_NUMPY: Final = {name: _namespace(getattr(np, name), INNER[name]) for name in INNER}
_NUMPY: Final = _namespace(np, FUNCTIONS | CONSTANTS, **_INNER_OF_NUMPY)


class _Evaluator(EvalWithCompoundTypes):  # type: ignore[misc] # without types
    """simpleeval, whose comparisons stop at the first that is false, with arrays compared."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        arithmetic = {kind: partial(_checked, kind) for kind in _ARITHMETIC}
        super().__init__({**arithmetic, **_OTHERS}, dict(PLAIN), {**names, "np": _NUMPY})

    def _eval_compare(self, node: ast.Compare) -> Any:
        sides = [self._eval(part) for part in (node.left, *node.comparators)]
        compare = [_OTHERS[type(kind)] for kind in node.ops]
        parts = [is_so(*pair) for is_so, pair in zip(compare, pairwise(sides), strict=True)]
        return parts[0] if len(parts) == 1 else np.logical_and.reduce(parts)


def nearest_dtype(word: str) -> str:
    """What to write in place of a type that is none of ``DTYPES``."""
    if word[:1].isupper() or re.fullmatch("[a-z]+[1-4]", word):
        return "a struct is its bytes, of type uint8; by value: `fields` in YAML (nqbench init)"
    return suggestion(IN_CUDA.get(word, word.removesuffix("_t")), DTYPES)


def made(
    what: str, dtype: str, shape: Shape, seed: Any, names: Mapping[str, Any], *, exact: bool = False
) -> NDArray[Any]:
    """Contents of a buffer of a shape (``None``: that of the expression), flat.

    ``what`` is ``ones``, ``arange``, ``random`` (floats uniform in [0, 1), whole numbers in 0..99)
    or an expression, ``exact`` as in :func:`fitted`. Raises ``StudyError``.
    """
    if shape is not None and what in STANDARD:
        count = math.prod(shape)
        try:
            return _standard(what, dtype, count, seed)
        except (MemoryError, ValueError) as error:
            raise StudyError(f"{count} elements need more memory than there is") from error
    return fitted(value(what, names, seed), dtype, shape, f"`{what}` gives", exact=exact)


def _standard(what: str, dtype: str, count: int, seed: Any) -> NDArray[Any]:
    if what == "random":
        rng, form = np.random.default_rng(seed), np.dtype(dtype)
        if form.kind in "iub":
            return rng.integers(0, 2 if form.kind == "b" else 100, count).astype(dtype)
        drawn = rng.random(count, dtype="float32" if form.itemsize <= 4 else "float64")
        return drawn.astype(dtype, copy=False)
    return np.arange(count).astype(dtype) if what == "arange" else getattr(np, what)(count, dtype)


def fitted(found: Any, dtype: str, shape: Shape, who: str, *, exact: bool = False) -> NDArray[Any]:
    """An array as the buffer's type and length, flat; a single number fills it. ``StudyError`` if
    it has another number of elements; if it should be ``exact``, also where the type cannot hold
    one of them (rounding to a float is none of that)."""
    try:
        array = np.asarray(found)
    except ValueError as error:
        raise StudyError(f"{who} no array: {error}") from error
    if array.dtype.kind not in "biufc":
        raise StudyError(f"{who} {array.dtype} values, not numbers")
    if array.ndim == 0 and shape is not None:
        array = np.full(shape, array)
    if shape is not None and array.size != math.prod(shape):
        has, wants = (f"{s[0]} values" if len(s) == 1 else f"{s}" for s in (array.shape, shape))
        raise StudyError(f"{who} {has}, but the buffer has {wants.removesuffix(' values')}")
    array = np.ascontiguousarray(array).reshape(-1)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an imaginary part that is dropped
        made = array.astype(dtype, copy=False)
        if not exact or made.dtype == array.dtype:
            return made
        lost = _lost(array, made)
    if lost.any():
        first = array[int(lost.argmax())]
        said = f"{who} {first}, which a buffer of {dtype} cannot hold"
        raise StudyError(f"{said}; give the numbers that the kernel leaves there")
    return made


def _lost(array: NDArray[Any], made: NDArray[Any]) -> NDArray[np.bool_]:
    """Which elements the type of ``made`` cannot hold."""
    if made.dtype.kind not in "fc":
        return np.asarray(array != made)
    imaginary = made.dtype.kind == "f" and array.imag != 0
    return np.asarray(np.isfinite(array) & ~np.isfinite(made) | imaginary)


class Kept:
    """Arrays made for the points that were last, up to ``KEPT_BYTES``: points of one size mostly
    share them, and rounds visit points in random order."""

    def __init__(self) -> None:
        self._held: dict[tuple[Any, ...], tuple[NDArray[Any], Sequence[Any]]] = {}

    def get(
        self, form: tuple[Any, ...], read: Sequence[Any], make: Callable[[], NDArray[Any]]
    ) -> NDArray[Any]:
        """The array of a form that follows from ``read``: numbers, words and read-only arrays.

        These arrays are held beside it, so that their identity is that of their contents.
        """
        key = (*form, *(id(one) if isinstance(one, np.ndarray) else repr(one) for one in read))
        held = self._held.pop(key, None)
        if held is None:
            array = make().view()
            array.setflags(write=False)
            held = (array, read)
        self._held[key] = held
        while len(self._held) > 1 and sum(a.nbytes for a, _ in self._held.values()) > KEPT_BYTES:
            del self._held[next(iter(self._held))]
        return held[0]
