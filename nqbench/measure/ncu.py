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
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from nqbench.errors import DeviceError, NqbenchError
from nqbench.measure.measurement import PROFILED
from nqbench.measure.run_state import Listener, RunState, Task
from nqbench.measure.sampling import Policy
from nqbench.measure.worker.messages import Done, MeasureRequest, Open, Refused
from nqbench.measure.worker.pool import Reply, import_path
from nqbench.vocabulary import of_kernel, plain_name
from nqbench.workloads import register

PROGRAM: Final = "ncu"
PROFILE_ROUND: Final = -1
"""Round of a profile's record, which is not a measurement."""
START_S: Final = 120.0
"""For the profiler's own start and the process it watches: imports, a context, compiled kernels."""
PASSES: Final = 60
"""A kernel is run again for each group of counters that fit the hardware at once, with its memory
saved and restored: some ten times, and in the profiler's own slower mode."""

_LSU: Final = "l1tex__t_sectors_pipe_lsu_mem"
_WAVEFRONTS: Final = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op"
_CONFLICTS: Final = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op"
_OPS: Final = "smsp__inst_executed_op"
_BRANCH: Final = "smsp__sass_branch_targets_threads"
_THREAD_OPS: Final = "smsp__sass_thread_inst_executed_op"
_PER_SECTOR: Final = "smsp__sass_average_data_bytes_per_sector_mem_global_op"
_PER_REQUEST: Final = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op"
_STALLED: Final = "smsp__average_warps_issue_stalled"
_PEAK: Final = "avg.pct_of_peak_sustained"


def _operations(precision: str) -> tuple[str, ...]:
    """Metrics of additions and multiplications; those of a fused one are counted twice."""
    adds, multiplies, both = (
        f"{_THREAD_OPS}_{precision}{what}_pred_on.sum" for what in ("add", "mul", "fma")
    )
    return (adds, multiplies, both, both)


METRICS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "warp_instructions": ("smsp__inst_executed.sum",),
        "thread_instructions": ("smsp__thread_inst_executed.sum",),
        "branches": (f"{_BRANCH}_uniform.sum", f"{_BRANCH}_divergent.sum"),
        "divergent_branches": (f"{_BRANCH}_divergent.sum",),
        "shared_requests": (f"{_OPS}_shared_ld.sum", f"{_OPS}_shared_st.sum"),
        "shared_passes": (f"{_WAVEFRONTS}_ld.sum", f"{_WAVEFRONTS}_st.sum"),
        "bank_conflicts": (f"{_CONFLICTS}_ld.sum", f"{_CONFLICTS}_st.sum"),
        "local_requests": (f"{_OPS}_local_ld.sum", f"{_OPS}_local_st.sum"),
        "local_sectors": (f"{_LSU}_local_op_ld.sum", f"{_LSU}_local_op_st.sum"),
        "global_requests": (f"{_OPS}_global_ld.sum", f"{_OPS}_global_st.sum"),
        "global_sectors": (f"{_LSU}_global_op_ld.sum", f"{_LSU}_global_op_st.sum"),
        "achieved_occupancy": ("sm__warps_active.avg.pct_of_peak_sustained_active",),
        "duration_ns": ("gpu__time_duration.sum",),
        "instructions_issued": ("smsp__inst_issued.sum",),
        "branch_efficiency_percent": ("smsp__sass_average_branch_targets_threads_uniform.pct",),
        "fp32_operations": _operations("f"),
        "fp64_operations": _operations("d"),
        "fp32_thread_instructions": (f"{_THREAD_OPS}_fp32_pred_on.sum",),
        "fp64_thread_instructions": (f"{_THREAD_OPS}_fp64_pred_on.sum",),
        "integer_thread_instructions": (f"{_THREAD_OPS}_integer_pred_on.sum",),
        "dram_read_bytes": ("dram__bytes_read.sum",),
        "dram_write_bytes": ("dram__bytes_write.sum",),
        "dram_bytes": ("dram__bytes_read.sum", "dram__bytes_write.sum"),
        "l1_bytes": ("l1tex__t_bytes.sum",),
        "l2_bytes": ("lts__t_bytes.sum",),
        "l1_hit_percent": ("l1tex__t_sector_hit_rate.pct",),
        "l2_hit_percent": ("lts__t_sector_hit_rate.pct",),
        "l2_read_hit_percent": ("lts__t_sector_op_read_hit_rate.pct",),
        "global_load_misses": (f"{_LSU}_global_op_ld_lookup_miss.sum",),
        "global_load_sectors": (f"{_LSU}_global_op_ld.sum",),
        "global_store_sectors": (f"{_LSU}_global_op_st.sum",),
        "global_load_sectors_per_request": (f"{_PER_REQUEST}_ld.ratio",),
        "global_store_sectors_per_request": (f"{_PER_REQUEST}_st.ratio",),
        "global_load_efficiency_percent": (f"{_PER_SECTOR}_ld.pct",),
        "global_store_efficiency_percent": (f"{_PER_SECTOR}_st.pct",),
        "issue_percent": (f"smsp__issue_active.{_PEAK}_active",),
        "alu_pipe_percent": (f"sm__inst_executed_pipe_alu.{_PEAK}_active",),
        "fma_heavy_pipe_percent": (f"sm__inst_executed_pipe_fmaheavy.{_PEAK}_active",),
        "shared_pipe_percent": (f"l1tex__data_pipe_lsu_wavefronts.{_PEAK}_elapsed",),
        "active_lanes": ("smsp__thread_inst_executed_per_inst_executed.ratio",),
        "working_lanes": ("smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",),
        **{
            f"stalled_{why}": (f"{_STALLED}_{why}_per_issue_active.ratio",)
            for why in ("short_scoreboard", "long_scoreboard", "math_pipe_throttle", "wait")
        },
    }
)
"""Counters by the names of ``vocabulary``, each the sum of these metrics. Sources: Nsight Compute
CLI, table of nvprof metrics and their successors; atomics are not among them."""

_RATIOS: Final = {
    "lane_efficiency": ("thread_instructions", "warp_instructions", 1 / 32, 0),
    "replay_overhead_percent": ("instructions_issued", "warp_instructions", 100, -100),
    "divergent_branch_percent": ("divergent_branches", "branches", 100, 0),
    "global_load_hit_percent": ("global_load_misses", "global_load_sectors", -100, 100),
}
"""Counters that are a part of a whole, times a scale, plus an offset."""
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
    if isinstance(answer, Refused) or answer.measurement.status != "ok":
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
    for name, (part, whole, scale, offset) in _RATIOS.items():
        if found.get(whole) and part in found:
            found[name] = offset + scale * found[part] / found[whole]
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
