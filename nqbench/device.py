"""The interface of a device: base classes with default methods for what is optional.

A device prepares a plan once (compile, allocate, copy) and then launches it any number of times.
Devices know plans; they know neither studies nor records.
"""

# ruff: noqa: B027  (methods that do nothing are the defaults of what a device may offer)

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from nqbench.errors import InfeasibleError
from nqbench.facts import DeviceFacts
from nqbench.plan import Kernel, Outputs, Plan

Resources = Mapping[str, int | float | str]


@dataclass(frozen=True, slots=True)
class Launch:
    """The result of one launch.

    ``kernel_s``  seconds of the kernel alone, or ``None`` where time has no meaning (simulator)
    ``counters``  names from ``vocabulary.COUNTERS``; ``None`` where nothing was counted
    ``detail``    device-specific extras (JSON data), e.g. what kernels printed
    ``blocked``   the stream was blocked while it was queued: ``kernel_s`` contains no CPU work
    ``wall_s``    seconds of the whole launch where ``kernel_s`` may leave out most of them
    """

    kernel_s: float | None
    counters: Mapping[str, int | float] | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    blocked: bool = False
    wall_s: float | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """The state of a device at one moment; ``None`` for what it does not report.

    ``energy_mj``  millijoules since the driver was loaded: only differences are meaningful
    ``reasons``    why the clocks are not higher, as named by the driver (``gpu_idle``, ...)
    """

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    temperature_c: int | None = None
    power_mw: int | None = None
    energy_mj: int | None = None
    reasons: tuple[str, ...] = ()


class Sensor(ABC):
    """Reads a device's clocks, temperature and power."""

    @abstractmethod
    def read(self) -> Reading:
        """The state now. Never fails: what cannot be read is ``None``."""

    def close(self) -> None:
        """Release the resources of the sensor."""


class Prepared(ABC):
    """A plan loaded on a device. Close it, or use it as a context manager."""

    transfer_s: float | None = None
    """Seconds of the host-to-device copies; ``None`` where time has no meaning."""

    resources: Resources
    """Reports of compiler and device: registers, stack_bytes, spill_bytes, occupancy, ..."""

    profiled: tuple[str, ...] = ()
    """Kernels of a program in the order in which a profiler saw them, in the last run."""

    @property
    def prepare_s(self) -> float | None:
        """Seconds of the kernel that makes the input, which is launched again to be timed; ``None``
        without one, or without a time."""
        return None

    @abstractmethod
    def launch(self, timeout_s: float | None = None) -> Launch:
        """Restore what the kernel overwrites (untimed), run it once and wait for it.

        Raises ``LaunchError``, ``KernelFault`` or ``LaunchTimeout``.
        """

    @abstractmethod
    def fetch(self) -> Outputs:
        """Copy the output buffers to the host. Arrays have shape ``(length,)``.

        A ``CpuPlan`` gives ``{"answer": array([value])}``.
        """

    def known_answer(self) -> int | None:
        """The answer, if the device has one without output buffers (the test device only)."""
        return None

    def refill(self, data: Outputs, *, again: bool = True) -> bool:  # noqa: ARG002
        """From now on launches begin with ``data`` in these buffers, and the next one with a fill
        in the outputs without contents: with that of a second launch, or of the first (not
        ``again``). False where there is nothing to fill."""
        return False

    def flush_l2(self) -> None:
        """From now on, empty the L2 cache before every launch, outside the timed interval.

        Raises ``InfeasibleError`` if this is not possible.
        """
        said = "this device cannot start launches with a cold L2 cache; measure with l2: hot"
        raise InfeasibleError(said, "l2")

    def phases(self, timeout_s: float | None = None) -> Mapping[str, float]:  # noqa: ARG002
        """Where the time of a run goes: seconds by phase; empty if this is unknown.

        A program runs once more, waiting after every operation, and its outputs are those of this
        run. Names are those of the plan's kernels, ``allocate``, ``transfer``, ``reduce``, ``free``
        and the program's own (``phase`` and ``group`` of its context), each only where it occurred,
        ``kernel``, the sum over the kernels, and ``total``, the length of this run with its waits.
        A CPU plan gives what its function reported about its last call. Raises what ``launch``
        raises.
        """
        return {}

    def by_source(self) -> Sequence[tuple[Kernel, list[dict[str, Any]]]]:
        """Counters of each line of the source in the last run, by kernel; empty if unknown."""
        return ()

    def profile_first_launches(self) -> None:
        """From now on, switch a watching profiler on during the first launch of each kernel."""

    def close(self) -> None:
        """Free the device memory."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Device(ABC):
    """A place where plans run."""

    spec: str
    """How the command line names it: ``cuda:0``, ``sim:cc90``, ``cpu``."""

    facts: DeviceFacts

    timed: bool = True
    """Whether it measures time (a simulator does not)."""

    remark: str = ""
    """What to know about its results, in words."""

    deterministic: bool = False
    """Whether every measurement of a point gives the same."""

    cpu_plans: bool = False
    """Whether it runs CPU plans itself; otherwise they run on the ``cpu`` device."""

    keeps_memory: bool = False
    """Whether large buffers of a plan that is closed are kept for the next one."""

    ramp_s: float = 0.0
    """Seconds of work until the clocks of an idle device have risen."""

    @abstractmethod
    def identity(self) -> Mapping[str, object]:
        """Everything that distinguishes this device: name, UUID, driver, model, ... (JSON)."""

    @abstractmethod
    def prepare(self, plan: Plan) -> Prepared:
        """Compile, allocate, copy. Raises ``CompileError`` or ``DeviceError``."""

    def sensor(self) -> Sensor | None:
        """A new sensor, or ``None`` for a device that never has one.

        Raises ``DeviceError`` in one sentence if the sensor cannot be used on this machine.
        """
        return None

    def begin_round(self, round_: int) -> None:
        """A measurement of this round follows (0: verification)."""

    def expect(self, answer: int | None) -> None:
        """The known answer of the plan that is prepared next, or ``None``."""

    def close(self) -> None:
        """Release the device."""
