"""The files that a CUDA source includes: its own, those in the folders of its plan, and stand-ins
for headers of the C and C++ libraries, which NVRTC has not.

Sources written for nvcc include them for their host code. A stand-in (a file of the folder
``headers``) declares only what device code uses of its header: types, limits, constants. A header
of the same name in an include folder wins, but for those of NVIDIA's libraries for the host: they
may be of another release than the compiler, and need the host's own headers.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nqbench.errors import CompileError
from nqbench.system.files import contents_of

_INCLUDE: Final = re.compile(
    r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE
)
_FOLDER: Final = Path(__file__).with_name("headers")
_NAMES: Final = tomllib.loads(Path(__file__).with_name("standins.toml").read_text(encoding="utf-8"))
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


@dataclass(frozen=True, slots=True)
class Header:
    """An included file: the name that the source gives it, its full path, its text."""

    name: str
    path: Path
    text: str


def read_source(path: Path) -> str:
    """The text of a source or header. Raises ``CompileError`` if it cannot be read.

    Bytes that are not UTF-8 (in a comment, mostly) are read as Latin-1."""
    try:
        raw = contents_of(path)
    except OSError as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CompileError(f"kernel source {path} cannot be read: {reason}") from error
    try:
        return raw.decode("utf-8-sig")  # an editor's mark at the start is no C++
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def find_headers(
    source: Path, text: str, read: Callable[[Path], str] = read_source, folders: Sequence[Path] = ()
) -> list[Header]:
    """Every file of the user's that a source includes, directly or not. Each path and name occurs
    once.

    They are searched where NVRTC searches: beside the including file (with quotes), beside the
    kernel, then in ``folders``. A name that is not found is left to the compiler, which may not
    need it (``#if``) or reports the line.
    """
    source = source.resolve()
    found = _headers((), (source.parent, *folders), text, frozenset({source}), read)
    return list({(header.name, header.path): header for header in found}.values())


def included_names(text: str) -> dict[str, int]:
    """Names of the files that a text includes, in quotes or angle brackets, and their lines."""
    return {
        match[1] or match[2]: text.count("\n", 0, match.end()) + 1
        for match in _INCLUDE.finditer(text)
    }


def _headers(
    beside: tuple[Path, ...],
    folders: Sequence[Path],
    text: str,
    seen: frozenset[Path],
    read: Callable[[Path], str],
) -> Iterator[Header]:
    """``seen`` ends cycles of ``#pragma once`` headers."""
    for quoted, angled in _INCLUDE.findall(text):
        name = quoted or angled
        search = (*beside, *folders) if quoted else folders
        places = ((folder / name).resolve() for folder in search)
        # A pipe counts: the compiler would wait for it.
        path = next((path for path in places if path.exists() and not path.is_dir()), None)
        if path is None or path in seen:
            continue
        inner = read(path)
        yield Header(name, path, inner)
        yield from _headers((path.parent, *beside), folders, inner, seen | {path}, read)


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
