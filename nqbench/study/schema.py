"""The grammar of a study file: the keys, their types, and what they mean.

The docstrings of keys are the reference documentation: ``nqbench init --schema`` writes them as
JSON Schema. Values with several forms (a list, a range, values by kind of device) are typed ``Any``
and read by :mod:`nqbench.study.values`, which can point at the item that is wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from nqbench import workloads
from nqbench.errors import StudyError
from nqbench.study.model import NAME_PATTERN, NAME_RULE
from nqbench.study.own_kernel import FORM, KernelFile, Strict, form
from nqbench.study.report_items import OPTIONS, Form, kinds
from nqbench.study.values import duration_s, fraction

MAX_ROUNDS: Final = 1000
MAX_SAMPLES: Final = 1_000_000


def _name(text: str) -> str:
    if not re.fullmatch(NAME_PATTERN, text):
        raise PydanticCustomError("name", NAME_RULE)
    return text


NameText = Annotated[
    str, AfterValidator(_name), WithJsonSchema({"type": "string", "pattern": NAME_PATTERN})
]


def _words(given: Any) -> Any:
    if isinstance(given, str):
        said = "it takes a list of words, such as [./queens, '{example}']; no shell reads it"
        raise PydanticCustomError("words", said, {"example": "{n}"})
    return given


def _pattern(text: str) -> str:
    try:
        groups = re.compile(text, re.MULTILINE).groups
    except re.error as error:
        said = "is not a regular expression as Python has them: {error}"
        raise PydanticCustomError("pattern", said, {"error": str(error)}) from error
    if groups != 1:
        said = (
            "has {groups} pairs of parentheses; it takes one pair, around the number (write"
            " (?:...) for any other)"
        )
        raise PydanticCustomError("pattern", said, {"groups": groups})
    return text


Word = str | int | float
Words = Annotated[list[Word], BeforeValidator(_words), Field(min_length=1)]
Pattern = Annotated[str, AfterValidator(_pattern)]


def _factors(value: str) -> WithJsonSchema:
    inner = {FORM: value}
    return WithJsonSchema({"type": "object", "minProperties": 1, "additionalProperties": inner})


class ProgramFile(Strict):
    """An external program as a system: any executable; no shell starts it."""

    name: NameText
    """The system's name in tables and figures."""
    command: Words
    """The program and its arguments, a list of words. {n} and {FACTOR} stand for the point's
    levels. It runs in the study's folder, without a shell."""
    answer: Pattern | None = None
    """Regular expression with one group: the answer, a whole number, in what the program prints.
    Required where the right answer is known."""
    time: Pattern | None = None
    """Regular expression with one group: the program's own time. Without it the wall time of the
    process counts."""
    unit: Literal["ns", "us", "ms", "s"] | None = None
    """Unit of that time, where the program prints none after the number."""
    env: dict[str, Word] = Field({})
    """Environment variables for the program."""
    depends: Words | None = None
    """Files that the program is made of: if one changes, its points are measured again. The program
    itself, and arguments that are files, count anyway."""
    device: Literal["cpu", "gpu"] = "cpu"
    """What the program computes on; gpu: the run's GPU, whose clocks and power are then recorded,
    and whose name the tables show."""


class SweepKeys(Strict):
    """The keys of a sweep; a study with a single sweep may write them at top level."""

    n: Annotated[Any, form("Sizes")] = None
    """Problem sizes: a number, a list, a range, or any of these by kind of device."""
    system: Annotated[Any, form("SystemName")] = None
    """A named system; `fixed`, `matrix` and `zip` override its levels."""
    systems: Annotated[Any, form("SystemNames")] = None
    """Several systems, one after the other: names, and external programs as mappings with a name
    and a command."""
    fixed: Annotated[dict[str, Any] | None, _factors("FixedValue")] = None
    """Factors with one level in the whole sweep."""
    matrix: Annotated[dict[str, Any] | None, _factors("AxisValues")] = None
    """Factors whose levels are combined in every way (cartesian product)."""
    zip: Annotated[dict[str, Any] | None, _factors("AxisValues")] = None
    """Factors whose lists run side by side; all have the same length."""
    exclude: Annotated[Any, form("Exclusions")] = None
    """Points to leave out: mappings that match partly ({memory: global, layout: padded}) or
    expressions that are true for them."""
    where: Annotated[Any, form("Conditions")] = None
    """Expressions that must hold: over the factors, the numbers that follow from them (jobs,
    threads, shared_bytes, ...) and device.* facts."""
    infeasible: Literal["error", "skip"] = "error"
    """What to do with a combination that cannot run: stop before anything runs (error), or list it
    as skipped with the reason (skip)."""


class SweepFile(SweepKeys):
    """One sweep of a study."""

    name: NameText
    """The sweep's name, for `of:` and the tables."""


def _reading(read: Callable[[object], float]) -> BeforeValidator:
    """How a text such as ``10s`` becomes a number."""

    def number(given: object) -> float:
        try:
            return read(given)
        except StudyError as error:
            raise PydanticCustomError("reading", "{said}", {"said": error.message}) from error

    return BeforeValidator(number)


def _states(given: Any) -> Any:
    states = given if isinstance(given, list) else [given]
    if sorted(map(str, states)) not in (["cold"], ["hot"], ["cold", "hot"]):
        raise PydanticCustomError("states", "it takes hot, cold or [hot, cold]")
    return states


Seconds = Annotated[Any, _reading(duration_s), WithJsonSchema({"type": "string"})]
Fraction = Annotated[
    Any, _reading(fraction), WithJsonSchema({"type": "string", "pattern": r"^\s*[0-9.]+\s*%\s*$"})
]
Sweeps = Annotated[list[str], Field(min_length=1)]


class MeasureFile(Strict):
    """How to measure."""

    model_config = ConfigDict(validate_default=True)

    target: Fraction = Field("0.5%")
    """A measurement (a point in a round) ends once the 95% interval of its median is this
    narrow."""
    rounds: int = Field(5, ge=1, le=MAX_ROUNDS)
    """Fresh processes, each visiting every point once."""
    budget_s: Seconds = Field("10s", alias="budget")
    """Longest measuring time of a point, over all rounds."""
    samples: int = Field(10, ge=1, le=MAX_SAMPLES)
    """Fewest samples of a measurement."""
    warmup: int = Field(1, ge=0, le=MAX_SAMPLES)
    """Fewest untimed launches before a measurement; more follow until launch times stop falling. 0
    switches warm-up off."""
    l2: Annotated[Any, BeforeValidator(_states), form("States")] = "hot"
    """State of a GPU's L2 cache when a launch starts: hot (as the launch before left it), cold
    (flushed before every launch), or both as separate points: [hot, cold]."""
    counters: Literal["none", "ncu"] = "none"
    """Hardware counters on a real GPU, after the rounds: none, or those of NVIDIA Nsight Compute
    (ncu), one profiled launch per point; a message says if ncu is missing."""
    counted: Sweeps = Field([], validate_default=False)
    """Sweeps that `counters` applies to; left out: all of them."""
    long: Sweeps = Field([], validate_default=False)
    """Sweeps whose points are timed once per round however long a launch takes, also beyond their
    budget (never beyond `timeout`)."""
    variants: Sweeps = Field(
        [], validate_default=False, validation_alias=AliasChoices("variants", "apart")
    )
    """Sweeps whose kernels are built as three variants, a point each: full, without memory
    accesses, without arithmetic (factor `part`; nqbench bottleneck)."""
    timeout_s: Seconds = Field("60s", alias="timeout")
    """Longest time one launch may take before it is stopped."""


def _kinds(form: Form) -> Any:
    meanings = "; ".join(f"{kind.name} ({kind.meaning})" for kind in kinds(form).values())
    said = f"{form.capitalize()}: {meanings}"
    return Field(None, description=said, json_schema_extra={"enum": [*kinds(form)]})


class ReportFile(Strict):
    """A table or a figure."""

    table: str | None = _kinds("table")
    figure: str | None = _kinds("figure")
    of: str | None = Field(None, description=OPTIONS["of"])
    x: str | None = Field(None, description=OPTIONS["x"])
    y: str | None = Field(None, description=OPTIONS["y"])
    series: str | None = Field(None, description=OPTIONS["series"])
    value: str | None = Field(None, description=OPTIONS["value"])
    title: str | None = Field(None, description=OPTIONS["title"])
    FORMER: ClassVar[Mapping[str, str]] = {
        "n": "'n' of a report entry is gone: tables have every size, figures the largest or all;"
        " delete it"
    }


class StudyFile(SweepKeys):
    """A study: what to compute, what to vary, how to measure, what to draw."""

    name: NameText
    """The study's name; its results go to a folder of this name."""
    about: str = ""
    """One sentence: the question that the study answers."""
    workload: str = "counting"
    """What is computed: a workload of nqbench or of an installed package, or one of your own:
    package.module:OBJECT, ./file.py:OBJECT."""
    kernel: KernelFile | None = None
    """In place of `workload`: a kernel of your own, a .cu file."""
    sweeps: list[SweepFile] | None = Field(None, min_length=1)
    """The sweeps, in order."""
    measure: MeasureFile = Field(default_factory=lambda: MeasureFile.model_validate({}))
    """How to measure."""
    report: list[ReportFile] = Field(default=[])
    """Tables and figures to make."""
    FORMER: ClassVar[Mapping[str, str]] = {
        "needs": "'needs' is gone: a study runs on the device that the command names; delete it and"
        " give --device"
    }


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a study file, for editors and as reference.

    Factors and systems of nqbench's workloads are listed with their meanings and levels; others are
    allowed, as a user's own workload may have them.
    """
    known = [workloads.get(name) for name in workloads.names()]
    systems = sorted({system for workload in known for system in workload.systems})
    meanings = {"system": f"A named system: {', '.join(systems)}."}
    for workload in known:
        for factor in workload.factors.values():
            text = f"{workload.name}: {factor.meaning}. Levels: {', '.join(factor.takes())}."
            meanings[factor.name] = f"{meanings.get(factor.name, '')} {text}".lstrip()
    result = deepcopy(StudyFile.model_json_schema())  # pydantic 2.7 hands out what it keeps
    defs = result["$defs"]
    defs[ProgramFile.__name__] = ProgramFile.model_json_schema()
    defs |= json.loads(Path(__file__).with_name("forms.json").read_text(encoding="utf-8"))
    result["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    result["title"] = "nqbench study"
    for holder, key in product((result, defs["SweepFile"]), ("fixed", "matrix", "zip")):
        form = holder["properties"][key]
        names = [name for name in meanings if not (key == "fixed" and name == "system")]
        form["properties"] = {
            name: {"description": meanings[name], **form["additionalProperties"]} for name in names
        }
    _tidy(result)
    return result


def _tidy(node: Any) -> None:
    """Remove what is there without need: generated titles, ``null`` alternatives, line breaks."""
    if isinstance(node, list):
        for item in node:
            _tidy(item)
    if not isinstance(node, dict):
        return
    if isinstance(node.get("title"), str) and node.get("title") != "nqbench study":
        del node["title"]
    if node.get("default", 0) is None:
        del node["default"]
    if isinstance(about := node.get("description"), str):  # of several lines in the source
        node["description"] = " ".join(about.split())
    options = node.get("anyOf")
    if isinstance(options, list) and {"type": "null"} in options:
        rest = [option for option in options if option != {"type": "null"}]
        del node["anyOf"]
        node.update(rest[0] if len(rest) == 1 else {"anyOf": rest})
    if name := node.pop(FORM, None):
        node["$ref"] = f"#/$defs/{name}"
    for item in list(node.values()):
        _tidy(item)
