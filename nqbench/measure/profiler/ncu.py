"""Hardware counters of a study's points, with NVIDIA Nsight Compute (``ncu``), in a run of its own.

``counters: ncu`` in a study's ``measure`` block asks for it. After the rounds each point that was
verified is launched once more, under ``ncu``, in a process of its own: a profiled kernel runs
several times over and is never timed. Of a program the first launch of each kernel is profiled,
and its counters are named ``NAME@KERNEL``, those of the main kernel plainly too. What comes back
is a record of round :data:`PROFILE_ROUND` whose counters have the names that the simulator uses for
the same quantity.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from nqbench.errors import DeviceError
from nqbench.measure.events import Listener
from nqbench.measure.profiler.ncu_table import (
    METRICS,
    PROGRAM,
    Profile,
    complaint,
    counters_by_kernel,
    counters_of,
    read_launches,
)
from nqbench.measure.run_state import Ledger, Task
from nqbench.measure.sampling.measurement import PROFILED
from nqbench.measure.sampling.sampling import Policy
from nqbench.measure.worker.pool import Reply
from nqbench.measure.worker.process import import_path
from nqbench.record import Record
from nqbench.vocabulary import plain_name

__all__ = ["PROFILE_ROUND", "PROGRAM", "collect", "command"]

PROFILE_ROUND: Final = -1
"""Round of a profile's record: before the verification, since nothing of it is a measurement."""
START_S: Final = 120.0
"""For the profiler's own start and the process it watches: imports, a context, compiled kernels."""
PASSES: Final = 60
"""A kernel is run again for each group of counters that fit the hardware at once, with its memory
saved and restored: some ten times, and in the profiler's own slower mode."""

_PERMISSION: Final = "ERR_NVGPUCTRPERM"
_UNKNOWN: Final = re.compile(r"Failed to find metric '?([\w.]+)")

Run = Callable[[Sequence[str], float], "Ended"]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a profiler's process ended, and what it said."""

    code: int
    text: str


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
    ledger: Ledger,
    listener: Listener,
    *,
    program: str | None = None,
    run: Run | None = None,
) -> None:
    """Profile every verified point on a GPU that has no profile yet.

    ``program`` is the profiler (default: ``ncu`` on the PATH), ``run`` starts it (default: a
    process). Where it is not installed, or the driver refuses, one sentence says so; a point that
    cannot be profiled is noted as such and stays what it is.
    """
    wanted = [t for t in tasks if t.device.startswith("cuda") and not t.exact]
    program = program or shutil.which(PROGRAM)
    if not wanted or program is None:
        where = f"{PROGRAM} is not on the PATH; install NVIDIA Nsight Compute to have them"
        reason = where if wanted else "they are a GPU's, and no point here runs on one"
        listener.message(f"counters: {PROGRAM} gives none: {reason}")
        return
    pending = [t for t in wanted if ledger.done(t, 0) and not ledger.done(t, PROFILE_ROUND)]
    if pending:
        listener.stage(f"profile with {PROGRAM}", len(pending))
    for place, task in enumerate(pending):
        try:
            reply = _profile(task, ledger, program, run or _process)
        except DeviceError as error:
            ledger.skip(task, PROFILE_ROUND, str(error))
            if _PERMISSION in str(error):
                listener.message(f"counters: {PROGRAM} gives none: {error}")
                return
        else:
            ledger.add(task, PROFILE_ROUND, place, reply)


def _profile(task: Task, ledger: Ledger, program: str, run: Run) -> Reply:
    verified = ledger.latest(task, 0)
    launch_s = float(verified.about.get("first_launch_s", 0.0)) if verified else 0.0
    limit_s = START_S + PASSES * launch_s
    kernels = _kernels(verified)
    metrics = list(dict.fromkeys(part for parts in METRICS.values() for part in parts))
    with tempfile.TemporaryDirectory(prefix="nqbench-ncu-") as name:
        folder = Path(name)
        request, reply, log = folder / "request.json", folder / "reply.json", folder / "table.csv"
        request.write_text(json.dumps(_request(task, limit_s, kernels)), encoding="utf-8")
        target = (sys.executable, "-P", "-m", "nqbench.measure.profiler.ncu_target")
        while True:
            process = (*target, str(request), str(reply))
            argv = command(program, metrics, log, process, marked=bool(kernels))
            ended = run(argv, limit_s)
            text = (log.read_text(encoding="utf-8") if log.exists() else "") + ended.text
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
        if ended.code or not reply.exists():
            raise DeviceError(f"{PROGRAM} ended with {ended.code}; {complaint(text)}")
        fields = json.loads(reply.read_text(encoding="utf-8"))
    if fields["status"] == "ok":
        names = [profile.kernel for profile in profiles]
        fields["counters"] = _counters(profiles, kernels, fields)
        fields["about"].pop("first_launch_s", None)  # of all its passes: it would mislead budgets
        fields["about"] |= {"profiler": PROGRAM, "profiled_kernel": "; ".join(names)}
        fields["ended_by"] = PROGRAM
        return Reply(fields, worker=0)
    raise DeviceError(f"under {PROGRAM}: {fields['reason']}")


def _kernels(verified: Record | None) -> tuple[str, ...]:
    """Names of a program's kernels, the main one first; none for a single kernel."""
    named = (plain_name(name)[1] for name in (verified.resources if verified else ()))
    return tuple(dict.fromkeys(name for name in named if name))


def _counters(
    profiles: Sequence[Profile], kernels: Sequence[str], fields: Mapping[str, Any]
) -> dict[str, float]:
    """Counters of the only kernel; of a program those of each, and of the main one plainly."""
    if not kernels:
        return counters_of(profiles[0].metrics)
    found = counters_by_kernel(profiles, fields["about"].get(PROFILED, "").split())
    own = {plain_name(name): value for name, value in found.items()}
    main = {name: value for (name, kernel), value in own.items() if kernel == kernels[0]}
    return main | found


def _request(task: Task, limit_s: float, kernels: Sequence[str]) -> dict[str, Any]:
    return {
        "spec": task.device,
        "point": task.point.as_json(),
        "round": 0,
        "timed": False,
        "policy": asdict(Policy()),
        "timeout_s": limit_s,
        "expected_s": None,
        PROFILED: bool(kernels),
    }


def _process(argv: Sequence[str], limit_s: float) -> Ended:
    environment = os.environ | {"PYTHONPATH": import_path()}
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=limit_s, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        raise DeviceError(f"{PROGRAM} did not end within {limit_s:.0f} s") from None
    except OSError as error:
        raise DeviceError(f"{argv[0]} cannot be started: {error.strerror}") from error
    return Ended(done.returncode, done.stdout + done.stderr)
