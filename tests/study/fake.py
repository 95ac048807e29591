"""A small workload with every kind of factor, and devices to resolve it on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nqbench.errors import InfeasibleError, WrongDeviceError
from nqbench.facts import DeviceFacts
from nqbench.plan import CpuPlan, Outputs, Plan
from nqbench.point import FactorLevels, Level, Point
from nqbench.study import Study, expand, load_study
from nqbench.workloads.base import Factor, Resolved, Workload

SIM = DeviceFacts("test simulator", "sim", (9, 0), multiprocessors=4)
CUDA = DeviceFacts("test GPU", "cuda", (9, 0), multiprocessors=132)
CPU = DeviceFacts("test CPU", "cpu", (0, 0), multiprocessors=1)
TURING = DeviceFacts("sim", "sim", (7, 5), 40, shared_per_block_optin=65536)
"""A simulated device with as little shared memory as the smallest current GPUs have."""
H100 = DeviceFacts("GPU", "cuda", (9, 0), 132, shared_per_block_optin=232448)

_FACTORS = (
    Factor("n", "board size", number=(1, 27)),
    Factor("memory", "where the stacks live", ("local", "shared", "global")),
    Factor("layout", "which index runs fastest", ("per_thread", "interleaved")),
    Factor("depth", "rows placed on the CPU", number=(2, 24), auto=True),
    Factor("block_size", "threads per block", number=(1, 1024)),
    Factor("blocks", "grid size", ("from_jobs",), number=(1, 100_000), per_sm=True),
    Factor("pool_size", "jobs per pool", number=(1, 1_000_000)),
)
_SYSTEMS: Mapping[str, FactorLevels] = {
    "alpha2010.base": {"memory": "local", "depth": 4, "block_size": 64},
    "alpha2010.opt1_shared": {"memory": "shared", "layout": "per_thread", "block_size": 64},
    "beta2011.pool": {"memory": "shared", "layout": "interleaved", "pool_size": 256},
    "cpu.plain": {},
}
_DEFAULTS: FactorLevels = {
    "memory": "shared",
    "layout": "interleaved",
    "depth": "auto",
    "block_size": 128,
    "blocks": "from_jobs",
}


@dataclass
class FakeWorkload(Workload):
    """``asked`` counts the calls of ``resolve``."""

    name: str = "counting"
    factors: Mapping[str, Factor] = field(default_factory=lambda: {f.name: f for f in _FACTORS})
    systems: Mapping[str, FactorLevels] = field(default_factory=lambda: _SYSTEMS)
    cpu_systems: frozenset[str] = frozenset({"cpu.plain"})
    asked: list[dict[str, Level]] = field(default_factory=list)

    def resolve(self, given: FactorLevels, system: str | None, device: DeviceFacts) -> Resolved:
        self.asked.append(dict(given))
        n = given["n"]
        assert isinstance(n, int)
        if system == "cpu.plain":
            if given.keys() - {"n"}:
                raise InfeasibleError("cpu.plain takes only n")
            return Resolved(dict.fromkeys(self.factors, "-") | {"n": n}, {"jobs": 1})
        if device.kind == "cpu":
            raise WrongDeviceError("a GPU kernel cannot run on a CPU; choose a GPU")
        if n < 5:
            raise InfeasibleError(f"N={n} is below 5, the smallest board that kernels take", "n")
        levels = {**_DEFAULTS, **self.systems.get(system or "", {}), **given}
        if levels["depth"] == "auto":
            levels["depth"] = max(2, n - 11)
        if levels["memory"] == "local":
            if given.get("layout", "-") != "-":
                raise InfeasibleError("layout has no meaning for local memory", "layout")
            levels["layout"] = "-"
        levels.setdefault("pool_size", "-")
        depth, block = levels["depth"], levels["block_size"]
        assert isinstance(depth, int)
        assert isinstance(block, int)
        if depth > n - 3:
            raise InfeasibleError(f"depth {depth} leaves fewer than 3 of {n} rows", "depth")
        shared = 16 * (n - depth) * block if levels["memory"] == "shared" else 0
        if shared > device.shared_per_block:
            raise InfeasibleError(
                f"{shared} bytes of shared memory per block exceed the limit of"
                f" {device.shared_per_block}; make block_size smaller",
                "block_size",
            )
        return Resolved(levels, {"jobs": 10**depth, "shared_bytes": shared})

    def plan(self, factors: FactorLevels, system: str | None, device: DeviceFacts) -> Plan:
        return CpuPlan("factorial", "math:factorial", (5,))

    def answer(self, plan: Plan, outputs: Outputs) -> int:
        return 0


def study_of(folder: Path, text: str) -> Study:
    """The study in ``text``, written to a file."""
    path = folder / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return load_study(path)


def points_of(folder: Path, text: str, facts: DeviceFacts = SIM) -> list[Point]:
    """The points of the study in ``text``."""
    return expand(study_of(folder, text), facts, workload=FakeWorkload())
