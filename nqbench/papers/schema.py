"""The form of ``published.yaml``: every key, checked by pydantic.

Cells and values stay text, with the digits that the paper prints; numbers are made where one is
calculated with. ``checks`` are this project's own numbers and never shown as the paper's. Long
series lie in CSV files beside it (``data``, read by ``papers.data``).
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from nqbench.papers.schema_shown import DataFile, PaperFigure, PaperTable, Words

Kind = Literal[
    "ratio",
    "ranking",
    "optimum",
    "invariance",
    "crossover",
    "counter",
    "share",
    "count",
    "bound",
    "failure",
    "extrapolation",
    "reported_only",
]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Work(_Part):
    """Where the paper was published, as far as it says so.

    Where nobody knows the title, ``title`` is the paper's subject, ``authors`` is empty, and
    ``note`` says so.
    """

    title: str
    original_title: str = ""
    authors: list[str] = []
    affiliation: str = ""
    venue: str = ""
    year: int | None = None
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
    system: str = ""
    not_stated: list[str] = []


class Today(_Part):
    """A claim about certain devices in a form that other devices can be asked.

    ``devices``  runs of how many different devices it needs
    """

    expr: str
    expect: str
    devices: int = 1
    note: str = ""


class Claim(_Part):
    """A statement of the paper as something that can be tested (docs/papers.md has the language).

    ``n``  sizes that it is made for; empty: every size there is
    ``paper_value``  what the paper gives, by N, device or named part; text, as printed
    """

    id: str
    statement: str
    section: str
    hardware: list[str] = []
    n: list[int] = []
    kind: Kind
    expr: str
    expect: str = ""
    today: Today | None = None
    paper_value: str | Words = ""
    value_origin: Literal["printed", "from_table", "qualitative"]
    architecture_dependent: bool
    note: str = ""
    caveat: str = ""

    def published(self, n: int | None) -> str:
        """The paper's value at a size, or all of it where it does not go by size."""
        if isinstance(self.paper_value, str):
            return self.paper_value
        if n is not None and str(n) in self.paper_value:
            return self.paper_value[str(n)]
        by_size = any(key.isdigit() for key in self.paper_value)
        if by_size:
            return ""
        return ", ".join(f"{key}: {value}" for key, value in self.paper_value.items())


class Parameter(_Part):
    """A parameter of the paper's experiments."""

    name: str
    meaning: str
    values: str | list[str | list[str]] | dict[str, str | list[str]]
    section: str
    note: str = ""


class Check(_Part):
    """A number of ours that follows from the paper: an oracle, never the paper's."""

    name: str
    how: str
    value: int | float | str | dict[str, float | list[float]]


class Caveat(_Part):
    """An error, contradiction or gap of the paper."""

    id: str
    kind: Literal[
        "paper_error", "paper_inconsistency", "ambiguous", "lost_text", "feasibility", "external"
    ]
    text: str


class Paper(_Part):
    """One paper. ``workload`` is what its systems compute.

    ``timed``  what its times are: of the ``kernel``, or the ``total`` with the host's part
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
    parameters: list[Parameter]
    checks: list[Check]
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
        """The name nqbench has for a system of the paper; dotted names are that already."""
        if "." in name:
            return name
        return {s.id: s.system for s in self.systems}.get(name) or f"{self.id}.{name}"

    def device(self, name: str) -> Hardware:
        """A device by id."""
        return {h.id: h for h in self.hardware}[name]

    def caveat(self, name: str) -> str:
        """Text of a caveat; empty if there is none of that name."""
        return {c.id: c.text for c in self.caveats}.get(name, "")
