"""Stand-ins for headers of the C and C++ libraries, which NVRTC has not.

Sources written for nvcc include them for their host code. A stand-in (a file of the folder
``headers``) declares only what device code uses of its header: types, limits, constants. A header
of the same name in an include folder wins, but for those of NVIDIA's libraries for the host: they
may be of another release than the compiler, and need the host's own headers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).with_name("headers")
_SAME: Final = {
    "stdint.h": ("cstdint", "inttypes.h", "cinttypes"),
    "limits.h": ("climits",),
    "float.h": ("cfloat",),
    "stdlib.h": ("cstdlib", "cstddef", "stddef.h", "sys/types.h"),
    "cmath": ("limits", "algorithm"),
    "cublas_v2.h": (
        *("cublas.h", "cublas_api.h", "cublasLt.h", "cublasXt.h", "curand.h", "cufft.h"),
        *("cusparse.h", "cusparse_v2.h", "cusolverDn.h", "cusolverSp.h", "cudnn.h", "nccl.h"),
    ),
}
"""Further names of stand-ins."""
_HOST: Final = ("stdlib.h", "stdint.h", "cmath", "type_traits", "nqbench/device.h")
"""What every source compiled by nvcc sees without asking for it."""
_EMPTY: Final = (
    *("stdio.h", "assert.h", "string.h", "memory.h", "malloc.h", "stdbool.h", "time.h", "errno.h"),
    *("ctype.h", "unistd.h", "sys/time.h", "complex.h", "signal.h", "cstdio", "cassert"),
    *("cstring", "ctime", "cerrno", "cctype", "iostream", "iomanip", "fstream", "sstream"),
    *("ostream", "string", "vector", "list", "map", "set", "memory", "chrono", "random"),
    *("thread", "mutex", "atomic", "exception", "numeric", "stdexcept", "queue", "stack"),
    *("deque", "unordered_map", "unordered_set", "iterator", "tuple", "initializer_list"),
    *("nvml.h", "nvToolsExt.h", "nvtx3/nvToolsExt.h", "cuda_profiler_api.h", "omp.h", "mpi.h"),
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
FIRST: Final = {"cublas_v2.h", *_SAME["cublas_v2.h"], "nvml.h", "nvToolsExt.h"} - {"curand.h"}
"""Stand-ins that are used where the library itself is installed, too."""
_FOR_HOSTS: Final = re.compile(
    r"cub/(?:device/.*|cub\.cuh|util_(?:allocator|device)\.cuh)"
    r"|thrust/(?!functional|pair|tuple|detail|type_traits).*"
)
_PARTS: Final = re.compile(r"\b(?:Block|Warp)[A-Z]\w+")


def host_libraries(names: Iterable[str]) -> list[str]:
    """Of included headers, those of CUB and Thrust that only a host compiler can read. They are
    taken to be empty: NVRTC needs seconds to refuse each."""
    return [name for name in names if _FOR_HOSTS.fullmatch(name)]


def whole_cub(texts: Iterable[str], folders: Iterable[Path]) -> str:
    """``cub/cub.cuh`` for kernels: the headers of CUB's classes that texts name, such as
    ``cub/block/block_reduce.cuh`` of ``BlockReduce``. All of them would take seconds."""
    found = {name for text in texts for name in _PARTS.findall(text)}
    words = sorted(re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower() for name in found)
    files = [f"cub/{word.partition('_')[0]}/{word}.cuh" for word in words]
    there = [name for name in files if any((folder / name).is_file() for folder in folders)]
    return "".join(f"#include <{name}>\n" for name in there)
