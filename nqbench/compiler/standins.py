"""Stand-ins for headers of the C and C++ libraries, which NVRTC has not.

Sources written for nvcc include them for their host code. A stand-in (a file of the folder
``headers``) declares only what device code uses of its header: types, limits, constants. A header
of the same name in an include folder wins.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).with_name("headers")
_SAME: Final = {
    "stdint.h": ("cstdint", "inttypes.h", "cinttypes"),
    "limits.h": ("climits",),
    "float.h": ("cfloat",),
    "stdlib.h": ("cstdlib", "cstddef", "stddef.h", "sys/types.h"),
    "cmath": ("limits", "algorithm", "utility", "functional"),
}
"""Further names of stand-ins."""
_HOST: Final = ("stdlib.h", "stdint.h", "cmath", "type_traits")
"""What every source compiled by nvcc sees without asking for it."""
_EMPTY: Final = (
    *("stdio.h", "assert.h", "string.h", "memory.h", "malloc.h", "stdbool.h", "time.h", "errno.h"),
    *("ctype.h", "unistd.h", "sys/time.h", "complex.h", "signal.h", "cstdio", "cassert"),
    *("cstring", "ctime", "cerrno", "cctype", "iostream", "iomanip", "fstream", "sstream"),
    *("ostream", "string", "vector", "list", "map", "set", "array", "memory", "chrono", "random"),
    *("thread", "mutex", "atomic", "exception", "numeric", "stdexcept", "queue", "stack"),
    *("deque", "unordered_map", "iterator", "tuple"),
)
"""Headers of which device code uses nothing, or that NVRTC needs no declarations of."""
_ARCHS: Final = (*range(50, 54), *(60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89), *range(90, 130))
_PROVIDES: Final = "".join(
    f"#if __CUDA_ARCH__ >= {10 * arch}\n#define NV_PROVIDES_SM_{arch} 1\n#else\n"
    f"#define NV_PROVIDES_SM_{arch} 0\n#endif\n"
    for arch in _ARCHS
)

STANDINS: Final[dict[str, str]] = {
    **{
        path.relative_to(_FOLDER).as_posix(): path.read_text()
        for path in sorted(_FOLDER.rglob("*"))
        if path.is_file()
    },
    **{name: f'#include "{own}"\n' for own, names in _SAME.items() for name in names},
    **dict.fromkeys(_EMPTY, ""),
    "nqbench/host.h": "#pragma once\n" + "".join(f'#include "{name}"\n' for name in _HOST),
}
"""Text of each stand-in by the name that sources include."""
STANDINS["nv/target"] += _PROVIDES
