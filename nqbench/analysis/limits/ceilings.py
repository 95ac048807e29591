"""Peak rates of a GPU: measured by a run of ``configs/ceilings.yaml``, or from data sheets with the
clock that a run recorded."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

from nqbench.analysis.data.dataset import Dataset, load_dataset
from nqbench.analysis.data.estimate import Estimate, combine
from nqbench.analysis.data.quantities import TIME
from nqbench.analysis.data.select import NotMeasured
from nqbench.errors import AnalysisError
from nqbench.papers.formula import DEVICE_NUMBERS
from nqbench.runs.reading import MANIFEST

WorkKind = Literal["bytes", "float", "integer"]
"""What a kernel moves or does: bytes, floating-point or integer operations."""

_KNOWN: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
CEILINGS: Final[Mapping[str, tuple[str, WorkKind, str]]] = _KNOWN["operations"]
"""By operation of the workload ``ceilings``: name, what it bounds, what of its work counts."""
MOVED: Final = {"copy_per_s": "copy", "logic_per_s": "logic"}
"""Limits on bytes and integers by their names in formulas of papers, and the ceilings that are
taken where both were measured. Logic does not fuse two operations, as some additions do."""
STUDY: Final = "ceilings"
"""The study that measures them, and the folder of its run next to other runs."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A peak rate: bytes or operations per second. A fused multiply-add is two operations."""

    operation: str
    name: str
    kind: WorkKind
    per_s: Estimate


@dataclass(frozen=True, slots=True, eq=False)
class GpuCeilings:
    """The ceilings of one GPU, as far as they were measured."""

    device: str
    found: Mapping[str, Ceiling]

    def best(self, kind: WorkKind) -> Ceiling:
        """The highest of a kind; for bytes the copy's. Raises ``AnalysisError`` without one."""
        known = [c for c in self.found.values() if c.kind == kind and c.operation != "read"]
        if not known:
            said = f"the ceilings of {self.device} lack one for {kind}; run `nqbench run {STUDY}`"
            raise AnalysisError(said)
        return max(known, key=lambda c: c.per_s.value)


def ceilings_of(data: Dataset) -> GpuCeilings:
    """The best of each operation in a run of the workload ``ceilings``.

    Raises ``AnalysisError`` for a run without times of it.
    """
    from nqbench.workloads.ceilings import amounts

    best: dict[str, Ceiling] = {}
    for point in data.points:
        operation = str(point.levels.get("operation"))
        times_s = point.values(TIME).values() if point.ok else ()
        if operation not in CEILINGS or "steps" not in point.levels or not times_s:
            continue
        name, kind, counted = CEILINGS[operation]
        amount = amounts({**point.levels, "n": point.n})[counted]
        found = Ceiling(operation, name, kind, combine([amount / time_s for time_s in times_s]))
        if operation not in best or found.per_s.value > best[operation].per_s.value:
            best[operation] = found
    if not best:
        said = f"run {data.name!r} has no measured ceiling; run `nqbench run {STUDY}` on the GPU"
        raise AnalysisError(said)
    return GpuCeilings(data.device, {o: best[o] for o in CEILINGS if o in best})


def ceilings_beside(run: Dataset) -> GpuCeilings | None:
    """The ceilings of a run's device from the run next to it; ``None`` without one."""
    folder = run.path.resolve().parent / STUDY
    if not (folder / MANIFEST).exists():
        return None
    found = load_dataset(folder)
    return ceilings_of(found) if found.device == run.device else None


def peak_per_s(data: Dataset, what: str) -> float | None:
    """A limit of a GPU by its data sheet, per second; ``None`` where it is not known.

    ``what``  ``bytes`` of device memory, or a kind of instruction (``per_clock`` of
    ``ceilings.toml``), at the highest clock that the driver allows
    """
    identity = data.about_device("identity")
    if what == "bytes":
        name = str(identity.get("name", ""))
        return next((v for part, v in _KNOWN["bytes_per_s"].items() if part in name), None)
    clock_mhz, units = identity.get("max_sm_mhz"), data.about_device("facts").get("multiprocessors")
    of_all = _KNOWN["per_clock"][what]
    per_clock = of_all.get(str(identity.get("compute_capability")), of_all.get("any"))
    if not (per_clock and units and clock_mhz):
        return None
    return float(per_clock) * float(units) * float(clock_mhz) * 1e6


@lru_cache(maxsize=8)
def peaks(run: Dataset) -> tuple[dict[str, float], str]:
    """Peak bytes and integer operations per second of a GPU, as far as known, and where from:
    measured if a run of all ceilings of that GPU is next to the run, else from data sheets."""
    beside = ceilings_beside(run)
    if beside is not None and set(MOVED.values()) <= set(beside.found):
        found = {name: beside.found[of].per_s.value for name, of in MOVED.items()}
        return found, "measured (configs/ceilings.yaml: copy; 32-bit logic)"
    sheet = {"copy_per_s": "bytes", "logic_per_s": "int32"}
    known = {name: peak_per_s(run, what) for name, what in sheet.items()}
    return {name: value for name, value in known.items() if value}, "from the data sheet"


def device_number(data: Dataset, name: str) -> float:
    """A number of ``formula.DEVICE_NUMBERS``. Raises ``NotMeasured`` where it is not known."""
    issued, single, moved = (peak_per_s(data, what) for what in ("issued", "fp32", "bytes"))
    found = {
        "multiprocessors": data.about_device("facts").get("multiprocessors"),
        "peak_gflops_single": single and 2 * single / 1e9,
        "ideal_instruction_byte_ratio": issued and moved and issued / moved,
    }
    value: float | None = found[name]
    if not value:
        raise NotMeasured(f"the {DEVICE_NUMBERS[name]} of {data.device_short} is not known")
    return float(value)
