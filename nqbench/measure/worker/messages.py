"""Messages between a run and its workers: data classes, pickled.

A worker receives ``Open`` once and answers ``Ready`` or ``Refused``. It answers each request with
``Accepted``, a heartbeat (``Beat``) before launches, and ``Done``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nqbench.facts import DeviceFacts
from nqbench.measure.measurement import Measurement
from nqbench.measure.sampling import Policy
from nqbench.point import Point
from nqbench.workloads import ExternalWorkload, registered


@dataclass(frozen=True, slots=True)
class Open:
    """Open the device ``spec``; ``None`` for a worker that compiles and needs no device.

    ``workloads``: what studies have registered in the runner's process.
    """

    spec: str | None
    workloads: tuple[ExternalWorkload, ...] = field(default_factory=registered)


@dataclass(frozen=True, slots=True)
class MeasureRequest:
    """Verify (one untimed launch) or measure a point.

    ``round``       0 to verify; the test device's answers may depend on it
    ``timeout_s``   limit of one launch
    ``expected_s``  seconds that a launch took before, if there was one
    ``profiled``    a profiler is attached: it sees the first launch of each kernel of a program
    """

    point: Point
    round: int
    timed: bool
    policy: Policy
    timeout_s: float
    expected_s: float | None = None
    profiled: bool = False


@dataclass(frozen=True, slots=True)
class PrecompileRequest:
    """Compile the kernels of a point for the GPU that ``facts`` describe."""

    point: Point
    facts: DeviceFacts


WorkRequest = MeasureRequest | PrecompileRequest


@dataclass(frozen=True, slots=True)
class Hello:
    """How a worker introduces its device; ``host`` is the identity of its CPU.

    ``no_telemetry``: why a device that should have a sensor has none.
    """

    spec: str
    timed: bool
    deterministic: bool
    identity: Mapping[str, Any]
    facts: DeviceFacts
    host: Mapping[str, Any]
    no_telemetry: str
    pid: int

    @property
    def kind(self) -> str:
        """``cuda``, ``sim`` or ``cpu``."""
        return self.facts.kind


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker is ready; ``hello`` describes its device, if it has one."""

    hello: Hello | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The device cannot be opened: the name of the error's class and its sentence."""

    error: str
    reason: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """The worker begins with a request."""


@dataclass(frozen=True, slots=True)
class Beat:
    """A heartbeat: a launch follows."""


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a request."""

    measurement: Measurement


Message = Open | MeasureRequest | PrecompileRequest | Ready | Refused | Accepted | Beat | Done
