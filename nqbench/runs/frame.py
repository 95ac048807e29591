"""Runs as a table.

One row per record (a measurement: one point in one round). Columns:

``run study sweep workload system label``  where the point comes from; ``label`` has the levels in
                                           which it differs from others; no ``system`` where no row
                                           has one
``device device_kind simulated``           where it was measured; CPU systems say ``cpu``
``round order status reason``              0 is the verification launch, -1 a profiler's
``answer expected``                        decimal text, since answers outgrow 64-bit floats
``value_s samples ended_by``               median kernel seconds, number of samples, why it stopped
``split_s transfer_s kernel_s reduce_s total_s``  phases, seconds; a program's own follow below
``sm_mhz memory_mhz temperature_c power_mw energy_mj clock_reasons``  a GPU's state while timed
``sampled_s``  wall seconds of the timed launches with all between them, which the energy is of
counters, resources, factors, derived numbers     one column each, by their own names; of one kernel
                                                  of a program ``NAME@KERNEL``; then the metrics of
                                                  a study's own kernel
``key worker started wall_s``              identity and circumstances

A factor that is called like another column of the table (``order``, ``status``, ``registers``) has
the column ``factor_NAME``. A derived number that is called like any of them is left out.

A measurement without a time, and every wrong or failed one, keeps its row with NaN values. Rows of
an earlier version of a point (another key) and repeated measurements are left out. Counts are whole
numbers (``Int64`` where a row has none).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nqbench import expressions
from nqbench.errors import FolderRefused, StoreError, StudyError
from nqbench.facts import DeviceFacts
from nqbench.point import Point, labels
from nqbench.record import CONDITIONS, Record
from nqbench.runs.reading import current, read_manifest, read_records
from nqbench.system.files import DISK_ERRORS
from nqbench.vocabulary import COUNTERS, KERNEL_PHASES, SUMS
from nqbench.workloads import KERNEL, launch_factors, phases

if TYPE_CHECKING:
    import pandas as pd


RESOURCES: Final = ("registers", "stack_bytes", "spill_bytes", "occupancy")
"""Columns that exist even where no device reported them."""
PHASE_COLUMNS: Final = tuple(f"{phase}_s" for phase in KERNEL_PHASES)
LEADING: Final = (
    *("run", "study", "sweep", "workload", "system", "label"),
    *("device", "device_kind", "simulated", "round", "order", "status", "reason"),
    *("answer", "expected", "value_s", "samples", "sampled_s", "ended_by"),
    *PHASE_COLUMNS,
    *COUNTERS,
    *RESOURCES,
)
TRAILING: Final = ("key", "worker", "started", "wall_s")
PLAIN: Final = (
    *("device", "round", "order", "status", "reason"),
    *("answer", "expected", "value_s", "ended_by"),
)
"""Leading columns that are a record's own fields."""
RESERVED: Final = frozenset({*LEADING, *TRAILING, *CONDITIONS, "energy_mj", "clock_reasons"})
"""Columns that every table has, or every table of a GPU."""
FACTOR: Final = "factor_"


def load(runs: PathLike[str] | str | Sequence[PathLike[str] | str]) -> pd.DataFrame:
    """One or several runs as one table, a row per measurement; see :mod:`nqbench.runs.frame`.

    ``attrs["manifest"]`` is the run's manifest; for a list of runs ``attrs["manifests"]`` has those
    of all, by what the column ``run`` says. Raises ``StoreError``.
    """
    if isinstance(runs, PathLike | str):
        table = load([runs])
        (table.attrs["manifest"],) = table.attrs.pop("manifests").values()
        return table
    manifests = {fspath(run): read_manifest(Path(run)) for run in runs}
    read = ((manifests[run], Path(run)) for run in manifests)
    table = to_table([row for m, run in read for row in rows(m, read_records(run).records, run)])
    table.attrs["manifests"] = manifests
    return table


def write_csv(runs: Sequence[Path], out: Path | None) -> str:
    """Every measurement of runs as comma-separated values, also written to ``out`` if given.

    Raises ``StoreError`` for a run that cannot be read or a full disk, ``FolderRefused`` for a file
    that cannot be written.
    """
    text = str(load(runs).to_csv(index=False, lineterminator="\n"))
    if out is not None:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(text, encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            failed = StoreError if error.errno in DISK_ERRORS else FolderRefused
            raise failed(f"{out} cannot be written: {error.strerror}") from error
    return text


def json_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """An object per row of a table; what is not a number is null."""
    rows: list[dict[str, Any]] = json.loads(table.to_json(orient="records", double_precision=15))
    return rows


def rows(manifest: Mapping[str, Any], records: Iterable[Record], run: Path) -> list[dict[str, Any]]:
    """The rows of a manifest and its records, by column; ``run`` is the folder that rows name."""
    kept = current(manifest, records)
    taken = RESERVED.union(*({*_phases(r), *r.counters, *r.resources} for r in kept))
    named = point_labels(manifest)
    metrics = metrics_of(manifest["study"], manifest["device"]["facts"])
    found = []
    for record in kept:
        point = record.point
        kind = "cpu" if record.device == "cpu" else manifest["device"]["kind"]
        row = recorded(record, taken) | {
            **{name: point[name] for name in ("study", "sweep", "workload")},
            "run": str(run),
            "system": point["system"] or "",
            "label": named.get((record.key, point["sweep"]), point["label"]),
            "device_kind": kind,
            "simulated": kind == "sim",
        }
        row |= {name: value_of(row) for name, value_of in metrics.items() if name not in row}
        found.append(row)
    return found


def point_labels(manifest: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """What each planned point is called, by its key and sweep: its system or sweep, its size, and
    the levels in which it differs from others."""
    planned = manifest.get("points", ())
    named = ((p["sweep"], p.get("workload", ""), p.get("system"), p["factors"]) for p in planned)
    points = [Point("", *parts) for parts in named]
    names = labels(points, launch_factors(manifest["study"]))
    return {(p["key"], p["sweep"]): name for p, name in zip(planned, names, strict=True)}


def metrics_of(
    study: Mapping[str, Any], facts: Mapping[str, Any]
) -> dict[str, Callable[[Mapping[str, Any]], float]]:
    """The derived metrics of a recorded study's own kernel: by name what gives the value of a row
    (NaN where it has none); ``facts`` are the device's."""
    metrics = (study.get(KERNEL) or {}).get("metrics") or {}
    device = DeviceFacts.from_dict(facts) if metrics and facts else None
    return {name: partial(_derived, parse_metric(given), device) for name, given in metrics.items()}


def parse_metric(given: object) -> expressions.Expression:
    """The formula of a metric, in its short form or with more keys."""
    text = given["value"] if isinstance(given, Mapping) else given
    return expressions.parse(str(text), expressions.STUDY)


def _derived(
    parsed: expressions.Expression, device: DeviceFacts | None, row: Mapping[str, Any]
) -> float:
    """The value of a metric in one row; NaN where something that it reads was not recorded."""
    columns = {"time": "value_s", **{phase: f"{phase}_s" for phase in phases()}}
    names: dict[str, Any] = {}
    for name in parsed.names:
        parts = SUMS.get(name, (columns.get(name, name),))
        values = [row.get(part, row.get(f"{FACTOR}{name}")) for part in parts]
        if None in values:
            return math.nan
        names[name] = values[0] if len(values) == 1 else sum(values)
    try:
        found = float(expressions.value_in_study(parsed, names, device))
    except (StudyError, TypeError, ValueError, OverflowError):
        return math.nan  # a division by a counter that is 0
    return found if math.isfinite(found) else math.nan


def to_table(found: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Rows as a table, with the columns that every table has."""
    extra = dict.fromkeys(name for row in found for name in row if name not in TRAILING)
    table = table_of(found, [*dict.fromkeys((*LEADING, *extra)), *TRAILING])
    for name in ("value_s", *PHASE_COLUMNS, *COUNTERS):
        if name in PHASE_COLUMNS or table[name].dtype == object:
            table[name] = table[name].astype(float)
    table["simulated"] = table["simulated"].astype(bool)
    return table


def table_of(found: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> pd.DataFrame:
    """Rows as a table whose columns of whole numbers hold whole numbers, also where some are
    missing. A column ``system`` without any name is left out."""
    import pandas as pd

    table = pd.DataFrame(list(found), columns=list(columns) or None)
    for name in table.columns:
        cells = [v for row in found if (v := row.get(name)) is not None and v == v]
        if cells and all(type(value) is int and abs(value) < 2**63 for value in cells):
            table[name] = table[name].astype("int64" if len(cells) == len(found) else "Int64")
    if "system" in table and not any(row.get("system") for row in found):
        table = table.drop(columns="system")
    return table


def level_text(level: Any) -> Any:
    """A factor's level as one cell: ``{"per_sm": 4}`` becomes ``4/SM``."""
    if isinstance(level, Mapping):
        return f"{level['per_sm']}/SM" if "per_sm" in level else str(dict(level))
    return level


def recorded(record: Record, taken: Container[str] = RESERVED) -> dict[str, Any]:
    """One measurement by the names of the columns: all but where its point comes from.

    Factors called like one of ``taken`` are renamed, see :func:`column_of`.
    """
    row: dict[str, Any] = {
        **record.conditions(),
        "sampled_s": record.spent_s.get("sample"),
        "samples": len(record.samples_s),
        **{name: getattr(record, name) for name in (*PLAIN, *TRAILING)},
    }
    phases, counters = _phases(record), record.counters
    row |= {name: phases.get(name) for name in PHASE_COLUMNS}
    row |= {name: counters.get(name) for name in COUNTERS}
    factors = {column_of(name, taken): level for name, level in record.point["factors"].items()}
    for own in (phases, counters, factors, record.resources, record.about):
        row |= {name: level_text(value) for name, value in own.items() if name not in row}
    return row


def column_of(factor: str, taken: Container[str] = RESERVED) -> str:
    """The column of a factor, where the columns ``taken`` are not factors."""
    return f"{FACTOR}{factor}" if factor in taken or factor.startswith(FACTOR) else factor


def _phases(record: Record) -> dict[str, float]:
    return {f"{phase}_s": seconds for phase, seconds in record.phases.items()}
