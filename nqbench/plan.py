"""A plan: one point of a study made executable, as plain data.

The same plan goes to a real GPU, to the simulator, into the compiler's resource report or into a
test, unchanged. Nothing here imports a device or a workload.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

INPUT: Final = "input"
"""Key of a plan's ``about`` that names its data where plans of equal shape differ in them: a replay
could not tell these apart otherwise."""

CachePreference = Literal["default", "prefer_l1", "prefer_shared"]
Argument = str | np.generic  # a buffer's name, or a scalar of the exact type the kernel takes
Outputs = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """One array in device memory.

    ``data``     host contents, copied before the first launch; shape ``(length,)``
    ``zero``     cleared before every launch (outside the timed interval)
    ``restore``  the kernel overwrites its input: contents are renewed before every launch
    ``output``   fetched after a launch
    ``per_run``  a program allocates and frees it itself, inside the timed interval
    A buffer that is neither ``data`` nor ``zero`` starts with undefined contents.
    """

    name: str
    dtype: str
    length: int
    data: NDArray[Any] | None = None
    zero: bool = False
    restore: bool = False
    output: bool = False
    per_run: bool = False

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.length * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, slots=True, eq=False)
class KernelPlan:
    """A kernel launch: source, instance, memory and geometry.

    ``entry`` is a C++ name expression (a template instance) inside ``source``;
    ``shared_bytes`` is the dynamic shared memory per block, ``static_shared_bytes`` what the kernel
    declares itself; ``split_s`` is the host time spent on making the input (seconds).
    ``about`` carries resolved numbers worth recording (jobs, depth, blocks, ...).
    ``device_launch``: it launches kernels itself (see ``Kernel``).
    """

    source: Path
    entry: str
    arguments: tuple[Argument, ...]
    buffers: tuple[Buffer, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    static_shared_bytes: int = 0
    options: tuple[str, ...] = ()
    cache: CachePreference = "default"
    split_s: float = 0.0
    about: Mapping[str, int | float | str] = field(default_factory=dict)
    device_launch: bool = False
    pending_launches: int = 0

    @property
    def title(self) -> str:
        """What messages call it: the kernel's instance."""
        return self.entry

    @property
    def threads(self) -> int:
        """Threads in the whole grid."""
        return int(np.prod(self.grid)) * int(np.prod(self.block))

    @property
    def device_bytes(self) -> int:
        """Device memory that the buffers take, pristine copies of restored ones included."""
        return sum(b.nbytes * (2 if b.restore else 1) for b in self.buffers)


@dataclass(frozen=True, slots=True)
class Variable:
    """A scalar argument that a program gives at each launch; ``dtype`` as numpy names it."""

    name: str
    dtype: str


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """One kernel of a program; the fields are those of ``KernelPlan``.

    ``arguments`` may hold ``Variable``. ``device_launch`` marks a kernel that launches kernels
    itself (dynamic parallelism): it is linked with the device runtime. Of these, so many
    ``pending_launches`` may wait to start or end at a time (0: the driver's own limit, 2048).
    """

    source: Path
    entry: str
    arguments: tuple[Argument | Variable, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    static_shared_bytes: int = 0
    options: tuple[str, ...] = ()
    cache: CachePreference = "default"
    device_launch: bool = False
    pending_launches: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class ProgramPlan:
    """Launches with host work between them; one run of the whole program is one sample.

    ``kernels`` by name, the main one first; a kernel's name is also the name of its phase.
    ``program`` is ``"package.module:function"``, called as ``function(machine, *arguments)`` with a
    ``nqbench.machine.Machine``: the same function drives a GPU and the simulator.
    ``groups`` are phases of the whole of what it does inside ``machine.group(name)``.
    """

    kernels: Mapping[str, Kernel]
    buffers: tuple[Buffer, ...]
    program: str
    arguments: tuple[Any, ...] = ()
    split_s: float = 0.0
    about: Mapping[str, int | float | str] = field(default_factory=dict)
    groups: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What messages call it: the program's function."""
        return self.program

    @property
    def device_bytes(self) -> int:
        """Device memory that the buffers take, pristine copies of restored ones included."""
        return sum(b.nbytes * (2 if b.restore else 1) for b in self.buffers)


@dataclass(frozen=True, slots=True, eq=False)
class HostResult:
    """What a host function may return in place of a bare answer.

    ``phases`` are seconds by name (``vocabulary.PHASES``), or a function that finds them out: it is
    called after the timed calls, once. ``outputs`` go to ``Workload.answer``.
    """

    answer: int
    phases: Mapping[str, float] | Callable[[], Mapping[str, float]] = field(default_factory=dict)
    outputs: Outputs = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class HostPlan:
    """A computation on the host: an importable function and its arguments.

    ``function`` is ``"package.module:name"``; it returns the answer as an ``int``, or a
    ``HostResult``. ``arguments`` are numbers, words or arrays. ``warm_up`` are the arguments of a
    short first call that compiles it.
    """

    function: str
    arguments: tuple[Any, ...]
    warm_up: tuple[Any, ...] = ()
    about: Mapping[str, int | float | str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What messages call it: the function."""
        return self.function


Plan = KernelPlan | ProgramPlan | HostPlan


def kernels_of(plan: Plan) -> Mapping[str, KernelPlan | Kernel]:
    """What a plan's compiler must see, by name; a single kernel is called ``kernel``."""
    if isinstance(plan, HostPlan):
        return {}
    return plan.kernels if isinstance(plan, ProgramPlan) else {"kernel": plan}
