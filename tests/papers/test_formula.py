"""The language of claims: values of its formulas, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from nqbench.errors import StudyError
from nqbench.expressions import evaluate, parse
from nqbench.papers.formula import BUILT_IN, CLAIMS, sized

TIMES = {"a": 2.0, "b": 1.0, "c": 4.0}


def value_of(text: str, **names: Any) -> Any:
    def time(system: str, N: int = 0) -> float:  # noqa: N803 (the language's name)
        return TIMES[system] * (N or 1)

    formula = parse(text, CLAIMS)
    return evaluate(formula, CLAIMS, {"N": 15, **names}, {**BUILT_IN, "time": time})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('time("a") / time("b")', 2.0),
        ('mean([time(s) for s in ("a", "b", "c")])', 7 / 3),
        ('mean([time("a", N=N) / time("b") for N in [1, 2, 3]])', 4.0),
        ('min([time(s) for s in ("a", "c")])', 2.0),
        ('[time(s) < time("a") for s in ("b", "c")]', [True, False]),
        ("1 < value < 2", True),
        ("value > 0.97 if N >= 17 else value < 0.97", False),
        ("value == {15: 1.5, 16: 3}[N]", True),
        ("abs(value - 3) <= 1.5 and not value > 2", True),
        ('time("b", N=N-1)', 14.0),
    ],
)
def test_values(text: str, value: object) -> None:
    assert value_of(text, value=1.5) == value


@pytest.mark.parametrize(
    "text",
    [
        *("().__class__", "(lambda: 1)()", "[x := 1]", "time(**{'system': 1})", "N.real", "f'{N}'"),
        *("[1 for a in 'x' * 5000]", "[[1 for a in [1] * 9999] for b in [1] * 9999]"),
        "min(1 for a in [1])",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse(text, CLAIMS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "depends"),
    [
        ('time("a") / time("b")', True),  # at the size that is judged
        ('time("a", N=15)', False),
        ('time("a", N=N)', True),
        ('[time("a", N=N) for N in (15, 16)]', False),
        ('[time("a", N=M) for M in (15, 16) if M < N]', True),
        ('[time("a", N=M) for M in (15, N)]', True),
        ('[x * time("a", N=M) for M in (15, N) for x in (1, 2)]', True),
        ("abs(N)", True),
    ],
)
def test_which_formulas_depend_on_the_size(text: str, depends: bool) -> None:
    assert sized(parse(text, CLAIMS)) == depends
