"""What a device must offer; everything else about it is its own affair.

A device prepares a plan once (compile, allocate, copy) and then launches it any number of times.
Devices know plans; they know neither studies nor records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self

from nqbench.facts import DeviceFacts
from nqbench.plan import Outputs, Plan


@dataclass(frozen=True, slots=True)
class Launch:
    """What one launch gave.

    ``kernel_s``  seconds of the kernel alone, or ``None`` where time has no meaning (simulator)
    ``counters``  names from ``vocabulary.COUNTERS``; ``None`` where nothing was counted
    ``detail``    device-specific extras (JSON data), e.g. counters per PTX line
    ``held``      the host's work of launching was kept out of ``kernel_s``
    """

    kernel_s: float | None
    counters: Mapping[str, int | float] | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    held: bool = False


class Prepared(Protocol):
    """A plan loaded on a device. Close it, or use it as a context manager."""

    transfer_s: float | None
    """Seconds of the host-to-device copies; ``None`` where time has no meaning."""

    resources: Mapping[str, int | float | str]
    """What the compiler and the device say: registers, stack_bytes, spill_bytes, occupancy, ..."""

    def launch(self, timeout_s: float | None = None) -> Launch:
        """Renew what the kernel overwrites (untimed), run it once and wait for it.

        Raises ``LaunchError``, ``KernelFault`` or ``LaunchTimeout``.
        """

    def fetch(self) -> Outputs:
        """Copy the output buffers to the host. Arrays have shape ``(length,)``.

        A ``HostPlan`` gives ``{"answer": array([value])}``.
        """

    def close(self) -> None:
        """Free the device memory."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Device(Protocol):
    """A place where plans run."""

    spec: str
    """How the command line names it: ``cuda:0``, ``sim:cc90``, ``cpu``, ``replay:RUN``."""

    facts: DeviceFacts

    timed: bool
    """Whether it measures time (a simulator does not)."""

    deterministic: bool
    """Whether a second block of a point can only repeat the first."""

    def identity(self) -> Mapping[str, object]:
        """Everything that tells this device from another: name, UUID, driver, model, ... (JSON)."""

    def prepare(self, plan: Plan) -> Prepared:
        """Compile, allocate, copy. Raises ``CompileError`` or ``DeviceError``."""

    def close(self) -> None:
        """Release the device."""
