"""What a run folder says, derived again from its records: no device, no network.

Each check derives something a second time, where it can from another source (a published count, a
reference implementation, brute force, scipy), and compares it with what the folder and the pages
about it say. What cannot be derived again is named.
"""

from __future__ import annotations

import hashlib
import html
import itertools
import json
import math
import platform
import re
import shlex
import statistics
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

from nqbench.analysis.answer import Answer
from nqbench.analysis.data.dataset import Dataset, collect
from nqbench.analysis.data.quantities import FRACTIONS, TIME
from nqbench.errors import FolderRefused, NqbenchError, StoreError
from nqbench.facts import DeviceFacts
from nqbench.measure.keys import Keys
from nqbench.measure.manifest import ORDER, hello_of, source_hash, versions
from nqbench.measure.sampling import Policy, sample
from nqbench.measure.telemetry import throttled
from nqbench.measure.variants import workload_of
from nqbench.papers import load_paper, paper_names
from nqbench.point import Point
from nqbench.record import Record
from nqbench.report import matrix
from nqbench.report.exporters import FIGURE_FORMATS, FORMATS, HTML
from nqbench.report.papers import write as papers
from nqbench.report.writer import write_report
from nqbench.runs import reading
from nqbench.runs.folder import LOCK
from nqbench.runs.frame import metrics_of
from nqbench.study import Study, expand, load_study
from nqbench.system.crash import summary
from nqbench.system.files import contents, contents_of, text
from nqbench.system.suggest import many, shown
from nqbench.verify.package import APPENDIX, write_appendix
from nqbench.vocabulary import COUNTERS, FOLLOW, of_kernel, plain_name
from nqbench.workloads import names as workload_names
from nqbench.workloads.base import KERNEL
from nqbench.workloads.counting.known import SOLUTIONS

BRUTE_FORCE_N: Final = 10
"""Largest board whose solutions are counted here too: 35,000 nodes."""
CLOSE: Final = 1e-9
"""Relative error of sums and of scipy's intervals."""
CUT: Final = 60
"""Characters of a differing line that are shown."""
REPEATED: Final = re.compile(r"nqbench report (.+?) --format html")
"""Where a page names the run's folder, which may have been moved since."""
MATRIX: Final = re.compile(r"Made by `(nqbench claims [^`]+)`")
"""Where the matrix of effects names the command that wrote it."""
DECIMAL: Final = re.compile(rb"\d+\.\d+(?:e[-+]?\d+)?")


@dataclass
class Check:
    """A check: how many things it derived again, sentences on what is wrong, and on what it could
    not derive and why."""

    name: str
    derived: int = 0
    faults: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def equal(self, found: Any, right: Any, where: str) -> None:
        """Count one thing; a fault unless both are the same, or floats that are close."""
        self.derived += 1
        floats = isinstance(found, float) and isinstance(right, float)
        if found != right and not (floats and math.isclose(found, right, rel_tol=CLOSE)):
            self.faults.append(f"{where} is {found}, derived again {right}")


@dataclass(frozen=True)
class Verified:
    """The checks of one run; ``run`` if it could be read."""

    path: Path
    checks: tuple[Check, ...]
    run: Dataset | None = None

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return not any(check.faults for check in self.checks)

    def as_json(self) -> dict[str, Any]:
        """Plain form."""
        checks = [
            {"check": c.name, "derived": c.derived, "faults": c.faults, "not_derived": c.left}
            for c in self.checks
        ]
        return {"run": str(self.path), "holds": self.holds, "checks": checks}


def verify(path: Path, listener: Callable[[str], None], done: set[Path]) -> Verified:
    """Derive again what a run folder says; ``listener`` hears which check begins.

    ``done`` are folders of pages that need no second look: those of a paper are about several runs.
    What is wrong is in the result. Raises ``FolderRefused`` for a folder that is not a run.
    """
    of_files = Check("files")
    _make(of_files, listener, partial(files, path))
    try:
        manifest, found = reading.read_manifest(path), reading.look_through(path)
        run = collect(manifest, found.records, path)
    except FolderRefused:
        raise
    except StoreError as error:
        of_files.faults.append(str(error))
        return Verified(path, (of_files,))
    of_files.faults += [*filter(None, [found.message(), found.damage]), *_twice(path, found)]
    if manifest["points"] and not found.records:
        of_files.faults.append(f"{path} has no records, but its manifest names points")
    if others := len(found.records) - len(run.records):
        said = "superseded, or of points that the manifest does not have"
        of_files.left.append(f"{many(others, 'record')}: {said}")
    derive: dict[str, Callable[[Dataset, Check], None]] = {
        "points": points,
        "answers": answers,
        "counters": counters,
        "protocol": protocol,
        "statistics": values,
        "intervals": intervals,
        "pages": partial(pages, done=done),
        "measured": measured,
    }
    checks = [of_files, *map(Check, derive)]
    for check in checks[1:]:
        _make(check, listener, partial(derive[check.name], run))
    return Verified(path, tuple(checks), run)


def _make(check: Check, listener: Callable[[str], None], derive: Callable[[Check], None]) -> None:
    """Derive what a check is about. Whatever a folder holds, the other checks are made too."""
    listener(check.name)
    try:
        derive(check)
    except NqbenchError as error:
        check.faults.append(str(error))
    except Exception as error:  # noqa: BLE001 (somebody else's data)
        check.faults.append(f"the rest of this check cannot be done: {summary(error)}")


def files(path: Path, check: Check) -> None:
    """Every file is the one in ``SHA256SUMS``; what has no checksum is named."""
    known = reading.sums_of(path)
    if known is None:
        said = f"there is no {reading.SUMS}: whether a file was changed as a whole is not known"
        check.left.append(said)
        return
    for name, digest in known.items():
        file = path / name
        try:
            if not file.resolve().is_relative_to(path.resolve()):
                raise ValueError("it is not in the folder")
            content = contents_of(file)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            said = f"{path / reading.SUMS} names {shown(name)}, which cannot be read: {why}"
            check.faults.append(said)
            continue
        check.derived += 1
        if hashlib.sha256(content).hexdigest() != digest:
            check.faults.append(f"{file} is not the file that {reading.SUMS} names")
    there = {f.relative_to(path).as_posix() for f in path.rglob("*") if f.is_file()}
    if extra := sorted(there - {*known, reading.SUMS, LOCK}):
        check.left.append(f"{reading.SUMS} has no checksum of {', '.join(extra)}")


def _twice(path: Path, found: reading.RecordFile) -> Iterator[str]:
    """Lines with a key twice, of which readers of JSON take the first or the last."""
    for number, line in enumerate(reading.record_bytes(path).split(b"\n")[:-1], 1):
        if line and number not in found.damaged:
            try:
                json.loads(line, object_pairs_hook=reading.once)
            except ValueError as error:
                yield f"{path / reading.RECORDS}:{number}: {error}"


def who(record: Record) -> str:
    """A record in a sentence."""
    point = record.point
    name = point["system"] or point["sweep"]
    return f"{name} N={point['factors'].get('n')} round {record.round} (key {record.key})"


def points(run: Dataset, check: Check) -> None:
    """Each record is of the point that its key names and is called so, no round is missing
    between others, and the points follow from the study's text."""
    planned = {(p["key"], p["sweep"]): p for p in run.manifest["points"]}
    rounds: dict[str, set[int]] = {}
    for record in run.records:
        own = record.point
        of = planned.get((record.key, own["sweep"]), {})
        for name in of.keys() & {"study", "system", "workload", "factors"}:
            check.equal(own[name], of[name], f"{name} of {who(record)}")
        again = Point("", own["sweep"], "", own["system"], own["factors"]).label()
        check.equal(own["label"], again, f"the label of {who(record)}")
        if not of:
            check.faults.append(f"no point of the manifest has the key and sweep of {who(record)}")
        rounds.setdefault(record.key, set()).add(record.round)
    timed = {record.key for record in run.records if record.samples_s}
    most = (run.manifest.get("protocol") or {}).get("rounds", 0)
    for key in timed:
        for lost in sorted({*range(max(rounds[key]))} - rounds[key]):
            check.faults.append(f"round {lost} of key {key} is missing; later ones are there")
        if 0 < most < max(rounds[key]):
            check.faults.append(f"key {key} has round {max(rounds[key])}, the protocol {most}")
    if short := sum(max(rounds[key]) < most for key in timed):
        said = f"with fewer rounds than the protocol's {most}: stopped before, or removed"
        check.left.append(f"{many(short, 'point')} {said}")
    _expanded(run.manifest, check)


def _expanded(manifest: Mapping[str, Any], check: Check) -> None:
    """The manifest's points against those that the study's text expands to."""
    if any(word == "-a" or word.startswith("--axis") for word in manifest.get("command", ())):
        check.left.append("the points from the study's text: --axis gave them other levels")
        return
    try:
        study = _study(manifest["study"])
        found = expand(study, DeviceFacts.from_dict(manifest["device"]["facts"]))
    except (NqbenchError, yaml.YAMLError, TypeError, ValueError) as error:
        check.left.append(f"the points from the study's text: {error}")
        return
    check.equal(len(manifest["points"]), len(found), "the number of points in the manifest")
    given = {sweep.name: {"n", *sweep.given} for sweep in study.sweeps}
    newer: Counter[str] = Counter()
    for number, (point, one) in enumerate(zip(manifest["points"], found, strict=False), 1):
        again = one.as_json()
        where = f"of point {number} of the manifest"
        for name in ("sweep", "system"):
            check.equal(point.get(name), again[name], f"{name} {where}")
        for name in point["factors"].keys() & again["factors"].keys():
            level, right = point["factors"][name], again["factors"][name]
            if level == right or name in given[one.sweep]:
                check.equal(level, right, f"{name} {where}")
            else:
                newer[name] += 1
    if newer:
        named = ", ".join(f"{name} of {many(count, 'point')}" for name, count in newer.items())
        check.left.append(f"{named}: not the study's, and this nqbench fills in other levels")


def _study(given: Mapping[str, Any]) -> Study:
    """The study of a manifest's text, without its report. Raises ``ValueError`` where it is not in
    the text alone: reading a run loads no other file."""
    if given.get(KERNEL) or ":" in str(given.get("workload", "")):
        raise ValueError("its kernel or workload is in a file of its own")
    data = yaml.safe_load(str(given.get("text") or ""))
    if not isinstance(data, dict):
        raise ValueError("the manifest has none")
    return load_study({name: part for name, part in data.items() if name != "report"})


def protocol(run: Dataset, check: Check) -> None:
    """The device has one name, and records are of it; sampling is as the study asks for; the keys
    of points are those of all that they identify."""
    manifest, known = run.manifest, workload_names()
    devices = manifest.get("devices") or [manifest["device"]]
    for device in devices:
        name = device["facts"]["name"]
        check.equal(name, device.get("identity", {}).get("name", name), "the name of the device")
    specs = {"cpu", *(device.get("spec") for device in devices)}
    for record in run.records:
        if record.device not in specs:
            check.faults.append(f"{who(record)} is of {record.device}, which is not the run's")
    found, asked = manifest.get("protocol") or {}, run.study.get("measure") or {}
    for name in ("rounds", "target", "samples"):
        if name in found and name in asked:
            check.equal(found[name], asked[name], f"{name} of the protocol")
    made = manifest.get("environment") or {}
    before = (made.get("source_sha256"), made.get("python"))
    same = versions().items() <= made.get("packages", {}).items()
    if not same or before != (source_hash(), platform.python_version()):
        check.left.append("the keys of points: they were made by other sources or versions")
        return
    sampling = {name: value for name, value in found.items() if name != "rounds"}
    keys = [Keys(hello_of(device), sampling, manifest.get(ORDER, ())) for device in devices]
    own = [p for p in manifest["points"] if p.get("program") or p["workload"] not in known]
    for point in (p for p in manifest["points"] if p not in own):
        parts = {name: point[name] for name in ("sweep", "workload", "system", "factors")}
        again = keys[point.get("on", 0)].of(Point("", **parts, derived=point.get("derived", {})))
        check.equal(point["key"], again, f"the key of {parts['system'] or parts['sweep']}")
    if own:
        check.left.append(f"the keys of {many(len(own), 'point')}: of files of the study's own")


def answers(run: Dataset, check: Check) -> None:
    """Every answer is the right one by the workload's own reference, which no kernel takes part in
    (for queens A000170, by brute force too where the board is small)."""
    known: dict[str, int | None] = {}
    unknown: Counter[str] = Counter()
    for record in (r for r in run.records if r.status in ("ok", "unchecked", "wrong")):
        right, told = _expected(record, known), record.expected
        if right is not None:
            check.equal(told, str(right), f"the expected answer of {who(record)}")
            told = str(right)
        elif record.answer is not None:
            unknown[record.point["workload"]] += 1
        # Outputs that were compared may all be right, and the launch wrong otherwise.
        judged = record.measured or right is not None
        fits = (record.answer == told) == record.measured
        if judged and record.answer and told and not fits:
            said = f"status {record.status} and the answer {record.answer}"
            check.faults.append(f"{who(record)} has {said}; {told} is right")
    levels = [r.point["factors"] for r in run.records if r.point["workload"] == "counting"]
    for n in sorted({factors["n"] for factors in levels if factors["n"] <= BRUTE_FORCE_N}):
        check.equal(SOLUTIONS[n], queens(n), f"A000170({n})")
    for workload, count in unknown.items():
        check.left.append(
            f"{many(count, 'answer')} of {workload}: its outputs were compared when they were"
            " measured, and are not in the records"
        )


def _expected(record: Record, known: dict[str, int | None]) -> int | None:
    """The right answer of a record's point; ``None`` where its workload knows none."""
    point = record.point
    if point["workload"] not in workload_names():
        return None
    identity = json.dumps([point["workload"], point["factors"]], sort_keys=True)
    if identity not in known:
        one = Point("", point["sweep"], point["workload"], point["system"], point["factors"])
        try:
            known[identity] = workload_of(one).expected(one.configuration)
        except (KeyError, NqbenchError):  # a program has the levels that its command names
            known[identity] = None
    return known[identity]


def queens(n: int, columns: int = 0, left: int = 0, right: int = 0) -> int:
    """a(n) by placing queens row by row."""
    if columns == (1 << n) - 1:
        return 1
    free = [1 << i for i in range(n) if not (columns | left | right) >> i & 1]
    return sum(queens(n, columns | b, (left | b) << 1, (right | b) >> 1) for b in free)


def values(run: Dataset, check: Check) -> None:
    """Each value is the median of its samples; sampling again from them ends at the same sample by
    the same clause; phases add up; readings are in order, and throttling is in the status."""
    protocol = run.manifest.get("protocol") or {}
    names = {"target", "samples", "max_samples"} & protocol.keys()
    policy = Policy(share_s=math.inf, **{name: protocol[name] for name in names})
    for record in run.records:
        if record.samples_s:
            middle = statistics.median(record.samples_s)
            check.equal(record.value_s, middle, f"the value of {who(record)}")
            if protocol:
                check.equal(record.ended_by, _ending(record, policy), f"what ended {who(record)}")
            if bool(throttled(record.telemetry)) != (record.status == "throttled"):
                said = f"has status {record.status}, unlike its clock events"
                check.faults.append(f"{who(record)} {said}")
        elif record.value_s is not None:
            check.faults.append(f"{who(record)} has a value and no samples")
        if record.value_s is not None and "total" in record.phases:
            phases, value_s = record.phases, record.value_s
            parts = ("split", "transfer", "kernel", "reduce")
            around = sum(phases.get(name, 0.0) for name in parts)
            sums = (value_s, around, value_s + phases.get("other", 0.0))
            right = min(sums, key=lambda one: abs(one - phases["total"]))
            check.equal(phases["total"], right, f"the total of {who(record)}")
        for name, seen in record.telemetry.items():
            if isinstance(seen, Mapping) and not seen["min"] <= seen["median"] <= seen["max"]:
                check.faults.append(f"{name} of {who(record)} has its median outside of its range")


def counters(run: Dataset, check: Check) -> None:
    """Counters that follow from others, and a program's over its kernels; none is below 0."""
    follow = metrics_of({KERNEL: {"metrics": FOLLOW}}, {})
    for record in run.records:
        kernels: dict[str, dict[str, float]] = {"": {}}
        for name, value in record.counters.items():
            plain, kernel = plain_name(name)
            kernels.setdefault(kernel, {})[plain] = float(value)
            if value < 0 and plain in COUNTERS:
                check.faults.append(f"{name} of {who(record)} is {value}")
        for kernel, found in kernels.items():
            for name in found.keys() & follow.keys():
                if not math.isnan(again := follow[name](found)):  # a profiler has some of them
                    check.equal(found[name], again, f"{of_kernel(name, kernel)} of {who(record)}")
        total = kernels.pop("")
        added = total.keys() - {*FRACTIONS} if kernels and record.round >= 0 else ()
        for name in added:
            again = sum(found.get(name, 0.0) for found in kernels.values())
            check.equal(total[name], again, f"{name} of {who(record)}")


def _ending(record: Record, policy: Policy) -> str:
    """The clause that ends sampling when the samples of a record come again. The clock stands
    still, so that it is the budget where they are used up first."""
    samples = iter(record.samples_s)
    try:
        again = sample(lambda: next(samples), policy, lambda: 0.0)
    except StopIteration:
        return "budget"
    used, there = len(again.values_s), len(record.samples_s)
    return again.ended_by if used == there else f"{again.ended_by} after {used} of {there} samples"


def intervals(run: Dataset, check: Check) -> None:
    """The mean and interval of every point's time, which tables and figures show, by scipy."""
    import numpy as np
    from scipy import stats

    taken: dict[str, dict[int, float]] = {}
    for record in run.records:
        if record.round > 0 and record.measured and record.value_s:
            taken.setdefault(record.key, {})[record.round] = record.value_s
    for point in run.points:
        found = point.estimate(TIME)
        if found is None:
            continue
        where = f"{point.name} N={point.n} (key {point.key})"
        logs = np.log([*taken[point.key].values()])
        check.equal(found.value, math.exp(logs.mean()), f"the mean of {where}")
        if len(logs) > 1 and (error := stats.sem(logs)):
            low, high = map(math.exp, stats.t.interval(0.95, len(logs) - 1, logs.mean(), error))
            check.equal(found.low, low, f"the lower bound of {where}")
            check.equal(found.high, high, f"the upper bound of {where}")


def measured(run: Dataset, check: Check) -> None:
    """Nothing: this names what only a device can give again."""
    again = f"`{run.command}`"
    if timed := sum(bool(record.samples_s) for record in run.records):
        said = f"only {run.device} gives such times again ({again})"
        check.left.append(f"{many(timed, 'measured time')}: {said}")
    if counted := sum(bool(record.counters) for record in run.records):
        said = f"{again} counts them again, and `nqbench compare` tells whether they are the same"
        check.left.append(f"counters of {many(counted, 'measurement')}: {said}")


Writer = Callable[..., object]
"""Writes the files of a page, given ``out`` and ``formats``."""


def pages(run: Dataset, check: Check, done: set[Path]) -> None:
    """Every table, figure and page about the run that is there, digit by digit; those of a paper
    hold its verdicts. Folders that are ``done`` are left out."""
    writers: dict[Path, list[Writer]] = {}
    for folder, write in _writers(run):
        writers.setdefault(folder, []).append(write)
    for folder, made in writers.items():
        if folder.resolve() in done:
            continue
        done.add(folder.resolve())
        there = sorted(file for file in folder.glob("*.*") if file.suffix[1:] in FORMATS)
        forms = [form for form in FORMATS if any(file.suffix == f".{form}" for file in there)]
        with tempfile.TemporaryDirectory() as name:
            for write in made if there else ():
                write(out=Path(name), formats=forms)
            for file in there:
                written = Path(name) / file.name
                if not written.is_file():
                    check.left.append(f"{file}: nothing is written under that name")
                    continue
                check.derived += 1
                if _rounded(file) != _rounded(written):
                    check.faults.append(_difference(file, written))
    own = reading.default_out(run.path)
    if not any(own.glob("*")):
        again = f"`nqbench report {run.path}` writes them"
        check.left.append(f"no table or figure of this run alone is in {own}; {again}")


def _writers(run: Dataset) -> Iterator[tuple[Path, Writer]]:
    """The folders that may have pages about the run, each with what writes them."""
    path, name = run.path, run.name
    own = reading.default_out(path)
    yield own, partial(write_report, Answer(_as_named(run, own)))
    if (own / APPENDIX).exists():
        yield own, partial(write_appendix, run)
    if name in paper_names():
        paper = load_paper(name)
        if (own / f"{papers.PAGE}.md").exists():
            beside = papers.recorded_beside(name, path)
            yield own, partial(papers.write_paper, paper, [run], beside=beside)
        for runs, folder, cpu in _recorded(path, [name], f"papers/{name}"):
            yield folder, partial(papers.write_paper, paper, papers.with_repeated(runs, cpu))
    for runs, folder, cpu in _recorded(path, [*paper_names(), matrix.ABLATION], matrix.PAGE):
        made = MATRIX.search(text(folder / f"{matrix.PAGE}.md"))
        command = made[1] if made else "nqbench claims --matrix"
        found = papers.with_repeated(runs, cpu)
        yield folder, partial(matrix.write_effects, found, command=command)


def _recorded(
    path: Path, names: Sequence[str], place: str
) -> Iterator[tuple[list[Path], Path, Path | None]]:
    """The pages of recorded runs that somebody has written, where the run is among them."""
    for runs, folder, cpu in papers.recorded(names, place):
        if folder.is_dir() and path.resolve() in [one.resolve() for one in runs]:
            yield runs, folder, cpu


def _as_named(run: Dataset, folder: Path) -> Dataset:
    """The run in the folder that its page names."""
    for page in (folder / f"report.{form}" for form in ("md", HTML)):
        if named := REPEATED.search(text(page)):
            return replace(run, path=Path(*shlex.split(html.unescape(named[1]))[:1]))
    return run


def _rounded(file: Path) -> bytes:
    """The bytes of a figure; of another file with ten digits of its decimals, since the last bits
    of a logarithm or a sum depend on the vector units of the CPU."""
    if file.suffix[1:] in FIGURE_FORMATS:
        return contents(file)
    return DECIMAL.sub(lambda found: b"%.10g" % float(found[0]), contents(file))


def _difference(file: Path, again: Path) -> str:
    if file.suffix[1:] in FIGURE_FORMATS:
        from matplotlib import __version__

        return f"{file} is not the figure that the records give with matplotlib {__version__}"
    lines = (_rounded(one).decode(errors="replace").splitlines() for one in (file, again))
    pairs = enumerate(itertools.zip_longest(*lines, fillvalue=""), 1)
    number, (old, new) = next((at for at in pairs if at[1][0] != at[1][1]), (1, ("", "")))
    first = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
    start = max(0, first - CUT // 2)
    old, new = (shown(line[start : start + CUT], CUT + 2) for line in (old, new))
    return f"{file}:{number} has {old}, the records give {new}"
