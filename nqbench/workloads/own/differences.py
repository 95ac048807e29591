"""What a kernel left in a checked buffer against what is right: which elements differ, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.plan import UNWRITTEN
from nqbench.simulator.layout import UNDEFINED_WORD

Array = NDArray[Any]
ROUNDINGS: Final = 256
"""Last places that sums of many terms, and functions of --use_fast_math, may lose."""


def wrong_elements(found: Array, expected: Array, given: Mapping[str, Any]) -> Array:
    """Indices of the elements beyond the tolerance. A NaN is right where a NaN is expected."""
    relative, absolute = float(given.get("relative", 0)), float(given.get("absolute", 0))
    with np.errstate(all="ignore"):
        right = found == expected
        if not right.all() and found.dtype.kind in "fc":
            right |= np.isnan(found) & np.isnan(expected)
        if not right.all() and (relative or absolute):
            right |= np.isclose(found, expected, rtol=relative, atol=absolute)
    return np.flatnonzero(~right)


def described(
    name: str, found: Array, expected: Array, wrong: Array, given: Mapping[str, Any], *, blank: bool
) -> str:
    """The first wrong element of a buffer in its shape, and what most likely is the reason.

    ``blank``: before the launch it held what :func:`_unwritten` recognizes.
    """
    first = int(wrong[0])
    where = ", ".join(map(str, np.unravel_index(first, found.shape)))
    place, found, expected = f"{name}[{where}]", found.reshape(-1), expected.reshape(-1)
    value, right = found[first], expected[first]
    left = _unwritten(found)[wrong] if blank else np.zeros(wrong.size, bool)
    if left[0] and (found.dtype.kind in "fc" or value not in (-1, np.iinfo(value.dtype).max)):
        more = f" and {left.sum() - 1:,} more were" if left.sum() > 1 else " was"
        return f"{place}{more} never written (right: {right!s})"
    before = ", as before the launch (never written?)" if left[0] else ""
    return f"{place} is {value!s}{before}, not {right!s}{_rounding(found, expected, given)}"


def _unwritten(found: Array) -> Array:
    """Which elements still hold what nqbench fills a buffer without contents with."""
    held = found.view(np.uint8).reshape(found.size, -1)
    simulated = np.resize(np.array([UNDEFINED_WORD], np.uint32).view(np.uint8), held.shape)
    either: Array = (held == simulated).all(1) | (held == UNWRITTEN).all(1)
    return either


def _rounding(found: Array, expected: Array, given: Mapping[str, Any]) -> str:
    """A tolerance that would do, if no difference is larger than rounding explains."""
    if found.dtype.kind not in "fc" or not np.isfinite(expected).all():
        return ""
    exact = expected.astype(np.result_type(expected, np.float64))
    difference, size = np.abs(found - exact), np.abs(exact)
    eps = float(np.finfo(found.dtype).eps)
    limit = min(ROUNDINGS * eps, eps**0.5)
    with np.errstate(all="ignore"):
        relative = np.where(difference == 0, 0, difference / size)
    for key, largest, most in (
        ("relative", float(relative.max()), limit),
        ("absolute", float(difference.max()), limit * float(size.max())),
    ):
        if 0 < largest <= most:
            asked = ", ".join(
                f"{k}: {_number(given[k])}" for k in ("relative", "absolute") if k in given
            )
            asks = f"allows {asked}" if asked else "asks for equal bits"
            enough = 10.0 ** math.ceil(math.log10(largest))
            said = f" (largest {key} difference {_number(largest)}; the check {asks};"
            return f"{said} {key}: {_number(enough)}?)"
    return ""


def _number(value: float) -> str:
    """As a study has it: ``1.4e-7``."""
    return f"{float(value):.2g}".replace("e-0", "e-")
