"""Records: what came back for one measurement (one point in one round), as plain data.

A record is one line of ``records.jsonl``. It is complete by itself: the point, every sample, the
checked answer, and how it ended. A file that was edited, merged or partly recovered may be valid
JSON and still hold a word where a time belongs. Reading it reports the field and the value; later
it would become a wrong number or a traceback.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, NotRequired, get_type_hints

from annotated_types import Ge, Le
from typing_extensions import TypedDict  # what pydantic takes before Python 3.12

from nqbench.errors import NewerRecord, StoreError
from nqbench.vocabulary import MEASURED, STATUSES, Status

if TYPE_CHECKING:
    from pydantic import TypeAdapter

RECORD_VERSION: Final = 1
CONDITIONS: Final = {
    "sm_mhz": "median",
    "memory_mhz": "median",
    "temperature_c": "max",
    "power_mw": "median",
}
"""The statistic of a measurement's readings that tables show."""
LONGEST_S: Final = 1e9
"""Thirty years: no launch takes longer, and ratios of such times stay finite."""
SHOWN: Final = 40
"""Characters of a wrong value that a message repeats."""
RENAMED: Final = MappingProxyType({"held_samples": "blocked_samples"})
"""Names in ``about`` of earlier records, and what they are called now."""


# Forms of JSON data, checked by pydantic strictly: text is never taken for a number.

Seconds = Annotated[float, Ge(0), Le(LONGEST_S)]
"""Finite and not negative; a coarse clock may give 0."""
MOST_ROUNDS: Final = 1_000_000
"""Far more than a run has: `verify` looks for each round up to the last."""
Number = int | Annotated[float, Ge(-sys.float_info.max), Le(sys.float_info.max)]
"""Finite: an infinity or NaN would spoil every sum."""
Scalar = bool | int | float | str | None


class PerSm(TypedDict):
    """``{"per_sm": k}``."""

    __pydantic_config__ = {"strict": True, "extra": "forbid"}  # type: ignore[misc]  # noqa: RUF012
    per_sm: int


class OpenForm(TypedDict):
    """A form that may have further fields."""

    __pydantic_config__ = {"strict": True, "extra": "allow"}  # type: ignore[misc]  # noqa: RUF012


LevelsJson = dict[str, Scalar | PerSm]


class PointJson(OpenForm):
    """A point in a record."""

    study: str
    sweep: str
    workload: str
    system: str | None
    label: str
    factors: LevelsJson


class Range(OpenForm):
    """A sensor's readings of one quantity during a measurement."""

    min: Number
    median: Number
    max: Number


TelemetryJson = dict[str, Range | list[str] | bool | int | float | str]


@dataclass(frozen=True, slots=True)
class Record:
    """One measurement. Times are in seconds; answers are decimal strings (64-bit and beyond).

    ``key``       identity of everything that can change the number (see ``measure.keys``)
    ``point``     ``study, sweep, workload, system, label, factors``
    ``round``     0 for the verification launch, then 1, 2, ...; -1 for a profiler's launch
    ``samples_s`` every kernel time, in order
    ``value_s``   their median
    ``phases``    seconds by name (``vocabulary.PHASES``)
    ``ended_by``  the clause that ended sampling
    ``telemetry`` clocks, heat, power and clock-event reasons (see ``measure.telemetry``)
    ``spent_s``   what the wall time went to (see ``vocabulary.SPENT``)

    The second type of an ``Annotated`` field is its form in JSON.
    """

    key: str
    point: Annotated[Mapping[str, Any], PointJson]
    device: str
    round: Annotated[int, Annotated[int, Ge(-1), Le(MOST_ROUNDS)]]
    status: Annotated[Status, str]
    reason: str = ""
    order: int = 0
    answer: str | None = None
    expected: str | None = None
    value_s: Annotated[float | None, Seconds | None] = None
    samples_s: Annotated[tuple[float, ...], list[Seconds]] = ()
    phases: Annotated[Mapping[str, float], dict[str, Seconds]] = field(default_factory=dict)
    counters: Annotated[Mapping[str, float], dict[str, Number]] = field(default_factory=dict)
    resources: Annotated[Mapping[str, Any], dict[str, Scalar]] = field(default_factory=dict)
    about: Annotated[Mapping[str, Any], dict[str, Scalar]] = field(default_factory=dict)
    telemetry: Annotated[Mapping[str, Any], TelemetryJson] = field(default_factory=dict)
    spent_s: Annotated[Mapping[str, float], dict[str, Seconds]] = field(default_factory=dict)
    ended_by: str = ""
    started: str = ""
    wall_s: Annotated[float, Seconds] = 0.0
    worker: int = 0
    version: int = RECORD_VERSION

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise NewerRecord(
                f"record {self.key}: unknown status {self.status!r}; a newer nqbench may know it"
            )

    @property
    def measured(self) -> bool:
        """Whether it ended with a time or counters that count."""
        return self.status in MEASURED

    def conditions(self) -> dict[str, Any]:
        """The device's state while it was timed, a number or word per name.

        Medians of the clocks (MHz) and of the power (mW), the highest temperature (Celsius), the
        energy (mJ) and the clock-event reasons; empty without telemetry.
        """
        readings = self.telemetry
        found: dict[str, Any] = {}
        for name, which in CONDITIONS.items():
            if isinstance(readings.get(name), Mapping):
                found[name] = readings[name][which]
        if "energy_mj" in readings:
            found["energy_mj"] = readings["energy_mj"]
        if "clock_reasons" in readings:
            found["clock_reasons"] = ", ".join(readings["clock_reasons"])
        return found

    def as_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        return asdict(self) | {"samples_s": list(self.samples_s)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Record:
        """Read the plain form.

        Raises ``NewerRecord`` for one of a newer version, ``StoreError`` for unknown fields, or a
        value that the field cannot have.
        """
        version = data.get("version", 0)
        if isinstance(version, int) and version > RECORD_VERSION:
            raise NewerRecord(
                f"record version {version} is newer than this nqbench reads"
                f" ({RECORD_VERSION}); update nqbench"
            )
        fault = fault_of(record_form(), data)
        reasons = [] if fault else data.get("telemetry", {}).get("clock_reasons", [])
        if not isinstance(reasons, list):
            fault = not_a(("telemetry", "clock_reasons"), reasons, "should be a valid list")
        if fault:
            raise StoreError(f"record {fault}")
        about = {RENAMED.get(name, name): value for name, value in data.get("about", {}).items()}
        samples = tuple(data.get("samples_s", ()))
        return cls(**{**data, "samples_s": samples, "about": about})


@cache
def record_form() -> Any:
    """The form of a record: its fields, of which those with defaults may be missing."""
    hints = get_type_hints(Record, include_extras=True)
    members = {name: getattr(hint, "__metadata__", [hint])[0] for name, hint in hints.items()}
    for one in fields(Record):
        if one.default is not MISSING or one.default_factory is not MISSING:
            members[one.name] = NotRequired[members[one.name]]
    form = TypedDict("RecordJson", members)  # type: ignore[misc]  # they are not known before
    form.__pydantic_config__ = {"strict": True, "extra": "forbid"}  # type: ignore[attr-defined]
    return form


def fault_of(form: type, data: object) -> str:
    """What is wrong with JSON data of a form, as the end of a sentence; empty if nothing is."""
    from pydantic import ValidationError

    try:
        _adapter(form).validate_python(data)
    except ValidationError as error:
        found = error.errors(include_url=False)
    else:
        return ""
    *above, last = found[0]["loc"]
    # A location ends with members of a union, none of which fits; they are not in the data.
    path: list[int | str] = []
    value: Any = data
    for step in found[0]["loc"]:
        try:
            value = value[step]
        except (TypeError, LookupError):
            break
        path.append(step)
    if found[0]["type"] == "missing" and path == above:
        return f"lacks {_name([*path, last])}"
    if found[0]["type"] == "extra_forbidden" and not above:
        return f"has unknown fields: {', '.join(str(one['loc'][-1]) for one in found)}"
    rule = found[0]["msg"].removeprefix("Input ")
    return not_a(path, value, rule if rule.startswith("should") else "does not belong there")


@cache
def _adapter(form: type) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(form)


def not_a(path: Sequence[int | str], value: object, rule: str) -> str:
    """The end of a sentence: the value at a path breaks a rule (``should be a valid number``)."""
    text = repr(value)
    shown = text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
    return f"has {_name(path)} {shown}, which {rule}"


def _name(path: Sequence[int | str]) -> str:
    """A path in short form: ``points[1].factors.n``."""
    return "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in path).removeprefix(".")
