"""A typed door to numba: compiled functions keep their signatures, and run on all cores.

Importing this module imports numba (half a second): only modules that are themselves imported
lazily may do so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from nqbench.system.machine import cpu_count

Args = ParamSpec("Args")
Result = TypeVar("Result")
Part = TypeVar("Part")


def compiled(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Compile to native code at the first call; cached on disk; releases the GIL."""
    return cast(Callable[Args, Result], numba.njit(cache=True, nogil=True)(function))


def compiled_in_process(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Compile to native code at the first call in each process; releases the GIL.

    For a function that calls compiled functions of other files: numba's cache on disk notices
    changes of a function's own file only.
    """
    return cast(Callable[Args, Result], numba.njit(nogil=True)(function))


def compiled_part(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Compile into the compiled functions that call it: Python cannot, which saves the time that
    its way in takes to compile."""
    options: Any = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(Callable[Args, Result], numba.njit(**options)(function))


def compiled_in_parallel(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """As :func:`compiled`; the loops over ``numba.prange`` run on numba's threading layer."""
    return cast(Callable[Args, Result], numba.njit(parallel=True, nogil=True, cache=True)(function))


def on_all_cores(function: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """``function`` of each part, in their order; it must release the GIL for most of its time."""
    if min(len(parts), cpu_count()) == 1:
        return list(map(function, parts))
    with ThreadPoolExecutor(cpu_count()) as pool:
        return list(pool.map(function, parts))


def in_order(
    parts: Sequence[Part], fill: Callable[[Part, NDArray[Any]], int], dtype: type[np.generic]
) -> NDArray[Any]:
    """The elements of all parts, one part behind the other, made on all cores.

    ``fill(part, out)`` returns how many a part has and writes them to ``out`` unless that is empty.
    Counting first costs less than copying parts together.
    """
    nowhere = np.empty(0, dtype)
    counts = on_all_cores(lambda part: fill(part, nowhere), parts)
    edges = [0, *accumulate(counts)]
    out = np.empty(edges[-1], dtype)
    places = [out[begin:end] for begin, end in pairwise(edges)]
    on_all_cores(lambda pair: fill(*pair), list(zip(parts, places, strict=True)))
    return out
