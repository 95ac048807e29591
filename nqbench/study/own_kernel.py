"""The block ``kernel`` of a study: its grammar, and its checks with file and line.

The docstrings of keys are the reference documentation, see :mod:`nqbench.study.schema`. What the
keys do is in :mod:`nqbench.workloads.own`.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

import pydantic
from pydantic_core import CoreSchema

from nqbench.errors import StudyError
from nqbench.point import MEASURING
from nqbench.study.check import check_level, check_number
from nqbench.system.suggest import nearest_file, shown, suggestion
from nqbench.system.yaml_marks import Key, ParsedFile, innermost
from nqbench.vocabulary import COUNTERS, SUMS
from nqbench.workloads import KERNEL, phases
from nqbench.workloads.own import arrays
from nqbench.workloads.own.block import BRACES, NUMPY_FILE, is_text
from nqbench.workloads.own.kernel import OwnKernel

TIME: Final = "time"
RESERVED: Final = ("system", "probe", "device", TIME, *MEASURING)
"""Names that mean something else where factors are read."""
_SOURCES: Final = ("equals", "function", "reference", "file")
"""Where the right contents of a checked buffer come from: one of these."""
FORM: Final = "$form"
"""A key that stands for the reference to a form of ``forms.json`` until the schema is whole."""


def form(name: str) -> pydantic.WithJsonSchema:
    """A form of ``forms.json`` in the schema."""
    return pydantic.WithJsonSchema({FORM: name})


NumberText = Annotated[int | float | str, form("Expression")]
_DTYPE: Final[dict[str, Any]] = {"anyOf": [{"enum": [*arrays.DTYPES]}, {"pattern": r"\{.+\}"}]}
_DTYPE_MEANING: Final = (
    f"Type of an element: {', '.join(arrays.DTYPES)}; {{precision}} stands for a level."
)
Dtype = Annotated[str, pydantic.WithJsonSchema(_DTYPE)]

Extent = Annotated[
    list[NumberText],
    pydantic.BeforeValidator(lambda given: given if isinstance(given, list) else [given]),
    pydantic.Field(min_length=1, max_length=3),
    form("Extent"),
]


class Strict(pydantic.BaseModel):
    """Unknown keys are refused, and nothing is converted: ``"5"`` is not 5."""

    model_config = pydantic.ConfigDict(
        extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True
    )


class _Short(Strict):
    """A form with a short one: a single value in place of keys with values.

    ``short`` is the key that the value belongs to, and the JSON Schema of the value.
    """

    short: ClassVar[tuple[str, dict[str, Any]]]

    @pydantic.model_validator(mode="before")
    @classmethod
    def _long(cls, given: Any) -> Any:
        return given if isinstance(given, dict) else {cls.short[0]: given}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: pydantic.GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [cls.short[1], handler(core)]}


class FieldFile(_Short):
    """A field of a struct that a kernel takes by value."""

    short = ("dtype", _DTYPE)

    dtype: Dtype = pydantic.Field("", description=_DTYPE_MEANING)
    value: NumberText | None = None
    """By default the factor or value of its name."""
    points_to: str | None = None
    """In place of `dtype`: the address of this buffer."""


class VariableFile(Strict):
    """Contents of a ``__constant__`` or ``__device__`` variable."""

    dtype: Dtype = pydantic.Field(description=_DTYPE_MEANING)
    length: NumberText | None = None
    """Elements of a buffer; of a variable those to fill, from the first."""
    shape: list[NumberText] | None = pydantic.Field(None, min_length=1)
    """In place of `length`: the shape that expressions see."""
    contents: NumberText
    """As of a buffer."""
    seed: int = pydantic.Field(0, ge=0)
    """Of `random` and of `rng` in an expression."""


class ArgumentFile(_Short, VariableFile):
    """A buffer (``length`` or ``shape``, or contents that have one), a scalar (``value``; by
    default the factor or value of its name), a struct (``fields``), or a buffer of pointers
    (``points_to``)."""

    short = ("dtype", _DTYPE)

    dtype: Dtype = pydantic.Field("", description=_DTYPE_MEANING)
    fields: dict[str, FieldFile] | None = pydantic.Field(None, min_length=1)
    """Of a struct that the kernel takes by value: NAME: dtype or {dtype, value}, in the order of
    its members; C++'s padding is added."""
    points_to: str | list[str] | None = pydantic.Field(None, min_length=1)
    """In place of `dtype`: addresses in this buffer, or in each of several in turn. The contents
    are numbers of its elements; by default the first."""
    contents: NumberText | None = None  # type: ignore[assignment] # a variable has some
    """What a buffer holds when a launch starts: zeros, ones, arange, random, a FILE.npy, or an
    expression of numpy ('np.sort(rng.random(n))'). Left out: nothing, the kernel writes it."""
    restore: bool = False
    """The kernel changes the buffer: its contents are put back before every launch, untimed.
    Checked buffers always are."""
    value: NumberText | None = None
    """Of a scalar."""


class FactorFile(_Short):
    """A factor of the user's own."""

    short = ("levels", {"type": "array", "items": {"type": ["string", "integer"]}, "minItems": 1})

    levels: list[int | str] | None = pydantic.Field(None, min_length=1)
    """Names or numbers."""
    range: list[int] | None = pydantic.Field(None, min_length=2, max_length=2)
    """Any whole number from the first to the last."""
    meaning: str = ""
    """What it means, for tables and `nqbench kernels`."""
    launch: bool = False
    """Launch geometry: a system's name says nothing about it, and labels show its level beside the
    name."""
    default: int | str | None = None
    """Its level where a sweep leaves it out."""


class MetricFile(_Short):
    """A metric derived from the time, counters and factors."""

    short = ("value", {FORM: "Expression"})

    value: NumberText
    """An expression, see `metrics`."""
    better: Literal["higher", "lower"] = "higher"
    """Which direction is good."""


class CheckFile(_Short):
    """The right contents of a buffer after a launch: one of equals, function, reference, file."""

    short = ("equals", {"type": "string", "minLength": 1})

    equals: NumberText | None = None
    """An expression of numpy over the buffers with contents, n and factors."""
    function: str | None = pydantic.Field(None, pattern=r"^[^:]+\.py:[A-Za-z_]\w*$")
    """FILE.py:NAME: a Python function that returns them; its parameters are named like buffers with
    contents, scalars and factors, and get these."""
    reference: dict[str, int | str] | None = pydantic.Field(None, min_length=1)
    """Levels of another point, which is launched once: its contents of the buffer are the right
    ones ({variant: naive})."""
    file: str | None = pydantic.Field(None, pattern=r"\.npy$")
    """FILE.npy: an array with them."""
    relative: float = pydantic.Field(0.0, ge=0)
    """Tolerance, as a part of the right value."""
    absolute: float = pydantic.Field(0.0, ge=0)
    """Tolerance in addition, in the value's unit."""


class StepFile(Strict):
    """One of several launches over the same buffers."""

    entry: str = pydantic.Field(min_length=1)
    """As of the kernel."""
    arguments: list[str] | None = None
    """Names of those that it takes, in its order; by default all."""
    grid: Extent
    """As of the kernel."""
    block: Extent
    """As of the kernel."""
    shared: NumberText = 0
    """As of the kernel."""
    cooperative: bool = False
    """As of the kernel."""


class KernelFile(Strict):
    """A kernel of the user's own: a .cu file and everything it takes to run and check it."""

    model_config = pydantic.ConfigDict(
        json_schema_extra={
            "anyOf": [{"required": ["entry", "grid", "block"]}, {"required": ["steps"]}]
        }
    )

    source: str
    """The .cu file, named from the study's folder; or the kernel itself, as text."""
    sources: list[str] = pydantic.Field(default=[])
    """Further .cu files with functions that the kernel calls: they are compiled together with
    `source`."""
    entry: str | None = pydantic.Field(None, min_length=1)
    """The __global__ function; parts in braces are replaced by factors: transpose<{tile},
    {pad}>."""
    arguments: dict[str, ArgumentFile] = pydantic.Field(default={})
    """Buffers and scalars in the order in which the kernel takes them. A type alone is a scalar
    with the value of the factor of its name: {n: int32}."""
    variables: dict[str, VariableFile] = pydantic.Field(default={})
    """Contents of __constant__ and __device__ variables, by their names."""
    grid: Extent | None = None
    """Blocks: one to three expressions."""
    block: Extent | None = None
    """Threads per block: one to three expressions."""
    shared: NumberText = 0
    """Bytes of dynamic shared memory per block."""
    cooperative: bool = False
    """A cooperative launch (grid sync)."""
    steps: list[StepFile] | None = pydantic.Field(None, min_length=1)
    """In place of entry, grid and block: launches one after the other over the same buffers. The
    time is that of all, the check comes after the last."""
    macros: dict[str, NumberText] = pydantic.Field(default={})
    """Macros for the compiler: NAME: expression, as -DNAME=value."""
    include: list[str] = pydantic.Field(default=[])
    """Folders to search for included files, from the study's folder."""
    options: list[str] = pydantic.Field(default=[])
    """Further options of the compiler; factors in braces."""
    values: dict[str, NumberText] = pydantic.Field(default={})
    """Numbers with a name, for the other expressions and conditions."""
    factors: dict[str, FactorFile] = pydantic.Field(default={})
    """Factors: NAME: [levels], or keys with values."""
    systems: dict[str, dict[str, int | str]] = pydantic.Field(default={})
    """Named combinations of levels, for `system` and `systems`."""
    metrics: dict[str, MetricFile] = pydantic.Field(default={})
    """Derived metrics: NAME: expression over time (seconds), phases, counters, n, factors and
    `values` ({GB/s: 8 * n * n / time / 1e9}). Tables show them, `value` takes their names."""
    check: dict[str, CheckFile] = pydantic.Field(default={})
    """The right contents of buffers and module variables after the launch: NAME: expression of
    numpy."""
    work: NumberText | None = None
    """Amount of work, in any unit, to predict times; by default the threads."""


def read_kernel(source: ParsedFile, study: str, file: KernelFile) -> OwnKernel:
    """The workload of a study's block. Raises ``StudyError`` with file:line for a mistake."""
    made = OwnKernel(study, source.data[KERNEL], source.path.parent.absolute())
    reader = _KernelChecks(source, file, made)
    reader.names()
    reader.factors()
    reader.numbers()
    reader.arrays()
    reader.checks()
    reader.files()
    return made


class _KernelChecks:
    """The checks of one block beyond its form."""

    def __init__(self, source: ParsedFile, file: KernelFile, kernel: OwnKernel) -> None:
        self.source, self.file, self.kernel = source, file, kernel
        self.known = [*kernel.factors]
        """Names that expressions over numbers may read."""
        self.scalars = [*kernel.block.scalars]

    def error(self, message: str, *keys: Key) -> StudyError:
        return self.source.error(message, (KERNEL, *keys))

    def exclusive(self, given: Any, names: Sequence[str], *keys: Key) -> list[str]:
        """Which of these keys a form has. Raises ``StudyError`` if it has more than one."""
        found = [name for name in names if getattr(given, name) is not None]
        if len(found) > 1:
            said = f"'{keys[-1]}' has {found[0]} and {found[1]}; keep one of them"
            raise self.error(said, *keys, found[1])
        return found

    def word(self, name: str, taken: Collection[str], *keys: Key) -> None:
        """Raise ``StudyError`` for a name that expressions could not read, or that is taken."""
        if not name.isidentifier() or keyword.iskeyword(name) or name in taken:
            other = re.sub(r"\W|^(?=\d)", "_", name) + "_" * name.isidentifier()
            said = f"'{name}' cannot be a name: expressions could not read it; call it {other}"
            raise self.error(said, *keys, name)

    def names(self) -> None:
        """Names are words, and mean one thing."""
        seen: dict[str, str] = dict.fromkeys(self.kernel.factors, "factors")
        for group in ("values", "arguments", "variables"):
            for name in getattr(self.file, group):
                self.word(name, ("np", "rng"), group)
                value = self.kernel.block.arguments.get(name, {}).get("value")
                hides = group == "arguments" and value == name
                if name in seen and not (hides or self.source.words):  # its n is no size
                    said = f"'{name}' is a name under {seen[name]} too; give each its own name"
                    raise self.error(said, group, name)
                seen[name] = group

    def factors(self) -> None:
        """Entries have levels or a range; levels that systems name exist."""
        for name, given in self.file.factors.items():
            self.word(name, RESERVED, "factors")
            self.exclusive(given, ("levels", "range"), "factors", name)
            if given.range is not None and given.range[0] > given.range[1]:
                said = f"the range {given.range} is empty; write the smaller end first"
                raise self.error(said, "factors", name, "range")
            if given.default is not None:
                self.level(name, given.default, "factors", name, "default")
        for system, levels in self.file.systems.items():
            for name, level in levels.items():
                self.level(name, level, "systems", system, name)

    def level(self, name: str, level: int | str, *keys: Key) -> None:
        with self.source.at((KERNEL, *keys)):
            check_level(self.kernel.factors, name, level)

    def numbers(self) -> None:
        """Expressions over numbers, and the parts in braces of texts."""
        file = self.file
        for name, text in file.values.items():
            self.number(text, self.known, "values", name)
            self.known.append(name)
        for keys, launch in self.launches():
            for key in ("grid", "block"):
                for index, part in enumerate(getattr(launch, key)):
                    self.number(part, self.known, *keys, key, index)
            self.number(launch.shared, self.known, *keys, "shared")
            self.text(str(launch.entry), *keys, "entry")
        self.number(file.work, self.known, "work")
        for name, text in file.macros.items():
            self.word(name, (), "macros")
            self.number(text, self.known, "macros", name)
        if not is_text(file.source):
            self.text(file.source, "source")
        for index, option in enumerate(file.options):
            self.text(option, "options", index)
        readable = [*self.known, TIME, *phases(), *COUNTERS, *SUMS]
        for name, metric in file.metrics.items():
            if name in (TIME, *phases(), *COUNTERS, *SUMS):
                raise self.error(f"'{name}' has a meaning already; rename it", "metrics", name)
            self.number(metric.value, readable, "metrics", name)

    def launches(self) -> list[tuple[tuple[Key, ...], KernelFile | StepFile]]:
        """The kernel's launch, or its steps. Raises ``StudyError`` for neither and for both."""
        file, one = self.file, ("entry", "grid", "block")
        there = [key for key in one if getattr(file, key) is not None]
        if file.steps is None:
            if missing := [key for key in one if key not in there]:
                raise self.error(f"'{KERNEL}' needs '{missing[0]}' (or `steps`)")
            return [((), file)]
        if there or file.shared or file.cooperative:
            key = next(iter(there), "shared" if file.shared else "cooperative")
            raise self.error(f"'{key}' is given for each of the steps; remove it here", key)
        for index, step in enumerate(file.steps):
            for place, name in enumerate(step.arguments or ()):
                if name not in self.kernel.block.arguments:
                    said = f"'{name}' is none of the kernel's arguments"
                    hint = suggestion(name, self.kernel.block.arguments)
                    raise self.error(f"{said}; {hint}", "steps", index, "arguments", place)
        return [(("steps", index), step) for index, step in enumerate(file.steps)]

    def number(self, text: Any, known: Collection[str], *keys: Key) -> None:
        check_number(self.source, text, known, (KERNEL, *keys))

    def text(self, text: str, *keys: Key) -> None:
        for match in BRACES.finditer(text):
            self.number(match[1], self.known, *keys)

    def arrays(self) -> None:
        """Types, sizes and contents of buffers, scalars and variables."""
        readable = [*self.known, *self.scalars]
        for group in ("arguments", "variables"):
            for name, given in getattr(self.file, group).items():
                if getattr(given, "fields", None):
                    self.struct(name, given)
                    continue
                if getattr(given, "points_to", None):
                    self.pointers(name, given)
                else:
                    self.dtype(name, given.dtype, group, name)
                if name in self.scalars:
                    self.exclusive(given, ("value", "length", "shape", "contents"), group, name)
                    self.scalar(name, given, group, name)
                    continue
                self.array(name, given, readable, group)
                if given.contents is not None:
                    readable.append(name)

    def array(self, name: str, given: Any, readable: Collection[str], group: str) -> None:
        """A buffer or variable: what is given together, and its expressions."""
        self.exclusive(given, ("length", "shape"), group, name)
        sized = given.length is not None or given.shape is not None
        sized = sized or "length" in dict(self.kernel.block.arrays())[name]
        if not sized and (given.contents is None or given.contents in arrays.STANDARD):
            scalar = "; a scalar needs a value" if group == "arguments" else ""
            raise self.error(f"'{name}' needs a length or a shape{scalar}", group, name)
        self.number(given.length, self.known, group, name, "length")
        for index, part in enumerate(given.shape or ()):
            self.number(part, self.known, group, name, "shape", index)
        what = given.contents
        if isinstance(what, str) and what not in arrays.STANDARD and not what.endswith(NUMPY_FILE):
            self.over_arrays(what, readable, group, name, "contents", also=arrays.STANDARD)

    def dtype(self, name: str, given: str, *keys: Key) -> None:
        self.text(given, *keys, "dtype")
        if given not in arrays.DTYPES and not BRACES.search(given):
            hint = arrays.nearest_dtype(given)
            raise self.error(f"'{name}' has the dtype {shown(given)}; {hint}", *keys, "dtype")

    def pointers(self, name: str, given: ArgumentFile) -> None:
        buffers, keys = self.kernel.block.buffers, ("arguments", name)
        if given.dtype or given.value is not None or name in self.file.check:
            said = "have no dtype and no value, and are not checked"
            raise self.error(f"'{name}' holds addresses, which {said}", *keys)
        for target in buffers[name]["points_to"]:
            self.target(name, target, *keys, "points_to")

    def target(self, name: str, target: str, *keys: Key) -> None:
        """Raise ``StudyError`` for a pointer to what is no other buffer."""
        own = name if keys[:2] == ("arguments", name) else ""  # a field may have a buffer's name
        others = [one for one in self.kernel.block.buffers if one != own]
        if target not in others:
            hint = suggestion(target, others)
            said = f"'{name}' points to '{target}', which is no other buffer; {hint}"
            raise self.error(said, *keys)

    def struct(self, name: str, given: ArgumentFile) -> None:
        self.exclusive(given, ("fields", "value", "length", "shape", "contents"), "arguments", name)
        for field, one in (given.fields or {}).items():
            keys = ("arguments", name, "fields", field)
            if one.points_to:
                self.exclusive(one, ("value", "points_to"), *keys)
                self.target(field, one.points_to, *keys, "points_to")
                continue
            self.dtype(field, one.dtype, *keys)
            self.scalar(field, one, *keys)

    def scalar(self, name: str, given: ArgumentFile | FieldFile, *keys: Key) -> None:
        value = name if given.value is None else given.value
        if given.value is None and name not in self.known:
            hint = suggestion(name, self.known)
            said = f"'{name}' is a type alone, so a scalar, but no factor is called so; {hint}"
            more = "" if "fields" in keys else "; a buffer needs a length"
            raise self.error(said + more, *keys)
        self.number(value, self.known, *keys, "value")

    def over_arrays(
        self, text: str, known: Collection[str], *keys: Key, also: Collection[str] = ()
    ) -> None:
        """An expression of numpy; ``also`` are words that can stand in its place. Raises
        ``StudyError`` for one that is not allowed."""
        with self.source.at((KERNEL, *keys), f"'{innermost(keys)}': "):
            try:
                arrays.parse(text)
            except StudyError as error:
                way_out = "A Python function can do more: {function: check.py:expected}"
                if keys[0] != "check":
                    way_out = "A file of np.save can hold anything: x.npy"
                said = error.message.rstrip("?")
                end = "? " if said != error.message else ". "
                raise StudyError(f"{said}{end}{way_out}") from error
            arrays.check_names(text, known, also)

    def checks(self) -> None:
        """Every check names a buffer and one source of the right contents."""
        buffers = self.kernel.block.buffers
        filled = [name for name, given in buffers.items() if given.get("contents") is not None]
        known = [*self.known, *self.scalars, *filled, *self.file.variables]
        references: list[dict[str, int | str]] = []
        for name, given in self.file.check.items():
            arrays_ = [*buffers, *self.file.variables]
            if name not in arrays_:
                hint = suggestion(name, arrays_) if arrays_ else "the kernel has none"
                raise self.error(f"'check' names buffers, not '{name}'; {hint}", "check", name)
            if self.file.steps and name in self.file.variables:
                said = f"'{name}' is a module variable, which the steps do not share; use a buffer"
                raise self.error(said, "check", name)
            if not self.exclusive(given, _SOURCES, "check", name):
                said = f"the check of '{name}' needs one of {', '.join(_SOURCES)}"
                raise self.error(said, "check", name)
            if isinstance(given.equals, str):
                self.over_arrays(given.equals, known, "check", name, "equals")
            if given.reference:
                references.append(given.reference)
            if references and given.reference not in (None, references[0]):
                said = "all checks against a reference take the same one"
                raise self.error(said, "check", name, "reference")
            for factor, level in (given.reference or {}).items():
                self.level(factor, level, "check", name, "reference", factor)

    def files(self) -> None:
        """Every file and folder is there (names with braces are looked for when they are known)."""
        for keys, name in self.kernel.block.named():
            path = self.kernel.block.folder / name
            if BRACES.search(name) or (path.is_dir() if keys[0] == "include" else path.is_file()):
                continue
            what = "folder" if keys[0] == "include" else "file"
            if path.exists():
                raise self.error(f"'{innermost(keys)}': {name} is no {what}", *keys)
            close = nearest_file(path, path.suffix)
            hint = f"; did you mean {close.name}?" if close else ""
            if not (close or path == Path(name)):
                hint = f", seen from the folder of {self.source.path.name}"
            raise self.error(f"'{innermost(keys)}': there is no {what} {name}{hint}", *keys)
