"""How kernels are simulated: the model of a GPU, how its warps take turns, and what is watched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from nqbench.errors import DeviceError
from nqbench.facts import DeviceFacts
from nqbench.simulator import models
from nqbench.simulator.models import Model, load_model
from nqbench.system.files import digest

DEFAULT_QUANTUM: Final = 32
"""Loop iterations before the next warp's turn: few against the life of a job, so that warps share a
job pool evenly; many against the cost of a change of warps."""

CACHE_QUANTUM: Final = 1
"""With caches: a GPU changes warps after every instruction, and a warp that has many turns in a row
finds more of its own lines than there."""

GREEDY_QUANTUM: Final = 1 << 40
FORMULA: Final = Path(__file__).with_name("timing.py")
DEFAULT_MAX_STEPS: Final = 1 << 33
"""Loop iterations before a launch counts as endless: a board of N = 18 needs about a tenth."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """What a launch depends on besides its plan; :func:`simulation` makes one."""

    spec: str
    model: Model
    order: str
    quantum: int
    max_steps: int
    modes: tuple[str, ...] = ()
    checked: bool = False

    @property
    def facts(self) -> DeviceFacts:
        """The model's limits."""
        return self.model.facts

    @property
    def rules(self) -> tuple[tuple[str, int | str], ...]:
        """What of the model the generated code depends on."""
        rules, chip = dict(self.model.memory), self.model.chip
        if models.CACHE in self.modes and (chip.l1_shared_bytes or chip.l2_bytes):
            rules |= {"cache": "on", "l1_holds": ", ".join(chip.l1_holds or ())}
        asked = [mode for mode in self.modes if mode != models.CACHE]
        rules |= dict.fromkeys(asked, "on")
        if models.TIME in asked:
            rules[models.PTXAS] = "on"
        if asked:
            rules[models.EXPAND] = self.facts.arch
        return tuple(sorted(rules.items()))

    def identity(self) -> Mapping[str, object]:
        """Everything that can change a counter (JSON)."""
        from nqbench.compiler.nvrtc import compiler_version

        chip, timed = self.model.chip, models.TIME in self.modes
        counts = [m for m in (models.EXPAND, models.PTXAS) if {m, models.PTXAS} & {*self.modes}]
        caches = [chip.l1_shared_bytes, list(chip.l1_holds or ()), chip.l2_bytes]
        return {
            "kind": "sim",
            "name": self.facts.name,
            "model": self.model.name,
            "memory": dict(self.model.memory),
            **({"caches": caches} if models.CACHE in self.modes else {}),
            **({"time": asdict(chip) | {"formula": digest([FORMULA])}} if timed else {}),
            "order": self.order,
            "quantum": self.quantum,
            **({"counts": counts} if counts else {}),
            "ptx_compiler": compiler_version(),
            "arch": self.facts.arch,
        }


def simulation(
    model: str = "mini",
    *,
    order: str = models.ROUND_ROBIN,
    quantum: int | None = None,
    max_steps: int = DEFAULT_MAX_STEPS,
    modes: tuple[str, ...] = (),
    checked: bool = False,
) -> Simulation:
    """A simulated GPU.

    ``model``     a name of ``nqbench.simulator.models``, or the path of a YAML file
    ``order``     which warp runs next, one of ``ORDERS``
    ``quantum``   loop iterations per turn (default 32, with caches 1)
    ``max_steps`` loop iterations, over all warps, after which a launch is given up
    ``modes``     of ``MODES``: model the caches, count as ptxas leaves the code, model the time
    ``checked``   watch every access for races and the like (``nqbench check``): slow
    Raises ``DeviceUnavailable`` for an unknown model, ``DeviceError`` for an unknown order or mode,
    or for banks and sectors that the model's memory rules do not have.
    """
    from nqbench.simulator.rules import memory_rules
    from nqbench.simulator.timing import required

    if order not in models.ORDERS:
        raise DeviceError(f"warp order {order!r} is not known; choose {', '.join(models.ORDERS)}")
    if not set(modes) <= set(models.MODES):
        raise DeviceError(f"modes of the simulator are {', '.join(models.MODES)}; got {modes}")
    if quantum is None:
        quantum = CACHE_QUANTUM if models.CACHE in modes else DEFAULT_QUANTUM
    if quantum < 1 or max_steps < 1:
        raise DeviceError("quantum and max_steps must be at least 1")
    found = load_model(model)
    memory_rules(found.memory)
    modes = tuple(mode for mode in models.MODES if mode in modes)
    spec = ":".join(("sim", model, *(() if order == models.ROUND_ROBIN else (order,)), *modes))
    chip = found.chip
    if models.CACHE in modes and (chip.l1_shared_bytes is None or chip.l2_bytes is None):
        raise DeviceError(
            f"{spec}: the model does not state its caches; add l1_shared_bytes and l2_bytes to its"
            " facts (0 for none)"
        )
    if models.TIME in modes:
        required(found)
    turn = GREEDY_QUANTUM if order == "greedy" else quantum
    return Simulation(spec, found, order, turn, max_steps, modes, checked)
