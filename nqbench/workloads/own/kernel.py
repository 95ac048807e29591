"""A workload made from a study: the block ``kernel`` and a .cu file, without any Python.

The block is plain data as the study's YAML has it (``nqbench.study.own_kernel`` has its grammar and
checks it), so that it travels to workers and stands in a run's manifest. Reports need nothing else;
plans also need the folder of the study, from which its files are named.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench import expressions
from nqbench.errors import InfeasibleError, StudyError, WrongDeviceError
from nqbench.facts import DeviceFacts
from nqbench.plan import Argument, Buffer, KernelPlan, Outputs, Plan
from nqbench.point import Level
from nqbench.system.python_files import load_function, where_raised
from nqbench.system.suggest import listing, suggestion
from nqbench.workloads import KERNEL
from nqbench.workloads.base import Compared, Factor, Resolved, Workload
from nqbench.workloads.levels import given_levels
from nqbench.workloads.own import arrays

NOT_COMPUTED: Final = ("factors", "systems", "metrics")
"""Keys of the block that change no number: levels are part of a point anyway."""
BRACES: Final = re.compile(r"\{([^{}]*)\}")
NUMPY_FILE: Final = ".npy"
MAX_LEVEL: Final = 2**31 - 1
MAX_BYTES: Final = 2**40
"""Of a buffer on a device that does not say how much memory it has."""
MAX_GRID_YZ: Final = 65_535
"""Blocks along y or z, of every compute capability."""
AXES: Final = "xyz"
Block = Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class OwnPlan(KernelPlan):
    """The launch, and what the check of its answer needs: the numbers of the point by name, and the
    shapes of the arrays."""

    _: KW_ONLY
    numbers: Mapping[str, Any] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


class OwnKernel(Workload):
    """The workload of one study's ``kernel`` block."""

    no_variants = "is a kernel of the user's own"

    def __init__(self, study: str, block: Block, folder: Path | None = None) -> None:
        """``folder`` is that of the study; without it nothing can be planned."""
        self.name = f"{KERNEL}:{study}"
        self.block = block
        if not block.get("check"):
            self.doubt = "the kernel has no 'check', so nothing tells whether its results are right"
        self._folder = folder
        if folder is not None:
            self.include = tuple(folder / name for name in block.get("include", ()))
        named = {"n": {}, **block.get("factors", {})}
        self.factors = {name: factor_of(name, given) for name, given in named.items()}
        self.defaults = {
            name: given["default"]
            for name, given in named.items()
            if isinstance(given, Mapping) and "default" in given
        }
        self.systems = dict(block.get("systems", {}))
        self._kept = arrays.Kept()

    # Its parts, in one form each.

    @cached_property
    def arguments(self) -> dict[str, Mapping[str, Any]]:
        """Buffers and scalars in the order in which the kernel takes them."""
        given = self.block.get("arguments", {})
        return {n: {"dtype": g, "value": n} if isinstance(g, str) else g for n, g in given.items()}

    @cached_property
    def buffers(self) -> dict[str, Mapping[str, Any]]:
        """The arguments that are arrays."""
        return {name: given for name, given in self.arguments.items() if "value" not in given}

    @cached_property
    def checks(self) -> dict[str, Mapping[str, Any]]:
        """How each checked buffer is checked."""
        given = self.block.get("check", {})
        return {n: {"equals": g} if not isinstance(g, Mapping) else g for n, g in given.items()}

    # What a study asks of a workload.

    def resolve(
        self, given: Mapping[str, Level], system: str | None, device: DeviceFacts
    ) -> Resolved:
        """Every factor with its level, the block's ``values``, and the launch they lead to."""
        if device.kind == "cpu":
            raise WrongDeviceError("a kernel needs a GPU or the simulator; use cuda:0 or sim")
        explicit = given_levels(self.name, self.factors, self.systems, given, system)
        own = self.systems[system] if system else {}
        levels = {**self.defaults, **own, **explicit}
        for name, factor in self.factors.items():
            if name not in levels:
                raise StudyError(
                    f"the factor '{name}' has no level here; give it under fixed or matrix, or a"
                    f" default in the kernel's factors"
                )
            self.check_listed(factor, levels[name])
        numbers = self._numbers(levels, device)
        grid, block = (self._geometry(key, numbers, device) for key in ("grid", "block"))
        shared = self._whole(("shared",), self.block.get("shared", 0), numbers, device, least=0)
        self._check_fits(grid, block, shared, device)
        self._check_arguments(numbers, device)
        values = {name: numbers[name] for name in self.block.get("values", {})}
        launch = {"blocks": math.prod(grid), "threads": math.prod(grid) * math.prod(block)}
        if shared:
            launch["shared_bytes"] = shared
        return Resolved(levels, {**launch, **values})

    def plan(self, factors: Mapping[str, Level], system: str | None, device: DeviceFacts) -> Plan:
        """One launch of the kernel with the study's buffers. Raises ``InfeasibleError``."""
        try:
            return self._plan(factors, system, device)
        except StudyError as error:  # numpy, or a file: known only with the point's numbers
            raise InfeasibleError(error.message) from error

    def answer(self, plan: Plan, outputs: Outputs) -> int | None:
        """None: the outputs are compared array by array, see :meth:`compared`."""
        del plan, outputs
        return None

    def reference(self, factors: Mapping[str, Level]) -> Mapping[str, Level] | None:
        """The point whose outputs are the right ones of this one; ``None`` if there is none, or it
        is that point itself."""
        for given in self.checks.values():
            if "reference" in given:
                levels = {**factors, **given["reference"]}
                return levels if levels != dict(factors) else None
        return None

    def compared(self, plan: Plan, outputs: Outputs, reference: Outputs | None) -> Compared | None:
        """How many elements of the checked buffers are right, and what the first wrong one is."""
        if not isinstance(plan, OwnPlan):
            return None  # another program's
        right = total = 0
        fault = ""
        for name, given in self.checks.items():
            if "reference" in given and reference is None:
                continue
            expected = self._expected(name, given, plan, reference)
            wrong = _wrong(outputs[name], expected, given)
            total, right = total + expected.size, right + expected.size - wrong.size
            if wrong.size and not fault:
                fault = _first_wrong(name, plan.shapes[name], outputs[name], expected, wrong)
        changed = _changed(plan, outputs, self.checks)
        return Compared(right, total, fault or changed) if total or changed else None

    def work(self, factors: Mapping[str, Level]) -> float:
        """The block's ``work``; else the number of threads."""
        try:
            numbers = self._numbers(factors, None)
            if "work" in self.block:
                return float(self._value(("work",), self.block["work"], numbers, None))
            grid, block = (self._geometry(key, numbers, None) for key in ("grid", "block"))
        except (StudyError, InfeasibleError, ValueError):
            return 1.0  # another program's point, or an expression that reads the device
        return float(math.prod(grid) * math.prod(block))

    # What its numbers follow from, for the keys of measurements.

    def identity(self) -> Mapping[str, Any]:
        """The parts of the block that can change a number."""
        return {key: part for key, part in self.block.items() if key not in NOT_COMPUTED}

    def files(self) -> list[Path]:
        """The source, the data files, and the Python files in the folders of its functions."""
        named = [self.block["source"]]
        for _, given in self._arrays():
            named += [given["contents"]] if _is_file(given.get("contents")) else []
        for given in self.checks.values():
            named += [given["file"]] if "file" in given else []
            if "function" in given:
                python = str(given["function"]).partition(":")[0]
                named += [str(Path(python).parent / "*.py")]
        found = (path for name in named for path in self._matching(name))
        return list(dict.fromkeys(path.resolve() for path in found))

    @property
    def folder(self) -> Path:
        """The study's folder. Raises ``StudyError`` where only its block is known."""
        if self._folder is None:
            raise StudyError(f"the folder of {self.name} is not known here")
        return self._folder

    # Numbers.

    def _numbers(self, levels: Mapping[str, Level], device: DeviceFacts | None) -> dict[str, Any]:
        """The levels, and the block's ``values``, each of which may read those before it."""
        numbers: dict[str, Any] = dict(levels)
        for name, text in self.block.get("values", {}).items():
            numbers[name] = _plain(self._value(("values", name), text, numbers, device))
        return numbers

    def _value(
        self, keys: tuple[str | int, ...], text: Any, names: Mapping[str, Any], device: Any
    ) -> Any:
        """The value of an expression; an error knows the keys that lead to it."""
        if not isinstance(text, str):
            return text
        try:
            parsed = expressions.parse(text, expressions.STUDY)
            if device is None:
                return expressions.evaluate(parsed, expressions.STUDY, names, expressions.FUNCTIONS)
            return expressions.value_in_study(parsed, names, device)
        except StudyError as error:
            raise StudyError(error.message, keys=(KERNEL, *keys)) from error

    def _whole(
        self,
        keys: tuple[str | int, ...],
        text: Any,
        names: Mapping[str, Any],
        device: Any,
        least: int = 1,
    ) -> int:
        """A whole number from ``least``. Raises ``InfeasibleError`` for another one."""
        found = self._value(keys, text, names, device)
        what = next(str(key) for key in reversed(keys) if isinstance(key, str))
        said = f"{what}: `{text}` is {_short(found)}"
        if isinstance(found, bool) or not isinstance(found, int | float) or found != found // 1:
            raise InfeasibleError(
                f"{said}, not a whole number; use //, floor or ceil", keys=(KERNEL, *keys)
            )
        if found < least:
            raise InfeasibleError(f"{said}, but must be at least {least}", keys=(KERNEL, *keys))
        return int(found)

    def _geometry(
        self, key: str, numbers: Mapping[str, Any], device: DeviceFacts | None
    ) -> tuple[int, int, int]:
        given = self.block[key]
        parts = given if isinstance(given, list) else [given]
        found = [self._whole((key, i), part, numbers, device) for i, part in enumerate(parts)]
        x, y, z = [*found, 1, 1][:3]
        return x, y, z

    def _check_fits(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        shared: int,
        device: DeviceFacts,
    ) -> None:
        """Refuse a launch that no such device can do, at the line that asks for it."""
        threads, most = math.prod(block), device.max_threads_per_block
        if threads > most:
            raise InfeasibleError(
                f"block: {threads} threads are more than the {most} of a block on {device.name}",
                keys=(KERNEL, "block"),
            )
        if shared > device.shared_per_block_optin:
            raise InfeasibleError(
                f"shared: {shared} bytes are more than the {device.shared_per_block_optin} of a"
                f" block on {device.name}",
                keys=(KERNEL, "shared"),
            )
        limits = (device.max_grid_x, MAX_GRID_YZ, MAX_GRID_YZ)
        for axis, blocks, limit in zip(AXES, grid, limits, strict=True):
            if blocks > limit:
                raise InfeasibleError(
                    f"grid: {blocks} blocks along {axis} are more than {limit}",
                    keys=(KERNEL, "grid"),
                )

    def check_listed(self, factor: Factor, level: Level) -> None:
        """A factor with a list of numbers takes those only. Raises ``StudyError``."""
        given = self.block.get("factors", {}).get(factor.name)
        listed = given if isinstance(given, list) else (given or {}).get("levels", [])
        numbers = [one for one in listed if isinstance(one, int)]
        if isinstance(level, int) and numbers and level not in numbers:
            said = f"'{factor.name}' is {level}, but takes {listing(map(str, numbers))}"
            raise StudyError(said, factor=factor.name)

    def _check_arguments(self, numbers: Mapping[str, Any], device: DeviceFacts) -> None:
        """Refuse scalars that their type cannot hold, and buffers that the memory cannot."""
        for name, given in self.arguments.items():
            keys, dtype = (KERNEL, *self._keys(name)), self._dtype(given, numbers)
            if "value" in given:
                self._scalar(name, given, numbers, device)
            elif (shape := self._shape(name, numbers, device)) is not None:
                nbytes, most = math.prod(shape) * np.dtype(dtype).itemsize, device.memory_bytes
                if nbytes > (most or MAX_BYTES):
                    raise InfeasibleError(
                        f"{name}: {nbytes} bytes are more than the memory of {device.name}",
                        keys=keys,
                    )
        for name in self.block.get("variables", {}):
            self._shape(name, numbers, device)

    # Arrays.

    def _arrays(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Buffers and module variables."""
        yield from self.buffers.items()
        yield from self.block.get("variables", {}).items()

    def _keys(self, name: str) -> tuple[str, str]:
        return ("arguments" if name in self.arguments else "variables", name)

    def _shape(
        self, name: str, numbers: Mapping[str, Any], device: DeviceFacts | None
    ) -> tuple[int, ...] | None:
        """The shape of an array; ``None`` if it is that of its contents."""
        given = dict(self._arrays())[name]
        if "shape" in given:
            keys = (*self._keys(name), "shape")
            return tuple(
                self._whole((*keys, i), part, numbers, device)
                for i, part in enumerate(given["shape"])
            )
        if "length" not in given:
            return None
        return (self._whole((*self._keys(name), "length"), given["length"], numbers, device),)

    def _plan(
        self, factors: Mapping[str, Level], system: str | None, device: DeviceFacts
    ) -> OwnPlan:
        resolved = self.resolve(factors, system, device)
        numbers = self._numbers(resolved.factors, device)
        scalars = {
            name: self._scalar(name, given, numbers, device)
            for name, given in self.arguments.items()
            if "value" in given
        }
        known = {**scalars, **numbers}
        data = self._contents(known, device)
        shapes = {
            name: self._shape(name, numbers, device) or data[name].shape for name in self.buffers
        }
        arguments: list[Argument] = [scalars.get(name, name) for name in self.arguments]
        macros = {
            name: self._value(("macros", name), text, numbers, device)
            for name, text in self.block.get("macros", {}).items()
        }
        options = [self._text(("options",), o, numbers) for o in self.block.get("options", ())]
        file = self._text(("source",), self.block["source"], numbers)
        source = self.folder / file
        if not source.is_file():
            raise StudyError(f"there is no file {file}")
        return OwnPlan(
            source=source,
            entry=self._text(("entry",), self.block["entry"], numbers),
            arguments=tuple(arguments),
            grid=self._geometry("grid", numbers, device),
            block=self._geometry("block", numbers, device),
            shared_bytes=self._whole(("shared",), self.block.get("shared", 0), numbers, device, 0),
            options=(*options, *(f"-D{name}={_cuda(found)}" for name, found in macros.items())),
            include=self.include,
            symbols={name: data[name] for name in self.block.get("variables", {})},
            cooperative=bool(self.block.get("cooperative", False)),
            buffers=tuple(
                self._buffer(name, math.prod(shapes[name]), data.get(name), numbers, device)
                for name in self.buffers
            ),
            about=resolved.derived,
            numbers=known,
            shapes=shapes,
        )

    def _dtype(self, given: Mapping[str, Any], numbers: Mapping[str, Any]) -> str:
        """The type of an argument's elements: ``{precision}`` stands for the level of a factor."""
        dtype = self._text(("arguments",), str(given["dtype"]), numbers)
        if dtype not in arrays.DTYPES:
            hint = suggestion(dtype, arrays.DTYPES)
            raise StudyError(f"no dtype is called {dtype!r}; {hint}", keys=(KERNEL, "arguments"))
        return dtype

    def _scalar(
        self, name: str, given: Mapping[str, Any], numbers: Mapping[str, Any], device: DeviceFacts
    ) -> np.generic:
        found = self._value(("arguments", name), given["value"], numbers, device)
        form = np.dtype(self._dtype(given, numbers))
        keys = (KERNEL, *self._keys(name))
        if isinstance(found, str) or (form.kind in "iu" and found != found // 1):
            raise StudyError(f"`{given['value']}` is {_short(found)}, no {form}", keys=keys)
        if form.kind in "iu":
            limits = np.iinfo(form)
            if not limits.min <= found <= limits.max:
                said = f"`{given['value']}` is {_short(found)}, too large for {form}"
                raise StudyError(said, keys=keys)
            found = int(found)
        made: np.generic = form.type(found)
        return made

    def _buffer(
        self,
        name: str,
        length: int,
        data: NDArray[Any] | None,
        numbers: Mapping[str, Any],
        device: DeviceFacts,
    ) -> Buffer:
        """A checked buffer with contents is put back before every launch. The simulator also
        returns the others that have contents: a kernel must not change them unnoticed."""
        given = self.buffers[name]
        zero = str(given.get("contents")) == "zeros"
        checked = name in self.checks
        restore = data is not None and (checked or bool(given.get("restore", False)))
        watched = device.kind == "sim" and data is not None and not restore
        return Buffer(
            name,
            self._dtype(given, numbers),
            length,
            data=data,
            zero=zero,
            restore=restore,
            output=checked or watched,
        )

    def _contents(self, known: Mapping[str, Any], device: DeviceFacts) -> dict[str, NDArray[Any]]:
        """The arrays that have contents (other than zeros), each read-only and in its shape."""
        made: dict[str, NDArray[Any]] = {}
        for name, given in self._arrays():
            what = given.get("contents")
            if what is None or (what == "zeros" and name in self.buffers):
                continue
            shape = self._shape(name, known, device)
            every = {**known, **made}
            form = ("contents", name, shape, self._dtype(given, known))
            array = partial(self._array, name, given, shape, every)
            made[name] = self._kept.get(form, self._read_by(str(what), every), array)
        return made

    def _read_by(self, what: str, known: Mapping[str, Any]) -> list[Any]:
        """What the contents of an array follow from, besides its description."""
        if what in arrays.STANDARD:
            return []
        if _is_file(what):
            return [self._text(("arguments",), what, known)]
        return [known[name] for name in sorted(arrays.names_in(what)) if name in known]

    def _array(
        self,
        name: str,
        given: Mapping[str, Any],
        shape: tuple[int, ...] | None,
        known: Mapping[str, Any],
    ) -> NDArray[Any]:
        what, dtype = str(given["contents"]), self._dtype(given, known)
        seed = [int(given.get("seed", 0)), *name.encode()]  # two buffers are not alike
        count = None if shape is None else math.prod(shape)
        try:
            if _is_file(what):
                found = self._load(what, known, dtype, count)
            else:
                found = arrays.made(what, dtype, count, seed, known)
        except StudyError as error:
            raise StudyError(f"'{name}': {error.message}") from error
        return found.reshape(shape) if shape else found

    def _load(
        self, name: str, known: Mapping[str, Any], dtype: str, count: int | None
    ) -> NDArray[Any]:
        file = self._text(("arguments",), name, known)
        try:
            found = np.load(self.folder / file, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise StudyError(f"{file} cannot be read: {reason}") from error
        return arrays.fitted(found, dtype, count, f"{file} has")

    # The check.

    def _expected(
        self, name: str, given: Mapping[str, Any], plan: OwnPlan, reference: Outputs | None
    ) -> NDArray[Any]:
        """The right contents of a checked buffer. Raises ``InfeasibleError`` if there are none."""
        buffer = next(buffer for buffer in plan.buffers if buffer.name == name)
        form = buffer.dtype, buffer.length
        before = {
            b.name: (np.zeros(b.length, b.dtype) if b.data is None else b.data).reshape(
                plan.shapes[b.name]
            )
            for b in plan.buffers
            if b.data is not None or b.zero
        }
        known = {**plan.symbols, **before, **plan.numbers}
        kept = [*plan.symbols.values(), *(b.data for b in plan.buffers if b.data is not None)]
        try:
            if "reference" in given:
                assert reference is not None
                return arrays.fitted(reference[name], *form, "the reference has")
            right = partial(self._right, given, form, known)
            return self._kept.get(("right", name, *form), [*kept, *plan.numbers.values()], right)
        except StudyError as error:
            raise InfeasibleError(f"the check of '{name}': {error.message}") from error

    def _right(
        self, given: Mapping[str, Any], form: tuple[str, int], known: Mapping[str, Any]
    ) -> NDArray[Any]:
        if "file" in given:
            return self._load(given["file"], known, *form)
        if "function" in given:
            found = self._called(str(given["function"]), known)
            return arrays.fitted(found, *form, f"{given['function']} gives")
        return arrays.made(str(given["equals"]), *form, 0, known)

    def _called(self, place: str, known: Mapping[str, Any]) -> Any:
        """What a Python function gives for the arrays and numbers that its parameters name."""
        file, _, name = place.partition(":")
        function = load_function(self.folder / file, name)
        wanted = inspect.signature(function).parameters
        if missing := [p for p in wanted if p not in known]:
            raise StudyError(
                f"{place} has a parameter '{missing[0]}', which is neither a buffer with contents"
                " nor a factor"
            )
        try:
            return function(**{parameter: known[parameter] for parameter in wanted})
        except Exception as error:
            raise StudyError(f"{place} raised {where_raised(error)}") from error

    # Texts.

    def _text(self, keys: tuple[str, ...], text: str, numbers: Mapping[str, Any]) -> str:
        """A text with its parts in braces replaced: ``transpose<{tile}, {n // 2}>``."""

        def filled(match: re.Match[str]) -> str:
            return _cuda(self._value(keys, match[1], numbers, None))

        return BRACES.sub(filled, text)

    def _matching(self, name: str) -> list[Path]:
        """The files of a name, whatever stands for its parts in braces."""
        pattern = BRACES.sub("*", name)
        if "*" not in pattern:
            return [self.folder / name]
        return sorted(self.folder.glob(pattern))


def factor_of(name: str, given: Any) -> Factor:
    """The factor of an entry: a list of levels, or a mapping with ``levels`` or ``range``."""
    about: Mapping[str, Any] = {"levels": given} if isinstance(given, list) else given
    levels = about.get("levels", ())
    numbers = [level for level in levels if isinstance(level, int)]
    ends = (min(numbers), max(numbers)) if numbers else None
    if "range" in about:
        ends = (about["range"][0], about["range"][1])
    elif not levels:
        ends = (1 if name == "n" else 0, MAX_LEVEL)
    return Factor(
        name,
        str(about.get("meaning", "size of the problem" if name == "n" else name)),
        tuple(level for level in levels if isinstance(level, str)),
        ends,
        launch=bool(about.get("launch", False)),
    )


def _wrong(found: NDArray[Any], expected: NDArray[Any], given: Mapping[str, Any]) -> NDArray[Any]:
    """Indices of the elements that are wrong. A NaN is right where a NaN is expected."""
    relative, absolute = float(given.get("relative", 0)), float(given.get("absolute", 0))
    with np.errstate(all="ignore"):
        right = found == expected
        if not right.all() and found.dtype.kind in "fc":
            right |= np.isnan(found) & np.isnan(expected)
        if not right.all() and (relative or absolute):
            right |= np.isclose(found, expected, rtol=relative, atol=absolute)
    return np.flatnonzero(~right)


def _first_wrong(
    name: str,
    shape: tuple[int, ...],
    found: NDArray[Any],
    expected: NDArray[Any],
    wrong: NDArray[Any],
) -> str:
    first = int(wrong[0])
    where = ", ".join(str(int(i)) for i in np.unravel_index(first, shape))
    return f"{name}[{where}] is {found[first]!s}, not {expected[first]!s}"


def _changed(plan: OwnPlan, outputs: Outputs, checks: Mapping[str, Any]) -> str:
    """Which buffer with contents the kernel changed though it is not put back; empty if none."""
    for buffer in plan.buffers:
        if buffer.data is None or buffer.restore or buffer.name not in outputs:
            continue
        if buffer.name not in checks and outputs[buffer.name].tobytes() != buffer.data.tobytes():
            return (
                f"the kernel changes '{buffer.name}', so every launch would start from what the one"
                " before left: say `restore: true` there"
            )
    return ""


def _is_file(what: object) -> bool:
    return isinstance(what, str) and what.endswith(NUMPY_FILE)


def _plain(found: Any) -> Any:
    return int(found) if isinstance(found, float) and found.is_integer() else found


def _short(found: Any) -> str:
    return f"{found:g}" if isinstance(found, float) else str(found)


def _cuda(found: Any) -> str:
    """A value as C++ has it."""
    return str(found).lower() if isinstance(found, bool) else str(_plain(found))
