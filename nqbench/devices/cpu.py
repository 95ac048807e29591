"""The CPU of this machine: runs CPU plans, the baselines of the papers' speed-ups."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from nqbench.device import Device, Launch, Prepared, Resources
from nqbench.errors import DeviceError
from nqbench.facts import DeviceFacts
from nqbench.multi_launch import find_function
from nqbench.plan import CommandPlan, CpuPlan, CpuResult, Outputs, Plan
from nqbench.system.files import text
from nqbench.system.machine import cpu_count, cpu_model
from nqbench.system.versions import installed

GOVERNOR: Final = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


class CpuDevice(Device):
    """Runs the functions of CPU plans in this process, timed by the monotonic clock, and external
    programs in processes of their own."""

    spec = "cpu"
    cpu_plans = True

    def __init__(self) -> None:
        self.facts = DeviceFacts(
            name=cpu_model(), kind="cpu", compute_capability=(0, 0), multiprocessors=cpu_count()
        )

    def identity(self) -> Mapping[str, object]:
        """Model, usable cores, frequency governor (if readable) and the numba version."""
        return {
            "name": self.facts.name,
            "cores": self.facts.multiprocessors,
            "governor": text(GOVERNOR).strip() or "unknown",
            "numba": installed("numba") or "none",
        }

    def prepare(self, plan: Plan) -> Prepared:
        """Import the function; call it with the plan's ``warm_up`` arguments.

        Raises ``DeviceError`` for a GPU kernel or a function that cannot be found, and
        ``ProgramFault`` for a program that is not there.
        """
        if isinstance(plan, CommandPlan):
            from nqbench.devices.command import CommandPrepared

            return CommandPrepared(plan)
        if not isinstance(plan, CpuPlan):
            raise DeviceError(
                f"{plan.name} needs a GPU and cannot run on the cpu device;"
                " use cuda:0 or sim, or a CPU system (nqbench kernels)"
            )
        function = find_function(plan.function)
        if plan.warm_up:
            function(*plan.warm_up)  # the first time it is compiled, untimed
        return CpuPrepared(function, plan.arguments)


class CpuPrepared(Prepared):
    """A function with its arguments."""

    transfer_s = 0.0

    def __init__(
        self, function: Callable[..., int | CpuResult], arguments: tuple[Any, ...]
    ) -> None:
        self.resources: Resources = {}
        self._function, self._arguments = function, arguments
        self._result: CpuResult | None = None

    def launch(self, timeout_s: float | None = None) -> Launch:  # noqa: ARG002 (a call cannot be interrupted)
        """Call the function. Only the runner can end a running call."""
        started = time.perf_counter()
        result = self._function(*self._arguments)
        kernel_s = time.perf_counter() - started
        self._result = result if isinstance(result, CpuResult) else CpuResult(int(result))
        return Launch(kernel_s)

    def phases(self, timeout_s: float | None = None) -> Mapping[str, float]:  # noqa: ARG002
        """Seconds by phase of the last call, if the function reported them."""
        if self._result is None:
            return {}
        reported = self._result.phases
        return reported() if callable(reported) else reported

    def fetch(self) -> Outputs:
        """The last call's outputs, and its result as ``{"answer": array([value])}``."""
        if self._result is None:
            raise DeviceError("nothing to fetch: the function was not called yet")
        return {**self._result.outputs, "answer": np.array([self._result.answer])}
