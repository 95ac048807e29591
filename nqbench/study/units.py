"""Durations and percentages as people write them: ``10s``, ``1m30s``, ``0.5%``."""

from __future__ import annotations

import re
from typing import Final

from nqbench.errors import StudyError
from nqbench.system.suggest import shown

_SECONDS: Final = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_PART: Final = r"(\d+(?:\.\d+)?)\s*(ms|min|s|m|h)"
_DURATION: Final = re.compile(rf"\s*(?:{_PART}\s*)+")
_PERCENT: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")

LONGEST_S: Final = 7 * 24 * 3600.0
"""A week: a longer limit on a single point has the wrong unit."""


def duration_s(text: object) -> float:
    """Seconds in ``10s``, ``500ms``, ``2m``, ``1h`` or ``1m30s``.

    Raises ``StudyError`` (without a place) for anything else, a bare number included: its unit
    would be a guess.
    """
    if not isinstance(text, str) or len(text) > 40 or not _DURATION.fullmatch(text):
        raise StudyError(
            f"{shown(text)} is not a duration; write a number with its unit,"
            " such as 500ms, 10s, 2m or 1h"
        )
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in re.findall(_PART, text))
    if not 0 < seconds <= LONGEST_S:
        raise StudyError(f"the duration {shown(text)} must be more than 0 and at most 7 days")
    return seconds


def fraction(text: object) -> float:
    """``0.5%`` as ``0.005``. Raises ``StudyError`` (without a place) for anything else."""
    match = _PERCENT.fullmatch(text) if isinstance(text, str) and len(text) < 40 else None
    if match is None:
        raise StudyError(
            f"{shown(text)} is not a percentage; write a number with a % sign, such as 0.5%"
        )
    value = float(match[1]) / 100
    if not 0 < value <= 0.5:
        raise StudyError(f"the percentage {shown(text)} must be more than 0% and at most 50%")
    return value
