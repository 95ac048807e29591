"""Runs of a program on a CUDA GPU that are watched and never timed: by phases, by a profiler."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nqbench.devices.cuda.binding import ProgramKernel
from nqbench.devices.cuda.context import CudaContext
from nqbench.devices.cuda.memory import DeviceMemory, Owner
from nqbench.devices.program import check_group
from nqbench.plan import ProgramPlan


class SplitContext(CudaContext):
    """A context that waits after every operation and adds up how long each kind took."""

    def __init__(
        self,
        device: Owner,
        plan: ProgramPlan,
        kernels: Mapping[str, ProgramKernel],
        memory: DeviceMemory,
    ) -> None:
        super().__init__(device, plan, kernels, memory)
        self.phases: dict[str, float] = {}
        """Seconds by name, of what occurred."""
        self._inside_s = 0.0  # of operations, which are no part of the phase that holds them

    def begin(self, timeout_s: float | None) -> None:
        """See ``CudaContext``."""
        super().begin(timeout_s)
        self.phases, self._inside_s = {}, 0.0

    def allocate(self, *names: str) -> None:
        """See ``ProgramContext``."""
        with self._counted("allocate"):
            super().allocate(*names)

    def free(self, *names: str) -> None:
        """See ``ProgramContext``."""
        with self._counted("free"):
            super().free(*names)

    def upload(self, name: str, data: NDArray[Any] | None = None) -> None:
        """See ``ProgramContext``."""
        with self._counted("transfer"):
            super().upload(name, data)

    def clear(self, name: str) -> None:
        """See ``ProgramContext``."""
        with self._counted("transfer"):
            super().clear(name)

    def download(self, name: str, count: int | None = None) -> NDArray[Any]:
        """See ``ProgramContext``."""
        with self._counted("reduce"):
            return super().download(name, count)

    def launch(self, kernel: str, **variables: np.generic | int | float) -> None:
        """See ``ProgramContext``; seconds are between two events around the kernel, held back."""
        started = time.perf_counter()
        found = self._kernel(kernel)
        elapsed, held = found.loaded.queue_timed(found.arguments(variables))
        self._wait()
        self._add(kernel, float(elapsed()))
        held()
        self._inside_s += time.perf_counter() - started

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """See ``ProgramContext``; what the operations inside take counts under their own names."""
        started, inside_s = time.perf_counter(), self._inside_s
        try:
            yield
        finally:
            whole_s = time.perf_counter() - started
            self._add(name, max(0.0, whole_s - (self._inside_s - inside_s)))
            self._inside_s = inside_s + whole_s

    @contextmanager
    def group(self, name: str) -> Iterator[None]:
        """See ``ProgramContext``."""
        check_group(self._plan, name)
        started = time.perf_counter()
        try:
            yield
        finally:
            self._add(name, time.perf_counter() - started)

    @contextmanager
    def _counted(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self._wait()
        elapsed = time.perf_counter() - started
        self._add(name, elapsed)
        self._inside_s += elapsed

    def _add(self, name: str, seconds: float) -> None:
        self.phases[name] = self.phases.get(name, 0.0) + seconds


class ProfiledContext(CudaContext):
    """A context with the profiler on during the first launch of each kernel."""

    def __init__(
        self,
        device: Owner,
        plan: ProgramPlan,
        kernels: Mapping[str, ProgramKernel],
        memory: DeviceMemory,
        *,
        on: Callable[[], None],
        off: Callable[[], None],
    ) -> None:
        super().__init__(device, plan, kernels, memory)
        self.profiled: list[str] = []
        """Kernels in the order in which the profiler saw them."""
        self._on, self._off = on, off

    def launch(self, kernel: str, **variables: np.generic | int | float) -> None:
        """See ``ProgramContext``."""
        if kernel in self.profiled:
            super().launch(kernel, **variables)
            return
        self._wait()
        self._on()
        super().launch(kernel, **variables)
        self._wait()
        self._off()
        self.profiled.append(kernel)
