"""Shared by all devices that run programs: the function, the context, the launches."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import DeviceError
from nqbench.facts import DeviceFacts
from nqbench.plan import Argument, Buffer, Kernel, MultiLaunchPlan, Outputs, Variable
from nqbench.vocabulary import KERNEL_PHASES

RESERVED: Final = (*KERNEL_PHASES, "allocate", "free", "other")
"""Phases that a program has anyway."""
_NOTHING: Final = nullcontext()


def find_function(path: str) -> Callable[..., Any]:
    """The function ``"package.module:name"``. Raises ``DeviceError``."""
    module_name, _, name = path.partition(":")
    try:
        return cast(Callable[..., Any], getattr(importlib.import_module(module_name), name))
    except (ImportError, AttributeError, ValueError) as error:
        raise DeviceError(f"function {path} cannot be loaded: {error}") from error


def check_kernels(plan: MultiLaunchPlan) -> None:
    """Raise ``DeviceError`` for a plan without kernels, or with a name that means something else.

    A kernel's name is also that of its phase, and follows ``@`` in names of counters.
    """
    if not plan.kernels:
        raise DeviceError(f"{plan.name} has no kernels; give its plan at least one")
    for name in plan.kernels:
        if name in RESERVED or not name.isidentifier():
            raise DeviceError(
                f"{plan.name} calls a kernel {name!r}; take a plain word that is none of the"
                f" phases {', '.join(RESERVED)}"
            )


def symbol_bytes(kernel: Kernel, name: str, nbytes: int) -> bytes:
    """Contents of a module variable of ``nbytes`` bytes. ``DeviceError`` if they are longer."""
    data = np.ascontiguousarray(kernel.symbols[name])
    if data.nbytes > nbytes:
        raise DeviceError(
            f"kernel {kernel.entry}: {data.nbytes} bytes are given for the module variable {name},"
            f" which has {nbytes}; check its type and length in {kernel.source.name}"
        )
    return data.tobytes()


class ProgramContext:
    """What a program uses to drive the device it runs on, a GPU or the simulator.

    Names are those of the plan's buffers and kernels. Every operation is queued in order; only
    ``download`` and ``synchronize`` wait. In a run that is split into phases every operation waits
    until it is done: a kernel counts under its own name (by device events), the rest under
    ``allocate``, ``transfer``, ``reduce`` and ``free`` (by the clock). Timed runs do none of this.

    A device adds ``launch`` and ``synchronize``, and five methods for buffers that exist and fit:
    ``_allocate``, ``_free``, ``_write``, ``_zero`` and ``_read``. Whatever is wrong with names,
    sizes or the order of operations is a ``DeviceError``.
    """

    def __init__(self, facts: DeviceFacts, plan: MultiLaunchPlan) -> None:
        self.facts = facts
        self.kept: Outputs = {}
        """What the program kept in this run."""
        self._plan = plan
        self._buffers = {buffer.name: buffer for buffer in plan.buffers}
        self._own = {buffer.name for buffer in plan.buffers if buffer.per_run}
        self._absent = set(self._own)

    def allocate(self, *names: str) -> None:
        """Allocate buffers that are ``per_run``; the others exist already."""
        for name in names:
            buffer = self._buffer(name, per_run=True)
            if name not in self._absent:
                raise DeviceError(f"{self._plan.name} allocates buffer {name!r} twice")
            self._allocate(buffer)
            self._absent.remove(name)

    def free(self, *names: str) -> None:
        """Free buffers that are ``per_run``."""
        for name in names:
            self._free(self._present(name, per_run=True))
            self._absent.add(name)

    def upload(self, name: str, data: NDArray[Any] | None = None) -> None:
        """Copy ``data`` (default: the plan's) into the start of a buffer."""
        buffer = self._present(name)
        values = buffer.data if data is None else data
        if values is None:
            said = f"{self._plan.name} uploads buffer {name!r} without data, and the plan has none"
            raise DeviceError(said)
        if values.size > buffer.length:
            raise DeviceError(
                f"{self._plan.name} uploads {values.size} elements into buffer {name!r} of"
                f" {buffer.length}"
            )
        self._write(buffer, np.ascontiguousarray(values, dtype=buffer.dtype).reshape(-1))

    def clear(self, name: str) -> None:
        """Set every byte of a buffer to zero."""
        self._zero(self._present(name))

    def launch(self, kernel: str, **variables: np.generic | int | float) -> None:
        """Queue a kernel; ``variables`` gives each of its ``Variable`` arguments."""
        raise NotImplementedError

    def download(self, name: str, count: int | None = None) -> NDArray[Any]:
        """The first ``count`` elements (default: all) of a buffer, after all earlier work."""
        buffer = self._present(name)
        wanted = buffer.length if count is None else count
        if not 0 <= wanted <= buffer.length:
            raise DeviceError(
                f"{self._plan.name} downloads {wanted} elements of buffer {name!r}, which has"
                f" {buffer.length}"
            )
        return self._read(buffer, wanted)

    def synchronize(self) -> None:
        """Wait until everything queued is done."""
        raise NotImplementedError

    def phase(self, name: str) -> AbstractContextManager[None]:  # noqa: ARG002 (used by a GPU)
        """Work of the CPU that counts under this name in a run that is split into phases."""
        return _NOTHING

    def group(self, name: str) -> AbstractContextManager[None]:
        """A phase of everything inside, operations included; these also count under their names.

        ``name`` is one of the plan's ``groups``. The last operation inside must be one that waits
        (``download`` or ``synchronize``), and groups do not contain one another.
        """
        if name not in self._plan.groups:
            raise DeviceError(
                f"{self._plan.name} groups operations as {name!r}; add it to its plan's groups"
                f" ({', '.join(self._plan.groups) or 'none so far'})"
            )
        return _NOTHING

    def keep(self, name: str, value: NDArray[Any]) -> None:
        """Add an array to the outputs of this run, in addition to the output buffers."""
        self.kept[name] = np.array(value)

    def end(self) -> None:
        """End the run. Raises ``DeviceError`` if it left one of its own buffers allocated."""
        left = self.release()
        if left:
            said = f"{self._plan.name} ends without freeing {', '.join(left)}, which it allocated"
            raise DeviceError(said)

    def release(self) -> list[str]:
        """Free the buffers that the program allocated and did not free; returns their names."""
        left = sorted(self._own - self._absent)
        for name in left:
            self._free(self._buffers[name])
        self._absent = set(self._own)
        return left

    def _allocate(self, buffer: Buffer) -> None:
        raise NotImplementedError

    def _free(self, buffer: Buffer) -> None:
        raise NotImplementedError

    def _write(self, buffer: Buffer, values: NDArray[Any]) -> None:
        """Copy ``values``, contiguous and of the buffer's type, into its start."""
        raise NotImplementedError

    def _zero(self, buffer: Buffer) -> None:
        raise NotImplementedError

    def _read(self, buffer: Buffer, count: int) -> NDArray[Any]:
        """A copy of the first ``count`` elements, after all earlier work."""
        raise NotImplementedError

    def _buffer(self, name: str, *, per_run: bool = False) -> Buffer:
        if name not in self._buffers:
            raise DeviceError(
                f"{self._plan.name} uses buffer {name!r}; the plan has {', '.join(self._buffers)}"
            )
        if per_run and name not in self._own:
            raise DeviceError(
                f"{self._plan.name} allocates or frees buffer {name!r}, which is there all the"
                " time; make it per_run"
            )
        return self._buffers[name]

    def _present(self, name: str, *, per_run: bool = False) -> Buffer:
        buffer = self._buffer(name, per_run=per_run)
        if name in self._absent:
            said = f"{self._plan.name} uses buffer {name!r}, which is not allocated at that time"
            raise DeviceError(said)
        return buffer


def kernel_of(plan: MultiLaunchPlan, name: str) -> Kernel:
    """A kernel by its name. Raises ``DeviceError`` with the known names."""
    if name not in plan.kernels:
        said = f"{plan.name} launches kernel {name!r}; the plan has {', '.join(plan.kernels)}"
        raise DeviceError(said)
    return plan.kernels[name]


def launch_arguments(
    name: str, kernel: Kernel, variables: Mapping[str, np.generic | int | float]
) -> tuple[Argument, ...]:
    """The arguments of one launch: the kernel's own with each ``Variable`` given its value.

    Raises ``DeviceError`` for a variable without a value, a value without a variable, and a value
    that the variable's type does not hold.
    """
    wanted = {a.name: a for a in kernel.arguments if isinstance(a, Variable)}
    if wanted.keys() != variables.keys():
        raise DeviceError(
            f"kernel {name} is launched with {', '.join(variables) or 'no variables'}; its"
            f" variables are {', '.join(wanted) or 'none'}"
        )
    values = {key: _typed(name, variable, variables[key]) for key, variable in wanted.items()}
    return tuple(values[a.name] if isinstance(a, Variable) else a for a in kernel.arguments)


def _typed(name: str, variable: Variable, value: np.generic | int | float) -> np.generic:
    kind = np.dtype(variable.dtype).type
    try:
        typed = cast(np.generic, kind(value))
    except OverflowError:
        typed = cast(np.generic, kind(0))
    if np.issubdtype(kind, np.integer) and int(typed.item()) != value:
        said = f"kernel {name}: {variable.name} = {value} does not fit its type {variable.dtype}"
        raise DeviceError(said)
    return typed
