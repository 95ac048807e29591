"""A T1 file as a study with a block ``kernel``.

A T1 file says what to search and how to launch it, seldom what is right. Where it does not, the
study compares every configuration with one of them.
"""

from __future__ import annotations

import ast
import itertools
import keyword
import math
import os
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

from nqbench import expressions
from nqbench.errors import InterchangeError, StudyError
from nqbench.interchange.reading import fitting, read_json, wrong
from nqbench.system.suggest import listing

FORMAT: Final = "kernel_tuner"
MAX_VALUES: Final = 20_000
"""Values of a parameter: a study has no more combinations."""
AXES: Final = "XYZ"
WIDTH: Final = 110
SCALARS: Final = {
    **{name: name for name in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32")},
    **{"int64": "int64", "uint64": "uint64"},
    **{"half": "float16", "float": "float32", "double": "float64"},
}
"""T1's types as numpy names them; a number after one (``float4``) is a vector's length."""
NOT_FOR_NVRTC: Final = re.compile(r"-O\d|-arch.*|--gpu-architecture.*|-gencode.*|-code.*|-lineinfo")


# T1: what is read of it. Further keys are ignored.


class _Form(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class _Parameter(_Form):
    Name: str
    Type: Literal["int", "uint", "float", "bool", "string"]
    Values: str | list[Any]
    Default: Any = None


class _Condition(_Form):
    Expression: str


class _Space(_Form):
    TuningParameters: list[_Parameter]
    Conditions: list[_Condition] = []


class _Size(_Form):
    X: str | int
    Y: str | int = 1
    Z: str | int = 1


class _Argument(_Form):
    Type: str
    MemoryType: Literal["Scalar", "Vector", "Local", "Symbol"]
    Name: str = ""
    Size: int | str | None = None
    TypeSize: int | None = None
    FillType: str | None = None
    FillValue: float | int | None = None
    DataSource: str | None = None
    RandomSeed: int = 0
    AccessType: str = "ReadWrite"
    MemType: str = ""
    Output: bool | int = False


class _Reference(_Form):
    TargetName: str
    FillType: str
    FillValue: float | int | None = None
    DataSource: str | None = None
    ValidationMethod: str = "SideBySideComparison"
    ValidationThreshold: float | int = 0


class _Kernel(_Form):
    Language: str
    KernelName: str
    KernelFile: str
    LocalSize: _Size
    GlobalSize: _Size | None = None
    GlobalSizeType: str | None = None
    ProblemSize: Annotated[
        list[Any], BeforeValidator(lambda v: v if isinstance(v, list) else [v])
    ] = []
    GridDivX: list[Any] = []
    GridDivY: list[Any] = []
    GridDivZ: list[Any] = []
    CompilerOptions: list[str] = []
    SharedMemory: int = 0
    Arguments: list[_Argument] = []
    ReferenceArguments: list[_Reference] = []


class _Root(_Form):
    ConfigurationSpace: _Space
    KernelSpecification: _Kernel
    General: dict[str, Any] = {}
    Search: Any = None
    Budget: Any = None


@dataclass(frozen=True, slots=True)
class Imported:
    """A study's text, and what of the file it does not say, a sentence each."""

    text: str
    notes: tuple[str, ...]


def import_space(file: Path, folder: Path) -> Imported:
    """The study of a T1 file, for a study file in ``folder``.

    Raises ``InterchangeError`` that names the place and its value for what is not T1, or cannot be
    said in a study.
    """
    return _Import(file, _load(file), folder).study()


def _load(path: Path) -> _Root:
    data = read_json(path)
    if not isinstance(data, dict) or "KernelSpecification" not in data:
        said = "it has no 'KernelSpecification'"
        if isinstance(data, dict) and ("cache" in data or "results" in data):
            said = "it holds results, not a tuning space"
        raise InterchangeError(f"{path} is not a T1 file of kernel_tuner: {said}")
    return fitting(path, _given(data), _Root, ("str", "int", "float", "bool", "list[any]"))


def _given(data: Any) -> Any:
    """The data without keys whose value is null: they are written for what does not apply."""
    if isinstance(data, dict):
        return {key: _given(value) for key, value in data.items() if value is not None}
    return [_given(item) for item in data] if isinstance(data, list) else data


@dataclass
class _Import:
    """One file on its way to a study."""

    path: Path
    root: _Root
    folder: Path
    notes: list[str] = field(default_factory=list)
    called: dict[str, str] = field(default_factory=dict)
    """Names of arguments in the study, by those in the file."""

    def __post_init__(self) -> None:
        self.kernel = self.root.KernelSpecification
        if self.kernel.Language != "CUDA":
            raise self.wrong("KernelSpecification.Language", self.kernel.Language, "CUDA is needed")
        self.levels = {
            p.Name: self.values(i, p)
            for i, p in enumerate(self.root.ConfigurationSpace.TuningParameters)
        }
        self.names = {*self.levels, "n", "np", "rng"}
        here = self.path.absolute().parent
        places = [folder / self.kernel.KernelFile for folder in (here, here.parent)]
        self.file = next((place for place in places if place.is_file()), places[0])
        self.code = ""
        if self.file.is_file():
            self.code = self.file.read_text(encoding="utf-8", errors="replace")
        else:
            self.notes.append(f"there is no {self.kernel.KernelFile} beside the T1 file")

    def wrong(self, where: str, value: object, why: str) -> InterchangeError:
        return wrong(self.path, where, value, why)

    def study(self) -> Imported:
        """Put the parts together."""
        kernel = self.block()
        conditions = self.conditions()
        kernel["check"] = self.checks(kernel["arguments"], conditions)
        self.say_what_is_left_out(conditions)
        swept = {name: levels for name, levels in self.levels.items() if name != "n"}
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", self.kernel.KernelName.partition("<")[0])
        data = {
            "name": plain.strip("-.")[:64] or "imported",
            "n": self.sizes(),
            "kernel": {key: value for key, value in kernel.items() if value not in ({}, [], 0)},
            "matrix": swept,
            "where": conditions,
            "infeasible": "skip",
        }
        head = [f"Made from {self.path.name} by `nqbench import {FORMAT}`.", *self.notes]
        lines = [f"# {line}" for sentence in head for line in textwrap.wrap(sentence, WIDTH)]
        return Imported("\n".join(lines) + "\n" + _yaml(data), tuple(self.notes))

    # The space.

    def values(self, index: int, parameter: _Parameter) -> list[int | str]:
        """A parameter's levels: numbers, or text for what is not whole."""
        where = f"ConfigurationSpace.TuningParameters[{index}]"
        if not parameter.Name.isidentifier():
            raise self.wrong(f"{where}.Name", parameter.Name, "a factor is a word")
        given = parameter.Values
        try:
            found = (
                _sequence(ast.parse(given.strip(), mode="eval").body)
                if isinstance(given, str)
                else given
            )
        except (SyntaxError, ValueError, TypeError, StudyError) as error:
            raise self.wrong(
                f"{where}.Values", given, f"a list or a range is needed, such as [32, 64] ({error})"
            ) from error
        if not found or len(found) > MAX_VALUES:
            raise self.wrong(f"{where}.Values", given, f"1 to {MAX_VALUES:,} values are needed")
        return list(dict.fromkeys(map(_level, found)))

    def sizes(self) -> list[int | str]:
        """The study's n: the parameter of that name, else the first problem size, else 1."""
        if "n" in self.levels:
            return self.levels["n"]
        first = self.kernel.ProblemSize[0] if self.kernel.ProblemSize else 1
        return [first if isinstance(first, int) and first > 0 else 1]

    def conditions(self) -> list[str]:
        """Conditions as a study's ``where``."""
        found = []
        for index, condition in enumerate(self.root.ConfigurationSpace.Conditions):
            text = condition.Expression.replace("&&", " and ").replace("||", " or ")
            text = " ".join(re.sub(r"!(?!=)", " not ", text).split())
            self.check(text, f"ConfigurationSpace.Conditions[{index}].Expression", self.levels)
            found.append(text)
        return found

    def check(self, text: str, where: str, known: Sequence[str] | Mapping[str, Any]) -> None:
        try:
            unknown = sorted(expressions.parse(text, expressions.STUDY).names - {*known, "n"})
        except StudyError as error:
            raise self.wrong(where, text, error.message) from error
        if unknown:
            raise self.wrong(where, text, f"there is no parameter {listing(unknown)}")

    # The kernel.

    def block(self) -> dict[str, Any]:
        """The block ``kernel``, its check aside."""
        values: dict[str, Any] = {}
        block, grid = self.local(), self.grid(values)
        used = {word for text in block for word in re.findall(r"\w+", str(text))}
        factors: dict[str, Any] = {
            name: {"levels": levels, "launch": True} if name in used else levels
            for name, levels in self.levels.items()
            if name != "n"
        }
        arguments, variables, local = self.arguments()
        options, include = self.options()
        return {
            "source": self.near(str(self.file)),
            "entry": self.entry(),
            "macros": {name: name for name in (*self.levels, *values)} | {"kernel_tuner": 1},
            "include": include,
            "options": options,
            "arguments": arguments,
            "variables": variables,
            "values": values,
            "grid": grid,
            "block": block,
            "shared": self.kernel.SharedMemory + local,
            "factors": factors,
        }

    def near(self, name: str) -> str:
        """A file named from the T1 file's folder, as the study's folder has it."""
        whole = self.path.absolute().parent / name
        return Path(os.path.relpath(whole, self.folder.absolute())).as_posix()

    def entry(self) -> str:
        """The kernel's name; parameters among its template's arguments in braces."""
        name, bracket, rest = self.kernel.KernelName.partition("<")
        for parameter in self.levels:
            rest = re.sub(rf"\b{parameter}\b", f"{{{parameter}}}", rest)
        return name + bracket + rest

    def options(self) -> tuple[list[str], list[str]]:
        """Options that NVRTC has, and folders of ``-I``."""
        given = [word for option in self.kernel.CompilerOptions for word in option.split()]
        include = [self.near(w[2:]) for w in given if w.startswith("-I") and len(w) > 2]
        dropped = [word for word in given if NOT_FOR_NVRTC.fullmatch(word)]
        if dropped:
            self.notes.append(f"left out of the compiler's options: {' '.join(dropped)}")
        return [w for w in given if w not in dropped and not w.startswith("-I")], include

    def local(self) -> list[str | int]:
        size = self.kernel.LocalSize
        found = [self.number(getattr(size, axis), f"LocalSize.{axis}") for axis in AXES]
        return _shortest(found)

    def grid(self, values: dict[str, Any]) -> list[str | int]:
        """Blocks: as kernel_tuner has them, the problem over its divisors; else by GlobalSize."""
        if not self.kernel.ProblemSize:
            return self.global_size(values)
        found: list[str | int] = []
        for axis, size in zip(AXES, self.kernel.ProblemSize, strict=False):
            divisors = list(map(str, getattr(self.kernel, f"GridDiv{axis}")))
            default = f"block_size_{axis.lower()}"
            if not divisors and default in self.levels:
                divisors = [default]
            is_n = axis == "X" and isinstance(size, int) and "n" not in self.levels
            problem = "n" if is_n else self.number(size, "ProblemSize")
            over = " * ".join(d if d.isidentifier() else f"({d})" for d in divisors)
            text = f"ceil({problem} / ({over}))" if divisors else problem
            if isinstance(text, str):
                self.check(text, f"KernelSpecification.GridDiv{axis}", self.levels)
            found.append(text)
        return self.named(found, values)

    def global_size(self, values: dict[str, Any]) -> list[str | int]:
        """GlobalSize: blocks for CUDA's kind of it, threads for OpenCL's."""
        size, local = self.kernel.GlobalSize, self.kernel.LocalSize
        if size is None:
            raise InterchangeError(
                f"{self.path}: KernelSpecification needs ProblemSize or GlobalSize"
            )
        threads = self.kernel.GlobalSizeType not in (None, "CUDA")
        found: list[str | int] = []
        for axis in AXES:
            text = self.number(getattr(size, axis), f"GlobalSize.{axis}")
            if threads and text != 1:
                text = f"ceil(({text}) / ({getattr(local, axis)}))"
            found.append(text)
        return self.named(_shortest(found), values)

    def named(self, grid: list[str | int], values: dict[str, Any]) -> list[str | int]:
        """The grid by the names that kernel_tuner defines for the kernel, where it reads them."""
        names = [f"grid_size_{axis.lower()}" for axis in AXES]
        if not any(re.search(rf"\b{name}\b", self.code) for name in names):
            return grid
        values |= dict(zip(names, grid, strict=False))
        return [*names[: len(grid)]]

    def number(self, given: str | int, where: str) -> str | int:
        """A size: a number, or an expression over the parameters."""
        if isinstance(given, int):
            return given
        text = self.substituted(given)
        if re.fullmatch(r"\d+", text):
            return int(text)
        self.check(text, f"KernelSpecification.{where}", self.levels)
        return text

    def substituted(self, text: str) -> str:
        """ProblemSize[i] and max(parameter) as numbers: a study's factors are single levels."""

        def size(match: re.Match[str]) -> str:
            index = int(match[1])
            known = self.kernel.ProblemSize
            return str(known[index]) if index < len(known) else match[0]

        def extreme(match: re.Match[str]) -> str:
            levels = [v for v in self.levels.get(match[2], ()) if isinstance(v, int)]
            return str({"max": max, "min": min}[match[1]](levels)) if levels else match[0]

        text = re.sub(r"ProblemSize\s*\[\s*(\d+)\s*\]", size, text.strip())
        return re.sub(r"\b(max|min)\(\s*(\w+)\s*\)", extreme, text)

    # Arguments.

    def arguments(self) -> tuple[dict[str, Any], dict[str, Any], int]:
        """Buffers and scalars, module variables, and bytes of shared memory for local ones."""
        found: dict[str, Any] = {}
        variables: dict[str, Any] = {}
        local = 0
        for index, argument in enumerate(self.kernel.Arguments):
            where = f"Arguments[{index}]"
            dtype, lanes = self.type_of(argument, where)
            name = argument.Name if argument.Name.isidentifier() else f"argument_{index}"
            if argument.MemoryType == "Scalar":
                name = self.unused(name)
                found[name] = {"dtype": dtype, "value": self.fill(argument, where)}
                continue
            length = self.length(argument, lanes, where)
            if argument.MemoryType == "Local":
                if not isinstance(length, int):
                    raise self.wrong(
                        f"KernelSpecification.{where}.Size", argument.Size, "a number is needed"
                    )
                local += length * _bytes(dtype)
                continue
            form = {"dtype": dtype, "length": length, **self.contents(argument, where)}
            if argument.MemoryType == "Symbol" or argument.MemType == "Constant":
                variables[self.unused(name)] = {"contents": "zeros", **form}
            if argument.MemoryType == "Vector":
                buffer = self.unused(name)
                found[buffer], self.called[argument.Name] = form, buffer
                if name in variables and "contents" in form:  # the same numbers in both places
                    variables[name] = {"dtype": dtype, "length": length, "contents": buffer}
        return found, variables, local

    def unused(self, name: str) -> str:
        while name in self.names or keyword.iskeyword(name):
            name += "_"
        self.names.add(name)
        return name

    def type_of(self, argument: _Argument, where: str) -> tuple[str, int]:
        """numpy's name of the type, and how many of it make an element."""
        match = re.fullmatch(r"(half|float|double)(\d+)", argument.Type)
        name, lanes = (match[1], int(match[2])) if match else (argument.Type, 1)
        if name == "custom" and argument.TypeSize:
            return "uint8", argument.TypeSize
        if name not in SCALARS or (lanes > 1 and argument.MemoryType == "Scalar"):
            raise self.wrong(
                f"KernelSpecification.{where}.Type",
                argument.Type,
                f"only {listing(SCALARS, 'and')} are known here, and vectors of them in memory",
            )
        return SCALARS[name], lanes

    def length(self, argument: _Argument, lanes: int, where: str) -> int | str:
        if argument.Size is None:
            raise InterchangeError(f"{self.path}: KernelSpecification.{where}.Size is missing")
        length = self.number(argument.Size, f"{where}.Size")
        if isinstance(length, int):
            return length * lanes
        return length if lanes == 1 else f"{lanes} * ({length})"

    def fill(self, argument: _Argument, where: str) -> int | float:
        if argument.FillValue is None:
            raise InterchangeError(f"{self.path}: KernelSpecification.{where}.FillValue is missing")
        value = argument.FillValue
        return int(value) if argument.Type.lstrip("u").startswith("int") else value

    def contents(self, argument: _Argument, where: str) -> dict[str, Any]:
        """What a buffer holds; none for one that the kernel alone writes."""
        match argument.FillType:
            case None:
                return {}
            case "Constant":
                value = self.fill(argument, where)
                return {"contents": "zeros" if value == 0 else f"{value}"}
            case "Random":
                seed = {"seed": argument.RandomSeed} if argument.RandomSeed else {}
                return {"contents": "random", **seed}
            case "BinaryRaw" if argument.DataSource:
                return {"contents": self.numpy_file(argument.DataSource, argument.Type)}
        raise self.wrong(
            f"KernelSpecification.{where}.FillType",
            argument.FillType,
            "Constant, Random and BinaryRaw can be imported; give other contents as a .npy file",
        )

    def numpy_file(self, name: str, type_: str) -> str:
        made = str(Path(name).with_suffix(".npy"))
        dtype = SCALARS.get(type_.rstrip("0123456789"), type_)
        read = f"np.fromfile('{name}', '{dtype}')"
        note = f"write {made} first: python -c \"import numpy as np; np.save('{made}', {read})\""
        if note not in self.notes:
            self.notes.append(note)
        return self.near(made)

    # What is right.

    def checks(self, arguments: Mapping[str, Any], conditions: Sequence[str]) -> dict[str, Any]:
        """The right contents of buffers: those that the file gives, else those of one point."""
        found: dict[str, Any] = {}
        for index, given in enumerate(self.kernel.ReferenceArguments):
            where = f"ReferenceArguments[{index}]"
            if given.TargetName not in self.called:
                said = f"there is no buffer of that name; there are {listing(self.called, 'and')}"
                raise self.wrong(f"KernelSpecification.{where}.TargetName", given.TargetName, said)
            form: dict[str, Any] = {}
            target = next(a for a in self.kernel.Arguments if a.Name == given.TargetName)
            if given.FillType == "BinaryRaw" and given.DataSource:
                form["file"] = self.numpy_file(given.DataSource, target.Type)
            elif given.FillType == "Constant" and given.FillValue is not None:
                form["equals"] = f"{given.FillValue}"
            else:
                self.notes.append(
                    f"how {given.TargetName} is checked ({given.FillType}) cannot be imported: add"
                    " `equals`, `function` or `file` under `check`"
                )
                continue
            tolerance = "relative" if "Relative" in given.ValidationMethod else "absolute"
            if given.ValidationThreshold:
                form[tolerance] = float(given.ValidationThreshold)
            found[self.called[given.TargetName]] = form
        return found or self.reference(arguments, conditions)

    def reference(self, arguments: Mapping[str, Any], conditions: Sequence[str]) -> dict[str, Any]:
        """Every output must be that of the default configuration, or else of the first one."""
        buffers = [a for a in self.kernel.Arguments if a.MemoryType == "Vector"]
        written = [a for a in buffers if a.AccessType != "ReadOnly"]
        outputs = [self.called[a.Name] for a in ([a for a in buffers if a.Output] or written)]
        chosen = self.chosen(conditions)
        if not outputs or not chosen:
            self.notes.append("no output is checked: add `check` to the kernel")
            return {}
        self.notes.append(
            f"the file does not say what is right: {listing(outputs, 'and')} must be as that of the"
            f" configuration under `reference`, which itself is not checked"
        )
        floats = {name: str(arguments[name]["dtype"]).startswith("float") for name in outputs}
        tolerance = {"relative": 1e-4, "absolute": 1e-6}
        return {
            name: {"reference": chosen, **(tolerance if floats[name] else {})} for name in outputs
        }

    def chosen(self, conditions: Sequence[str]) -> dict[str, int | str]:
        parameters = self.root.ConfigurationSpace.TuningParameters
        defaults = {p.Name: _level(p.Default) for p in parameters if p.Default is not None}
        tests = [expressions.parse(text, expressions.STUDY) for text in conditions]
        every = itertools.product(*self.levels.values())
        tries: Iterator[dict[str, int | str]] = itertools.chain(
            [defaults] if len(defaults) == len(parameters) else [],
            (
                dict(zip(self.levels, row, strict=True))
                for row in itertools.islice(every, MAX_VALUES)
            ),
        )
        known = {"n": self.sizes()[0]}
        for levels in tries:
            try:
                holds = all(
                    expressions.evaluate(
                        t, expressions.STUDY, known | levels, expressions.FUNCTIONS
                    )
                    for t in tests
                )
            except StudyError:
                holds = False
            if holds:
                return {name: level for name, level in levels.items() if name != "n"}
        return {}

    def say_what_is_left_out(self, conditions: Sequence[str]) -> None:
        total = math.prod(map(len, self.levels.values()))
        if total > MAX_VALUES:
            where = " before its conditions" if conditions else ""
            self.notes.append(
                f"the space has {total:,} configurations{where}, a study at most {MAX_VALUES:,}:"
                " shorten lists under `matrix`"
            )
        if self.root.Search or self.root.Budget:
            self.notes.append("Search and Budget are left out: every configuration is measured")


def _yaml(data: Mapping[str, Any]) -> str:
    """A study's keys that are not empty; lists and mappings of plain values on one line."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 (the signature)
            return True

    return "".join(
        yaml.dump(
            {key: value},
            Dumper=Dumper,
            sort_keys=False,
            default_flow_style=None if key != "where" and not isinstance(value, str) else False,
            width=WIDTH,
        )
        for key, value in data.items()
        if value
    )


def _shortest(sizes: list[str | int]) -> list[str | int]:
    """Without the ones at the end; at least one."""
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes.pop()
    return sizes


def _bytes(dtype: str) -> int:
    import numpy as np

    return int(np.dtype(dtype).itemsize)


def _level(value: Any) -> int | str:
    """A value as a level: whole numbers stay numbers, true is 1, anything else becomes text."""
    return int(value) if isinstance(value, int) else str(value)


def _sequence(node: ast.AST) -> list[Any]:
    """The values of a Python expression: lists, ranges, sums of them, simple comprehensions."""
    match node:
        case ast.List() | ast.Tuple():
            return [ast.literal_eval(item) for item in node.elts]
        case ast.Call(func=ast.Name(id="list" | "tuple" | "sorted"), args=[inside], keywords=[]):
            return _sequence(inside)
        case ast.Call(func=ast.Name(id="range"), args=ends, keywords=[]):
            numbers = range(*(int(_value(end, {})) for end in ends))
            if len(numbers) > MAX_VALUES:
                raise ValueError("the range is too long")
            return list(numbers)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _sequence(left) + _sequence(right)
        case ast.ListComp(
            elt=item,
            generators=[ast.comprehension(target=ast.Name(id=name), iter=values, ifs=[])],
        ):
            return [_value(item, {name: value}) for value in _sequence(values)]
    raise ValueError(f"{ast.unparse(node)} is not a list")


def _value(node: ast.AST, names: Mapping[str, Any]) -> Any:
    """A number or word of an expression. Raises ``StudyError``."""
    parsed = expressions.parse(ast.unparse(node), expressions.STUDY)
    return expressions.evaluate(parsed, expressions.STUDY, names, expressions.FUNCTIONS)
