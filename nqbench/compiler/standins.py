"""Stand-ins for headers of the C and C++ libraries, which NVRTC has not.

Sources written for nvcc include them for their host code. A stand-in (a file of the folder
``headers``) declares only what device code uses of its header: types, limits, constants. A header
of the same name in an include folder wins, but for those of NVIDIA's libraries for the host: they
may be of another release than the compiler, and need the host's own headers.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).with_name("headers")
_NAMES: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_SAME: Final = {own: names.split() for own, names in _NAMES["same"].items()}
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
    **dict.fromkeys(_NAMES["empty"].split(), ""),
    "nqbench/host.h": "\n".join(
        ("#pragma once", *(f'#include "{name}"' for name in _NAMES["host"].split()), "")
    ),
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
