"""Records: what came back for one measurement (one point in one round), as plain data.

A record is one line of ``records.jsonl``. It is complete by itself: the point, every sample, the
checked answer, and how it ended. A file that was edited, merged or partly recovered may be valid
JSON and still hold a word where a time belongs. Reading it reports the field and the value; later
it would become a wrong number or a traceback.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Required, get_type_hints

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
SHORTEST_S: Final = 1e-18
"""A billionth of a clock: what is shorter and not 0 was not measured."""
MOST: Final = 10**100
"""Far more than any count, size or seed; sums, products and ratios of such numbers stay finite."""
BOUNDS: Final = ("greater_than_equal", "less_than_equal")
"""Errors of pydantic: the type is right, the number is not."""
SHOWN: Final = 40
"""Characters of a wrong value that a message repeats."""
RENAMED: Final = MappingProxyType({"held_samples": "blocked_samples"})
"""Names in ``about`` of earlier records, and what they are called now."""


# Forms of JSON data, checked by pydantic strictly: text is never taken for a number.

Seconds = Annotated[float, Ge(SHORTEST_S), Le(LONGEST_S)] | Annotated[float, Ge(0), Le(0)]
"""A coarse clock may give 0."""
MOST_ROUNDS: Final = 1_000_000
"""Far more than a run has: `verify` looks for each round up to the last."""
Whole = Annotated[int, Ge(-MOST), Le(MOST)]
Number = Whole | Annotated[float, Ge(-float(MOST)), Le(float(MOST))]
"""Finite: an infinity or NaN would spoil every sum."""
Scalar = bool | Number | str | None
Json: Any = dict
Rows: Any = list
"""Builtin containers of forms that are made below, which a type checker cannot follow."""


def form(extra: str = "allow", /, **members: Any) -> Any:
    """An object's form: its fields by name, those that are not ``Required`` may be missing."""
    made = TypedDict("Form", members, total=False)  # type: ignore[misc]  # they are not known before
    made.__pydantic_config__ = {"strict": True, "extra": extra}  # type: ignore[attr-defined]
    return made


LEVELS: Final = Json[str, Scalar | form("forbid", per_sm=Required[Annotated[int, Ge(1), Le(MOST)]])]
POINT: Final = form(
    **dict.fromkeys(("study", "sweep", "workload", "label"), Required[str]),
    system=Required[str | None],
    factors=Required[LEVELS],
)
READINGS: Final = form(min=Required[Number], median=Required[Number], max=Required[Number])
"""A sensor's readings of one quantity during a measurement."""


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
    point: Annotated[Mapping[str, Any], POINT]
    device: str
    round: Annotated[int, Annotated[int, Ge(-1), Le(MOST_ROUNDS)]]
    status: Annotated[Status, str]
    reason: str = ""
    order: Annotated[int, Whole] = 0
    answer: str | None = None
    expected: str | None = None
    value_s: Annotated[float | None, Seconds | None] = None
    samples_s: Annotated[tuple[float, ...], list[Seconds]] = ()
    phases: Annotated[Mapping[str, float], dict[str, Seconds]] = field(default_factory=dict)
    counters: Annotated[Mapping[str, float], dict[str, Number]] = field(default_factory=dict)
    resources: Annotated[Mapping[str, Any], dict[str, Scalar]] = field(default_factory=dict)
    about: Annotated[Mapping[str, Any], dict[str, Scalar]] = field(default_factory=dict)
    telemetry: Annotated[
        Mapping[str, Any], Json[str, READINGS | list[str] | bool | Number | str]
    ] = field(default_factory=dict)
    spent_s: Annotated[Mapping[str, float], dict[str, Seconds]] = field(default_factory=dict)
    ended_by: str = ""
    started: str = ""
    wall_s: Annotated[float, Seconds] = 0.0
    worker: Annotated[int, Whole] = 0
    version: int = RECORD_VERSION

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            said = f"record {self.key}: unknown status {self.status!r}; a newer nqbench may know it"
            raise NewerRecord(said)

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
        fault = fault_of(record_form(), data) or size_fault(("point",), data["point"])
        reasons = [] if fault else data.get("telemetry", {}).get("clock_reasons", [])
        if not isinstance(reasons, list):
            fault = not_a(("telemetry", "clock_reasons"), reasons, "should be a valid list")
        if fault:
            raise StoreError(f"record {fault}")
        about = {RENAMED.get(name, name): value for name, value in data.get("about", {}).items()}
        return cls(**{**data, "samples_s": tuple(data.get("samples_s", ())), "about": about})


@cache
def record_form() -> Any:
    """The form of a record: its fields, of which those with defaults may be missing."""
    hints = get_type_hints(Record, include_extras=True)
    members = {name: getattr(hint, "__metadata__", [hint])[0] for name, hint in hints.items()}
    needed = {f.name for f in fields(Record) if f.default is f.default_factory is MISSING}
    return form("forbid", **members | {name: Required[members[name]] for name in needed})


def fault_of(form: type, data: object) -> str:
    """What is wrong with JSON data of a form, as the end of a sentence; empty if nothing is."""
    from pydantic import ValidationError

    try:
        _adapter(form).validate_python(data)
        return ""
    except ValidationError as error:
        # A member of a union whose type fits says more than those before it.
        found = sorted(error.errors(include_url=False), key=lambda e: e["type"] not in BOUNDS)
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
    rule = found[0]["msg"].removeprefix("Input ").replace(str(MOST), "1e100")
    return not_a(path, value, rule if rule.startswith("should") else "does not belong there")


def size_fault(path: Sequence[int | str], point: Mapping[str, Any]) -> str:
    """What is wrong with the size of a point at a path, as the end of a sentence."""
    size = point["factors"].get("n")
    whole = isinstance(size, int) and not isinstance(size, bool)
    rule = "should be a whole number from 0 to 2**63 - 1"
    return "" if whole and 0 <= size < 2**63 else not_a((*path, "factors", "n"), size, rule)


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
