"""Tables and figures that a study may ask for, and their options.

They stand in ``report_items.toml``. The study reader checks a file against that list, and
``nqbench.report`` has a builder of the same name for each.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from nqbench.vocabulary import COUNTERS, ERRORS, PROGRAM_COUNTERS, SUMS
from nqbench.workloads import phases

Form = Literal["table", "figure"]


@dataclass(frozen=True, slots=True)
class ReportKind:
    """A table or figure that can be asked for.

    ``options``   keys it takes besides ``table``/``figure``
    ``required``  those among them that have no default
    ``every``     whether it covers all sweeps; if not, ``of`` names one of several
    """

    form: Form
    name: str
    meaning: str
    options: Sequence[str] = ("of", "value", "title")
    required: Sequence[str] = ()
    every: bool = False


_DATA: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
OPTIONS: Final[Mapping[str, str]] = _DATA["options"]
REPORT_KINDS: Final = tuple(ReportKind(**kind) for kind in _DATA["kinds"])
REMOVED_TABLES: Final[Mapping[str, str]] = _DATA["removed_tables"]
"""What to use instead of a table that an earlier version had."""


def values() -> tuple[str, ...]:
    """All other names that ``value`` takes."""
    return ("time", *phases(), *COUNTERS, *PROGRAM_COUNTERS, *ERRORS, *SUMS)


def kinds(form: Form) -> dict[str, ReportKind]:
    """The tables, or the figures, by name."""
    return {kind.name: kind for kind in REPORT_KINDS if kind.form == form}


@dataclass(frozen=True, slots=True)
class ReportItem:
    """One entry of a study's ``report`` list. No ``of`` is all sweeps."""

    form: Form
    name: str
    of: str | None = None
    x: str | None = None
    y: str | None = None
    series: str | None = None
    value: str | None = None
    title: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain form, as in the file: ``{"figure": "heatmap", "of": ..., "x": ...}``."""
        given = {option: getattr(self, option) for option in OPTIONS}
        return {self.form: self.name} | {key: value for key, value in given.items() if value}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> ReportItem:
        """Inverse of :meth:`as_json`.

        A damaged entry raises ``AttributeError``, ``KeyError``, ``TypeError`` or ``ValueError``.
        """
        form: Form = "figure" if "figure" in entry else "table"
        given = {key: entry[key] for key in OPTIONS if entry.get(key) is not None}
        return cls(form, str(entry[form]), **given)
