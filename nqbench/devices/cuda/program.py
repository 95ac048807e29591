"""A program of several kernels on a CUDA GPU: loaded once, run as a whole.

Its context is for runs that are timed, split into phases, or profiled. Everything goes to the
default stream, in order. Programs of thousands of small launches are timed here, so the CPU cost of
a launch or a small download is part of the measurement: launches are prepared, memory for small
downloads is page-locked, and one event serves every wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NoReturn, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from nqbench import multi_launch
from nqbench.compiler.compiled import Compiled
from nqbench.device import Launch
from nqbench.devices.cuda import driver as cuda_driver
from nqbench.devices.cuda.gpu import Gpu, late
from nqbench.devices.cuda.kernel import CudaPrepared, LoadedKernel
from nqbench.errors import DeviceError, InfeasibleError
from nqbench.plan import Buffer, Kernel, MultiLaunchPlan, Outputs, Variable, with_addresses
from nqbench.vocabulary import of_kernel

Operation = TypeVar("Operation", bound=Callable[..., Any])
PINNED_BYTES: Final = 1 << 16
"""Downloads up to this size go through page-locked memory: the driver itself stages copies up to
this size. Larger copies take longer than the overhead of a synchronous call."""


class CudaProgram(CudaPrepared):
    """A program loaded on a GPU with its buffers."""

    def __init__(
        self, device: Gpu, plan: MultiLaunchPlan, compiled: Mapping[str, Compiled]
    ) -> None:
        """Raises ``DeviceError`` for a plan that cannot be loaded."""
        multi_launch.check_kernels(plan)
        super().__init__(device, f"program {plan.name}", plan.buffers)
        self.plan = plan
        self._function = multi_launch.find_function(plan.function)
        self.kernels: dict[str, ProgramKernel] = {}
        self._outputs: Outputs = {}
        self._timed: CudaContext | None = None
        self._running: CudaContext | None = None
        try:
            with device.translated(f"preparing {self._label}"):
                for name, kernel in plan.kernels.items():
                    loaded = LoadedKernel(device, kernel, compiled[name], plan.buffers)
                    self.kernels[name] = ProgramKernel(name, kernel, loaded)
                self.memory.allocate_all()
                for buffer, allocation in self.memory.allocations.items():
                    for one in self.kernels.values():
                        one.point(buffer, int(allocation))
                self.transfer_s = self.memory.copy()
                self._timed = CudaContext(self)
        except DeviceError:
            self.close()
            raise
        found: dict[str, int | float | str] = {}
        for name, one in self.kernels.items():
            found = {**one.loaded.resources, **found}  # the plain names are the first kernel's
            found |= {of_kernel(what, name): v for what, v in one.loaded.resources.items()}
        self.resources = found

    def launch(self, timeout_s: float | None = None) -> Launch:
        """Restore what is overwritten (untimed), then run the program once, from idle to idle.

        ``kernel_s`` is the wall time of the whole run. Raises ``LaunchError`` (``fatal`` after a
        fault) and ``LaunchTimeout`` (``fatal``: something may still run), as for a single kernel.
        """
        if self._profiling:
            context = ProfiledContext(self)
            elapsed_s = self._run(context, timeout_s)
            self.profiled = tuple(context.profiled)
            return Launch(elapsed_s)
        self._check_open()
        assert self._timed is not None
        return Launch(self._run(self._timed, timeout_s))

    def phases(self, timeout_s: float | None = None) -> Mapping[str, float]:
        """Run once more, waiting after every operation; see ``Prepared``."""
        context = SplitContext(self)
        elapsed_s = self._run(context, timeout_s)
        kernel_s = sum(s for name, s in context.phases.items() if name in self.kernels)
        return {**context.phases, "kernel": kernel_s, "total": elapsed_s}

    def flush_l2(self) -> NoReturn:
        """Refused: a run of many launches has no single moment to flush the cache."""
        raise InfeasibleError(
            f"{self.plan.name} is a program of several launches, and only a single kernel can"
            " start with a cold L2 cache; measure with l2: hot",
            "l2",
        )

    def fetch(self) -> Outputs:
        """The output buffers, and what the last run kept."""
        return {**super().fetch(), **self._outputs}

    def _let_go(self) -> Sequence[Any]:
        timed, self._timed = self._timed, None  # with page-locked memory
        return self.kernels, timed, self._running

    def _run(self, context: CudaContext, timeout_s: float | None) -> float:
        """One run; seconds from an idle GPU to an idle GPU."""
        self._check_open()
        function, arguments = self._function, self.plan.arguments
        with self.device.translated(f"renewing the buffers of {self._label}"):
            self.memory.renew()
            for kernel in self.kernels.values():
                kernel.loaded.set_symbols()
            self.device.synchronize()

        def action() -> str:
            return f"{self._label}" + (f" (last launch: {context.last})" if context.last else "")

        ended, self._running = False, context
        context.begin(timeout_s)
        try:
            with self.device.translated(action):
                started = time.perf_counter()
                function(context, *arguments)
                context.synchronize()
                elapsed_s = time.perf_counter() - started
                context.end()
                ended = True
        finally:
            if not ended and not self.device.lost:
                context.release()
        self._outputs = context.kept
        return elapsed_s


class ProgramKernel:
    """A kernel of a program and its arguments, some of which change from launch to launch."""

    def __init__(self, name: str, kernel: Kernel, loaded: LoadedKernel) -> None:
        self.loaded = loaded
        self.absent: set[str] = set()
        """Buffers among its arguments that are not allocated now."""
        self._name, self._kernel = name, kernel
        self._values: list[Any] = [
            None if isinstance(argument, str | Variable) else argument
            for argument in kernel.arguments
        ]
        self._structs = [(p, a) for p, a in enumerate(kernel.arguments) if isinstance(a, np.void)]
        self._addresses: dict[str, int | None] = {}
        self._pointers: dict[str, list[int]] = {}
        variables: dict[str, tuple[list[int], type[np.generic]]] = {}
        for place, argument in enumerate(kernel.arguments):
            if isinstance(argument, str):
                self._pointers.setdefault(argument, []).append(place)
            elif isinstance(argument, Variable):
                kind = np.dtype(argument.dtype).type
                variables.setdefault(argument.name, ([], kind))[0].append(place)
        self._variables = [(variable, *found) for variable, found in variables.items()]
        self.absent.update(self._pointers)

    def point(self, buffer: str, address: int | None) -> None:
        """Set the address of a buffer; ``None`` if it is not allocated."""
        self._addresses[buffer] = address
        for place in self._pointers.get(buffer, ()):
            self._values[place] = address
            (self.absent.add if address is None else self.absent.discard)(buffer)

    def arguments(self, given: Mapping[str, np.generic | int | float]) -> Sequence[Any]:
        """The arguments of a launch. Raises ``DeviceError`` for a value missing or too large."""
        if self.absent:
            raise DeviceError(
                f"kernel {self._name} is launched while {', '.join(sorted(self.absent))} is not"
                " allocated"
            )
        if len(given) != len(self._variables):
            multi_launch.launch_arguments(self._name, self._kernel, given)  # raises, with the names
        for place, struct in self._structs:
            self._values[place] = with_addresses(struct, self._addresses.__getitem__).tobytes()
        for name, places, kind in self._variables:
            try:
                value = kind(given[name])
                fits = value == given[name] or not issubclass(kind, np.integer)
            except (KeyError, OverflowError):
                fits = False
            if not fits:  # which raises, with the reason
                multi_launch.launch_arguments(self._name, self._kernel, given)
            for place in places:
                self._values[place] = value
        return self._values


class CudaContext(multi_launch.ProgramContext):
    """A program context on a GPU, for a timed run: it measures nothing itself."""

    def __init__(self, program: CudaProgram) -> None:
        super().__init__(program.device.facts, program.plan)
        self.last = ""
        """Name of the kernel launched last."""
        self._device, self._cuda = program.device, program.device.cuda
        self._kernels, self._memory = program.kernels, program.memory
        self._event = self._cuda.Event(self._cuda.event_flags.DISABLE_TIMING)
        self._staging = _staging(self._cuda)
        self._views: dict[tuple[str, int], tuple[Any, NDArray[Any]]] = {}
        self._timeout_s: float | None = None
        self._deadline = float("inf")

    def begin(self, timeout_s: float | None) -> None:
        """Start a run. ``timeout_s`` limits the whole run."""
        self.kept, self.last = {}, ""
        self._timeout_s = timeout_s
        self._deadline = float("inf") if timeout_s is None else time.perf_counter() + timeout_s

    def launch(self, kernel: str, **variables: np.generic | int | float) -> None:
        """See ``ProgramContext``. Raises ``LaunchTimeout`` once the run has outlasted its limit."""
        found = self._kernel(kernel)
        found.loaded.queue(found.arguments(variables))

    def synchronize(self) -> None:
        """See ``ProgramContext``."""
        self._wait()

    def _allocate(self, buffer: Buffer) -> None:
        self._memory.allocate(buffer.name)
        self._point(buffer.name, int(self._memory.allocations[buffer.name]))

    def _free(self, buffer: Buffer) -> None:
        self._memory.free(buffer.name)
        self._point(buffer.name, None)

    def _write(self, buffer: Buffer, values: NDArray[Any]) -> None:
        if values.nbytes:
            self._cuda.memcpy_htod(self._memory.allocations[buffer.name], values)

    def _zero(self, buffer: Buffer) -> None:
        self._memory.clear(buffer.name)

    def _read(self, buffer: Buffer, count: int) -> NDArray[Any]:
        nbytes = count * np.dtype(buffer.dtype).itemsize
        if self._staging is None or not 0 < nbytes <= PINNED_BYTES:
            self._wait()
            return self._memory.read(buffer.name, count)
        if (buffer.name, count) not in self._views:
            pinned = self._staging[:nbytes]  # as bytes for the copy, and as typed elements
            self._views[buffer.name, count] = (pinned, pinned.view(buffer.dtype))
        raw, typed = self._views[buffer.name, count]
        self._cuda.memcpy_dtoh_async(raw, self._memory.allocations[buffer.name])
        self._wait()
        return typed.copy()

    def _kernel(self, name: str) -> ProgramKernel:
        if name not in self._kernels:
            multi_launch.kernel_of(self._plan, name)  # raises, with the names there are
        if time.perf_counter() > self._deadline:
            raise self._late()
        self.last = name
        return self._kernels[name]

    def _wait(self) -> None:
        """Wait for all queued work without sleeping, since a sleep would be part of the time."""
        event, deadline = self._event, self._deadline
        event.record()
        if self._timeout_s is None:
            event.synchronize()
            return
        while not event.query():
            if time.perf_counter() > deadline:
                raise self._late()

    def _late(self) -> Exception:
        after = f" (after a launch of {self.last})" if self.last else ""
        return late(self._device, f"program {self._plan.name}{after}", self._timeout_s or 0.0)

    def _point(self, name: str, address: int | None) -> None:
        for kernel in self._kernels.values():
            kernel.point(name, address)


def _counted(phase: str, operation: Operation) -> Operation:
    """An operation that is waited for, and whose seconds count under a phase."""

    def counted(context: SplitContext, *arguments: Any, **options: Any) -> Any:
        started = time.perf_counter()
        found = operation(context, *arguments, **options)
        context._wait()
        elapsed = time.perf_counter() - started
        context._add(phase, elapsed)
        context._inside_s += elapsed
        return found

    return cast(Operation, counted)


class SplitContext(CudaContext):
    """A context that waits after every operation and adds up how long each kind took; not timed."""

    def __init__(self, program: CudaProgram) -> None:
        super().__init__(program)
        self.phases: dict[str, float] = {}
        """Seconds by name, of the phases that occurred."""
        self._inside_s = 0.0  # of operations, which do not count for the phase around them

    def begin(self, timeout_s: float | None) -> None:
        """See ``CudaContext``."""
        super().begin(timeout_s)
        self.phases, self._inside_s = {}, 0.0

    allocate = _counted("allocate", CudaContext.allocate)
    free = _counted("free", CudaContext.free)
    upload = _counted("transfer", CudaContext.upload)
    clear = _counted("transfer", CudaContext.clear)
    download = _counted("reduce", CudaContext.download)

    def launch(self, kernel: str, **variables: np.generic | int | float) -> None:
        """See ``ProgramContext``; seconds are between two events, behind the blocking kernel."""
        started = time.perf_counter()
        found = self._kernel(kernel)
        finish = found.loaded.queue_timed(found.arguments(variables))
        self._wait()
        seconds, _ = finish()
        self._add(kernel, seconds)
        self._inside_s += time.perf_counter() - started

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """See ``ProgramContext``; operations inside count under their own names."""
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
        with super().group(name):
            started = time.perf_counter()
        try:
            yield
        finally:
            self._add(name, time.perf_counter() - started)

    def _add(self, name: str, seconds: float) -> None:
        self.phases[name] = self.phases.get(name, 0.0) + seconds


class ProfiledContext(CudaContext):
    """A context with the profiler on during the first launch of each kernel."""

    def __init__(self, program: CudaProgram) -> None:
        super().__init__(program)
        self.profiled: list[str] = []
        """Kernels in the order in which the profiler saw them."""

    def launch(self, kernel: str, **variables: np.generic | int | float) -> None:
        """See ``ProgramContext``."""
        if kernel in self.profiled:
            super().launch(kernel, **variables)
            return
        self._wait()
        with cuda_driver.profiled():
            super().launch(kernel, **variables)
            self._wait()
        self.profiled.append(kernel)


def _staging(cuda: Any) -> Any:
    """Page-locked memory; ``None`` if it is not available, as on some virtual GPUs."""
    try:
        return cuda.pagelocked_empty(PINNED_BYTES, np.uint8)
    except cuda.Error:
        return None
