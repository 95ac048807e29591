"""Hardware counters of a study's points, with NVIDIA Nsight Compute (``ncu``), in a separate run.

``counters: ncu`` in a study's ``measure`` block asks for it. After the rounds each point that was
verified is launched once more, under ``ncu``, in a separate process: a profiled kernel runs
several times and is never timed. For a program the first launch of each kernel is profiled; its
counters are named ``NAME@KERNEL``, those of the main kernel also ``NAME``. The result is a record
of round :data:`PROFILE_ROUND` whose counters have the simulator's names for the same quantities.
"""

from __future__ import annotations

import csv
import io
import math
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nqbench.errors import DeviceError, NqbenchError
from nqbench.measure.measurement import PROFILED
from nqbench.measure.run_state import Listener, RunState, Task
from nqbench.measure.sampling import Policy
from nqbench.measure.worker.messages import Done, MeasureRequest, Open, Refused
from nqbench.measure.worker.pool import Reply, import_path
from nqbench.vocabulary import MEASURED, of_kernel, plain_name
from nqbench.workloads import register

PROGRAM: Final = "ncu"
PROFILE_ROUND: Final = -1
"""Round of a profile's record, which is not a measurement."""
START_S: Final = 120.0
"""For the profiler's own start and the process it watches: imports, a context, compiled kernels."""
PASSES: Final = 60
"""A kernel is run again for each group of counters that fit the hardware at once, with its memory
saved and restored: some ten times, and in the profiler's own slower mode."""

_DATA: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
METRICS: Final[Mapping[str, Sequence[str]]] = _DATA["sums"]
"""Counters by the names of ``vocabulary``, each the sum of these metrics of the profiler."""
_RATES: Final = ("fp32_operations", "fp64_operations", "dram_read_bytes", "dram_write_bytes")
"""Counters that are also given per second of the profiled launch."""

_PERMISSION: Final = "ERR_NVGPUCTRPERM"
_UNKNOWN: Final = re.compile(r"Failed to find metric '?([\w.]+)")


def command(
    program: str, metrics: Sequence[str], log: Path, target: Sequence[str], *, marked: bool = False
) -> list[str]:
    """The profiler's command line: clocks left alone, a table to ``log``.

    It profiles the first launch, or the launches that the process itself marks (``marked``).
    """
    which = ("--profile-from-start", "off") if marked else ("--launch-count", "1")
    return [
        *(program, "--csv", "--page", "raw", "--print-units", "base"),
        *("--clock-control", "none", *which, "--target-processes", "all"),
        *("--log-file", str(log), "--metrics", ",".join(metrics)),
        *target,
    ]


def collect(
    tasks: Sequence[Task],
    state: RunState,
    listener: Listener,
    *,
    sweeps: Collection[str] = (),
    program: str | None = None,
) -> None:
    """Profile every verified point on a GPU that has no profile yet.

    ``sweeps`` are the names of those with counters, if not all. ``program`` is the profiler
    (default: ``ncu`` on the PATH). Where it is not installed, or the driver refuses, one sentence
    says so; a point that cannot be profiled is noted as such and stays what it is.
    """
    asked = [t for t in tasks if not sweeps or t.point.sweep in sweeps]
    own = [t for t in asked if t.point.program is None]
    wanted = [t for t in own if t.device.startswith("cuda") and not t.exact]
    program = program or shutil.which(PROGRAM)
    if not wanted and any(t.exact for t in own):
        return  # they are counted already
    if not wanted or program is None:
        where = f"{PROGRAM} is not on the PATH; install NVIDIA Nsight Compute to have them"
        listener.message(f"counters: skipped, {where if wanted else f'{PROGRAM} needs a GPU'}")
        return
    pending = [t for t in wanted if state.done(t, 0) and not state.done(t, PROFILE_ROUND)]
    if pending:
        listener.stage(f"reading counters with {PROGRAM}", len(pending))
    for place, task in enumerate(pending):
        try:
            reply = _profile(task, state, program)
        except DeviceError as error:
            state.skip(task, PROFILE_ROUND, str(error))
            if _PERMISSION in str(error):
                listener.message(f"counters: skipped, {error}")
                return
        else:
            state.add(task, PROFILE_ROUND, place, reply)


def _profile(task: Task, state: RunState, program: str) -> Reply:
    verified = state.latest(task, 0)
    launch_s = float(verified.about.get("first_launch_s", 0.0)) if verified else 0.0
    limit_s = START_S + PASSES * launch_s
    # A program's, the main one first, or one that makes the input; none for a single kernel.
    named = (plain_name(name)[1] for name in (verified.resources if verified else ()))
    kernels = tuple(dict.fromkeys(name for name in named if name))
    asked = MeasureRequest(task.point, 0, False, Policy(), limit_s, profiled=bool(kernels))
    metrics = list(dict.fromkeys(part for parts in METRICS.values() for part in parts))
    with tempfile.TemporaryDirectory(prefix="nqbench-ncu-") as name:
        folder = Path(name)
        request, reply, log = folder / "request", folder / "reply", folder / "table.csv"
        request.write_bytes(pickle.dumps((Open(task.device), asked)))
        target = (sys.executable, "-P", "-m", "nqbench.measure.ncu")
        while True:
            process = (*target, str(request), str(reply))
            argv = command(program, metrics, log, process, marked=bool(kernels))
            ended = run_profiler(argv, limit_s)
            text = (log.read_text(encoding="utf-8") if log.exists() else "") + ended.stdout
            unknown = set(_UNKNOWN.findall(text)) & set(metrics)
            if not unknown:
                break
            metrics = [metric for metric in metrics if metric not in unknown]  # other GPUs have it
        if _PERMISSION in text:
            raise DeviceError(
                f"the driver lets only administrators read a GPU's counters ({_PERMISSION}); run"
                " as root, or ask for NVreg_RestrictProfilingToAdminUsers=0"
            )
        profiles = read_launches(text)[: None if kernels else 1]
        if ended.returncode or not reply.exists():
            raise DeviceError(f"{PROGRAM} ended with {ended.returncode}; {complaint(text)}")
        answer: Done | Refused = pickle.loads(reply.read_bytes())
    if isinstance(answer, Refused) or answer.measurement.status not in MEASURED:
        said = answer.measurement.reason if isinstance(answer, Done) else answer.reason
        raise DeviceError(f"under {PROGRAM}: {said}")
    found = answer.measurement
    names = [profile.kernel for profile in profiles]
    found.counters = _counters(profiles, kernels, found.about.get(PROFILED, "").split())
    found.about.pop("first_launch_s", None)  # of all its passes: it would mislead budgets
    found.about |= {"profiler": PROGRAM, "profiled_kernel": "; ".join(names)}
    found.ended_by = PROGRAM
    return Reply(found, worker=0)


def _counters(
    profiles: Sequence[Profile], kernels: Sequence[str], launched: Sequence[str]
) -> dict[str, float]:
    """Counters of the only kernel; of several those of each, named ``NAME@KERNEL``, and those of
    the main one plainly.

    ``kernels`` are a plan's, the main one first; ``launched`` those of ``profiles`` in their order,
    none of them for a kernel alone. Raises ``DeviceError`` if the profiler saw another number.
    """
    if not launched:
        return counters_of(profiles[0].metrics)
    if len(profiles) != len(launched):
        raise DeviceError(
            f"{PROGRAM} saw {len(profiles)} launches ({', '.join(p.kernel for p in profiles)})"
            f" where the program marked {len(launched)} ({', '.join(launched)})"
        )
    main: dict[str, float] = {}
    found: dict[str, float] = {}
    for kernel, profile in zip(launched, profiles, strict=True):
        one = counters_of(profile.metrics)
        found |= {of_kernel(counter, kernel): value for counter, value in one.items()}
        main |= one if kernel == kernels[0] else {}
    return main | found


def run_profiler(argv: Sequence[str], limit_s: float) -> subprocess.CompletedProcess[str]:
    """Run the profiler. Raises ``DeviceError`` if it cannot be started, or takes too long."""
    environment = os.environ | {"PYTHONPATH": import_path()}
    both: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    try:
        return subprocess.run(argv, **both, timeout=limit_s, env=environment, check=False)
    except subprocess.TimeoutExpired:
        raise DeviceError(f"{PROGRAM} did not end within {limit_s:.0f} s") from None
    except OSError as error:
        raise DeviceError(f"{argv[0]} cannot be started: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class Profile:
    """Metrics of one launch by the profiler's names, and the kernel that they are of."""

    kernel: str
    metrics: Mapping[str, float]


def read_launches(text: str) -> list[Profile]:
    """Every launch in what ``ncu --csv --page raw`` prints; at least one.

    A line of names, a line of units, a line per launch with a column per metric. Lines of the
    profiler's own (``==PROF==``) and of the program may stand around them. Numbers may have
    thousands separators; what is not a number (``n/a``, ``nan``) is left out. Raises
    ``DeviceError`` without a launch.
    """
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith('"ID",')), None)
    if first is None:
        raise DeviceError(f"{PROGRAM} printed no table; {complaint(text)}")
    table = io.StringIO("\n".join(line for line in lines[first:] if line.startswith('"')))
    rows = [row for row in csv.DictReader(table) if row["ID"]]  # the line of units has none
    if not rows:
        raise DeviceError(f"{PROGRAM} saw no launch; {complaint(text)}")
    found = []
    for row in rows:
        metrics = {}
        for name in (name for name in row if "__" in name):
            with suppress(ValueError):
                if math.isfinite(number := float(row[name].replace(",", ""))):
                    metrics[name] = number
        found.append(Profile(row["Kernel Name"], metrics))
    return found


def counters_of(metrics: Mapping[str, float]) -> dict[str, float]:
    """Counters by our names; one that needs a metric which is missing is left out."""
    found = {
        name: sum(metrics[part] for part in parts)
        for name, parts in METRICS.items()
        if all(part in metrics for part in parts)
    }
    if "achieved_occupancy" in found:
        found["achieved_occupancy"] /= 100
    for name, of in _DATA["ratios"].items():
        if found.get(of["whole"]) and of["part"] in found:
            found[name] = of["offset"] + of["scale"] * found[of["part"]] / found[of["whole"]]
    if found.get("duration_ns"):
        seconds = found["duration_ns"] / 1e9
        found |= {f"{name}_per_s": found[name] / seconds for name in _RATES if name in found}
    return found


def complaint(text: str) -> str:
    """What the profiler complains of, or the last that was said."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("==ERROR==")]
    said = (errors or lines or ["nothing"])[-1]
    return f"it said: {said.removeprefix('==ERROR==').strip()}"


def main(request_path: str, reply_path: str) -> None:
    """What the profiler watches: one launch of one point, checked, and nothing else.

    ``python -m nqbench.measure.ncu REQUEST REPLY``: files with pickled messages, the pair ``Open``
    and ``MeasureRequest``, and ``Done`` or ``Refused``.
    """
    from nqbench.measure.worker.session import Session

    opened, request = pickle.loads(Path(request_path).read_bytes())
    answer: Done | Refused
    try:
        for workload in opened.workloads:
            register(workload)
        with closing(Session(opened.spec)) as session:
            answer = Done(session.measure(request))
    except NqbenchError as error:
        answer = Refused(type(error).__name__, str(error))
    Path(reply_path).write_bytes(pickle.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
