"""The fastest verified path to a(N) on a device.

A GPU launches the best known kernel for its compute capability (``choice``), once if that takes
seconds, else chunk by chunk (``chunks``). A CPU counts one eighth of the tree on all cores. The
result is compared with A000170.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nqbench.errors import InfeasibleError, StudyError, WrongAnswer
from nqbench.measure.launch import Launched, launch

if TYPE_CHECKING:
    from nqbench.count.choice import KernelChoice
    from nqbench.count.chunked import ShowProgress
    from nqbench.count.counters import ChunkCounter
    from nqbench.device import Device
    from nqbench.devices.registry import Choice
    from nqbench.point import Level

COUNTING: Final = "counting"
CPU: Final = "cpu"
ON_CPU: Final = "cpu.frontier_multicore"
MIN_KERNEL_N: Final = 5
MAX_N: Final = 27
MIN_LOGGED_N: Final = 8
MIN_CHUNKED_N: Final = 13
"""Smaller boards take milliseconds on one core."""
WHOLE_S: Final = 2.0
"""A count that is predicted to take no longer is one launch: nobody waits for its progress."""


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


def count_solutions(
    n: int, spec: str, log: Path | None = None, progress: ShowProgress | None = None
) -> Count:
    """Count the placements of ``n`` queens (1 to 27) on the device ``spec``.

    ``log``: a file of finished chunks, which it resumes. ``progress`` is told how far a count of
    more than a few seconds is.
    """
    from nqbench.count.choice import choice_for
    from nqbench.count.counters import CpuCounter, KernelCounter
    from nqbench.devices.registry import open_device

    check_size(n)
    if log is not None and n < MIN_LOGGED_N:
        raise StudyError(
            f"--log is for long counts, of {MIN_LOGGED_N} queens or more; leave it out"
        )
    spec = choose(spec).spec
    if spec == CPU or n < MIN_KERNEL_N:
        if log is None and n < MIN_CHUNKED_N:
            found = launch(COUNTING, {"n": n, "system": ON_CPU}, CPU)
            return _describe(n, found, f"{ON_CPU} on {CPU}", "counting")
        return in_chunks(n, CpuCounter(), f"{ON_CPU} on {CPU}", log, progress)
    device = open_device(spec)
    try:
        choice, why = choice_for(device.facts, n)
        about = f"{why}; {device.remark}" if device.remark else why
        name = f"{choice.system} on {device.spec} ({about})"
        if log is None and choice.seconds(n, device.facts) <= WHOLE_S:
            return _describe(n, _at_once(n, device, choice), name, "kernel")
        return in_chunks(n, KernelCounter(device, choice), name, log, progress)
    finally:
        device.close()


def _at_once(n: int, device: Device, choice: KernelChoice) -> Launched:
    """One launch, with the block that was chosen unless this device cannot hold it."""
    given: dict[str, Level] = {"n": n, "system": choice.system, "depth": choice.depth_at(n)}
    try:
        return launch(COUNTING, {**choice.levels, **given}, device)
    except InfeasibleError:
        return launch(COUNTING, given, device)


def _describe(n: int, found: Launched, name: str, timed: str) -> Count:
    assert found.answer is not None
    made = "" if found.split_s is None else f", jobs {found.split_s:.3g} s"
    took = "simulated" if found.kernel_s is None else f"{timed} {found.kernel_s:.4g} s"
    how = f"{name}, {took}{made}, {found.wall_s:.3g} s in all; equal to OEIS A000170"
    return Count(n, found.answer, how, found.kernel_s)


def in_chunks(
    n: int, counter: ChunkCounter, name: str, log: Path | None, progress: ShowProgress | None
) -> Count:
    """Count in chunks by ``counter``, called ``name``; compared with A000170."""
    from nqbench.count.chunked import count_in_chunks
    from nqbench.workloads.counting.known import SOLUTIONS

    started = time.perf_counter()
    found = count_in_chunks(n, counter, log, progress=progress)
    took_s = time.perf_counter() - started
    if found.solutions != SOLUTIONS[n]:
        blamed = "this file or the computers that wrote it" if log else "this device"
        raise WrongAnswer(
            f"{log or name} sums up to {found.solutions} for n={n}, but {SOLUTIONS[n]} is right: do"
            f" not trust {blamed}"
        )
    parts = [f"{name}, {found.chunks} chunks"]
    if found.resumed:
        parts.append(f"{found.resumed} of them from {log}")
    if found.checked:
        parts.append(f"{found.checked} counted again by {counter.check_name}")
    if counter.launches:
        launches = f"{found.parts} launch{'es' * (found.parts != 1)}"
        took = f"kernel {found.took_s:.4g} s" if counter.timed else "simulated"
        parts += [launches, took]
        if counter.timed and found.took_s > found.span_s:  # several at a time
            parts.append(f"{found.span_s:.4g} s from the first launch to the last result")
    how = f"{', '.join(parts)}, {took_s:.3g} s in all; equal to OEIS A000170"
    kernels = counter.launches and counter.timed and not found.resumed
    return Count(n, found.solutions, how, found.took_s if kernels else None)
