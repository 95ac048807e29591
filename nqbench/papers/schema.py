"""The form of ``published.yaml``: every key, checked by pydantic.

Cells and values stay text, with the digits that the paper prints; they become numbers where they
are calculated with. Long series are in CSV files next to it (``data``, read by
``papers.load``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from nqbench.papers import forms
from nqbench.papers.forms import ClaimFormula, DeviceName, SystemName, Words

ClaimKind = Literal[
    "ratio", "ranking", "optimum", "invariance", "crossover", "counter", "share", "count", "bound",
    "failure", "extrapolation", "reported_only",
]  # fmt: skip
SizeAs = Literal["gain", "value", "none"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Work(_Part):
    """Where the paper was published."""

    title: str
    original_title: str = ""
    authors: list[str] = Field(min_length=1)
    affiliation: str = ""
    venue: str
    year: int
    url: str = ""
    note: str = ""


class Hardware(_Part):
    """A device of the paper. ``facts`` are stated in the text; ``not_stated`` are not."""

    id: str
    kind: Literal["gpu", "cpu", "common"]
    name: str
    role: str
    facts: Words = {}
    not_stated: list[str] = []
    note: str = ""


class PaperSystem(_Part):
    """A program of the paper. ``system`` is what nqbench runs for it, if anything."""

    id: str
    name: str
    kind: Literal["system", "component", "reference", "profiling"]
    section: str
    change: str
    timed: str
    system: SystemName = ""
    not_stated: list[str] = []


class Today(_Part):
    """A claim about certain devices, in a form that can be tested on others.

    ``devices``  number of compute capabilities whose runs it needs
    ``n``        its sizes, if they are not those of the claim
    """

    expr: ClaimFormula
    expect: ClaimFormula
    devices: int = 1
    note: str = ""
    n: list[int] | None = None


class Headline(_Part):
    """How a claim of the abstract or the conclusion stands in the scorecard; where these state no
    result, one that carries the paper.

    ``label``  what is compared, in a few words
    ``reads``  what its value says: how many times ``faster`` (a ratio, if not said) or ``slower``
               something is, or just how many ``times``; other values stand as they are
    """

    label: str
    reads: Literal["", "faster", "slower", "times"] = ""


class Claim(_Part):
    """A statement of the paper in a form that can be tested (docs/papers.md has the language).

    ``n``  sizes that it applies to; empty: every size measured
    ``paper_value``  what the paper gives, by N, device or named part; text, as printed
    ``unit``  of value and ``paper_value``; empty for a ratio or a plain count
    ``size``  how our number is set against the printed one: the ``gain`` over 1 (ratios, if not
              said), the ``value`` itself, or ``none`` (all others)
    ``architecture_dependent``  whether it is about the paper's GPUs alone: on others it is asked of
              another architecture, and counted apart
    """

    id: str
    headline: Headline | None = None
    statement: str
    section: str
    hardware: list[DeviceName] = []
    n: list[int] = []
    kind: ClaimKind
    expr: ClaimFormula
    expect: ClaimFormula = ""
    today: Today | None = None
    paper_value: str | Words = ""
    value_origin: Literal["printed", "from_table", "qualitative"]
    architecture_dependent: bool
    unit: str = ""
    size: SizeAs | None = None
    note: str = ""
    caveat: forms.CaveatName = ""

    @property
    def size_as(self) -> SizeAs:
        """How the printed size is compared."""
        if self.size is not None:
            return self.size
        return "gain" if self.kind == "ratio" and self.today is None else "none"

    def published(self, n: int | None) -> str:
        """The paper's value at a size; all of its values where they are not listed by size."""
        if isinstance(self.paper_value, str):
            return self.paper_value
        if n is not None and str(n) in self.paper_value:
            return self.paper_value[str(n)]
        by_size = any(key.isdigit() for key in self.paper_value)
        if by_size:
            return ""
        return ", ".join(f"{key}: {value}" for key, value in self.paper_value.items())


DIRECTIONS = ("faster", "slower", "as fast")
"""What a paper says of an effect without a number."""


class Effect(_Part):
    """A row of the matrix of effects: how many times as fast a change makes a program.

    ``claim``      the claim whose formula and printed values it shows; or ``expr``, a formula
    ``n``          sizes, a row for each
    ``published``  what the paper gives, by device, added to that of the claim: a number as printed,
                   or a word of :data:`DIRECTIONS`
    """

    id: str
    label: str
    n: list[int]
    claim: str = ""
    expr: ClaimFormula = ""
    published: dict[DeviceName, str] = {}


class Caveat(_Part):
    """An error, contradiction or gap of the paper."""

    id: str
    kind: Literal[
        "paper_error", "paper_inconsistency", "ambiguous", "lost_text", "feasibility", "external"
    ]
    text: str


class Ratio(_Part):
    """The quotient that the paper derives from a series.

    ``series`` of ``table``  the dividend (``speedup``) or the divisor (``share``)
    ``printed``  label of the printed quotient, in ``printed_in`` (default: the same table)
    """

    table: str
    series: str
    form: Literal["speedup", "share"] = "speedup"
    of: str = ""
    printed: str = ""
    printed_in: str = ""


class Series(_Part):
    """A row or column of a table: which system it is and what was recorded of it.

    ``quantity``  ``time``, a phase, or ``ratio`` where the printed cell is itself the quotient
    ``levels``    launch factors that distinguish it from others of the same system
    ``choose``    ``main``: the configuration of the study's first sweep; ``best``: the fastest
    ``ours``      a series that the paper does not have, of levels that it does not show
    """

    label: str
    system: SystemName
    quantity: forms.QuantityName
    hardware: DeviceName = ""
    levels: forms.Levels = {}
    ratio: Ratio | None = None
    choose: Literal["main", "best"] = "main"
    ours: bool = False


class Counterpart(_Part):
    """Today's counter for one that the paper prints in the row ``label``.

    ``scale`` turns our unit into ``unit``; ``difference`` says how the two differ.
    """

    label: str
    counter: forms.CounterName
    unit: str = ""
    scale: float = 1.0
    difference: str = ""

    @property
    def names(self) -> dict[str, str | float]:
        """What formulas of its row read: these keys, and the ``scaled`` counter in words."""
        scaled = self.counter if self.scale == 1 else f"{self.counter} \u00d7 {self.scale:g}"
        own = {"label": self.label, "unit": self.unit, "difference": self.difference}
        return {**own, "counterpart": self.counter, "scale": self.scale, "scaled": scaled}


class PaperTable(_Part):
    """A table as printed. ``data`` names its data file, ``notes`` explain what is shown here.

    ``reproduce``  how it is made again (``none``: it is not, and ``note`` says why)
    ``after``      what our title adds to the paper's
    """

    id: str
    number: str
    title: str
    hardware: list[DeviceName] = []
    unit: str
    n_axis: Literal["rows", "columns", "none"]
    n: list[int] = []
    columns: list[str] = []
    rows: list[list[str | list[str]]] = []
    reproduce: forms.Reproduction
    after: str = ""
    data: forms.DataName = ""
    series: list[Series] = []
    counterparts: list[Counterpart] = []
    points: forms.Points = forms.Points()
    shown: list[forms.PointColumn] = []
    here: list[forms.HereRow] = []
    note: str = ""
    notes: list[str] = []

    @property
    def sizes(self) -> list[int]:
        """Problem sizes of the table."""
        if self.n_axis == "rows":
            return [int(str(row[0])) for row in self.rows]
        return [int(c) for c in self.columns[1:]] if self.n_axis == "columns" else list(self.n)

    def printed(self, label: str, n: int) -> str:
        """The cell of a row or column at a size; empty if there is none."""
        first, column = (str(n), label) if self.n_axis == "rows" else (label, str(n))
        if self.n_axis == "none" or column not in self.columns:
            return ""
        at = self.columns.index(column)
        return next((str(row[at]) for row in self.rows if str(row[0]) == first), "")


class Known(_Part):
    """One value of a figure that the text states.

    ``label``  the words for its mark: a star at ``n``; a line at ``at``, a formula without names;
               pools from ``pool_size`` to ``until`` shaded, or, without an end, hatched
    ``times``  what a bar's value is multiplied by
    """

    system: SystemName = ""
    n: int | None = None
    hardware: DeviceName = ""
    value: float | None = None
    pool_size: int | None = None
    relation: str = ""
    role: str = ""
    label: str = ""
    at: forms.CellFormula = ""
    until: int | None = None
    times: float = 1.0


class PaperFigure(_Part):
    """A figure. ``unknown`` lists what it draws without printing numbers, ``draw`` says how it is
    reproduced (``none``: it is not, and ``note`` says why), ``data`` names the data file or the
    table of its published points, ``subtitle`` explains what is shown here. ``headline`` figures
    stand below the scorecard."""

    id: str
    headline: bool = False
    number: str
    title: str
    hardware: list[DeviceName]
    n: list[int]
    unit: str
    draw: forms.Draw = "none"
    data: forms.DataName = ""
    curves: forms.Curves | None = None
    bars: forms.Bars | None = None
    subtitle: str = ""
    known: list[Known] = []
    unknown: list[str] = []
    note: str = ""


@dataclass(frozen=True, slots=True)
class DataRow:
    """One published time: of a system of nqbench, at a size, with the levels of some factors."""

    n: int
    system: str
    seconds: float
    levels: Mapping[str, int] = field(default_factory=dict)


class DataFile(_Part):
    """A CSV file of published times next to ``published.yaml``.

    Its header names ``n``, ``system`` (or the key ``system`` gives one for all rows), factors, and
    ``seconds`` or ``milliseconds``. ``origin`` says whose numbers these are; ``rows`` are its rows.
    """

    id: str
    file: str
    origin: str
    hardware: list[DeviceName] = []
    system: SystemName = ""
    note: str = ""
    rows: tuple[DataRow, ...] = ()


class Paper(_Part):
    """One paper. ``workload`` is what its systems compute.

    ``timed``  what its times cover: the ``kernel``, or the ``total`` with the CPU's part
    """

    schema_: Literal["nqbench-paper/2"] = Field(alias="schema")
    id: str
    workload: str = "counting"
    timed: Literal["kernel", "total"] = "kernel"
    source: Work
    hardware: list[Hardware]
    systems: list[PaperSystem]
    tables: list[PaperTable]
    figures: list[PaperFigure]
    claims: list[Claim]
    effects: list[Effect] = []
    caveats: list[Caveat]
    data: list[DataFile] = []

    @property
    def title(self) -> str:
        """Title of the paper."""
        return self.source.title

    def table(self, name: str) -> PaperTable:
        """A table by id. ``KeyError`` for an unknown one (the loader has checked all uses)."""
        return {table.id: table for table in self.tables}[name]

    def series(self, name: str) -> DataFile:
        """A data file by id. ``KeyError`` for an unknown one (the loader has checked all uses)."""
        return {part.id: part for part in self.data}[name]

    def system(self, name: str) -> str:
        """nqbench's name for a system of the paper; a dotted name is one already."""
        if "." in name:
            return name
        return {s.id: s.system for s in self.systems}.get(name) or f"{self.id}.{name}"

    def device(self, name: str) -> Hardware:
        """A device by id."""
        return {h.id: h for h in self.hardware}[name]

    def claim(self, name: str) -> Claim:
        """A claim by id. ``KeyError`` for an unknown one (the loader has checked all uses)."""
        return {claim.id: claim for claim in self.claims}[name]

    def printed(self, effect: Effect, n: int) -> Words:
        """What the paper gives for an effect at a size, by device; empty where it gives nothing."""
        if not effect.claim:
            return effect.published
        claim = self.claim(effect.claim)
        cards = [name for name in claim.hardware if self.device(name).kind == "gpu"]
        if by_device := self.by_device(claim):
            return by_device | effect.published
        at_n = claim.published(n)
        return (dict.fromkeys(cards[:1], at_n) if at_n else {}) | effect.published

    def about_others(self, claim: Claim, device: str) -> bool:
        """Whether a claim depends on the architecture of GPUs that it names, not ``device``."""
        cards = [name for name in claim.hardware if self.device(name).kind == "gpu"]
        return claim.architecture_dependent and bool(cards) and device not in cards

    def by_device(self, claim: Claim) -> Words:
        """A claim's printed values by device; empty where they are not listed so."""
        value, devices = claim.paper_value, {h.id for h in self.hardware}
        return value if isinstance(value, dict) and devices.issuperset(value) else {}

    def caveat(self, name: str) -> str:
        """Text of a caveat; empty if there is none of that name."""
        return {c.id: c.text for c in self.caveats}.get(name, "")
