"""What Nsight Compute prints: its table read, its metrics under our names."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from nqbench.errors import DeviceError

PROGRAM: Final = "ncu"

_LSU: Final = "l1tex__t_sectors_pipe_lsu_mem"
_WAVEFRONTS: Final = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op"
_CONFLICTS: Final = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op"
_OPS: Final = "smsp__inst_executed_op"
_BRANCH: Final = "smsp__sass_branch_targets_threads"

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
    }
)
"""Counters by the names of ``vocabulary``, each the sum of these metrics. Sources: Nsight Compute
CLI, table of nvprof metrics and their successors; atomics are not among them."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Metrics of one launch by the profiler's names, and the kernel that they are of."""

    kernel: str
    metrics: Mapping[str, float]


def read_csv(text: str) -> Profile:
    """The first launch in what ``ncu --csv`` prints, from either of its pages.

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
    rows = [row for row in csv.DictReader(table) if row["ID"]]  # the line of units has no ID
    if not rows:
        raise DeviceError(f"{PROGRAM} saw no launch; {complaint(text)}")
    launch = [row for row in rows if row["ID"] == rows[0]["ID"]]
    if "Metric Name" in launch[0]:
        cells = {row["Metric Name"]: row["Metric Value"] for row in launch}
    else:
        cells = {name: cell for name, cell in launch[0].items() if "__" in name}
    return Profile(launch[0]["Kernel Name"], dict(_numbers(cells)))


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
    if found.get("branches"):
        found["divergent_branch_percent"] = 100 * found["divergent_branches"] / found["branches"]
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
