"""Intel's TBB under numba's parallel loops.

Numba picks a threading layer once per process, at the first parallel loop, and prefers TBB if it
can be loaded. The package ``tbb`` puts its library where the system's loader does not look, so it
is loaded here by its path first; numba then finds it by name.
"""

from __future__ import annotations

import ctypes
import site
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from nqbench.errors import DeviceError

TBB_GRAIN: Final = 16
"""Rows in TBB's smallest piece. The paper's range has TBB's default of one row; TBB splits it into
a few pieces per thread, and further when one is stolen. Numba gives TBB a range of pieces that it
has numbered before, with the same partitioner, and every piece costs a call: with one row each
that adds 250% at n = 1,000 and 40% at 10,000, with 16 rows 15% and 3%."""

LIBRARY: Final = "libtbb.so.12"
"""What numba asks the loader for; below a prefix, wheels and conda have it in ``lib``."""


@cache
def load_tbb() -> str:
    """Load the library for numba; the reason if that failed, else empty.

    Takes a few milliseconds and imports nothing large. If none of the ``places`` has it, the
    system's loader is asked.
    """
    path = next((path for path in places() if path.exists()), None)
    try:
        ctypes.CDLL(str(path or LIBRARY), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        looked = ", ".join(dict.fromkeys(str(place.parent) for place in places()))
        if path:
            return f"{path} cannot be loaded ({error})"
        return (
            f"its library {LIBRARY} is neither in {looked} nor known to the system's loader;"
            " install the package tbb, which exists for x86-64, into a virtual environment"
            " (pip install --force-reinstall tbb)"
        )
    return ""


def places() -> Iterator[Path]:
    """Where the library may be: the places of the package's own list come first.

    That list is wrong where files were moved after it was made (``pip install --target``, a
    package linked into another environment), and conda has none.
    """
    with suppress(PackageNotFoundError):
        package = distribution("tbb")
        listed = [file for file in package.files or () if file.name == LIBRARY]
        yield from (Path(str(file.locate())).resolve() for file in listed)
        yield Path(str(package.locate_file("lib"))).resolve() / LIBRARY
    for prefix in (sys.prefix, site.getuserbase(), sys.base_prefix):
        yield Path(prefix, "lib", LIBRARY)


def check_layer() -> None:
    """Raise ``DeviceError`` unless numba's parallel loops in this process ran on TBB."""
    from numba.np.ufunc import parallel

    layer = str(parallel.threading_layer())  # type: ignore[no-untyped-call]
    if layer != "tbb":
        raise DeviceError(
            f"cpu_tbb cannot run: numba's parallel loops use its {layer} layer in this process and"
            " not TBB, chosen by NUMBA_THREADING_LAYER or by an earlier loop; unset that variable,"
            " or measure cpu_tbb in a study of its own"
        )
