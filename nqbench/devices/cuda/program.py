"""A program of several kernels on a CUDA GPU: loaded once, run as a whole."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NoReturn

from nqbench.compiler.cache import Compiled
from nqbench.device import Launch, Prepared
from nqbench.devices.cuda.context import (
    CudaContext,
    LoadedProgram,
    ProfiledContext,
    ProgramKernel,
    SplitContext,
)
from nqbench.devices.cuda.kernel import LoadedKernel
from nqbench.devices.cuda.memory import ABANDONED, DeviceMemory, Owner
from nqbench.errors import DeviceError, InfeasibleError
from nqbench.multi_launch import check_kernels, find_function
from nqbench.plan import MultiLaunchPlan, Outputs
from nqbench.vocabulary import of_kernel


class CudaProgram(Prepared):
    """A program loaded on a GPU with its buffers."""

    def __init__(
        self, device: Owner, plan: MultiLaunchPlan, compiled: Mapping[str, Compiled]
    ) -> None:
        """Raises ``DeviceError`` for a plan that cannot be loaded."""
        check_kernels(plan)
        self._device, self._plan = device, plan
        self._label = f"program {plan.name}"
        self._function = find_function(plan.function)
        self._memory = DeviceMemory(device, self._label, plan.buffers)
        self._kernels: dict[str, ProgramKernel] = {}
        self._outputs: Outputs = {}
        self._timed: CudaContext | None = None
        self._running: CudaContext | None = None
        self._closed = self._profiling = False
        try:
            with device.translated(f"preparing {self._label}"):
                for name, kernel in plan.kernels.items():
                    loaded = LoadedKernel(device, kernel, compiled[name], plan.buffers)
                    self._kernels[name] = ProgramKernel(name, kernel, loaded)
                self._memory.allocate_all()
                for buffer, allocation in self._memory.allocations.items():
                    for one in self._kernels.values():
                        one.point(buffer, int(allocation))
                self.transfer_s = self._memory.copy()
                self._program = LoadedProgram(device, plan, self._kernels, self._memory)
                self._timed = CudaContext(self._program)
        except DeviceError:
            self.close()
            raise
        found: dict[str, int | float | str] = {}
        for name, one in self._kernels.items():
            found = {**one.loaded.resources, **found}  # the plain names are the first kernel's
            found |= {of_kernel(what, name): v for what, v in one.loaded.resources.items()}
        self.resources = found

    def launch(self, timeout_s: float | None = None) -> Launch:
        """Restore what is overwritten (untimed), then run the program once, from idle to idle.

        ``kernel_s`` is the wall time of the whole run. Raises ``LaunchError`` (``fatal`` after a
        fault) and ``LaunchTimeout`` (``fatal``: something may still run), as for a single kernel.
        """
        if self._profiling:
            context = ProfiledContext(self._program)
            elapsed_s = self._run(context, timeout_s)
            self.profiled = tuple(context.profiled)
            return Launch(elapsed_s)
        if self._timed is None:
            raise DeviceError(f"{self._label} is closed and cannot be launched")
        return Launch(self._run(self._timed, timeout_s))

    def phases(self, timeout_s: float | None = None) -> Mapping[str, float]:
        """Run once more, waiting after every operation; see ``Prepared``."""
        context = SplitContext(self._program)
        elapsed_s = self._run(context, timeout_s)
        kernel_s = sum(s for name, s in context.phases.items() if name in self._kernels)
        return {**context.phases, "kernel": kernel_s, "total": elapsed_s}

    def profile_first_launches(self) -> None:
        """See ``Prepared``."""
        self._profiling = True

    def flush_l2(self) -> NoReturn:
        """Refused: a run of many launches has no single moment to flush the cache."""
        raise InfeasibleError(
            f"{self._plan.name} is a program of several launches, and only a single kernel can"
            " start with a cold L2 cache; measure with l2: hot",
            "l2",
        )

    def fetch(self) -> Outputs:
        """Copy the output buffers to the host; adds what the last run kept."""
        with self._device.translated(f"fetching the results of {self._label}"):
            return {**self._memory.outputs(), **self._outputs}

    def close(self) -> None:
        """Free the device memory."""
        if self._closed:
            return
        self._closed, timed, self._timed = True, self._timed, None
        if self._device.lost:
            # Freeing page-locked memory would wait for the GPU.
            ABANDONED.extend((self._kernels, timed, self._running))
        self._memory.close()

    def _run(self, context: CudaContext, timeout_s: float | None) -> float:
        """One run; seconds from an idle GPU to an idle GPU."""
        if self._closed:
            raise DeviceError(f"{self._label} is closed and cannot be launched")
        function, arguments = self._function, self._plan.arguments
        with self._device.translated(f"renewing the buffers of {self._label}"):
            self._memory.renew()
            for kernel in self._kernels.values():
                kernel.loaded.set_symbols()
            self._device.synchronize()

        def action() -> str:
            return f"{self._label}" + (f" (last launch: {context.last})" if context.last else "")

        ended, self._running = False, context
        context.begin(timeout_s)
        try:
            with self._device.translated(action):
                started = time.perf_counter()
                function(context, *arguments)
                context.synchronize()
                elapsed_s = time.perf_counter() - started
                context.end()
                ended = True
        finally:
            if not ended and not self._device.lost:
                context.release()
        self._outputs = context.kept
        return elapsed_s
