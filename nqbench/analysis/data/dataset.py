"""A run as it was read: its manifest, the records that count, and its points with their results.

records (runs) -> Dataset (collect) -> PointResult -> Estimate
"""

from __future__ import annotations

import math
import re
import statistics
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

from nqbench import workloads
from nqbench.analysis.data.estimate import EVENT_STEP_S, Estimate, combine
from nqbench.analysis.data.quantities import (
    CPU_TIME,
    SHOWN_COUNTERS,
    TIME,
    Quantity,
    metrics_of,
    quantity,
)
from nqbench.errors import StudyError
from nqbench.facts import FAKE_NAME
from nqbench.record import Record
from nqbench.runs.frame import recorded
from nqbench.runs.reading import current, read_manifest, read_records
from nqbench.system.files import shown_command
from nqbench.system.suggest import many
from nqbench.vocabulary import ERRORS, MEASURED

if TYPE_CHECKING:
    from nqbench.papers.schema import Paper

Row = Mapping[str, Any]
EVENT_DEVICES: Final = ("cuda", "nvbench")
"""Devices whose kernel times come from CUDA events."""
Level = int | float | str
INAPPLICABLE: Final = "-"
"""Level of a factor that does not apply to a system (the padding of registers)."""
_MAKERS: Final = re.compile(r"\b(nvidia|geforce|tesla|quadro|gainward)\b", re.IGNORECASE)
_MEMORY: Final = re.compile(r"\s+\d+\s?GB\b.*$")


def chip(name: str) -> str:
    """A GPU's name without maker, family and memory: ``NVIDIA GeForce GTX480`` → ``GTX 480``."""
    bare = _MEMORY.sub("", _MAKERS.sub("", name))
    return " ".join(re.sub(r"\bGTX(?=\d)", "GTX ", bare).split()) or name


@dataclass(frozen=True, slots=True, eq=False)
class PointResult:
    """One point with its results.

    ``key``     identity of what was measured: sweeps that hold the same point share it
    ``levels``  every factor that applies, ``n`` excluded
    ``cpu``     the point ran on the CPU: a baseline, timed also in a simulated run
    ``timed``   its measurements carry times (a simulated kernel's carry counters only)
    ``status``  a word of ``vocabulary.STATUSES``, or ``unfinished`` (verified or planned only)
    ``measurements``  those that count, by round, as rows; empty unless ``status`` is ``ok``
    ``borrowed``  from a baseline's run: its rounds are not those of the points beside it
    ``first_s`` kernel seconds of the launch that verified it, where that was recorded
    """

    sweep: str
    system: str
    n: int
    levels: Mapping[str, Level]
    cpu: bool
    timed: bool
    status: str
    reason: str
    measurements: Mapping[int, Mapping[str, Any]]
    borrowed: bool = False
    first_s: float | None = None
    key: str = ""

    @property
    def name(self) -> str:
        """Its system, or its sweep where it has none."""
        return self.system or self.sweep

    @property
    def ok(self) -> bool:
        """Whether the point may be plotted and compared."""
        return self.status in MEASURED

    def level(self, factor: str) -> Level:
        """Level of a factor, ``system`` and ``n`` included; ``-`` where it does not apply."""
        if factor == "system":
            return self.system or INAPPLICABLE
        return self.n if factor == "n" else self.levels.get(factor, INAPPLICABLE)

    def values(self, what: Quantity) -> dict[int, float]:
        """Value of each round that has one. A time exists only where time was measured; a measured
        metric below 0 has no ratio to another, and is none."""
        if what.kind == "time" and not self.timed:
            return {}
        if what.exact and (self.cpu or self.timed) and what.name not in ERRORS:
            return {}
        found = {r: what.of(row) for r, row in sorted(self.measurements.items())}
        return {r: v for r, v in found.items() if math.isfinite(v) and (v >= 0 or what.exact)}

    def estimate(self, what: Quantity) -> Estimate | None:
        """Value with its interval over the rounds, or ``None`` where nothing was recorded. Of
        errors it is the largest."""
        values = list(self.values(what).values())
        if what.name in ERRORS:
            values.sort(reverse=True)
        return combine(values, exact=what.exact) if values else None

    def value(self, what: Quantity) -> float:
        """The value alone; NaN where nothing was recorded."""
        found = self.estimate(what)
        return math.nan if found is None else found.value

    def detail(self, column: str) -> Any:
        """A recorded fact of the point (registers, jobs, ...), or ``None``."""
        for row in self.measurements.values():
            value = row.get(column)
            if not missing(value):
                return value
        return None


@dataclass(frozen=True, eq=False)
class Dataset:
    """A run: its folder, its manifest, and one :class:`PointResult` per point, in the order of the
    study ``name``.

    ``records``   those that count
    ``probes``    what instrumented kernels counted, as rows of the run's frame without times
    ``profiles``  likewise what a profiler counted
    ``baseline``  the run whose CPU programs stand in the place of its own
    ``modelled``  whether its times are a model's (``for_papers.modelled``)
    ``again``     runs of other GPUs of the same model
    """

    name: str
    manifest: Row
    points: tuple[PointResult, ...]
    rounds: int
    path: Path = Path("run")
    records: Sequence[Record] = ()
    probes: Sequence[Row] = ()
    profiles: Sequence[Row] = ()
    baseline: Dataset | None = None
    modelled: bool = False
    again: Sequence[Dataset] = ()

    @property
    def throttled(self) -> list[Record]:
        """The measurements in which the GPU slowed itself."""
        return [record for record in self.records if record.status == "throttled"]

    @cached_property
    def older_than(self) -> list[str]:
        """What has changed since in what its workload measures (``workloads/changes.toml``)."""
        file = Path(workloads.__file__).with_name("changes.toml")
        known = tomllib.loads(file.read_text(encoding="utf-8"))
        made = datetime.fromisoformat(self.manifest.get("created") or "9999-12-31T00:00:00+00:00")
        changes = [] if self.simulated else known.get(str(self.study.get("workload")), [])
        systems = {None, *(point.system for point in self.points)}
        own = [change for change in changes if change.get("system") in systems]
        return [change["what"] for change in own if made < change["at"]]

    @property
    def event_step_s(self) -> float:
        """Resolution in seconds of the clock behind kernel times."""
        return EVENT_STEP_S if self.spec.partition(":")[0] in EVENT_DEVICES else 0.0

    @cached_property
    def simulated(self) -> bool:
        """Whether kernels were simulated: counters, not times."""
        return self._device.get("kind") == "sim" and not self.programs_only

    @cached_property
    def programs_only(self) -> bool:
        """Whether every point is a program on the CPU, whatever the device of the run."""
        return bool(self.points) and all(p.cpu for p in self.points)

    def about_device(self, part: str) -> Mapping[str, Any]:
        """What the manifest has on the device: its ``identity`` (name, compute capability, clocks),
        its ``facts`` (what studies may ask for), its ``host``; empty if nothing."""
        found: Mapping[str, Any] = self._device.get(part) or {}
        return found

    @property
    def _device(self) -> Mapping[str, Any]:
        device: Mapping[str, Any] = self.manifest.get("device", {})
        return device

    @property
    def spec(self) -> str:
        """The device as the command line calls it."""
        return str(self._device.get("spec", ""))

    @cached_property
    def device(self) -> str:
        """Device for people: its name and how the command line calls it."""
        if self.programs_only:
            return self.host_cpu
        spec = self.spec or "unknown device"
        identity, facts = self.about_device("identity"), self.about_device("facts")
        name = identity.get("name") or facts.get("name") or identity.get("cpu") or ""
        if several := len(self.manifest.get("devices", ())[1:]):
            return f"{name} ({several + 1} of them)"
        return f"{name} ({spec})" if name and name != spec else spec

    @property
    def spread(self) -> list[tuple[str, int]]:
        """Sweep and size of each group of timed points that were measured on several devices."""
        devices: dict[tuple[str, int], set[int]] = {}
        for point in () if self.simulated else self.manifest.get("points", ()):
            group = (point["sweep"], point["factors"]["n"])
            devices.setdefault(group, set()).add(point.get("on", 0))
        return [group for group, found in devices.items() if len(found) > 1]

    @property
    def device_short(self) -> str:
        """Device within a sentence: a model's description is left out."""
        return self.spec if self.simulated else self.device

    @property
    def chip(self) -> str:
        """Device in a word or two: the head of a column."""
        return self.spec if self.simulated else chip(self.device_name.removesuffix(" (cpu)"))

    @property
    def device_name(self) -> str:
        """The device's name alone, for a legend."""
        return self.device.removesuffix(f" ({self.spec})")

    @cached_property
    def device_id(self) -> str:
        """The device as one word, for ``hw``."""
        return _word(self.device_short)

    def hardware(self, paper: Paper) -> str:
        """The paper's id of the device if it is one of the paper's, else a word for it."""
        own = _word(self.device)
        for device in paper.hardware:
            if device.kind == "gpu" and _word(device.name) in own:
                return device.id
        kind, *model = self.spec.split(":")  # behind the model are the modes
        known = kind == "sim" and model[0] in {d.id for d in paper.hardware}
        return model[0] if known else self.device_id

    @property
    def compute_capability(self) -> str:
        """Compute capability of the GPU or of the simulator's model, ``9.0``."""
        found = self.about_device("facts").get("compute_capability")
        return ".".join(map(str, found or ("unknown",)))

    @property
    def logical_cores(self) -> int:
        """Logical CPU cores of the machine, 0 where the run does not say."""
        host = self.about_device("host")
        return int(host.get("cores") or host.get("logical_cores") or 0)

    @property
    def synthetic(self) -> bool:
        """Whether the test device made the times up."""
        return self.spec.startswith("fake") or self.about_device("facts").get("name") == FAKE_NAME

    @property
    def provenance(self) -> str:
        """``simulated`` or ``measured``, with the number of rounds."""
        if self.simulated:
            return "simulated"
        if self.synthetic:
            return "synthetic, made by the fake test device, not measured"
        return self.cpu_provenance

    @property
    def cpu(self) -> str:
        """The CPU that its CPU programs were timed on, for people."""
        return (self.baseline or self).host_cpu

    @property
    def host_cpu(self) -> str:
        """The CPU of the computer that it was made on, for people."""
        return f"{self.about_device('host').get('name') or 'host CPU'} (cpu)"

    @property
    def cpu_provenance(self) -> str:
        """Baselines are always measured, also in a simulated run."""
        return f"measured, {many(self.rounds, 'round')}"

    @property
    def command(self) -> str:
        """The command that made the run; the program and files without folders of a computer."""
        raw = self.manifest.get("command") or ""
        words = raw.split() if isinstance(raw, str) else list(map(str, raw))
        if not words:
            return "nqbench run"
        program = PurePath(words[0]).name
        if program in {"__main__.py", "python", "python3"} or not program:
            program = "nqbench"
        return shown_command([program, *words[1:]])

    @property
    def study(self) -> Mapping[str, Any]:
        """The study's plain form."""
        study: Mapping[str, Any] = self.manifest.get("study", {})
        return study

    @cached_property
    def launch(self) -> tuple[str, ...]:
        """Factors that a system's name leaves open: the launch, the input, what is counted."""
        return workloads.launch_factors(self.study)

    @cached_property
    def metrics(self) -> Mapping[str, Quantity]:
        """Derived metrics of the study's own kernel, by name."""
        return metrics_of(self.study, self.about_device("facts"))

    @cached_property
    def sizes(self) -> list[int]:
        """Problem sizes of the run's kernels; of its CPU programs where it has no kernel."""
        kernels = {p.n for p in self.points if not p.cpu}
        return sorted(kernels or {p.n for p in self.points})

    @property
    def sweeps(self) -> tuple[str, ...]:
        """Names of the sweeps, in the order of the study."""
        return tuple(dict.fromkeys(p.sweep for p in self.points))

    def select(
        self, sweep: str | None = None, sizes: Sequence[int] = (), *, cpu: bool | None = None
    ) -> list[PointResult]:
        """Points of a sweep (``None``: of all), of some sizes, on the CPU or not."""
        return [
            p
            for p in self.points
            if (sweep is None or p.sweep == sweep)
            and (not sizes or p.n in sizes)
            and (cpu is None or p.cpu == cpu)
        ]

    def quantities(self, asked: str | None = None) -> tuple[Quantity, ...]:
        """What to show of kernels: what was asked for, else the time or the usual counters."""
        if asked:
            return (self.quantity(asked),)
        if self.simulated:
            return tuple(quantity(name) for name in SHOWN_COUNTERS)
        return (CPU_TIME if self.programs_only else TIME,)

    @property
    def outcome(self) -> str:
        """How many points came out right, and how many were not checked."""
        counts = Counter(point.status for point in self.points)
        unchecked = counts["unchecked"]
        right = f"{counts['ok']} of {len(self.points)} points right"
        return f"{right}, {unchecked} unchecked" if unchecked else right

    def quantity(self, name: str) -> Quantity:
        """A quantity, or a derived metric of the study. Raises ``AnalysisError`` if unknown."""
        return self.metrics.get(name) or quantity(name)

    def swept(self, sweep: str) -> Mapping[str, Any]:
        """What a sweep varies as the study writes it, by factor; ``system`` may have no levels."""
        found: dict[str, Any] = {}
        for entry in self.study.get("sweeps") or ():
            if entry.get("name") == sweep:
                found |= {"system": ()} if "systems" in entry else {}
                found |= (entry.get("matrix") or {}) | (entry.get("zip") or {})
        return found

    def order(self, sweep: str, factor: str) -> list[Level]:
        """Levels of a factor: numbers ascending, names as the study lists them."""
        present = list(dict.fromkeys(p.level(factor) for p in self.select(sweep)))
        levels = self.swept(sweep).get(factor)
        if isinstance(levels, Mapping):  # by kind of device
            levels = levels.get(str(self._device.get("kind")))
        listed = list(map(str, levels)) if isinstance(levels, list | tuple) else []
        numbers = sorted(v for v in present if isinstance(v, int | float))
        words = [v for v in present if isinstance(v, str)]
        words.sort(key=lambda v: listed.index(v) if v in listed else len(listed))
        return [*numbers, *words]


@lru_cache(maxsize=1024)
def _word(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower().replace("nvidia", "").replace("geforce", ""))


def missing(value: Any) -> bool:
    """Whether a cell of a frame is empty."""
    return value is None or (isinstance(value, float) and math.isnan(value)) or value == ""


def point_ratio(one: PointResult, two: PointResult, what: Quantity) -> Estimate:
    """Value of ``one`` over that of ``two``, paired by round.

    Without a common round the ratio of the two values has no interval. Both must have a value.
    """
    first, second = one.values(what), two.values(what)
    ratios = [first[r] / second[r] for r in sorted(set(first) & set(second))]
    if ratios:
        return combine(ratios, exact=what.exact)
    return Estimate(one.value(what) / two.value(what), exact=what.exact)


def load_dataset(run: Path | str) -> Dataset:
    """Read a run folder. Raises ``StoreError`` where it cannot be read."""
    path = Path(run)
    return collect(read_manifest(path), read_records(path).records, path)


def collect(manifest: Row, records: Iterable[Record], path: Path = Path("run")) -> Dataset:
    """A run from its manifest and its records.

    The manifest's points give the order and say what was planned, levels included. Records find
    their point by key, so that two sweeps that hold the same point share its measurements.
    """
    rows: dict[str, list[Row]] = {}
    probes: list[Row] = []
    profiles: list[Row] = []
    kept = current(manifest, records)
    for record in kept:
        point = record.point
        row = recorded(record) | {"system": point["system"] or "", "workload": point["workload"]}
        if record.round >= 0:
            rows.setdefault(record.key, []).append(row)
        counted = instrumented(point["factors"])
        if record.measured and (counted or record.round < 0):
            (probes if counted else profiles).append(row)
    points = tuple(
        _point(planned, rows.get(planned["key"], ()), manifest)
        for planned in manifest.get("points", ())
        if not instrumented(planned["factors"])
    )
    # What most points have: a run that was stopped has one measurement more for a few of them.
    counts = [len(p.measurements) for p in points if p.timed and p.ok]
    rounds = statistics.mode(counts) if counts else 0
    name = str(manifest["study"]["name"])
    return Dataset(name, manifest, points, rounds, path, kept, probes, profiles)


def instrumented(factors: Row) -> bool:
    """Whether a kernel counts what it does: it has no time, and its counters are its own."""
    return factors.get("probe") not in (None, INAPPLICABLE, "none")


def _levels(factors: Row) -> dict[str, Level]:
    """The levels that apply, ``n`` included; ``{"per_sm": 2}`` as ``2/SM``."""
    levels: dict[str, Level] = {}
    for factor, value in factors.items():
        if isinstance(value, Mapping):
            levels[factor] = f"{value.get('per_sm')}/SM"
        elif not missing(value) and value != INAPPLICABLE:
            levels[factor] = value if isinstance(value, int | float) else str(value)
    return levels


def _point(planned: Row, rows: Sequence[Row], manifest: Row) -> PointResult:
    """The result of a point from its measurements.

    One wrong answer disqualifies the point, because its other measurements cannot be trusted
    either. Throttled ones do not count.
    """
    levels = _levels(planned["factors"])
    system = str(planned.get("system") or "")
    good: dict[int, Row] = {}
    if rows:
        cpu = rows[-1]["device"] == "cpu"
        timed = cpu or manifest["device"]["kind"] != "sim"
        for row in (r for r in rows if r["status"] in MEASURED):
            measured = row["round"] > 0 and (row["value_s"] or 0) > 0
            if measured if timed else not missing(row.get("warp_instructions")):
                good[row["round"]] = row
        status, reason = _status(rows, bool(good))
    else:
        program = planned.get("program")
        cpu = program["device"] == "cpu" if program else system in _cpu_systems(manifest)
        timed = False
        status, reason = "skipped", str(planned.get("skip") or "")
        if not reason:
            status = "unfinished"
            reason = "planned, but the run ended before it; run the study again to resume"
    return PointResult(
        sweep=str(planned["sweep"]),
        system=system,
        n=int(levels.pop("n", 0)),
        levels=levels,
        cpu=cpu,
        timed=timed,
        status=status,
        reason=reason,
        measurements=dict(sorted(good.items())) if status in MEASURED else {},
        first_s=next((r["first_launch_s"] for r in rows if r.get("first_launch_s")), None),
        key=str(planned.get("key") or ""),
    )


def _cpu_systems(manifest: Row) -> frozenset[str]:
    """Systems of the run's workload that run on the CPU; none where it is unknown."""
    from nqbench.workloads import of_study

    try:
        return of_study(manifest["study"]).cpu_systems
    except StudyError:
        return frozenset()  # a user's own workload: its records say where they ran


def _status(rows: Sequence[Row], any_good: bool) -> tuple[str, str]:
    """Status of a point and its reason, from the statuses of its measurements."""
    bad = [r for r in rows if r["status"] not in {*MEASURED, "throttled"}]
    wrong = [r for r in bad if r["status"] == "wrong"]
    if wrong:
        answer = f"answer {wrong[-1].get('answer')}, expected {wrong[-1].get('expected')}"
        return "wrong", str(wrong[-1].get("reason") or answer)
    slowed = sum(r["status"] == "throttled" for r in rows)
    if any_good:
        lost = []
        if bad:
            last = f"{bad[-1]['status']}: {bad[-1]['reason']}"
            lost.append(f"{many(len(bad), 'measurement')} lost: {last}")
        if slowed:
            lost.append(f"{many(slowed, 'measurement')} throttled and left out")
        unchecked = any(r["status"] == "unchecked" for r in rows)
        return "unchecked" if unchecked else "ok", "; ".join(lost)
    if bad:
        return str(bad[-1]["status"]), str(bad[-1].get("reason") or "no reason recorded")
    if slowed:
        return "throttled", str(rows[-1].get("reason") or "every measurement was throttled")
    if any(r["round"] > 0 and r["value_s"] == 0 for r in rows):
        return "unfinished", (
            "its measurements took 0 s: shorter than the clock can resolve;"
            " give the kernel more work"
        )
    return "unfinished", "verified, but no measurement was timed; run the study again to resume"
