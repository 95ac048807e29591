"""Reader of TSPLIB files with coordinates in the plane (Reinelt, TSPLIB 95, section 1)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import FileLine, StudyError

KEYWORDS: Final = frozenset(
    {
        "NAME", "TYPE", "COMMENT", "DIMENSION", "CAPACITY", "EDGE_WEIGHT_TYPE",
        "EDGE_WEIGHT_FORMAT", "EDGE_DATA_FORMAT", "NODE_COORD_TYPE", "DISPLAY_DATA_TYPE",
    }
)  # fmt: skip
"""Keywords of the specification part; most of their values are not used."""
READ: Final = {
    "TYPE": (r"TSP(\s.*)?", "only symmetric instances (TSP) are read"),
    "EDGE_WEIGHT_TYPE": (r"EUC_2D", "only EUC_2D (the plane) is read"),
    "DIMENSION": (r"0*[1-9]\d{0,8}", "it is the number of cities"),
}
"""Pattern of the values that are read, and why no others are. Without ``TYPE`` it is a TSP."""
SECTION: Final = "NODE_COORD_SECTION"
LARGEST: Final = 1e18
"""Limit of a coordinate: the squares and sums of eight distances stay finite in single precision.
With infinite ones no change of the length has a meaning."""
_NUMBER: Final = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_CITY: Final = re.compile(rf"(\d{{1,9}})\s+({_NUMBER})\s+({_NUMBER})", re.ASCII)


def read_tsplib(path: Path) -> NDArray[np.float32]:
    """Coordinates of the cities, float32, shape ``(n, 2)``, from a file with ``EDGE_WEIGHT_TYPE:
    EUC_2D`` and a ``NODE_COORD_SECTION``.

    A missing ``EOF`` is accepted. Raises ``StudyError`` with file:line for anything else that is
    wrong: the number of cities, an index, a coordinate, a keyword, another kind of distances.
    """
    lines = [line.strip() for line in _text(path).splitlines()]
    values: dict[str, tuple[int, str]] = {}
    rows: list[tuple[int, str]] = []

    def error(line: int, message: str) -> StudyError:
        return StudyError(message, FileLine(path, line or max(len(lines), 1)))

    section = 0
    for number, line in ((k, line) for k, line in enumerate(lines, 1) if line):
        keyword, colon, value = (part.strip() for part in line.partition(":"))
        if keyword == "EOF":
            break
        if keyword == SECTION:
            section = number
        elif keyword.endswith("_SECTION"):
            raise error(number, f"{keyword} is not read; only {SECTION} is")
        elif section:
            rows.append((number, line))
        elif not colon or keyword not in KEYWORDS:
            what = f"{line[:40]!r} is not a line `KEYWORD : value` of TSPLIB"
            raise error(number, f"{what} before {SECTION}")
        elif keyword in values and keyword != "COMMENT":
            first = values[keyword][0]
            raise error(number, f"{keyword} is given twice, first in line {first}")
        else:
            values[keyword] = number, value
    if not section:
        raise error(0, f"the file has no {SECTION}; only instances with one are read")
    for keyword, (pattern, why) in READ.items():
        number, value = values.get(keyword, (0, "TSP" if keyword == "TYPE" else ""))
        if not re.fullmatch(pattern, value, re.ASCII):
            what = f"is {value[:40]!r}" if keyword in values else "is missing"
            raise error(number, f"{keyword} {what}; {why}")
    n = int(values["DIMENSION"][1])
    cities: dict[int, tuple[int, float, float]] = {}
    for number, line in rows:
        found = _CITY.fullmatch(line)
        index, x, y = (int(found[1]), float(found[2]), float(found[3])) if found else (0, 0, 0)
        if not 1 <= index <= n or max(abs(x), abs(y)) > LARGEST:
            raise error(
                number,
                f"{line[:40]!r} is not a city, `index x y`, with an index from 1 to DIMENSION: {n}"
                f" and coordinates from -{LARGEST:g} to {LARGEST:g}",
            )
        if index in cities:
            first = cities[index][0]
            raise error(number, f"city {index} is given twice, first in line {first}")
        cities[index] = number, x, y
    if len(cities) != n:
        missing = next(i for i in range(1, n + 1) if i not in cities)
        said = f"{len(cities)} cities, but DIMENSION is {n}; city {missing} is missing"
        raise error(rows[-1][0] if rows else section, said)
    return np.array([cities[i][1:] for i in range(1, n + 1)], np.float32)


def _text(path: Path) -> str:
    try:
        if path.is_fifo() or path.is_char_device():  # reading may never end
            raise ValueError("it is a pipe or a device")
        return path.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
    except (OSError, ValueError) as error:  # ValueError: not text, or a name that no file can have
        unread = "it is not text" if isinstance(error, UnicodeDecodeError) else error
        raise StudyError(
            f"instance {str(path)!r} cannot be read: {getattr(error, 'strerror', None) or unread};"
            " give `uniform` or the path of a TSPLIB file, from the folder of the command",
            factor="instance",
        ) from error
