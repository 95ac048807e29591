"""The best known launch per compute capability: ``fastest.yaml``, which says what its keys mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml

from nqbench.facts import DeviceFacts
from nqbench.point import FactorLevels, Level
from nqbench.workloads.counting import factors
from nqbench.workloads.counting.jobs import count_jobs
from nqbench.workloads.counting.known import EIGHTH_NODES, nodes
from nqbench.workloads.counting.systems import SYSTEMS

CHOICES: Final = Path(__file__).with_name("fastest.yaml")
MAX_JOBS: Final = 1 << 28
"""Of a launch: thousands for every thread of a large GPU, in 4 GB of its memory."""

NODES_PER_SM_S: Final = 5e8
"""Nodes per second and multiprocessor where nothing was measured: a ninth of what a first kernel
did on an H100 (N = 18 in 17.6 ms), so that a slow GPU gets short launches."""

SIMULATED_NODES_S: Final = 1e6
"""The simulator runs some million nodes per second of the CPU."""


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """A launch: see ``fastest.yaml`` for the fields."""

    capability: str
    system: str
    n: int
    depths: Mapping[int, int] = field(default_factory=dict)
    levels: FactorLevels = field(default_factory=dict)
    kernel_s: float | None = None
    gpu: str = ""
    multiprocessors: int = 0
    date: str = ""
    study: str = ""
    least_n: int = 0
    most_n: int = factors.MAX_N

    @property
    def rank(self) -> tuple[int, int]:
        """Of the choices for a board, the one for the fewest boards is the last."""
        return -self.most_n, self.least_n

    def depth_at(self, n: int) -> int:
        """Rows of the jobs of a board, of which there are at most ``MAX_JOBS``.

        Boards below those in ``depths`` leave as many rows to search as the smallest, others place
        as many as the next smaller one.
        """
        depth, closed = self.wanted_depth(n), factors.takes_closed_jobs(self.loop)
        while depth > 2 and count_jobs(n, depth, "full", limit=MAX_JOBS, closed=closed) > MAX_JOBS:
            depth -= 1
        return depth

    def wanted_depth(self, n: int) -> int:
        """The same however many jobs there are: a launch may take some of them."""
        near = max((k for k in self.depths if k <= n), default=min(self.depths))
        return max(2, self.depths[near] - max(0, near - n))

    @property
    def loop(self) -> Level:
        """The loop of the kernel."""
        return {**SYSTEMS.get(self.system, {}), **self.levels}.get("loop", "")

    def seconds(self, n: int, device: DeviceFacts | None = None) -> float:
        """Predicted seconds of the kernel on a device, by nodes of the tree; within a factor.

        Without ``device``: on the GPU on which it was measured.
        """
        if device is not None and device.kind != "cuda":
            return nodes(n, EIGHTH_NODES) / SIMULATED_NODES_S
        multiprocessors = device.multiprocessors if device is not None else self.multiprocessors
        if self.kernel_s is None:
            return nodes(n, EIGHTH_NODES) / (NODES_PER_SM_S * multiprocessors)
        share = self.multiprocessors / multiprocessors
        return self.kernel_s * share * nodes(n, EIGHTH_NODES) / nodes(self.n, EIGHTH_NODES)


def choice_for(device: DeviceFacts, n: int, halves: bool = True) -> tuple[KernelChoice, str]:
    """The choice for a board on a device, and where it comes from, in words.

    ``halves``: also of those that pair half boards.
    """
    wanted = device.compute_capability
    known = {
        choice.capability: choice
        for choice in sorted(read_choices(), key=lambda choice: choice.rank)
        if choice.least_n <= n <= choice.most_n
        and (halves or choice.system != factors.MIDDLE)
        and factors.has_instructions(device, choice.loop)
    }

    def far(capability: str) -> tuple[int, int]:
        major, minor = map(int, capability.split("."))
        step = 10 * (major - wanted[0]) + minor - wanted[1]
        return abs(step), step

    nearest = known[min(known, key=far)]
    origin = f"{nearest.gpu}, {nearest.date}, study {nearest.study}"
    origin = "not measured yet" if nearest.kernel_s is None else origin
    name = f"{wanted[0]}.{wanted[1]}"
    if nearest.capability == name:
        return nearest, f"the choice for compute capability {name}: {origin}"
    said = f"no choice is stored for compute capability {name}, so that of {nearest.capability}"
    return nearest, f"{said}: {origin}"


def recorded_choice(n: int) -> KernelChoice:
    """The measured choice for a board."""
    stored = (c for c in read_choices() if c.least_n <= n <= c.most_n)
    return max(stored, key=lambda choice: choice.rank)


def read_choices() -> list[KernelChoice]:
    """Every choice of the file."""
    return [KernelChoice(**entry) for entry in yaml.safe_load(CHOICES.read_text(encoding="utf-8"))]
