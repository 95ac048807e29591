"""The simulator as a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Final, overload

from nqbench.devices.base import Device
from nqbench.devices.models import CACHE, MODES, ORDERS, PTXAS, ROUND_ROBIN, TIME, load_model
from nqbench.devices.sim.launching import SimPrepared, Simulation
from nqbench.devices.sim.programs import SimProgram
from nqbench.devices.sim.rules import memory_rules
from nqbench.devices.sim.timing import required
from nqbench.errors import DeviceError
from nqbench.plan import KernelPlan, Plan, ProgramPlan

DEFAULT_QUANTUM: Final = 32
"""Loop iterations before the next warp's turn: few against the life of a job, so that warps share a
job pool evenly; many against the cost of a change of warps."""

CACHE_QUANTUM: Final = 1
"""With caches: a GPU changes warps after every instruction, and a warp that has many turns in a row
finds more of its own lines than there."""

GREEDY_QUANTUM: Final = 1 << 40
DEFAULT_MAX_STEPS: Final = 1 << 33
"""Loop iterations before a launch counts as endless: a board of N = 18 needs about a tenth."""


class SimDevice(Device):
    """A simulated GPU. ``model`` is a name of ``nqbench.devices.models`` or a path.

    ``order``     which warp runs next, one of ``ORDERS``
    ``quantum``   loop iterations per turn (default 32, with caches 1)
    ``modes``     what it does besides, of ``MODES``
    ``max_steps`` loop iterations, over all warps, after which a launch is given up
    ``checked``   whether to watch every access for races and the like (``nqbench check``): slow
    Raises ``DeviceUnavailable`` for an unknown model, ``DeviceError`` for an unknown order, or for
    banks and sectors that the model's memory rules do not have.
    """

    timed = False
    deterministic = True

    def __init__(
        self,
        model: str = "mini",
        *,
        order: str = ROUND_ROBIN,
        quantum: int | None = None,
        max_steps: int = DEFAULT_MAX_STEPS,
        modes: tuple[str, ...] = (),
        checked: bool = False,
    ) -> None:
        if order not in ORDERS:
            raise DeviceError(f"warp order {order!r} is not known; choose {', '.join(ORDERS)}")
        if not set(modes) <= set(MODES):
            raise DeviceError(f"modes of the simulator are {', '.join(MODES)}; got {modes}")
        if quantum is None:
            quantum = CACHE_QUANTUM if CACHE in modes else DEFAULT_QUANTUM
        if quantum < 1 or max_steps < 1:
            raise DeviceError("quantum and max_steps must be at least 1")
        self.model = load_model(model)
        memory_rules(self.model.memory)
        self.facts, self.remark = self.model.facts, self.model.remark
        words = () if order == ROUND_ROBIN else (order,)
        modes = tuple(mode for mode in MODES if mode in modes)
        self.spec = ":".join(("sim", model, *words, *modes))
        chip = self.model.chip
        if CACHE in modes and (chip.l1_shared_bytes is None or chip.l2_bytes is None):
            raise DeviceError(
                f"{self.spec}: the model does not state its caches; add l1_shared_bytes and"
                " l2_bytes to its facts (0 for none)"
            )
        if TIME in modes:
            required(self.model)
        quantum = GREEDY_QUANTUM if order == "greedy" else quantum
        self.simulation = Simulation(
            self.spec, self.model, order, quantum, max_steps, modes, checked
        )

    def identity(self) -> Mapping[str, object]:
        """Everything that can change a counter."""
        from nqbench.compiler.nvrtc import compiler_version

        return {
            "kind": "sim",
            "name": self.facts.name,
            "model": self.model.name,
            "memory": dict(self.model.memory),
            **self._caches(),
            **self._time(),
            "order": self.simulation.order,
            "quantum": self.simulation.quantum,
            **({"counts": PTXAS} if PTXAS in self.simulation.modes else {}),
            "ptx_compiler": compiler_version(),
            "arch": self.facts.arch,
        }

    def _caches(self) -> dict[str, object]:
        if CACHE not in self.simulation.modes:
            return {}
        chip = self.model.chip
        return {"caches": [chip.l1_shared_bytes, list(chip.l1_holds or ()), chip.l2_bytes]}

    def _time(self) -> dict[str, object]:
        return {"time": asdict(self.model.chip)} if TIME in self.simulation.modes else {}

    @overload
    def prepare(self, plan: KernelPlan) -> SimPrepared: ...

    @overload
    def prepare(self, plan: ProgramPlan) -> SimProgram: ...

    @overload
    def prepare(self, plan: Plan) -> SimPrepared | SimProgram: ...

    def prepare(self, plan: Plan) -> SimPrepared | SimProgram:
        """Compile to PTX and to native code, allocate, copy.

        Raises ``CompileError``, ``DeviceError`` (a plan for the CPU, or one that does not fit), or
        ``KernelFault`` for PTX that is not simulated.
        """
        if isinstance(plan, ProgramPlan):
            if TIME in self.simulation.modes:
                raise DeviceError(
                    f"{self.spec}: {plan.name} is a program of several kernels; the time of single"
                    " kernels is modelled"
                )
            return SimProgram(self.simulation, plan)
        if not isinstance(plan, KernelPlan):
            raise DeviceError(
                f"{self.spec} runs kernels; {plan.name} is a computation for the cpu device"
            )
        return SimPrepared(self.simulation, plan)
