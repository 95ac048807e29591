"""Records: what came back for one block (one point in one round), as plain data.

A record is one line of ``records.jsonl``. It is complete by itself: the point, every sample, the
checked answer, and how it ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

from nqbench.errors import StoreError
from nqbench.record_check import record_fault
from nqbench.vocabulary import STATUSES, Status

RECORD_VERSION: Final = 1
CONDITIONS: Final = {
    "sm_mhz": "median",
    "memory_mhz": "median",
    "temperature_c": "max",
    "power_mw": "median",
}
"""Which of a block's readings of a quantity stands for it in a table."""


@dataclass(frozen=True, slots=True)
class Record:
    """One block. Times are in seconds; answers are decimal strings (64-bit and beyond).

    ``key``       identity of everything that can change the number (see ``measure.identity.keys``)
    ``point``     ``study, sweep, workload, system, label, factors``
    ``round``     0 for the verification launch, then 1, 2, ...; -1 for a profiler's launch
    ``samples_s`` every kernel time of the block, in order
    ``value_s``   their median
    ``phases``    seconds by name (``vocabulary.PHASES``)
    ``ended_by``  the clause that ended sampling
    ``telemetry`` clocks, heat, power and clock-event reasons (see ``measure.sampling.telemetry``)
    ``spent_s``   what the wall time went to (see ``measure.sampling.measurement.SPENT``)
    """

    key: str
    point: Mapping[str, Any]
    device: str
    round: int
    status: Status
    reason: str = ""
    order: int = 0
    answer: str | None = None
    expected: str | None = None
    value_s: float | None = None
    samples_s: tuple[float, ...] = ()
    phases: Mapping[str, float] = field(default_factory=dict)
    counters: Mapping[str, float] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    telemetry: Mapping[str, Any] = field(default_factory=dict)
    spent_s: Mapping[str, float] = field(default_factory=dict)
    ended_by: str = ""
    started: str = ""
    wall_s: float = 0.0
    worker: int = 0
    version: int = RECORD_VERSION

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise StoreError(f"record {self.key}: unknown status {self.status!r}")

    def conditions(self) -> dict[str, Any]:
        """The device's state while the block was timed, a number or word per name.

        Medians of the clocks (MHz) and of the power (mW), the highest temperature (Celsius), the
        energy (mJ) and the clock-event reasons; empty without telemetry.
        """
        told = self.telemetry
        found: dict[str, Any] = {}
        for name, which in CONDITIONS.items():
            if isinstance(told.get(name), Mapping):
                found[name] = told[name][which]
        if "energy_mj" in told:
            found["energy_mj"] = told["energy_mj"]
        if "clock_reasons" in told:
            found["clock_reasons"] = ", ".join(told["clock_reasons"])
        return found

    def as_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        return asdict(self) | {"samples_s": list(self.samples_s)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Record:
        """Read the plain form; refuses a record of a newer version or with unknown fields."""
        version = data.get("version", 0)
        if isinstance(version, int) and version > RECORD_VERSION:
            raise StoreError(
                f"record version {version} is newer than this nqbench reads"
                f" ({RECORD_VERSION}); update nqbench"
            )
        fault = record_fault(data)
        if fault:
            raise StoreError(
                f"record {fault}: move that line out of the file to go on with the others, its"
                " block is then measured again"
            )
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(data) - known)
        if unknown:
            raise StoreError(f"record has unknown fields: {', '.join(unknown)}")
        return cls(**{**data, "samples_s": tuple(data.get("samples_s", ()))})
