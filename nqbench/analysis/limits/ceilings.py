"""The measured ceilings of a GPU: the most it can do, out of a run of ``configs/ceilings.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import TIME
from nqbench.errors import AnalysisError

Kind = Literal["bytes", "float", "integer"]

CEILINGS: Final[Mapping[str, tuple[str, Kind, str]]] = {
    "copy": ("copy in device memory", "bytes", "bytes_moved"),
    "read": ("reads from L2", "bytes", "bytes_moved"),
    "fma": ("FP32 multiply-add", "float", "float_operations"),
    "float_add": ("FP32 add", "float", "float_operations"),
    "int_add": ("INT32 add", "integer", "integer_operations"),
    "logic": ("32-bit logic", "integer", "integer_operations"),
}
"""By operation of the workload ``ceilings``: name, what it bounds, what of its work counts."""
STUDY: Final = "configs/ceilings.yaml"
FOLDER: Final = "ceilings"
"""Name of that study, and so of its run's folder beside those of other studies."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most of something per second: bytes or operations. A fused multiply-add is two."""

    operation: str
    name: str
    kind: Kind
    per_s: Estimate


@dataclass(frozen=True, slots=True, eq=False)
class Ceilings:
    """The ceilings of one GPU, as far as they were measured."""

    device: str
    found: Mapping[str, Ceiling]

    def best(self, kind: Kind) -> Ceiling:
        """The bound of a kind: of bytes that of the copy. Raises ``AnalysisError`` without one."""
        known = [c for c in self.found.values() if c.kind == kind and c.operation != "read"]
        if not known:
            raise AnalysisError(
                f"the ceilings of {self.device} lack one for {kind}; run `nqbench run {STUDY}`"
            )
        return max(known, key=lambda c: c.per_s.value)


def ceilings_of(data: Dataset) -> Ceilings:
    """The best of each operation in a run of the workload ``ceilings``.

    Raises ``AnalysisError`` for a run without times of it.
    """
    from nqbench.workloads.ceilings import amounts

    best: dict[str, Ceiling] = {}
    for point in data.points:
        operation = str(point.levels.get("operation"))
        time = point.estimate(TIME) if point.ok else None
        if operation not in CEILINGS or "steps" not in point.levels or time is None:
            continue
        name, kind, counted = CEILINGS[operation]
        amount = amounts({**point.levels, "n": point.n})[counted]
        found = Ceiling(operation, name, kind, time.inverse().scaled(amount))
        if operation not in best or found.per_s.value > best[operation].per_s.value:
            best[operation] = found
    if not best:
        raise AnalysisError(
            f"run {data.name!r} holds no measured ceiling; run `nqbench run {STUDY}` on the GPU"
        )
    return Ceilings(data.device, {o: best[o] for o in CEILINGS if o in best})


def ceilings_beside(run: Path, device: str) -> Ceilings | None:
    """Those measured on ``device`` in the folder beside that of ``run``; ``None`` without them."""
    from nqbench.analysis.data.collect import load_dataset
    from nqbench.runs.folder import MANIFEST

    folder = run.resolve().parent / FOLDER
    if not (folder / MANIFEST).exists():
        return None
    found = load_dataset(folder)
    return ceilings_of(found) if found.device == device else None
