"""One point of a study's own kernel: its numbers, its launch, its arrays."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench import expressions
from nqbench.errors import InfeasibleError, StudyError
from nqbench.facts import SIMULATED_BYTES, DeviceFacts
from nqbench.multi_launch import RESERVED, ProgramContext
from nqbench.plan import Buffer, Kernel, KernelPlan, MultiLaunchPlan
from nqbench.point import FactorLevels
from nqbench.system.crash import where_raised
from nqbench.system.files import ending
from nqbench.system.python_files import load_function
from nqbench.workloads.base import KERNEL
from nqbench.workloads.own import arrays
from nqbench.workloads.own.block import BRACES, Block, Part, is_file

MAX_BYTES: Final = 2**40
"""Of the buffers on a device that does not say how much memory it has."""
MAX_GRID_YZ: Final = 65_535
"""Blocks along y or z, of every compute capability."""
MAX_BLOCK_Z: Final = 64
"""Threads along z, of every compute capability."""
Keys = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class OwnCheck:
    """What the check of a plan's outputs needs: the numbers and scalars of the point, and of its
    buffers and module variables the contents, shapes and types, all by name; ``zeros`` are those
    that are cleared."""

    point: OwnLaunch
    numbers: Mapping[str, Any]
    contents: Mapping[str, NDArray[Any]]
    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, str]
    zeros: Collection[str]

    def before(self, name: str) -> NDArray[Any] | None:
        """What a buffer or variable holds before a launch; ``None`` where that is a fill."""
        if name in self.zeros:
            return np.zeros(self.shapes[name], self.dtypes[name])
        return self.contents.get(name)


def run_steps(context: ProgramContext, names: tuple[str, ...]) -> None:
    """Launch kernels one after the other."""
    for name in names:
        context.launch(name)


Size = tuple[tuple[int, int, int], tuple[int, int, int], int]
"""Grid, block, bytes of dynamic shared memory."""


class OwnLaunch:
    """What follows from the levels of a point.

    An expression without a value is a ``StudyError``, one with a value that cannot be an
    ``InfeasibleError``; both know the keys that lead to it.
    """

    def __init__(self, block: Block, levels: FactorLevels, device: DeviceFacts | None) -> None:
        """``device`` is ``None`` where none is known: ``device.*`` has no value then."""
        self.block, self.device = block, device
        self.numbers: dict[str, Any] = dict(levels)
        for name, text in block.values.items():  # each may read those before it
            self.numbers[name] = plain(self.value(("values", name), text))

    # Numbers and texts.

    def value(self, keys: Keys, text: Any) -> Any:
        """The value of an expression over numbers."""
        if not isinstance(text, str):
            return text
        try:
            parsed = expressions.parse(text, expressions.NUMBER)
            return expressions.value_in_study(parsed, self.numbers, self.device)
        except StudyError as error:
            raise StudyError(error.message, keys=(KERNEL, *keys)) from error

    def whole(self, keys: Keys, text: Any, least: int = 1) -> int:
        """A whole number from ``least``."""
        found = self.value(keys, text)
        what = next(str(key) for key in reversed(keys) if isinstance(key, str))
        said = f"{what}: `{text}` is {short(found)}"
        if isinstance(found, bool) or not isinstance(found, int | float) or found != found // 1:
            said += ", not a whole number; use //, floor or ceil"
            raise InfeasibleError(said, keys=(KERNEL, *keys))
        if found < least:
            raise InfeasibleError(f"{said}, but must be at least {least}", keys=(KERNEL, *keys))
        return int(found)

    def text(self, keys: Keys, text: str) -> str:
        """A text with its parts in braces replaced: ``transpose<{tile}, {n // 2}>``."""
        return BRACES.sub(lambda match: in_cuda(self.value(keys, match[1])), text)

    # The launch.

    @cached_property
    def sizes(self) -> list[Size]:
        """Of each launch: the kernel's, or those of its steps."""
        return [
            (
                self._geometry(step, (*keys, "grid")),
                self._geometry(step, (*keys, "block")),
                self.whole((*keys, "shared"), step.get("shared", 0), least=0),
            )
            for keys, step in self.block.launches
        ]

    @property
    def largest(self) -> Size:
        """The launch with the most threads."""
        return max(self.sizes, key=lambda size: math.prod(size[0]) * math.prod(size[1]))

    def _geometry(self, step: Part, keys: Keys) -> tuple[int, int, int]:
        given = step[str(keys[-1])]
        parts = given if isinstance(given, list) else [given]
        x, y, z = [*(self.whole((*keys, i), part) for i, part in enumerate(parts)), 1, 1][:3]
        return x, y, z

    def check(self, device: DeviceFacts) -> None:
        """Refuse what no such device can hold, at the line that asks for it."""
        limits = (device.max_grid_x, MAX_GRID_YZ, MAX_GRID_YZ)
        where = f" of a block on {device.name}"
        for (keys, _), (grid, block, shared) in zip(self.block.launches, self.sizes, strict=True):
            threads, axes = math.prod(block), zip("xyz", grid, limits, strict=True)
            for key, found, what, most, of in (
                ("block", threads, "threads", device.max_threads_per_block, where),
                ("block", block[2], "threads along z", MAX_BLOCK_Z, " of a block"),
                ("shared", shared, "bytes", device.shared_per_block_optin, where),
                *(("grid", n, f"blocks along {axis}", lim, " of a grid") for axis, n, lim in axes),
            ):
                if found > most:
                    said = f"{key}: {found} {what} are more than the {most}{of}"
                    raise InfeasibleError(said, keys=(KERNEL, *keys, key))
        for name in self.block.scalars:
            self.scalar(name)
        total, most = 0, device.memory_bytes or MAX_BYTES
        if device.kind == "sim":
            most = min(most, SIMULATED_BYTES)
        for name, given in self.block.arrays():
            total += math.prod(self.shape(name) or ()) * np.dtype(self.dtype(given)).itemsize
            if total > most:
                said = f"{name}: with it, the buffers take {total:,} bytes"
                said += f", more than the {most:,} of {device.name}"
                raise InfeasibleError(said, keys=(KERNEL, *self.block.keys(name)))

    # Arguments.

    def dtype(self, given: Part) -> str:
        """The type of an argument's elements: ``{precision}`` stands for the level of a factor."""
        dtype = self.text(("arguments",), str(given["dtype"]))
        if dtype not in arrays.DTYPES:
            hint = arrays.nearest_dtype(dtype)
            raise StudyError(f"no dtype is called {dtype!r}; {hint}", keys=(KERNEL, "arguments"))
        return dtype

    def scalar(self, name: str) -> np.generic:
        """A scalar argument, of the exact type that the kernel takes, or a struct with the places
        and padding that C++ gives its fields."""
        given, keys = self.block.scalars[name], self.block.keys(name)
        if "fields" not in given:
            return self._number(given, keys)
        types: list[tuple[str, Any]] = []
        values: list[Any] = []
        for field, one in given["fields"].items():
            form = {"value": field, **({"dtype": one} if isinstance(one, str) else one)}
            to = {"points_to": form["points_to"]} if "points_to" in form else None
            part = np.uint64(0) if to else self._number(form, (*keys, "fields", field))
            types.append((field, np.dtype(part.dtype, metadata=to) if to else part.dtype))
            values.append(part.item())
        made = np.zeros(1, np.dtype(types, align=True))
        made[0] = tuple(values)
        whole: np.generic = made[0]
        return whole

    def _number(self, given: Part, keys: Keys) -> np.generic:
        found, form = self.value(keys, given["value"]), np.dtype(self.dtype(given))
        said = f"`{given['value']}` is {short(found)}"
        if not isinstance(found, int | float) or (form.kind in "iu" and found != found // 1):
            raise StudyError(f"{said}, which {form} cannot hold", keys=(KERNEL, *keys))
        try:
            made: np.generic = form.type(int(found) if form.kind in "iu" else found)
        except OverflowError as error:
            raise StudyError(f"{said}, out of the range of {form}", keys=(KERNEL, *keys)) from error
        return made

    def shape(self, name: str) -> tuple[int, ...] | None:
        """The shape of an array; ``None`` if it is that of its contents."""
        given, keys = dict(self.block.arrays())[name], self.block.keys(name)
        if "shape" in given:
            parts = enumerate(given["shape"])
            return tuple(self.whole((*keys, "shape", i), part) for i, part in parts)
        return (self.whole((*keys, "length"), given["length"]),) if "length" in given else None

    def contents(
        self, kept: arrays.Kept, known: Mapping[str, Any], *, again: bool = False
    ) -> dict[str, NDArray[Any]]:
        """The arrays that have contents (other than zeros), each read-only and in its shape.
        ``known`` are the numbers and scalars that they may read, ``again`` is that of ``plan``."""
        made: dict[str, NDArray[Any]] = {}
        for name, given in self.block.arrays():
            what = given.get("contents")
            if name in self.block.contents:
                made[name] = self._given(name, given)
                continue
            if what is None or (what == "zeros" and name in self.block.buffers):
                continue
            every, form = {**known, **made}, (self.dtype(given), self.shape(name))
            read: list[Any] = []  # what they follow from, besides the description
            if is_file(what):
                read = [self.text(("arguments",), str(what))]
            elif what not in arrays.STANDARD:
                read = [every[one] for one in sorted(arrays.names_in(str(what))) if one in every]
            described = {"file" if is_file(what) else "equals": what}
            other = again and name in self.block.buffers and "seed" in given
            seed = [int(given.get("seed", 0)), *name.encode()]  # two buffers are not alike
            seed += [1] * other
            array = partial(self.array, described, form, every, seed)
            try:
                made[name] = kept.get(("contents", name, other, *form), read, array)
            except StudyError as error:
                raise StudyError(f"'{name}': {error.message}") from error
        return made

    def _given(self, name: str, given: Part) -> NDArray[Any]:
        """The caller's array in place of the study's contents."""
        array, dtype, shape = self.block.contents[name], self.dtype(given), self.shape(name)
        if array.dtype != dtype:
            said = f"'{name}' holds {dtype}, not {array.dtype}; convert it: array.astype('{dtype}')"
            raise StudyError(said)
        if shape is not None and array.shape not in (shape, (math.prod(shape),)):
            raise StudyError(f"'{name}' has the shape {shape}, not {array.shape}")
        return np.ascontiguousarray(array).reshape(shape or array.shape)

    def array(
        self,
        given: Part,
        form: tuple[str, arrays.Shape],
        known: Mapping[str, Any],
        seed: Any = 0,
        *,
        exact: bool = False,
    ) -> NDArray[Any]:
        """The array of a file, a Python function or an expression, as a type and shape; ``exact``:
        the type must hold each number."""
        if "equals" in given:
            found = arrays.made(str(given["equals"]), *form, seed, known, exact=exact)
        else:
            name = str(given.get("file") or given["function"])
            there = self._load(name) if "file" in given else self._called(name, known)
            found = arrays.fitted(there, *form, f"{name} gives", exact=exact)
        return found.reshape(form[1]) if form[1] else found

    def _called(self, place: str, known: Mapping[str, Any]) -> Any:
        """What a Python function gives for the arrays and numbers that its parameters name."""
        file, _, name = place.partition(":")
        function = load_function(self.block.folder / file, name)
        wanted = inspect.signature(function).parameters
        if missing := [p for p in wanted if p not in known]:
            raise StudyError(
                f"{place} has a parameter '{missing[0]}', which is neither a buffer with contents"
                " nor a factor"
            )
        try:
            return function(**{parameter: known[parameter] for parameter in wanted})
        except (Exception, SystemExit) as error:
            raise StudyError(f"{place} raised {where_raised(error)}") from error

    def _load(self, name: str) -> NDArray[Any]:
        """The array of a .npy file. Raises ``StudyError`` if it cannot be read."""
        file = self.text(("arguments",), name)
        try:
            found = np.load(ending(self.block.folder / file), allow_pickle=False)
        except OSError as error:
            raise StudyError(f"{file} cannot be read: {error.strerror or error}") from error
        except (ValueError, EOFError) as error:
            said = f"{file} is not a file that np.save makes of an array of numbers"
            raise StudyError(said) from error
        if not isinstance(found, np.ndarray):
            raise StudyError(f"{file} holds several arrays; save one with np.save")
        return found

    # The plan.

    def plan(
        self,
        kept: arrays.Kept,
        device: DeviceFacts,
        about: Mapping[str, Any],
        *,
        again: bool = False,
    ) -> KernelPlan | MultiLaunchPlan:
        """The launch, or launches, with its arrays; ``again``: with what other seeds give in the
        place of those that the study names."""
        data = self.block.data
        scalars = {name: self.scalar(name) for name in self.block.scalars}
        known = {**scalars, **self.numbers}
        made = self.contents(kept, known, again=again)
        shapes = {name: self.shape(name) or made[name].shape for name, _ in self.block.arrays()}
        dtypes = {name: self.dtype(given) for name, given in self.block.arrays()}
        options = [self.text(("options",), option) for option in data.get("options", ())]
        macros = data.get("macros", {}).items()
        options += [f"-D{n}={in_cuda(self.value(('macros', n), text))}" for n, text in macros]
        source = self.block.written
        if source is None:
            file = self.text(("source",), data["source"])
            source = self.block.folder / file
            if not source.is_file():
                raise StudyError(f"there is no file {file}")
        include = [self.block.folder / name for name in data.get("include", ())]
        if further := [self.block.folder / name for name in data.get("sources", ())]:
            include += [source.parent, *(path.parent for path in further)]
            lines = (f'#include "{path.resolve().as_posix()}"\n' for path in (source, *further))
            source = self.block.write("".join(lines), source.name)
        symbols = {name: made[name] for name in self.block.variables}
        kernels: dict[str, Kernel] = {}
        for (keys, step), (grid, threads, shared) in zip(
            self.block.launches, self.sizes, strict=True
        ):
            entry = self.text((*keys, "entry"), step["entry"])
            taken = step.get("arguments", self.block.arguments) if keys else self.block.arguments
            name = re.split(r"[<(]", entry)[0].rpartition("::")[2].strip()
            while name in kernels or name in RESERVED:
                name += "_"
            kernels[name] = Kernel(
                source=source,
                entry=entry,
                arguments=tuple(scalars.get(name, name) for name in taken),
                grid=grid,
                block=threads,
                shared_bytes=shared,
                options=tuple(options),
                include=tuple(dict.fromkeys(include)),
                symbols=symbols,
                results=tuple(n for n in symbols if n in self.block.checks and not keys),
                cooperative=bool(step.get("cooperative", False)),
                names=tuple(f"{self.block.lines.get(n, '')}{n}" for n in taken),
            )
        buffers = tuple(
            self._buffer(name, math.prod(shapes[name]), made.get(name), device)
            for name in self.block.buffers
        )
        zeros = [buffer.name for buffer in buffers if buffer.zero]
        check = OwnCheck(self, known, made, shapes, dtypes, zeros)
        rest: dict[str, Any] = {"buffers": buffers, "about": about, "check": check}
        if "steps" in data:
            function = f"{__name__}:{run_steps.__name__}"
            name, arguments = f"the steps of {source.name}", (tuple(kernels),)
            return MultiLaunchPlan(
                kernels, name=name, function=function, arguments=arguments, **rest
            )
        (kernel,) = kernels.values()
        return KernelPlan(**{f.name: getattr(kernel, f.name) for f in fields(Kernel)}, **rest)

    def _buffer(
        self, name: str, length: int, data: NDArray[Any] | None, device: DeviceFacts
    ) -> Buffer:
        """A checked buffer with contents is put back before every launch. The simulator also
        returns the others that have contents: a kernel must not change them unnoticed."""
        given = self.block.buffers[name]
        checked = name in self.block.checks
        to = tuple(given.get("points_to", ()))
        if to:
            sizes = [np.dtype(self.dtype(self.block.buffers[one])).itemsize for one in to]
            data = np.resize(np.array(sizes, np.uint64), length) * (0 if data is None else data)
        restore = data is not None and (checked or bool(given.get("restore", False)))
        watched = device.kind == "sim" and data is not None and not (restore or to)
        return Buffer(
            name,
            self.dtype(given),
            length,
            data=data,
            zero=data is None and str(given.get("contents")) == "zeros",
            restore=restore,
            output=checked or watched,
            points_to=to,
        )


def plain(found: Any) -> Any:
    """A whole number as one."""
    return int(found) if isinstance(found, float) and found.is_integer() else found


def short(found: Any) -> str:
    """A number for a sentence."""
    if isinstance(found, int) and abs(found) > 2**64:
        return f"{'-' if found < 0 else ''}1e{math.log10(abs(found)):.0f}"
    return f"{found:g}" if isinstance(found, float) else str(found)


def in_cuda(found: Any) -> str:
    """A value as C++ has it."""
    return str(found).lower() if isinstance(found, bool) else str(plain(found))
