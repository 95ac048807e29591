"""A plan: one point of a study made executable, as plain data.

The same plan goes to a real GPU, to the simulator, into the compiler's resource report or into a
test, unchanged. Nothing here imports a device or a workload.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

CachePreference = Literal["default", "prefer_l1", "prefer_shared"]
Argument = str | np.generic  # a buffer's name, or a scalar of the exact type the kernel takes


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """One array in device memory.

    ``data``     host contents, copied before the first launch; shape ``(length,)``
    ``zero``     cleared before every launch (outside the timed interval)
    ``restore``  the kernel overwrites its input: contents are renewed before every launch
    ``output``   fetched after a launch
    A buffer that is neither ``data`` nor ``zero`` starts with undefined contents.
    """

    name: str
    dtype: str
    length: int
    data: NDArray[Any] | None = None
    zero: bool = False
    restore: bool = False
    output: bool = False

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

    @property
    def threads(self) -> int:
        """Threads in the whole grid."""
        return int(np.prod(self.grid)) * int(np.prod(self.block))

    @property
    def device_bytes(self) -> int:
        """Device memory that the buffers take, pristine copies of restored ones included."""
        return sum(b.nbytes * (2 if b.restore else 1) for b in self.buffers)


@dataclass(frozen=True, slots=True)
class HostPlan:
    """A computation on the host: an importable function and its arguments.

    ``function`` is ``"package.module:name"``; it returns the answer as an ``int``.
    ``warm_up`` are the arguments of a short first call that compiles it.
    """

    function: str
    arguments: tuple[int, ...]
    warm_up: tuple[int, ...] = ()
    about: Mapping[str, int | float | str] = field(default_factory=dict)


Plan = KernelPlan | HostPlan
Outputs = dict[str, NDArray[Any]]
