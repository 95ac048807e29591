"""The language of expressions over arrays: what it says, and what it cannot reach."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nqbench.errors import StudyError
from nqbench.workloads.own import arrays

X = np.arange(6.0)
NAMES = {"x": X, "n": 6, "k": np.int32(2)}

RIGHT: dict[str, Any] = {
    "x.reshape(2, 3).T": X.reshape(2, 3).T,
    "x[:, None] @ x[None]": np.outer(X, X),
    "x[::-1][1:3]": [4, 3],
    "x[x > 2]": [3, 4, 5],
    "np.where(x > 2, x, -1).astype('int32').sum()": 9,
    "np.einsum('i,i->', x, x)": 55,
    "np.float32(3) * x // k": [0, 1, 3, 4, 6, 7],
    "~(x > 2) & (x != 1)": [True, False, True, False, False, False],
    "0 <= n < 7": True,
    "0 < x < 3": [False, True, True, False, False, False],
    "x[...,  -1] if n > 3 else 0": 5,
    "np.linalg.norm(x) ** 2": 55,
    "np.pad(x, 1, mode='edge')[-2:]": [5, 5],
    "np.bincount(np.arange(n, dtype=np.uint8) % 3, minlength=4)": [2, 2, 2, 0],
    "max(n, 9) - min(n, 3) + len(x) + int(2.5)": 14,
    "-x + 1 << 0 if n < 0 else np.pi * 0": 0,
}

REFUSED = [
    *("().__class__", "x.__class__", "np.__builtins__", "np.lib", "np.random.seed(1)"),
    *("np.load('f')", "np.fromfile('f')", "np.save('f', x)", "x.tofile('f')", "x.dump('f')"),
    *("np.memmap('f')", "np.genfromtxt('f')", "np.vectorize(abs)", "np.frompyfunc(abs, 1, 1)"),
    *("x.dtype.type", "np.add.reduce(x)", "rng.bit_generator", "rng.random.__self__"),
    *("(lambda: 1)()", "[v for v in x]", "f'{x}'", "x := 3", "{'a': 1}", "x; x", "x if", "x[0"),
    *("'a' * 10**9", "[1] * 10**9", "2**2**2**2**2**2**2", "1 << 10**9", "np.zeros(10**30)"),
    *("x.astype('O')", "x.astype('object')", "x.astype(object)", "x.view('S8')"),
    *("np.sum(x, out=x)", "np.sum(*[x])", "np.sum(**{'a': x})", "x.sort()", "x.fill(3)"),
    *("open('f')", "eval('1')", "__import__('os')", "max.__self__", "x.ctypes", "x.base", "np"),
    *("'{0.__class__}'.format(x)", "x.T.__len__()", "-" * 900 + "1", "(" * 300 + "1" + ")" * 300),
]


@pytest.mark.parametrize("text", RIGHT)
def test_a_value(text: str) -> None:
    assert np.array_equal(arrays.value(text, NAMES), RIGHT[text])


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:30])
def test_nothing_else_can_be_reached(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        arrays.value(text, NAMES)
    assert "\n" not in str(caught.value)
    assert np.array_equal(np.arange(6.0), X)


def test_contents_follow_from_the_seed_and_fit_the_buffer() -> None:
    def made(what: str, dtype: str = "float32", shape: arrays.Shape = (5,), seed: int = 1) -> Any:
        return arrays.made(what, dtype, shape, seed, NAMES)

    assert np.array_equal(made("random"), made("random"))
    assert not np.array_equal(made("random"), made("random", seed=2))
    assert np.array_equal(made("rng.random(5)"), made("rng.random(5)"))
    assert set(made("random", "uint8", (1000,))) <= set(range(100))
    assert set(made("random", "bool", (100,))) == {False, True}
    assert (made("arange", "int16") == range(5)).all()
    assert (made("7", "int64") == 7).all(), "one number fills the buffer"
    assert made("x", shape=None).size == 6
    with pytest.raises(StudyError, match="gives 6 values, but the buffer has 5"):
        made("x")
    with pytest.raises(StudyError, match="not numbers"):
        made("np.array(['a'])")
