"""A plan: one point of a study made executable, as plain data.

The same plan goes to a real GPU, to the simulator, into the compiler's resource report or into a
test, unchanged. Nothing here imports a device or a workload.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray

from nqbench.point import Executable

CachePreference = Literal["default", "prefer_l1", "prefer_shared"]
Argument = str | np.generic  # a buffer's name, or a scalar of the exact type the kernel takes
Outputs = dict[str, NDArray[Any]]

FILLS: Final = {"fc": (0x7FF7A5A5, 0xFFF95A3C), "biu": (0x9E3779B1, 0xD1B54A33)}
"""Words that outputs without contents hold before a launch, by the kinds of their types, and those
of a second launch, which has no byte in the same place: NaN as a float; no mask as a whole number.
(The simulator's first launch has the first word for all types.)"""
PREPARE: Final = "prepare"
"""Name of the kernel that makes another one's input (``KernelPlan``)."""


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """One array in device memory.

    ``data``     host contents, copied before the first launch; shape ``(length,)``
    ``zero``     cleared before every launch (outside the timed interval)
    ``restore``  the kernel overwrites its input: contents are restored before every launch
    ``output``   fetched after a launch
    ``per_run``  a program allocates and frees it itself, inside the timed interval
    ``points_to``  buffers whose addresses the data are added to, in turn: pointers, whose data are
                 bytes from there
    A buffer that is neither ``data`` nor ``zero`` starts with undefined contents: never with those
    of the point before if it is an ``output``.
    """

    name: str
    dtype: str
    length: int
    data: NDArray[Any] | None = None
    zero: bool = False
    restore: bool = False
    output: bool = False
    per_run: bool = False
    points_to: tuple[str, ...] = ()

    def placed(self, address: Callable[[str], int], data: NDArray[Any]) -> NDArray[Any]:
        """Data as they stand on a device, where ``address`` is that of a buffer by its name."""
        if not self.points_to:
            return data
        starts = np.array([address(name) for name in self.points_to], np.uint64)
        placed: NDArray[np.uint64] = data.astype(np.uint64) + np.resize(starts, data.size)
        return placed

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.length * np.dtype(self.dtype).itemsize

    @property
    def blank(self) -> bool:
        """Whether a launch finds a fill in it."""
        return self.data is None and not self.zero

    def fill(self, *, again: bool = False) -> int:
        """The word of ``FILLS`` for its type."""
        kind = np.dtype(self.dtype).kind
        return next(words[again] for kinds, words in FILLS.items() if kind in kinds)


def with_addresses(argument: Any, address: Callable[[str], Any]) -> Any:
    """A scalar argument as it stands in a launch: members of a struct that point to buffers (so
    says ``points_to`` in the metadata of their types) hold addresses."""
    placed = argument.copy()
    for member in argument.dtype.names or ():
        if to := (argument.dtype[member].metadata or {}).get("points_to"):
            placed[member] = address(to)
    return placed


@dataclass(frozen=True, slots=True)
class Variable:
    """A scalar argument that a program gives at each launch; ``dtype`` as numpy names it."""

    name: str
    dtype: str


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """One kernel: source, instance, arguments and geometry.

    ``entry`` is a C++ name expression (a template instance) inside ``source``; ``arguments`` of a
    program's kernel may hold ``Variable``. ``shared_bytes`` is the dynamic shared memory per block,
    ``static_shared_bytes`` what the kernel declares itself. ``device_launch`` marks a kernel that
    launches kernels itself (dynamic parallelism): it is linked with the device runtime.
    ``pending_launches`` is how many of its launches may be pending at a time (0: the driver's
    limit, 2048). ``include`` are folders to search for included files. ``symbols`` are contents of
    module variables (``__device__`` and ``__constant__``) by their names in the source, copied into
    their start before every launch of a plan or run of a program; those among ``results`` are
    outputs of a plan's kernel. ``cooperative`` marks a launch whose blocks wait for one another
    (grid sync): all of them must be resident. ``names`` are what messages call the arguments of a
    study's kernel, with their places (``conv.yaml:9: src``).
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
    include: tuple[Path, ...] = ()
    symbols: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    results: tuple[str, ...] = ()
    cooperative: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class KernelPlan(Kernel):
    """One launch of one kernel, and the memory it works on.

    ``split_s`` is the CPU time spent on making the input (seconds). ``prepare`` is a kernel that
    makes the rest of it: it fills buffers without data from those that have, after the copies.
    Launched again, what it overwrites renewed, it gives the same. ``about`` carries resolved
    numbers worth recording (jobs, depth, blocks, ...), ``check`` what the workload needs to tell
    whether the outputs are right.
    """

    arguments: tuple[Argument, ...]
    _: KW_ONLY
    buffers: tuple[Buffer, ...] = ()
    prepare: Kernel | None = None
    split_s: float = 0.0
    about: Mapping[str, int | float | str] = field(default_factory=dict)
    check: Any = None
    on_cpu: ClassVar[Literal[False]] = False
    has_answer_buffers: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """What messages call it: the kernel's instance."""
        return self.entry

    @property
    def kernels(self) -> Mapping[str, Kernel]:
        """What the compiler must see, by name."""
        return {"kernel": self} | ({PREPARE: self.prepare} if self.prepare else {})

    @property
    def threads(self) -> int:
        """Threads in the whole grid."""
        return int(np.prod(self.grid)) * int(np.prod(self.block))


@dataclass(frozen=True, slots=True, eq=False)
class MultiLaunchPlan:
    """Launches with CPU work between them; one run of the whole program is one sample.

    ``kernels`` by name, the main one first; a kernel's name is also the name of its phase.
    ``name`` is what messages and digests call the program and outlives a move of its function.
    ``function`` is where to find it, ``"package.module:function"``; it is called as
    ``function(context, *arguments)`` with a ``ProgramContext`` (``multi_launch``), so that the same
    function drives a GPU and the simulator. ``groups`` are the names it gives to ``context.group``.
    """

    kernels: Mapping[str, Kernel]
    buffers: tuple[Buffer, ...]
    name: str
    function: str
    arguments: tuple[Any, ...] = ()
    split_s: float = 0.0
    about: Mapping[str, int | float | str] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    check: Any = None
    on_cpu: ClassVar[Literal[False]] = False
    has_answer_buffers: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, eq=False)
class CpuResult:
    """What the function of a CPU plan may return instead of a bare answer.

    ``phases`` are seconds by name (``vocabulary.PHASES``), or a function that determines them,
    called once after the timed calls. ``outputs`` go to ``Workload.answer``.
    """

    answer: int
    phases: Mapping[str, float] | Callable[[], Mapping[str, float]] = field(default_factory=dict)
    outputs: Outputs = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class CpuPlan:
    """A computation on the CPU: an importable function and its arguments.

    ``name`` is what messages and digests call it and outlives a move of the function.
    ``function`` is where to find it, ``"package.module:function"``; it returns the answer as an
    ``int``, or a ``CpuResult``. ``arguments`` are numbers, words or arrays. ``warm_up`` are the
    arguments of a short first call that compiles it.
    """

    name: str
    function: str
    arguments: tuple[Any, ...]
    warm_up: tuple[Any, ...] = ()
    about: Mapping[str, int | float | str] = field(default_factory=dict)
    on_cpu: ClassVar[Literal[True]] = True
    has_answer_buffers: ClassVar[bool] = False
    kernels: ClassVar[Mapping[str, Kernel]] = {}
    split_s: ClassVar[None] = None
    check: ClassVar[None] = None


@dataclass(frozen=True, slots=True, eq=False)
class CommandPlan:
    """An external program as a plan; one process is one launch. ``name`` is the system's."""

    name: str
    program: Executable
    about: Mapping[str, int | float | str] = field(default_factory=dict)
    on_cpu: ClassVar[Literal[True]] = True
    has_answer_buffers: ClassVar[bool] = False
    kernels: ClassVar[Mapping[str, Kernel]] = {}
    split_s: ClassVar[None] = None
    check: ClassVar[None] = None


Plan = KernelPlan | MultiLaunchPlan | CpuPlan | CommandPlan
"""What a device prepares. Each kind says of itself:

``on_cpu``              it runs on the CPU, whatever the device of the study
``kernels``             what the compiler must see, by name, the main one first
``has_answer_buffers``  the answer is copied back and combined after the launch: phase ``reduce``
``split_s``             CPU seconds spent on making the input; ``None`` where that is not separate
``check``               see ``KernelPlan``; ``None`` of many
"""


def apart(plan: Plan, other: Plan) -> tuple[Outputs, Outputs]:
    """The contents of buffers in which another plan differs: there, and here."""
    first, there = (
        {} if one.on_cpu else {b.name: b.data for b in one.buffers if b.data is not None}
        for one in (plan, other)
    )
    there = {name: data for name, data in there.items() if data is not first[name]}
    return there, {name: first[name] for name in there}
