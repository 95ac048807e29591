"""What a kernel left in a checked buffer against what is right: which elements differ, and why."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.plan import FILLS
from nqbench.simulator.layout import UNDEFINED_WORD

Array = NDArray[Any]
HEAD: Final = 1024
"""Elements that tell most contents from the right ones."""
ROUNDINGS: Final = 256
"""Last places that sums of many terms, and functions of --use_fast_math, may lose."""


def wrong_elements(
    found: Array, expected: Array, given: Mapping[str, Any], *, blank: bool = False
) -> Array:
    """Indices of the elements beyond the tolerance. A NaN is right where a NaN is expected, unless
    it is the fill of a buffer that was ``blank``."""
    relative, absolute = float(given.get("relative", 0)), float(given.get("absolute", 0))
    with np.errstate(all="ignore"):
        right = found == expected
        if not right.all() and found.dtype.kind in "fc":
            both = np.isnan(found) & np.isnan(expected)
            right |= both & ~unwritten(found) if blank and both.any() else both
        if not right.all() and (relative or absolute):
            right |= np.isclose(found, expected, rtol=relative, atol=absolute)
    return np.flatnonzero(~right)


def passes(contents: Array | None, expected: Array, given: Mapping[str, Any]) -> bool:
    """Whether contents that the kernel did not make would pass for the right ones; the first
    elements mostly tell."""
    if contents is None or contents.size != expected.size:
        return False
    contents = contents.reshape(-1)
    heads = contents[:HEAD], expected[:HEAD]
    return not any(wrong_elements(*two, given).size for two in (heads, (contents, expected)))


def largest_errors(found: Array, expected: Array) -> list[float]:
    """The largest absolute error, and the largest relative one where the right value is not 0; of
    elements that are finite on both sides."""
    if np.array_equal(found, expected):
        return [0.0, 0.0]
    exact = expected.astype(np.result_type(expected, np.float64))
    with np.errstate(all="ignore"):
        error = np.abs(found - exact)
        relative = error / np.abs(exact)
    return [float(e.max(initial=0, where=np.isfinite(e))) for e in (error, relative)]


def described(
    name: str, found: Array, expected: Array, wrong: Array, given: Mapping[str, Any], *, blank: bool
) -> str:
    """The first wrong element of a buffer in its shape, and what most likely is the reason.

    ``blank``: before the launch it held what :func:`unwritten` recognizes.
    """
    first = int(wrong[0])
    where = ", ".join(map(str, np.unravel_index(first, found.shape)))
    place, found, expected = f"{name}[{where}]", found.reshape(-1), expected.reshape(-1)
    value, right = found[first], expected[first]
    left = unwritten(found)[wrong] if blank else np.zeros(wrong.size, bool)
    if left[0]:
        more = f" and {left.sum() - 1:,} more were" if left.sum() > 1 else " was"
        return f"{place}{more} never written (right: {right!s})"
    return f"{place} is {value!s}, not {right!s}{_rounding(found, expected, given)}"


def unwritten(found: Array) -> Array:
    """Which elements still hold what nqbench fills a buffer without contents with."""
    kind, size = found.dtype.kind, min(found.dtype.itemsize, 8)
    parts = np.ascontiguousarray(found).view(f"u{size}")
    left = np.zeros(found.size, bool)
    for word in {UNDEFINED_WORD, *itertools.chain(*(FILLS[k] for k in FILLS if kind in k))}:
        pattern = np.array([word, word], np.uint32).view(parts.dtype)
        same = np.empty(parts.size, bool)
        for place, part in enumerate(pattern):
            same[place :: len(pattern)] = parts[place :: len(pattern)] == part
        # A complex number of 16 bytes has two parts.
        left |= same[::2] & same[1::2] if parts.size > found.size else same
    return left


def _rounding(found: Array, expected: Array, given: Mapping[str, Any]) -> str:
    """A tolerance that would do, if no difference is larger than rounding explains."""
    if found.dtype.kind not in "fc" or not (np.isfinite(found) & np.isfinite(expected)).all():
        return ""
    absolute, relative = largest_errors(found, expected)
    eps = float(np.finfo(found.dtype).eps)
    limit = min(ROUNDINGS * eps, eps**0.5)
    for key, largest, most in (
        ("relative", math.inf if found[expected == 0].any() else relative, limit),
        ("absolute", absolute, limit * float(np.abs(expected).max())),
    ):
        if 0 < largest <= most:
            asked = tolerance(given)
            asks = f"allows {asked}" if asked else "asks for equal bits"
            enough = 10.0 ** math.ceil(math.log10(largest))
            said = f" (largest {key} difference {_number(largest)}; the check {asks};"
            return f"{said} {key}: {_number(enough)}?)"
    return ""


def tolerance(given: Mapping[str, Any]) -> str:
    """What a check allows, as a study has it; empty if it asks for equal bits."""
    return ", ".join(f"{k}: {_number(given[k])}" for k in ("relative", "absolute") if k in given)


def _number(value: float) -> str:
    """As a study has it: ``1.4e-7``."""
    return f"{float(value):.2g}".replace("e-0", "e-")
