"""What every device that runs programs needs: their function, and the values of a launch."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import DeviceError
from nqbench.plan import Argument, Buffer, Kernel, ProgramPlan, Variable
from nqbench.vocabulary import KERNEL_PHASES

RESERVED: Final = (*KERNEL_PHASES, "allocate", "free", "other")
"""Phases that a program has anyway."""


def find_function(path: str) -> Callable[..., Any]:
    """The function that ``"package.module:name"`` says. Raises ``DeviceError``."""
    module_name, _, name = path.partition(":")
    try:
        return cast(Callable[..., Any], getattr(importlib.import_module(module_name), name))
    except (ImportError, AttributeError, ValueError) as error:
        raise DeviceError(f"function {path} cannot be loaded: {error}") from error


def check_kernels(plan: ProgramPlan) -> None:
    """Raise ``DeviceError`` for a plan without kernels, or with a name that means something else.

    A kernel's name is also that of its phase, and stands behind ``@`` in names of counters.
    """
    if not plan.kernels:
        raise DeviceError(f"{plan.name} has no kernels; give its plan at least one")
    for name in plan.kernels:
        if name in RESERVED or not name.isidentifier():
            raise DeviceError(
                f"{plan.name} calls a kernel {name!r}; take a plain word that is none of the"
                f" phases {', '.join(RESERVED)}"
            )


def check_group(plan: ProgramPlan, name: str) -> None:
    """Raise ``DeviceError`` for a group that the plan does not have."""
    if name not in plan.groups:
        raise DeviceError(
            f"{plan.name} groups operations as {name!r}; add it to its plan's groups"
            f" ({_listed(dict.fromkeys(plan.groups), 'none so far')})"
        )


def kernel_of(plan: ProgramPlan, name: str) -> Kernel:
    """A kernel by its name. Raises ``DeviceError`` with the names there are."""
    if name not in plan.kernels:
        raise DeviceError(
            f"{plan.name} launches kernel {name!r}; the plan has {', '.join(plan.kernels)}"
        )
    return plan.kernels[name]


def buffer_of(plan: ProgramPlan, name: str, *, per_run: bool = False) -> Buffer:
    """A buffer by its name; with ``per_run`` one that the program allocates itself.

    Raises ``DeviceError`` with what there is.
    """
    found = {b.name: b for b in plan.buffers}
    if name not in found:
        raise DeviceError(f"{plan.name} uses buffer {name!r}; the plan has {', '.join(found)}")
    if per_run and not found[name].per_run:
        raise DeviceError(
            f"{plan.name} allocates or frees buffer {name!r}, which is there all the time;"
            " make it per_run"
        )
    return found[name]


def contents(plan: ProgramPlan, buffer: Buffer, data: NDArray[Any] | None) -> NDArray[Any]:
    """What an upload copies, contiguous and of the buffer's type.

    Raises ``DeviceError`` for data that are missing or do not fit.
    """
    values = buffer.data if data is None else data
    if values is None:
        raise DeviceError(
            f"{plan.name} uploads buffer {buffer.name!r} without data, and the plan has none"
        )
    if values.size > buffer.length:
        raise DeviceError(
            f"{plan.name} uploads {values.size} elements into buffer {buffer.name!r} of"
            f" {buffer.length}"
        )
    return np.ascontiguousarray(values, dtype=buffer.dtype).reshape(-1)


def elements(plan: ProgramPlan, buffer: Buffer, count: int | None) -> int:
    """How many elements a download copies. Raises ``DeviceError`` for more than there are."""
    wanted = buffer.length if count is None else count
    if not 0 <= wanted <= buffer.length:
        raise DeviceError(
            f"{plan.name} downloads {wanted} elements of buffer {buffer.name!r}, which has"
            f" {buffer.length}"
        )
    return wanted


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
            f"kernel {name} is launched with {_listed(variables)}; its variables are"
            f" {_listed(wanted)}"
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
        raise DeviceError(
            f"kernel {name}: {variable.name} = {value} does not fit its type {variable.dtype}"
        )
    return typed


def _listed(names: Mapping[str, object], none: str = "no variables") -> str:
    return ", ".join(names) or none
