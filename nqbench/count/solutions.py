"""The fastest verified path to a(N) on a device, and what it would cost.

A GPU launches the best known kernel for its compute capability (``choice``), once if that takes
seconds, else chunk by chunk (``chunks``). A CPU counts one eighth of the tree on all cores. The
result is compared with A000170.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from nqbench.count.choice import KernelChoice, choice_for, recorded_choice
from nqbench.count.chunks import ChunkedBoard, ChunkSum, CountLog, LogLine
from nqbench.count.counters import CPU, ChunkCounter, CpuCounter, KernelCounter, KernelLauncher
from nqbench.device import Device
from nqbench.devices.registry import DeviceChoice, choose_device, facts_for
from nqbench.errors import InfeasibleError, StudyError, WrongAnswer
from nqbench.measure.launch import Launched, launch
from nqbench.point import Level
from nqbench.workloads.counting.factors import MAX_N
from nqbench.workloads.counting.known import SOLUTIONS, solutions
from nqbench.workloads.counting.plans import QUICK
from nqbench.workloads.counting.systems import MIDDLE_N

COUNTING: Final = "counting"
ON_CPU: Final = "cpu.frontier_multicore"
FROM_MIDDLE: Final = "cpu.middle_multicore"
MIN_KERNEL_N: Final = 5
MIN_LOGGED_N: Final = 8
MIN_CHUNKED_N: Final = 13
"""Smaller boards take milliseconds on one core."""
MAX_ESTIMATED_N: Final = 28
"""One more than can be counted: the growth is extrapolated by its trend."""
WHOLE_S: Final = 2.0
"""A count that is predicted to take no longer is one launch: nobody waits for its progress."""
CHECKED: Final = 0.01
"""Share of the chunks that are computed again on another path before they are written down."""
CHECKED_HALVES: Final = 0.002
"""The same of groups of half boards, whose other path searches a tree: many times as long."""
GPUS: Final = (8, 1000)
SPANS: Final = ((31_557_600.0, "years"), (86_400.0, "days"), (3600.0, "h"), (60.0, "min"))

ShowProgress = Callable[[float, float, float], None]
"""Is told the share of the board that is done, the solutions found per second, the seconds left."""


@dataclass(frozen=True, slots=True)
class Count:
    """a(n), and how it was found."""

    n: int
    value: int
    how: str


def check_size(n: int) -> None:
    """Raise ``StudyError`` for a board whose count is not known."""
    if not 1 <= n <= MAX_N:
        raise StudyError(f"N must be from 1 to {MAX_N}, not {n}: a(N) is unknown beyond")


def choose(spec: str) -> DeviceChoice:
    """The device that counts: for ``auto`` a GPU, else the CPU, faster than any simulation.

    Raises ``DeviceUnavailable`` for a spec that names no kind of device.
    """
    choice = choose_device(spec)
    if spec == "auto" and choice.spec.startswith("sim"):
        return DeviceChoice(CPU, choice.why)
    return choice


def count_solutions(
    n: int, spec: str, log: Path | None = None, progress: ShowProgress | None = None
) -> Count:
    """Count the placements of ``n`` queens (1 to 27) on the device ``spec``.

    ``log``: a file of finished chunks, which it resumes. ``progress`` is told how far a count of
    more than a few seconds is.
    """
    check_size(n)
    if log is not None and n < MIN_LOGGED_N:
        raise StudyError(f"--log is for {MIN_LOGGED_N} queens or more; leave it out")
    spec = choose(spec).spec
    if spec == CPU or n < MIN_KERNEL_N:
        if log is None and n < MIN_CHUNKED_N:
            found = launch(COUNTING, {"n": n, "system": ON_CPU}, CPU)
            return _describe(n, found, f"{ON_CPU} on {CPU}", "counting")
        counter = CpuCounter()
        system = FROM_MIDDLE if _by_halves(n, counter, log) else ON_CPU
        return in_chunks(n, counter, f"{system} on {CPU}", log, progress)
    launcher = KernelLauncher(spec)
    try:
        device = launcher.device
        choice, why = choice_for(device.facts, n)
        about = f"{why}; {device.remark}" if device.remark else why
        name = f"{choice.system} on {device.spec} ({about})"
        if log is None and choice.seconds(n, device.facts) <= WHOLE_S:
            return _describe(n, launcher.run(_at_once, n, device, choice), name, "kernel")
        return in_chunks(n, KernelCounter(launcher, n), name, log, progress)
    finally:
        launcher.close()


def _at_once(n: int, device: Device, choice: KernelChoice) -> Launched:
    """One launch, with the block that was chosen unless this device cannot hold it."""
    QUICK.set(True)  # in the thread of the device, which times nothing
    given: dict[str, Level] = {"n": n, "system": choice.system}
    if choice.depths:
        given["depth"] = choice.depth_at(n)
    try:
        return launch(COUNTING, {**choice.levels, **given}, device)
    except InfeasibleError:
        return launch(COUNTING, given, device)


def _describe(n: int, found: Launched, name: str, timed: str) -> Count:
    assert found.answer is not None
    made = "" if found.split_s is None else f", jobs {span(found.split_s)}"
    took = "simulated" if found.kernel_s is None else f"{timed} {span(found.kernel_s)}"
    how = f"{name}, {took}{made}, {span(found.wall_s)} in all; equal to OEIS A000170"
    return Count(n, found.answer, how)


def in_chunks(
    n: int, counter: ChunkCounter, name: str, log: Path | None, progress: ShowProgress | None
) -> Count:
    """Count in chunks by ``counter``, called ``name``; compared with A000170."""
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
        parts += [launches, f"kernel {span(found.took_s)}" if counter.timed else "simulated"]
    how = f"{', '.join(parts)}, {span(took_s)} in all; equal to OEIS A000170"
    return Count(n, found.solutions, how)


@dataclass(frozen=True, slots=True)
class Counted:
    """The number of solutions; of the chunks, how many there are, how many the file held already,
    and how many were computed again; launches (or pieces of work), and the seconds they took
    together."""

    solutions: int
    chunks: int
    resumed: int
    checked: int
    parts: int
    took_s: float


def count_in_chunks(
    n: int,
    counter: ChunkCounter,
    log: Path | None = None,
    *,
    checked: float | None = None,
    progress: ShowProgress | None = None,
) -> Counted:
    """Count the placements of ``n >= 7`` queens, resuming ``log``.

    With a file the first range of every device, and of the others a random share of ``checked``
    (without it, ``CHECKED``), is computed again before it is written. Raises ``StudyError`` for a
    file of another count, or one that cannot be written, and ``WrongAnswer`` if two paths disagree.
    """
    board = ChunkedBoard.of(n, _by_halves(n, counter, log))
    if checked is None:
        checked = CHECKED_HALVES if board.halves else CHECKED
    with ExitStack() as stack:
        file = stack.enter_context(closing(CountLog(log, board.head))) if log else None
        held = file.parts if file else []
        left = _left(held, board.chunks, log)
        if left and board.halves and n > MIDDLE_N and not counter.launches:
            said = f"--log {log} holds groups of half boards, which a CPU counts up to N ="
            raise StudyError(f"{said} {MIDDLE_N}; continue on a GPU, or name another file")
        before = sum(part.weights for part in held)
        weights, parts, again, took_s = before, 0, 0, 0.0
        resumed = done = board.chunks - len(left)
        started = time.perf_counter()
        running = counter.parts(board, left, checked if file else None)
        for part in stack.enter_context(closing(running)):
            line: LogLine = {"by": counter.name}
            if part.again is not None:
                _compare(n, counter, part, log)
                line["again"] = counter.check_name
                again += part.count
            if file:
                file.append(part, line)
            weights, done, parts = weights + part.weights, done + part.count, parts + 1
            took_s += part.took_s
            if progress is not None:
                seconds = time.perf_counter() - started
                rate = (weights - before) * board.share / seconds
                left_s = seconds * (board.chunks - done) / (done - resumed)
                progress(done / board.chunks, rate, left_s)
    return Counted(board.solutions(weights), board.chunks, resumed, again, parts, took_s)


def _by_halves(n: int, counter: ChunkCounter, log: Path | None) -> bool:
    """Whether to count groups of half boards: as the file was begun, else as is fastest."""
    begun = CountLog.is_of_halves(log) if log else None
    return n in counter.halves_n if begun is None else begun


def _left(held: Sequence[ChunkSum], chunks: int, log: Path | None) -> list[int]:
    """Chunks that no part holds; ``StudyError`` if two hold the same, or one that is none."""
    times = np.zeros(chunks + 1, np.int64)
    for part in held:
        times[part.first : part.first + part.count] += 1
    wrong = np.flatnonzero(times > 1)
    if wrong.size or any(not 0 <= p.first < p.first + p.count <= chunks for p in held):
        which = f"chunk {wrong[0]} twice" if wrong.size else "a chunk that the board does not have"
        raise StudyError(f"--log {log} holds {which}; delete a line, or name another file")
    return [int(chunk) for chunk in np.flatnonzero(times[:chunks] == 0)]


def _compare(n: int, counter: ChunkCounter, part: ChunkSum, log: Path | None) -> None:
    if part.again != part.weights:
        raise WrongAnswer(
            f"chunks {part.first} to {part.first + part.count - 1} of {n} queens: the weights"
            f" sum up to {part.weights} by {counter.name}, but to {part.again} by"
            f" {counter.check_name}; one of them is wrong, so {log} keeps only what was finished:"
            " do not trust this device, run the GPU tests"
        )


def estimate(n: int, spec: str = "auto") -> str:
    """What ``n`` queens (5 to 28) would cost on 1, 8 and 1,000 GPUs like ``spec``, and the recorded
    run that says so. ``auto`` without a GPU: GPUs like the recorded one.

    Raises ``StudyError`` for another size, or a device that is no GPU.
    """
    if not MIN_KERNEL_N <= n <= MAX_ESTIMATED_N:
        raise StudyError(
            f"--estimate takes {MIN_KERNEL_N} to {MAX_ESTIMATED_N} queens, not {n}: smaller"
            " boards take no time, and how the search grows beyond is unknown"
        )
    device = None
    if (chosen := choose(spec).spec).startswith("cuda"):
        device = facts_for(chosen)
        choice, _ = choice_for(device, min(n, MAX_N))
    elif spec == "auto":
        choice = recorded_choice(min(n, MAX_N))
    else:
        raise StudyError(f"--estimate is about GPUs, not --device {spec}; leave --device out")
    seconds, gpu = choice.seconds(n, device), device.name if device else choice.gpu
    many = ", ".join(f"{span(seconds / gpus)} on {gpus:,}" for gpus in GPUS)
    least = "at least " if n < choice.n else ""  # a smaller board fills less of the GPU
    cost = f"a({n}) would take {least}{span(seconds)} on one {gpu}, {many} that share its chunks"
    if choice.kernel_s is None:
        return f"{cost}\nguessed: {choice.system} was not measured yet"
    if n == choice.n:
        how = f"{choice.system} on one {choice.gpu}, {choice.date}, study {choice.study}"
        return f"{cost}\nrecorded: {how}"
    by_solutions = choice.seconds(choice.n, device) * solutions(n) / solutions(choice.n)
    return (
        f"{cost}\npredicted from a recorded run: {choice.system} took {choice.kernel_s} s at N ="
        f" {choice.n} on one {choice.gpu} with {choice.multiprocessors} multiprocessors"
        f" ({choice.date}, study {choice.study}), times the growth of the nodes of the search tree;"
        f" by the growth of the solutions it is {span(by_solutions)}"
    )


def span(seconds: float) -> str:
    """A time in the largest unit that it has two of: ``3.25 days``."""
    small = (1.0, "s") if seconds >= 1 else (1e-3, "ms") if seconds >= 1e-3 else (1e-6, "µs")
    unit_s, name = next((u for u in SPANS if seconds >= 2 * u[0]), small)
    count = seconds / unit_s
    return f"{count:,.0f} {name}" if count >= 1000 else f"{count:.3g} {name}"
