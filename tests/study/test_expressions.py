"""Expressions: the values that Python gives, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nqbench import expressions
from nqbench.errors import StudyError
from tests.study.fake import CUDA


def value_of(text: str, names: dict[str, Any]) -> Any:
    expression = expressions.parse(text, expressions.STUDY)
    return expressions.value_in_study(expression, names, CUDA)


ATOMS = st.one_of(st.integers(0, 99).map(str), st.sampled_from(["n", "depth", "2.5"]))


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%", "/"]), inner)
    call = st.tuples(st.sampled_from(["min", "max"]), inner, inner)
    compared = st.tuples(inner, st.sampled_from(["<", "<=", "==", "!=", ">"]), inner)
    return st.one_of(
        binary.map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        call.map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
        inner.map(lambda t: f"abs(-{t})"),
        inner.map(lambda t: f"ceil({t})"),
        st.tuples(compared, inner, inner).map(
            lambda t: f"({t[1]} if {t[0][0]} {t[0][1]} {t[0][2]} else {t[2]})"
        ),
    )


@given(st.recursive(ATOMS, _grow, max_leaves=8), st.integers(5, 27), st.integers(2, 9))
def test_values_are_those_of_python(text: str, n: int, depth: int) -> None:
    names = {"n": n, "depth": depth}
    functions = {"min": min, "max": max, "abs": abs, "ceil": math.ceil}
    try:
        expected = eval(text, {"__builtins__": {}}, {**names, **functions})
    except ZeroDivisionError:
        with pytest.raises(StudyError, match="zero"):
            value_of(text, names)
        return
    assert value_of(text, names) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("log2(device.warp_size)", 5.0),
        ("floor(n / 3)", 5),
        ("2 ** 10", 1024),
        ("memory == 'shared' and n in [15, 16]", True),
        ("memory not in ('shared', 'global')", False),
        ("4 < n <= 16", True),
        ("device.compute_capability", 90),
        ("  n ", 16),
    ],
)
def test_values(text: str, value: object) -> None:
    assert value_of(text, {"n": 16, "memory": "shared"}) == value


@pytest.mark.parametrize(
    "text",
    [
        # out of the language
        *("__import__('os').system('true')", "().__class__", "device.__class__", "device"),
        *("device.kind.upper()", "min.__self__", "min", "(lambda: 1)()", "[x for x in [1, 2]]"),
        *("n := 3", "f'{n}'", "n[0]", "{1: 2}", "min(*[1, 2])", "min([1], key=abs)", "b'x'"),
        *("...", "True", "1j", "n; n", "", " ", "n n", "1 <", "n\x00", "import os"),
        *("-" * 100 + "1", "(" * 300 + "1" + ")" * 300, "1 + " * 400 + "1"),
        # without a value
        *("9 ** 9 ** 9", "2.5 ** 9999", "2 ** (0 - 5000)", "(9 ** 300) ** 300"),
        *("(0 - 8) ** 0.5", "0 ** (0 - 1)"),
        *("'x' * 9999999", "[1] * 9999999", "'%099999999d' % n", "'a' + 'b'", "'a' < 'b'"),
        *("not_given + 1", "log2(0)", "floor('a')", "1 in 'abc'", "min()", "n % 0", "blocks + 1"),
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(StudyError):
        value_of(text, {"n": 16, "blocks": {"per_sm": 2}})
