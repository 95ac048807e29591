"""The fastest verified path to a(N) on a device.

On a GPU, candidates first count a smaller board; of those with the right answer the fastest counts
the board that was asked for. A CPU counts one eighth of the tree on all cores. The result is
compared with A000170.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nqbench.errors import DeviceError, InfeasibleError, StudyError, WrongAnswer
from nqbench.solve.launch import launch

if TYPE_CHECKING:
    from nqbench.devices.base import Device
    from nqbench.devices.registry import Choice
    from nqbench.point import Level
    from nqbench.workloads.base import Workload

COUNTING: Final = "counting"
CPU: Final = "cpu"
ON_CPU: Final = "cpu.frontier_multicore"
MIN_KERNEL_N: Final = 5
MAX_N: Final = 27
MIN_LOGGED_N: Final = 8
TRIAL_STEP: Final = 3
"""The trial board is this much smaller than N: about 1/200 of the work, yet a real launch."""
MAX_TRIAL_N: Final = 16
"""Beyond this a trial would take longer than it can save."""

MAX_JOBS: Final = 1 << 25
"""Hundreds of jobs for every thread of a large GPU, in 0.4 GB: more only take time to make."""
MIN_TRIMMED_ROWS: Final = 12
"""Rows left to search at the first depth that is tried after a kernel's own."""

CANDIDATES: Final[tuple[tuple[str, dict[str, Level]], ...]] = (
    ("frontier.predicated", {}),
    ("frontier.lookahead", {}),
    ("zhang2011.low_divergence", {}),
    ("zhang2011.pool_distributed", {}),
    ("zhang2011.pool_monolithic", {}),
    ("tanaka2011.both", {"blocks": {"per_sm": 4}}),
)


@dataclass(frozen=True, slots=True)
class Count:
    """a(n), how it was found, and how long it took on the device (seconds; None if simulated)."""

    n: int
    value: int
    how: str
    kernel_s: float | None


def check_size(n: int) -> None:
    """Raise ``StudyError`` for a board whose count is not known."""
    if not 1 <= n <= MAX_N:
        raise StudyError(f"N must be from 1 to {MAX_N}, not {n}: a(N) is unknown beyond")


def choose(spec: str) -> Choice:
    """The device that counts: for ``auto`` a GPU, else the CPU, faster than any simulation.

    Raises ``DeviceUnavailable`` for a spec that names no kind of device.
    """
    from nqbench.devices.registry import Choice, choose_device

    choice = choose_device(spec)
    if spec == "auto" and choice.spec.startswith("sim"):
        return Choice(CPU, choice.why)
    return choice


def count_solutions(n: int, spec: str, log: Path | None = None) -> Count:
    """Count the placements of ``n`` queens (1 to 27) on the device ``spec``.

    ``log``: a file of finished parts, on the CPU (``chunks.count_in_chunks``).
    """
    from nqbench.devices.registry import open_device
    from nqbench.workloads import get

    check_size(n)
    spec = choose(spec).spec
    if log is not None:
        return _logged(n, spec, log)
    if n < MIN_KERNEL_N or spec == CPU:
        return _finish(open_device(CPU), n, ON_CPU, {})
    device = open_device(spec)
    return _finish(device, n, *_choose(get(COUNTING), device, n))


def _choose(workload: Workload, device: Device, n: int) -> tuple[str, dict[str, Level]]:
    """The fastest candidate with the right answer at the trial board, as it fits board ``n``."""
    fitting = [
        (name, fit)
        for name, extra in CANDIDATES
        if (fit := _fitted(workload, device, n, name, extra)) is not None
    ]
    if not fitting:
        raise StudyError(f"no kernel takes N={n} on {device.spec}; try --device cpu")
    if not device.timed:
        return fitting[0]
    trial_n = max(MIN_KERNEL_N, min(n - TRIAL_STEP, MAX_TRIAL_N))
    extras = dict(CANDIDATES)
    ranked: list[tuple[float, int]] = []
    for index, (name, _) in enumerate(fitting):
        factors = {"n": trial_n, "system": name, **extras[name]}
        try:
            trial = launch(COUNTING, factors, device, warm_up=True)
        except (InfeasibleError, DeviceError, WrongAnswer):
            continue  # a candidate that does not fit this device does not compete
        if trial.kernel_s is not None:
            ranked.append((trial.kernel_s, index))
    if not ranked:
        raise DeviceError(
            f"no kernel gave the right answer for N={trial_n} on {device.spec};"
            " try --device cpu, and run the GPU tests to see what is wrong"
        )
    return fitting[min(ranked)[1]]


def _fitted(
    workload: Workload, device: Device, n: int, name: str, extra: dict[str, Level]
) -> dict[str, Level] | None:
    """``extra`` with the depth that the board needs; ``None`` if the kernel cannot run it.

    zhang2011's rule, N - 11, asks for hundreds of millions of jobs from N = 20 on.
    """
    for depth in ("auto", *range(n - MIN_TRIMMED_ROWS, 1, -1)):
        levels: dict[str, Level] = extra if depth == "auto" else {**extra, "depth": depth}
        try:
            jobs = workload.resolve({"n": n, **levels}, name, device.facts).derived["jobs"]
        except InfeasibleError:
            continue
        if int(jobs) <= MAX_JOBS:
            return levels
    return None


def _finish(device: Device, n: int, name: str, extra: dict[str, Level]) -> Count:
    found = launch(COUNTING, {"n": n, "system": name, **extra}, device)
    assert found.answer is not None
    took = f"{_part(name)} {found.kernel_s:.4g} s" if found.kernel_s is not None else "simulated"
    how = f"{name} on {device.spec}, {took}, {found.wall_s:.3g} s in all; equal to OEIS A000170"
    return Count(n, found.answer, how, found.kernel_s)


def _logged(n: int, spec: str, log: Path) -> Count:
    from nqbench.solve.chunks import count_in_chunks
    from nqbench.workloads.counting.known import SOLUTIONS

    if spec != CPU or n < MIN_LOGGED_N:
        raise StudyError(
            f"--log is for long counts on the CPU, of {MIN_LOGGED_N} queens or more; use"
            " --device cpu, or leave it out"
        )
    started = time.perf_counter()
    found = count_in_chunks(n, log)
    took = time.perf_counter() - started
    if found.solutions != SOLUTIONS[n]:
        raise WrongAnswer(
            f"{log} sums up to {found.solutions} for n={n}, but {SOLUTIONS[n]} is right: do not"
            " trust this file or the computers that wrote it"
        )
    had = f", {found.resumed} of them from {log}" if found.resumed else ""
    how = f"{found.chunks} chunks on cpu{had}, {took:.3g} s; equal to OEIS A000170"
    return Count(n, found.solutions, how, None)


def _part(system: str) -> str:
    return "counting" if system == ON_CPU else "kernel"
