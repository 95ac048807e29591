"""A run as a table.

One row per record (a block: one point in one round). Columns:

``run study sweep workload system label``  where the point comes from (``system`` is "" if none)
``device device_kind simulated``           where the block ran; CPU baselines say ``cpu``
``round order status reason``              0 is the verification launch, -1 a profiler's
``answer expected``                        decimal text, since answers outgrow 64-bit floats
``value_s samples ended_by``               median kernel seconds, number of samples, why it stopped
``split_s transfer_s kernel_s reduce_s total_s``  phases, seconds; a program's own follow below
``sm_mhz memory_mhz temperature_c power_mw energy_mj clock_reasons``  a GPU's state while timed
counters, resources, factors, derived numbers     one column each, by their own names; of one kernel
                                                  of a program ``NAME@KERNEL``
``key worker started wall_s``              identity and circumstances

A block without a time, and every wrong or failed one, keeps its row with NaN values. Rows of an
earlier version of a point (another key) and blocks that were measured again are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nqbench.record import Record
from nqbench.runs.reading import current, read_manifest, read_records
from nqbench.vocabulary import COUNTERS, KERNEL_PHASES

if TYPE_CHECKING:
    import pandas as pd

RESOURCES: Final = ("registers", "stack_bytes", "spill_bytes", "occupancy")
"""Columns that exist even where no device reported them."""
PHASE_COLUMNS: Final = tuple(f"{phase}_s" for phase in KERNEL_PHASES)
LEADING: Final = (
    *("run", "study", "sweep", "workload", "system", "label"),
    *("device", "device_kind", "simulated", "round", "order", "status", "reason"),
    *("answer", "expected", "value_s", "samples", "ended_by"),
    *PHASE_COLUMNS,
    *COUNTERS,
    *RESOURCES,
)
TRAILING: Final = ("key", "worker", "started", "wall_s")
RENAMED: Final = {"held_samples": "blocked_samples"}
"""Old names of numbers in records."""


def frame(run: Path) -> pd.DataFrame:
    """The table of one run folder; ``attrs["manifest"]`` is its manifest. Raises ``StoreError``."""
    manifest = read_manifest(run)
    found = read_records(run)
    table = tabulate(manifest, found.records, run)
    table.attrs["messages"] = [m for m in (found.message(),) if m]
    return table


def tabulate(manifest: Mapping[str, Any], records: Iterable[Record], run: Path) -> pd.DataFrame:
    """The table of a manifest and its records; ``run`` is the folder that rows name."""
    import pandas as pd

    rows = [_row(run, manifest, record) for record in current(manifest, records)]
    extra = dict.fromkeys(name for row in rows for name in row)
    names = [n for n in (*LEADING, *extra, *TRAILING) if n not in TRAILING]
    columns = [*dict.fromkeys(names), *TRAILING]
    table = pd.DataFrame(rows, columns=columns)
    numeric = ["value_s", *PHASE_COLUMNS, *COUNTERS]
    table[numeric] = table[numeric].astype(float)
    table["simulated"] = table["simulated"].astype(bool)
    table.attrs["manifest"] = manifest
    return table


def level_text(level: Any) -> Any:
    """A factor's level as one cell: ``{"per_sm": 4}`` becomes ``4/SM``."""
    if isinstance(level, Mapping):
        return f"{level['per_sm']}/SM" if "per_sm" in level else str(dict(level))
    return level


def recorded(record: Record) -> dict[str, Any]:
    """One measurement by the names of the columns: all but where its point comes from."""
    row: dict[str, Any] = {
        "device": record.device,
        "round": record.round,
        "order": record.order,
        "status": record.status,
        "reason": record.reason,
        "answer": record.answer,
        "expected": record.expected,
        "value_s": record.value_s,
        "samples": len(record.samples_s),
        "ended_by": record.ended_by,
        "key": record.key,
        "worker": record.worker,
        "started": record.started,
        "wall_s": record.wall_s,
    }
    row |= {f"{phase}_s": record.phases.get(phase) for phase in KERNEL_PHASES}
    phases = {f"{phase}_s": seconds for phase, seconds in record.phases.items()}
    row |= {name: seconds for name, seconds in phases.items() if name not in row}
    row |= {name: record.counters.get(name) for name in COUNTERS}
    row |= {name: value for name, value in record.counters.items() if name not in row}
    about = {RENAMED.get(name, name): value for name, value in record.about.items()}
    # A factor or number must not replace a column that tells what the row is.
    for source in (record.point["factors"], record.resources, about):
        row |= {name: level_text(value) for name, value in source.items() if name not in row}
    return {**record.conditions(), **row}


def _row(run: Path, manifest: Mapping[str, Any], record: Record) -> dict[str, Any]:
    point = record.point
    kind = "cpu" if record.device == "cpu" else manifest["device"]["kind"]
    return recorded(record) | {
        "run": str(run),
        "study": point["study"],
        "sweep": point["sweep"],
        "workload": point["workload"],
        "system": point["system"] or "",
        "label": point["label"],
        "device_kind": kind,
        "simulated": kind == "sim",
    }
