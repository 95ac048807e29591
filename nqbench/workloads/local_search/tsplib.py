"""Reader of TSPLIB files with coordinates in the plane (Reinelt, TSPLIB 95, section 1)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
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
WEIGHT_TYPE: Final = "EUC_2D"
SECTION: Final = "NODE_COORD_SECTION"
END: Final = "EOF"
LARGEST: Final = 1e18
"""Limit of a coordinate: the squares and sums of eight distances stay finite in single precision.
With infinite ones no change of the length has a meaning."""
MAX_DIGITS: Final = 9
"""Limit for the number of cities, or of a city: more do not fit any memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Tsplib:
    """``name`` as in the file; ``cities``: coordinates, float32, shape ``(n, 2)``."""

    name: str
    cities: NDArray[np.float32]


def read_tsplib(path: Path) -> Tsplib:
    """Read a file with ``EDGE_WEIGHT_TYPE: EUC_2D`` and a ``NODE_COORD_SECTION``.

    A missing ``EOF`` is accepted. Raises ``StudyError`` with file:line for anything else that is
    wrong: the number of cities, an index, a coordinate, a keyword, another kind of distances.
    """
    try:
        if path.is_fifo() or path.is_char_device():  # reading may never end
            raise ValueError("it is a pipe or a device")
        text = path.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
    except (OSError, ValueError) as error:  # ValueError: also a name that no file can have
        if isinstance(error, UnicodeDecodeError):
            message = f"instance {str(path)!r} is not text; TSPLIB files are"
            raise StudyError(message, factor="instance") from error
        reason = getattr(error, "strerror", None) or error
        raise StudyError(
            f"instance {str(path)!r} cannot be read: {reason};"
            " give `uniform` or the path of a TSPLIB file, from the folder of the command",
            factor="instance",
        ) from error
    return _TsplibReader(path, text).read()


class _TsplibReader:
    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        lines = text.splitlines()
        self.last = max(len(lines), 1)
        self.lines = ((number, line.strip()) for number, line in enumerate(lines, 1))
        self.values: dict[str, tuple[int, str]] = {}

    def read(self) -> Tsplib:
        section = self.specification()
        number, kind = self.values.get("TYPE", (0, "TSP"))
        if kind.split()[:1] != ["TSP"]:
            raise self.error(number, f"TYPE is {kind!r}; only symmetric instances (TSP) are read")
        number, kind = self.needed("EDGE_WEIGHT_TYPE", f"; instances with {WEIGHT_TYPE} are read")
        if kind != WEIGHT_TYPE:
            raise self.error(
                number, f"EDGE_WEIGHT_TYPE is {kind!r}; only {WEIGHT_TYPE} (the plane) is read"
            )
        number, text = self.needed("DIMENSION", "", ", the number of cities,")
        if _whole(text) < 1:
            raise self.error(number, f"DIMENSION is {text[:40]!r}, not a number of cities")
        cities = self.coordinates(_whole(text), section)
        return Tsplib(self.values.get("NAME", (0, self.path.stem))[1], cities)

    def error(self, line: int, message: str) -> StudyError:
        return StudyError(message, FileLine(self.path, line))

    def specification(self) -> int:
        """Read up to the section of coordinates; returns its line."""
        for number, line in self.lines:
            if not line:
                continue
            keyword, colon, value = (part.strip() for part in line.partition(":"))
            if keyword == SECTION:
                return number
            if keyword == END:
                break
            if keyword.endswith("_SECTION"):
                raise self.error(number, f"{keyword} is not read; only {SECTION} is")
            if not colon or keyword not in KEYWORDS:
                raise self.error(
                    number,
                    f"{line[:40]!r} is not a line `KEYWORD : value` of TSPLIB before {SECTION}",
                )
            if keyword in self.values and keyword != "COMMENT":
                first = self.values[keyword][0]
                raise self.error(number, f"{keyword} is given twice, first in line {first}")
            self.values[keyword] = number, value
        raise self.error(self.last, f"the file has no {SECTION}; only instances with one are read")

    def needed(self, keyword: str, so: str, what: str = "") -> tuple[int, str]:
        if keyword not in self.values:
            raise self.error(self.last, f"{keyword}{what} is missing{so}")
        return self.values[keyword]

    def coordinates(self, n: int, section: int) -> NDArray[np.float32]:
        cities: dict[int, tuple[float, float]] = {}
        seen: dict[int, int] = {}
        for number, line in self.data_lines():
            parts = line.split()
            if len(parts) != 3:
                raise self.error(number, f"a city is `index x y`, not {line[:40]!r}")
            index = self.index(number, parts[0], n)
            if index in seen:
                raise self.error(
                    number, f"city {index} is given twice, first in line {seen[index]}"
                )
            if len(seen) == n:
                raise self.error(number, f"more cities than DIMENSION: {n}")
            seen[index] = number
            cities[index] = self.number(number, parts[1]), self.number(number, parts[2])
        if len(cities) != n:
            missing = next(i for i in range(1, n + 1) if i not in cities)
            raise self.error(
                max([section, *seen.values()]),
                f"{len(cities)} cities, but DIMENSION is {n}; city {missing} is missing",
            )
        return np.array([cities[i] for i in range(1, n + 1)], np.float32)

    def data_lines(self) -> Iterator[tuple[int, str]]:
        for number, line in self.lines:
            if line == END:
                return
            if line.endswith("_SECTION"):
                raise self.error(number, f"{line} is not read; only {SECTION} is")
            if line:
                yield number, line

    def index(self, number: int, text: str, n: int) -> int:
        if not 1 <= _whole(text) <= n:
            raise self.error(number, f"city {text[:40]!r} is not a number from 1 to DIMENSION: {n}")
        return _whole(text)

    def number(self, number: int, text: str) -> float:
        try:
            value = math.nan if "_" in text else float(text)
        except ValueError:
            value = math.nan
        if not abs(value) <= LARGEST:
            raise self.error(
                number, f"coordinate {text[:40]!r} is not a number from -{LARGEST:g} to {LARGEST:g}"
            )
        return value


def _whole(text: str) -> int:
    """A number in decimal digits; 0 for anything else."""
    plain = text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS
    return int(text) if plain else 0
