"""A typed door to numba, so that compiled functions keep their signatures for the type checker.

Importing this module imports numba (half a second): only modules that are themselves imported
lazily may do so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

Args = ParamSpec("Args")
Result = TypeVar("Result")


def compiled(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Compile to native code at the first call; cached on disk; releases the GIL."""
    return cast(Callable[Args, Result], numba.njit(cache=True, nogil=True)(function))


def compiled_in_process(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Compile to native code at the first call in each process; releases the GIL.

    For a function that calls compiled functions of other files: numba's cache on disk notices
    changes of a function's own file only.
    """
    return cast(Callable[Args, Result], numba.njit(nogil=True)(function))
