"""Lists: points of a dry run, systems, mistakes and counters of kernels, the doctor's findings."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer
from rich.markup import escape

from nqbench.cli.show import console
from nqbench.point import distinguishing, text, varied
from nqbench.system.suggest import listing, many

if TYPE_CHECKING:
    from nqbench.doctor.report import Report
    from nqbench.inspection import Checked
    from nqbench.point import Point
    from nqbench.report.explain import Explained, Pair
    from nqbench.report.table import Source
    from nqbench.report.table import Table as ReportTable
    from nqbench.simulator.mistakes import Mistake
    from nqbench.workloads.base import Workload

SHOWN: Final = 12
"""Lines of a source on a terminal; the JSON has all."""
STYLES: Final = {"ok": "green", "warning": "yellow", "missing": "red"}


def show_points(points: Sequence[Point], most_s: float | None) -> None:
    """A table per sweep, and how long the points take at most."""
    for sweep in dict.fromkeys(p.sweep for p in points):
        _show_sweep(sweep, [p for p in points if p.sweep == sweep])
    skipped = sum(1 for p in points if p.skip)
    summary = f"{many(len(points) - skipped, 'point')} to measure, {skipped} skipped"
    if most_s is not None:
        summary += f"; at most {console.duration(most_s)} of measuring"
    console.say(summary)


def _show_sweep(sweep: str, points: Sequence[Point]) -> None:
    """The factors that distinguish the points, without those that a system's name implies."""
    from nqbench.workloads import launch_factors

    first = points[0].factors
    same = {k for k in first if len({text(p.factors.get(k, "-")) for p in points}) == 1}
    fixed = ", ".join(f"{k}={text(v)}" for k, v in first.items() if k in same and v != "-")
    columns = {"system": [p.system or "" for p in points]}
    names = varied(points)
    if all(point.system for point in points):
        names = ["n", *distinguishing(points, launch_factors(points[0].workload))]
    columns |= {name: [text(p.factors.get(name, "-")) for p in points] for name in names}
    if "jobs" not in first:  # a workload may have a factor of that name
        columns["jobs"] = [str(p.derived.get("jobs", "")) for p in points]
    columns["command"] = [shlex.join(p.program.command) if p.program else "" for p in points]
    columns["skipped because"] = [p.skip for p in points]
    used = {name: cells for name, cells in columns.items() if any(cells)}
    console.say(f"{sweep}: {many(len(points), 'point')}")
    console.show_table(list(used), list(zip(*used.values(), strict=True)), fixed)


def show_systems(workloads: Sequence[Workload]) -> None:
    """All systems, a table of factors for each workload."""
    for workload in workloads:
        systems = workload.systems
        factors = list(dict.fromkeys(k for levels in systems.values() for k in levels))
        known = systems.items()
        rows = [[name, *(text(levels.get(f, "")) for f in factors)] for name, levels in known]
        console.say(f"workload: {workload.name}")
        console.show_table(["system", *factors], rows)


def show_system(workload: Workload, system: str) -> None:
    """One system in full."""
    levels = workload.systems[system]
    if system in workload.cpu_systems:
        console.say(f"{system} runs on the CPU{'' if levels else ' and takes no factor but n'}")
    for name, level in levels.items():
        factor = workload.factors.get(name)
        meaning = factor.meaning if factor else ""
        console.say(f"{name:>14} = {level!s:<16} {meaning}".rstrip(), hang=34)


def show_checked(found: Checked) -> None:
    """A paragraph for each mistake, then the sum."""
    for mistake in found.mistakes:
        show_mistake(mistake)
    for label, reason in found.failed:
        console.say(f"{label}: could not be checked: {reason}")
    for reason, count in Counter(reason for _, reason in found.skipped).items():
        console.say(f"{many(count, 'point')} skipped: {reason}")
    if found.late:
        console.say(f"{many(len(found.late), 'point')} left out")
    if not found.checked:
        console.say("no point was checked" if found.failed else "no point is a kernel")
        return
    kinds = Counter(mistake.first.kind for mistake in found.mistakes)
    what = listing([f"{kind} ({count})" for kind, count in kinds.items()], "and")
    console.say(f"{many(len(found.checked), 'point')} checked: {what or 'nothing wrong was found'}")


def tell_checked(found: Checked) -> None:
    """The same as annotations on GitHub, which shows the first of a step."""
    from nqbench.report import github
    from nqbench.simulator.findings import sentence

    for mistake in found.mistakes:
        line, title = mistake.line, f"{mistake.first.kind} in kernel {mistake.kernel}"
        place: dict[str, str | int] = {"file": line.path, "line": line.line} if line.path else {}
        typer.echo(github.command("error", title, sentence(mistake.first), **place))
    for label, reason in found.failed:
        typer.echo(github.command("error", f"{label} could not be checked", reason))


def show_mistake(mistake: Mistake) -> None:
    """A mistake with its lines and the threads of its first occurrence."""
    from nqbench.simulator.findings import sentence

    times = f"{mistake.count:,} time{'' if mistake.count == 1 else 's'}"
    console.say(f"{mistake.line}: {mistake.first.kind}, {times}, in kernel {mistake.kernel}")
    lines = [mistake.line]
    if mistake.other is not None and mistake.other != mistake.line:
        lines.append(mistake.other)
    for line in lines:
        if line.text:
            console.say(f"{line.line:>6} | {line.text.strip()}")
    console.say(sentence(mistake.first), bullet="    ")
    rest = f" and {len(mistake.points) - 1} more" if len(mistake.points) > 1 else ""
    if mistake.points != [mistake.kernel]:
        console.say(f"in {mistake.points[0]}{rest}", bullet="    ")
    console.say("")


def show_explained(found: Sequence[Explained], pair: Pair | None, source: Source) -> None:
    """For each kernel the dearest lines; of a pair the counters, and the lines that differ most."""
    from nqbench.report import explain

    if pair is None:
        for one in found:
            _show_lines(explain.lines_table(one, source))
        return
    for sentence in (f"A  {pair.a.title}", f"B  {pair.b.title}", *filter(None, [pair.why]), ""):
        console.say(sentence)
    totals, lines = explain.pair_tables(pair, source)
    console.show_report_table(totals, source=False)
    console.say("")
    _show_lines(lines)


def _show_lines(table: ReportTable) -> None:
    """The first rows of a table, without columns that are empty there."""
    rows = [[Path(row[0]).name, *row[1:]] for row in islice(table.texts(), SHOWN)]
    columns = [
        [column.heading, *cells]
        for column, cells in zip(table.columns, zip(*rows, strict=True), strict=False)
        if {*cells} != {console.EMPTY}
    ]
    console.say(f"{table.title} ({table.source})")
    if rows:
        heads, *cells = zip(*columns, strict=True)
        console.show_table(heads, cells)
    more = len(table.rows) - len(rows)
    for note in (*table.notes, *([f"{many(more, 'more line')}: --json"] * bool(more))):
        console.say(note)


def show_doctor(report: Report) -> None:
    """A line for each finding, below it the command that fixes it; then one sentence."""
    from nqbench.doctor.report import FEATURES

    console.say(f"device: {report.device} ({report.why})")
    width = max(len(row.name) for row in report.rows)
    lacking = report.lacking
    out = console.console()
    for row in report.rows:
        lines = [f"{row.state:<8} {row.name:<{width}}  {row.found}"]
        if row.state == "missing":
            verb = "needed for" if row in lacking else "only for"
            lines.append(f"{' ' * (width + 11)}{verb}: {FEATURES[row.feature]}")
        if row.remedy:
            lines.append(f"{' ' * (width + 11)}do: {row.remedy}")
        rest = escape(console.wrapped(lines[0], out, width + 11)[len(row.state) :])
        out.print(f"[{STYLES[row.state]}]{row.state}[/]{rest}", soft_wrap=True)
        for line in lines[1:]:
            console.say(line, out, hang=width + 11)
    console.say(report.summary())
