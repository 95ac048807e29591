"""What Nsight Compute prints: its table read, its metrics under our names."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from nqbench.errors import DeviceError
from nqbench.vocabulary import of_kernel

PROGRAM: Final = "ncu"

_LSU: Final = "l1tex__t_sectors_pipe_lsu_mem"
_WAVEFRONTS: Final = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op"
_CONFLICTS: Final = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op"
_OPS: Final = "smsp__inst_executed_op"
_BRANCH: Final = "smsp__sass_branch_targets_threads"
_THREAD_OPS: Final = "smsp__sass_thread_inst_executed_op"
_PER_SECTOR: Final = "smsp__sass_average_data_bytes_per_sector_mem_global_op"
_PER_REQUEST: Final = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op"


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
    }
)
"""Counters by the names of ``vocabulary``, each the sum of these metrics. Sources: Nsight Compute
CLI, table of nvprof metrics and their successors; atomics are not among them."""

_RATES: Final = ("fp32_operations", "fp64_operations", "dram_read_bytes", "dram_write_bytes")
"""Counters that are also given per second of the profiled launch."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Metrics of one launch by the profiler's names, and the kernel that they are of."""

    kernel: str
    metrics: Mapping[str, float]


def read_csv(text: str) -> Profile:
    """The first launch in what ``ncu --csv`` prints; see :func:`read_launches`."""
    return read_launches(text)[0]


def read_launches(text: str) -> list[Profile]:
    """Every launch in what ``ncu --csv`` prints, from either of its pages; at least one.

    ``--page raw``: a line of names, a line of units, a line per launch with a column per metric;
    the details page: a line per launch and metric. Lines of the profiler's own (``==PROF==``) and
    of the program may stand around them. Numbers may have thousands separators; what is not a
    number (``n/a``, ``nan``) is left out. Raises ``DeviceError`` where there is no launch.
    """
    lines = text.splitlines()
    starts = (i for i, line in enumerate(lines) if line.startswith('"ID",'))
    first = next(starts, None)
    if first is None:
        raise DeviceError(f"{PROGRAM} printed no table; {complaint(text)}")
    table = io.StringIO("\n".join(line for line in lines[first:] if line.startswith('"')))
    launches: dict[str, list[dict[str, str]]] = {}
    for row in csv.DictReader(table):
        if row["ID"]:  # the line of units has none
            launches.setdefault(row["ID"], []).append(row)
    if not launches:
        raise DeviceError(f"{PROGRAM} saw no launch; {complaint(text)}")
    return [_profile(rows) for rows in launches.values()]


def _profile(rows: Sequence[Mapping[str, str]]) -> Profile:
    """One launch, from its lines of the table."""
    if "Metric Name" in rows[0]:
        cells = {row["Metric Name"]: row["Metric Value"] for row in rows}
    else:
        cells = {name: cell for name, cell in rows[0].items() if "__" in name}
    return Profile(rows[0]["Kernel Name"], dict(_numbers(cells)))


def counters_of(metrics: Mapping[str, float]) -> dict[str, float]:
    """Counters by our names; one that needs a metric which is missing is left out."""
    found = {
        name: sum(metrics[part] for part in parts)
        for name, parts in METRICS.items()
        if all(part in metrics for part in parts)
    }
    if "achieved_occupancy" in found:
        found["achieved_occupancy"] /= 100
    if found.get("warp_instructions") and "thread_instructions" in found:
        lanes = 32 * found["warp_instructions"]
        found["lane_efficiency"] = found["thread_instructions"] / lanes
    if found.get("warp_instructions") and "instructions_issued" in found:
        issued = found["instructions_issued"] / found["warp_instructions"]
        found["replay_overhead_percent"] = 100 * (issued - 1)
    if found.get("branches"):
        found["divergent_branch_percent"] = 100 * found["divergent_branches"] / found["branches"]
    if found.get("global_load_sectors") and "global_load_misses" in found:
        missed = found["global_load_misses"] / found["global_load_sectors"]
        found["global_load_hit_percent"] = 100 * (1 - missed)
    if found.get("duration_ns"):
        seconds = found["duration_ns"] / 1e9
        found |= {f"{name}_per_s": found[name] / seconds for name in _RATES if name in found}
    return found


def counters_by_kernel(profiles: Sequence[Profile], kernels: Sequence[str]) -> dict[str, float]:
    """Counters of a program's kernels, named ``NAME@KERNEL``.

    ``kernels`` names the launches of ``profiles`` in their order. Raises ``DeviceError`` if the
    profiler saw another number of them.
    """
    if len(profiles) != len(kernels):
        raise DeviceError(
            f"{PROGRAM} saw {len(profiles)} launches ({', '.join(p.kernel for p in profiles)})"
            f" where the program marked {len(kernels)} ({', '.join(kernels)})"
        )
    found: dict[str, float] = {}
    for name, profile in zip(kernels, profiles, strict=True):
        one = counters_of(profile.metrics)
        found |= {of_kernel(counter, name): value for counter, value in one.items()}
    return found


def _numbers(cells: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    for name, cell in cells.items():
        try:
            number = float(cell.replace(",", ""))
        except ValueError:
            continue
        if math.isfinite(number):
            yield name, number


def complaint(text: str) -> str:
    """What the profiler complains of, or the last that was said."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("==ERROR==")]
    said = (errors or lines or ["nothing"])[-1]
    return f"it said: {said.removeprefix('==ERROR==').strip()}"
