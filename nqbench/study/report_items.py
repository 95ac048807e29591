"""Tables and figures that a study may ask for, and their options.

The study reader checks a file against this list, and ``nqbench.report`` has a builder of the same
name for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from nqbench.vocabulary import COUNTERS, PROGRAM_COUNTERS
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
    options: tuple[str, ...] = ("of", "value", "title", "n")
    required: tuple[str, ...] = ()
    every: bool = False


OPTIONS: Final = {
    "of": "the sweep it is made from; may be left out if the study has one",
    "x": "factor along the x axis",
    "y": "factor along the y axis",
    "series": "factor (or `system`) with a line for each level",
    "value": "what is shown: `time`, a phase, a counter or a metric of the study's `kernel`; by"
    " default the time, or the main counters of a simulated run",
    "title": "heading, in place of the one made from the study",
    "n": "sizes to show; by default all",
}

REPORT_KINDS: Final = (
    ReportKind("table", "results", "every point with its value, interval and status", every=True),
    ReportKind("table", "effects", "main effect of every factor, as a ratio"),
    ReportKind("table", "interactions", "how the effect of one factor changes with another"),
    ReportKind(
        "table",
        "resources",
        "registers, stack, shared memory and occupancy of every kernel",
        ("of", "title", "n"),
        every=True,
    ),
    ReportKind("table", "skipped", "what did not run, and why", ("of", "title", "n"), every=True),
    ReportKind(
        "table",
        "bottleneck",
        "what limits kernels, by the times of their variants (runs of `nqbench bottleneck`)",
        ("title", "n"),
        every=True,
    ),
    ReportKind(
        "figure",
        "bottleneck",
        "how much faster kernels are without memory, and without arithmetic",
        ("title", "n"),
        every=True,
    ),
    ReportKind(
        "figure", "effects", "main effects and two-way interactions as ratios with intervals"
    ),
    ReportKind(
        "figure", "ranking", "all points of a factorial as a sorted dot plot with their levels"
    ),
    ReportKind(
        "figure",
        "heatmap",
        "a value over two factors; what cannot run is hatched",
        ("of", "x", "y", "value", "title", "n"),
        required=("x", "y"),
    ),
    ReportKind(
        "figure",
        "line",
        "a value against one number, a line per series",
        ("of", "x", "series", "value", "title", "n"),
        required=("x",),
    ),
    ReportKind(
        "figure",
        "scaling",
        "a value against n, with the CPU baselines",
        ("of", "series", "value", "title", "n"),
    ),
)


def values() -> tuple[str, ...]:
    """All other names that ``value`` takes."""
    return ("time", *phases(), *COUNTERS, *PROGRAM_COUNTERS)


REMOVED_TABLES: Final = {
    "systems": "`table: results` has every point, `figure: scaling` draws them against n; delete"
    " the entry",
    "scale": "nqbench count N --estimate says what a board would cost; delete the entry",
}
"""What to use instead of a table that an earlier version had."""


def kinds(form: Form) -> dict[str, ReportKind]:
    """The tables, or the figures, by name."""
    return {kind.name: kind for kind in REPORT_KINDS if kind.form == form}


@dataclass(frozen=True, slots=True)
class ReportItem:
    """One entry of a study's ``report`` list. Empty ``n`` is all sizes, no ``of`` all sweeps."""

    form: Form
    name: str
    of: str | None = None
    x: str | None = None
    y: str | None = None
    series: str | None = None
    value: str | None = None
    title: str | None = None
    n: tuple[int, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain form, as in the file: ``{"figure": "heatmap", "of": ..., "x": ...}``."""
        given = {option: getattr(self, option) for option in OPTIONS}
        given["n"] = list(self.n)
        return {self.form: self.name} | {key: value for key, value in given.items() if value}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> ReportItem:
        """Inverse of :meth:`as_json`.

        A damaged entry raises ``AttributeError``, ``KeyError``, ``TypeError`` or ``ValueError``.
        """
        form: Form = "figure" if "figure" in entry else "table"
        given = {key: entry[key] for key in OPTIONS if entry.get(key) is not None and key != "n"}
        sizes = entry.get("n") or ()
        numbers = sizes if isinstance(sizes, Sequence) else (sizes,)
        return cls(form, str(entry[form]), n=tuple(map(int, numbers)), **given)
