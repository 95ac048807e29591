"""What the HTML page says of a run beside its tables: the device, how it was measured, where, how
to repeat it, and everything recorded about each point."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nqbench.analysis import wording
from nqbench.analysis.data.dataset import INAPPLICABLE, Dataset, PointResult
from nqbench.record import CONDITIONS, Record
from nqbench.report.figures.axes import exact, in_one_unit
from nqbench.report.items import columns_of
from nqbench.report.page import Code, Details, Facts, PageBlock, Paragraph, PointDetail, anchor
from nqbench.runs.frame import level_text
from nqbench.system.files import shown_path
from nqbench.vocabulary import PROTOCOL, SENSORS


def device_facts(data: Dataset) -> list[PageBlock]:
    """The device as the run recorded it; its limits are folded."""
    device = data.manifest.get("device") or {}
    own = {"command line": device.get("spec"), **_flat(device.get("identity") or {})}
    limits = {
        name: value
        for name, value in (device.get("facts") or {}).items()
        if name not in own and not isinstance(value, list | tuple | Mapping)
    }
    folded = [Facts(_pairs(limits), "Its limits")] if limits else []
    return [Facts(_pairs(own)), *folded]


def how_measured(data: Dataset) -> list[PageBlock]:
    """The protocol, what ended the measurements, and where the time went."""
    timed = not data.simulated or any(point.cpu for point in data.points)
    protocol = (data.manifest.get("protocol") or data.study.get("measure") or {}) if timed else {}
    ended = Counter(r.ended_by for r in data.records if r.ended_by)
    spent: Counter[str] = Counter()
    for record in data.records:
        spent += Counter(dict(record.spent_s))
    rows = {
        "provenance": data.provenance,
        **{PROTOCOL.get(name, name): value for name, value in protocol.items()},
        "seed of the orders": data.manifest.get("seed"),
        "measurements by what ended them": _listed(ended),
        "seconds spent": _listed({k: wording.number(v) for k, v in spent.items()}),
        "started": data.manifest.get("created"),
        "older than a change of what it measures": "; ".join(data.older_than) or None,
    }
    said = (
        "The simulator counts what the kernels do. It is deterministic: a second run would only"
        " repeat the first."
        if data.simulated
        else "A measurement is one point in one round: its value is the median of its samples. The"
        " round is the unit of replication, so intervals are over rounds."
    )
    return [Paragraph(said), Facts(_pairs(rows))]


def environment(data: Dataset) -> list[PageBlock]:
    """The computer and nqbench's source; the versions of packages are folded."""
    found = dict(data.manifest.get("environment") or {})
    packages = found.pop("packages", None) or {}
    folded = [Facts(_pairs(packages), "Versions of packages")] if packages else []
    return [Facts(_pairs(_flat(found))), *folded]


def repeat(data: Dataset) -> list[PageBlock]:
    """The commands that make the run and this page again, and the study as it was."""
    git = (data.manifest.get("environment") or {}).get("git") or {}
    commit = str(git.get("commit") or "")
    lines = [f"git checkout {commit}"] if commit else []
    lines += [data.command, f"nqbench report {shlex.quote(shown_path(data.path))} --format html"]
    changed = " The source had uncommitted changes." if git.get("changed") else ""
    blocks: list[PageBlock] = [Code("\n".join(lines))]
    if commit:
        blocks.append(Paragraph(f"The commit is that of the source of nqbench.{changed}"))
    text = str(data.study.get("text") or "")
    if text:
        blocks.append(Code(text, f"The study: {data.study.get('file') or data.name}"))
    return blocks


def details(data: Dataset) -> Iterator[Details]:
    """Every point of the run, once each, with all its measurements; by sweep."""
    found: dict[str, list[Record]] = {}
    for record in data.records:
        found.setdefault(record.key, []).append(record)
    shown: set[str] = set()
    what = data.quantities()[0]
    for sweep in data.sweeps:
        factors = columns_of(data, sweep)
        points = [p for p in data.select(sweep) if p.key and p.key not in shown]
        shown.update(point.key for point in points)
        here = []
        for point in points:
            records, value = found.get(point.key, []), point.value(what)
            rows = [_measurement(record) for record in records]
            headings = dict.fromkeys(name for row in rows for name, text in row.items() if text)
            samples = ((f"round {r.round}", r.samples_s) for r in records if r.samples_s)
            detail = PointDetail(
                anchor(point.key),
                f"{wording.describe(point, factors)}, N={point.n}",
                "" if math.isnan(value) else exact(value, what),
                tuple((name, text) for name, text in _facts(point, records).items() if text),
                tuple(headings),
                tuple(tuple(row.get(name, "") for name in headings) for row in rows),
                tuple((name, in_one_unit(seconds)) for name, seconds in samples),
                explain_command(data, point),
            )
            here.append(detail)
        if here:
            yield Details(f"Points of sweep {sweep}", tuple(here))


def _facts(point: PointResult, records: Sequence[Record]) -> dict[str, str]:
    """What a point is, how it ended and what was counted, by heading."""
    last = records[-1] if records else None
    expected = {r.expected for r in records if r.expected}
    answers = {r.answer for r in records if r.answer}
    said = ", as expected" if answers and answers == expected else ""
    counters = {name: value for r in records for name, value in r.counters.items()}
    return {
        "status": f"{point.status}: {point.reason}" if point.reason else point.status,
        "factors": _listed(point.levels),
        "answer": f"{', '.join(sorted(answers))}{said}" if answers else "",
        "resources": _listed(last.resources if last else {}),
        "launch": _listed(records[0].about if records else {}),
        "counters": _listed({name: wording.number(value) for name, value in counters.items()}),
    }


def _measurement(record: Record) -> dict[str, str]:
    kinds = {0: "verification", -1: "profiler"}
    row = {
        "round": kinds.get(record.round, str(record.round)),
        "status": record.status,
        "value": wording.time(record.value_s) if record.value_s else "",
        "samples": str(len(record.samples_s) or ""),
        "ended by": record.ended_by,
    }
    row |= {name: wording.time(s) for name, s in record.phases.items() if name != "kernel" and s}
    state = record.conditions()
    for name in CONDITIONS:
        label, unit, scale = SENSORS[name]
        row[f"{label} ({unit})"] = wording.number(state[name] * scale) if name in state else ""
    row["clock events"] = str(state.get("clock_reasons", ""))
    return row


def explain_command(data: Dataset, point: PointResult) -> str:
    """The command that counts the point's kernel by source line; empty where there is none.

    The simulator counts a kernel of a GPU's run at the smallest size of its study, and at its own
    levels of factors that have some for each kind of device.
    """
    if point.cpu or data.command.startswith("nqbench.run"):  # no command can name Python's study
        return ""
    # The study as the run's command named it.
    files = [word for word in shlex.split(data.command) if word.endswith((".yaml", ".yml"))]
    words = ["nqbench", "explain", (*files, data.name)[0], "--point", f"sweep={point.sweep}"]
    for name, levels in data.swept(point.sweep).items():
        elsewhere = isinstance(levels, Mapping) and "sim" in levels and not data.simulated
        if name != "n" and point.level(name) != INAPPLICABLE and not elsewhere:
            words += ["--point", f"{name}={point.level(name)}"]
    if data.simulated:
        words += ["--n", str(point.n), "--device", data.spec]
    return shlex.join(words)


def _pairs(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What has a value, as text."""
    texts = {name.replace("_", " "): _said(value) for name, value in values.items()}
    return tuple((name, text) for name, text in texts.items() if text)


def _said(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        version = len(value) == 2 and all(isinstance(v, int) for v in value)
        return ("." if version else ", ").join(map(_said, value))
    return str(value)


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= {f"{name} {inner}": own for inner, own in _flat(value).items()}
        else:
            found[name] = value
    return found


def _listed(values: Mapping[str, Any]) -> str:
    """``registers 24, occupancy 1`` of what has a value."""
    texts = {
        name.replace("_", " "): _said(round(v, 4) if isinstance(v, float) else level_text(v))
        for name, v in values.items()
        if v is not None and v != INAPPLICABLE
    }
    return " · ".join(f"{name} {text}" for name, text in texts.items())
