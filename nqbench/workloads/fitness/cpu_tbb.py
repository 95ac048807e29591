"""Intel's TBB under numba's parallel loops.

Numba picks a threading layer once per process, at the first parallel loop, and prefers TBB if it
can be loaded. The package ``tbb`` puts its library where the system's loader does not look, so it
is loaded here by its path first; numba then finds it by name.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from nqbench.errors import DeviceError

LIBRARIES: Final = {
    "linux": "libtbb.so.12",
    "darwin": "libtbb.12.dylib",
    "win32": "tbb12.dll",
}
"""What numba asks the loader for, by ``sys.platform``."""


@cache
def tbb_library() -> Path | None:
    """The library inside the installed package ``tbb``, or ``None``."""
    name = LIBRARIES.get(sys.platform)
    try:
        files = distribution("tbb").files or []
    except PackageNotFoundError:
        return None
    for file in files:
        if file.name == name:
            path = Path(str(file.locate()))
            return path if path.exists() else None
    return None


@cache
def load_tbb() -> str:
    """Load the library for numba; empty if it worked, otherwise what stood in the way.

    Takes a few milliseconds and imports nothing large. Without the package, a library that the
    system's loader finds by itself will do.
    """
    path = tbb_library()
    name = LIBRARIES.get(sys.platform, "")
    if not path and not name:
        return f"TBB is not known to exist on {sys.platform}"
    try:
        ctypes.CDLL(str(path or name), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        if path is None:
            return "the package tbb is not installed (pip install tbb; it exists for x86-64)"
        return f"{path} cannot be loaded ({error})"
    return ""


def check_layer() -> None:
    """See that the loops that ran in this process ran on TBB. Raises ``DeviceError`` if not."""
    from numba.np.ufunc import parallel

    layer = str(parallel.threading_layer())  # type: ignore[no-untyped-call]
    if layer != "tbb":
        raise DeviceError(
            f"cpu_tbb cannot run: numba's parallel loops use its {layer} layer in this process and"
            " not TBB, chosen by NUMBA_THREADING_LAYER or by an earlier loop; unset that variable,"
            " or measure cpu_tbb in a study of its own"
        )
