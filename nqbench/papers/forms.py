"""What ``published.yaml`` says of the tables and figures that are made again: which points they
show, in which columns, heights and panels.

The names and formulas in it are marked as such, and ``papers.load`` looks each one up.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict

Words = dict[str, str]

SystemName = Annotated[str, "system"]
ShownSystem = Annotated[str, "shown system"]
DeviceName = Annotated[str, "hardware"]
DataName = Annotated[str, "data"]
FactorName = Annotated[str, "factor"]
CounterName = Annotated[str, "counter"]
QuantityName = Annotated[str, "quantity"]
CaveatName = Annotated[str, "caveat"]
ClaimFormula = Annotated[str, "claim formula"]
CellFormula = Annotated[str, "cell formula"]
Levels = dict[FactorName, str]


class _FormPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


Reproduction = Literal["series", "points", "printed", "none"]


class Points(_FormPart):
    """Which points of a run are shown: one for each system and size, or each level of ``by``.

    ``systems``  of the paper or of nqbench; also ``kernels`` (all on the GPU), ``others`` (those of
                 them that the paper does not have), ``every``
    ``sizes``    those ``listed`` (none: all); with the ``largest``; those of the ``run``; or the
                 first at which a formula has a value (``counted``)
    ``sweeps``   instead: the points of these sweeps, ``scaled`` and ``scaled_2``
    ``levels``   those that a system's points must have
    ``by``       a factor: a point for each of its numbers, or of its ``words``
    ``several``  a factor of which two numbers at least were timed
    ``choose``   of several points the main one, the fastest (``best``), or ``any``, timed or not
    ``best``     systems of which the fastest is shown in any case
    ``join``     with published times: rows are those that are ours, in both, or in either
    ``explain``  whether notes say why points are missing
    """

    systems: list[ShownSystem] = []
    sizes: Literal["listed", "largest", "run", "counted"] = "listed"
    sweeps: list[str] = []
    levels: dict[SystemName, Levels] = {}
    by: FactorName = ""
    words: bool = False
    several: FactorName = ""
    choose: Literal["main", "best", "any"] = "main"
    best: list[SystemName] = []
    order: Literal["system", "n"] = "system"
    join: Literal["ours", "both", "either"] = "ours"
    explain: bool = False

    @property
    def numbers(self) -> bool:
        """Whether its points have numbers of a factor."""
        return bool(self.several or self.by) and not self.words


class PointColumn(_FormPart):
    """A column of a table of points.

    ``value``     its formula, in the language of claims (docs/papers.md)
    ``of``        whose times it is about; quotients of the ``paper``'s are in brackets
    ``interval``  whether bounds are shown where they are known
    ``each``      a factor: a column for each of its numbers, which are ``each`` in the formula
    ``needed``    whether rows without this value are left out
    ``optional``  whether the column is left out where no row has a value
    """

    head: str
    value: CellFormula
    kind: Literal["text", "number", "time", "ratio"] = "text"
    unit: str = ""
    of: Literal["here", "paper"] = "here"
    interval: bool = True
    each: FactorName = ""
    needed: bool = False
    optional: bool = False

    @property
    def spread(self) -> bool:
        """Whether its cells have intervals."""
        return self.of == "here" and self.interval and self.kind in ("time", "ratio")


class HereRow(_FormPart):
    """A row of ours in a table as printed: formulas of its cells, of the main point of ``system``.

    ``each``   instead: one formula, for every size of a table with columns by size, of ``kind``
    ``after``  the printed row that it stands below
    """

    cells: list[CellFormula] = []
    each: CellFormula = ""
    kind: Literal["time", "ratio"] = "time"
    system: SystemName = ""
    after: str = ""


class Height(_FormPart):
    """What a figure shows upwards: a formula, the words for it, and how its axis runs.

    ``role``   that of the published values (``known``) which belong here
    ``scale``  logarithmic, from ``zero``, or only ``near`` the values
    ``ideal``  a dotted line; ``top`` the end of the axis
    """

    value: CellFormula
    label: str
    kind: Literal["time", "ratio", "number"] = "ratio"
    role: str = ""
    scale: Literal["log", "zero", "near"] = "log"
    ideal: float | None = None
    top: float | None = None


class Curves(_FormPart):
    """Marks joined by lines: heights over ``x``.

    ``x``          a factor, ``n`` among them, with its words and axis
    ``panels``     a panel for each run, size or height
    ``lines``      the lines in a panel: systems, runs, or sizes
    ``published``  whether the paper's times have a ``panel`` of their own or are in each one
    ``across``     panels beside each other; ``legend`` where the lines are named
    """

    points: Points
    x: FactorName = "n"
    x_label: str = "N"
    powers: bool = False
    y: list[Height]
    panels: Literal["runs", "n", "y"] = "y"
    lines: Literal["systems", "runs", "n"] = "runs"
    published: Literal["none", "panel", "overlay"] = "none"
    across: int = 2
    legend: Literal["inside", "right", "below"] = "below"


class Bars(_FormPart):
    """Bars of systems. Stacked: a panel for each run and size, bars in ``parts`` that add up, with
    the interval of the ``whole`` and the levels ``inside``. In a grid: a row of panels for each
    run, one for each of the ``parts``."""

    points: Points
    parts: list[Height]
    whole: CellFormula = ""
    inside: list[FactorName] = []
    label: str = ""


Draw = Literal["none", "curves", "stacked", "grid"]
