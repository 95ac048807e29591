"""Rooflines as tables: the ceilings of a GPU, and the kernels under them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nqbench.analysis.limits.ceilings import Ceilings
from nqbench.analysis.limits.roofline import SIMULATED, RoofPoint
from nqbench.report.items import slug
from nqbench.report.table import Cell, Column, Source, Table

UNITS: Final = {
    "bytes": ("GB/s", 1e-9),
    "float": ("Gop/s", 1e-9),
    "integer": ("Gop/s", 1e-9),
}
LIMITS: Final = {"bytes": "memory", "float": "FP32", "integer": "INT32"}
UNSURE: Final = f"{LIMITS['bytes']}, if uncached"
SHARE_NOTE: Final = (
    "limit: which of bytes, FP32 and integer operations would take longest at their ceilings;"
    " share: that least time over the time taken"
)
INTEGER_NOTE: Final = (
    "integer operations are instructions, those of addresses and loops included; a fused"
    " multiply-add is two floating-point operations"
)
PROGRAM_NOTE: Final = (
    "kernel: of a program the one that takes most of its time, in a run told apart by phases; time:"
    " all its launches in a run, or the first where a profiler counted"
)
SIMULATED_NOTE: Final = (
    "simulated: operations of the PTX, which is not the machine code, and bytes of all off-chip"
    " accesses, as if there were no cache: `memory, if uncached` holds only as far as they reach"
    " device memory, and above 100% a cache has served them"
)


def ceilings_table(ceilings: Ceilings, source: Source) -> Table:
    """The ceilings, a row each."""
    rows = []
    for ceiling in ceilings.found.values():
        unit, scale = UNITS[ceiling.kind]
        rows.append((ceiling.name, LIMITS[ceiling.kind], ceiling.per_s.scaled(scale), unit))
    columns = (
        Column("ceiling"),
        Column("bounds"),
        Column("most", "number", spread=True),
        Column("unit"),
    )
    notes = ("The best of several sizes and launches; a copy counts bytes read and written",)
    title = f"Ceilings of {ceilings.device}"
    return Table("ceilings", title, columns, tuple(rows), source, notes)


def roofline_table(points: Sequence[RoofPoint], left_out: Sequence[str], source: Source) -> Table:
    """The kernels, a row each."""
    factors = differing(points)
    programs = any(point.kernel for point in points)
    rows = [_row(point, factors, programs=programs) for point in points]
    columns = (
        Column("system"),
        *((Column("kernel"),) if programs else ()),
        *(Column(name) for name in factors),
        Column("N", "number"),
        Column("time", "time", spread=True),
        Column("FP32 operations", "number"),
        Column("integer operations", "number"),
        Column("bytes", "number"),
        Column("operations per byte", "number"),
        Column("attained", "number", "Gop/s"),
        Column("attained", "number", "GB/s"),
        Column("limit"),
        Column("share", "number"),
        Column("counted by"),
    )
    notes = [SHARE_NOTE, INTEGER_NOTE]
    if any(point.counted_by == SIMULATED for point in points):
        notes.append(SIMULATED_NOTE)
    if programs:
        notes.append(PROGRAM_NOTE)
    if left_out:
        notes.append(f"Without known operations, left out: {'; '.join(left_out)}")
    title = "Kernels under the roofline"
    return Table(slug("roofline"), title, columns, tuple(rows), source, tuple(notes))


def _row(point: RoofPoint, factors: Sequence[str], *, programs: bool) -> tuple[Cell, ...]:
    return (
        point.system,
        *((point.kernel or "-",) if programs else ()),
        *(str(point.levels.get(name, "-")) for name in factors),
        point.n,
        point.time,
        point.work["float"],
        point.work["integer"],
        point.work["bytes"],
        point.intensity,
        point.per_s(point.operations) * 1e-9,
        point.per_s("bytes") * 1e-9,
        LIMITS[point.limit] if point.sure else UNSURE,
        point.share,
        f"{point.counted_by}; {point.bytes_of}",
    )


def differing(points: Sequence[RoofPoint]) -> list[str]:
    """Factors in which points of one system and size differ."""
    names = dict.fromkeys(name for point in points for name in point.levels)
    groups: dict[tuple[str, int], list[RoofPoint]] = {}
    for point in points:
        groups.setdefault((point.system, point.n), []).append(point)
    return [
        name
        for name in names
        if any(len({str(p.levels.get(name)) for p in group}) > 1 for group in groups.values())
    ]
