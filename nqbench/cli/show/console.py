"""What the command line shows: rich where there is a terminal, plain lines elsewhere.

Only this module and ``cli`` print.
"""

from __future__ import annotations

import csv as csv_module
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nqbench.cli.show.tables import print_fitting
from nqbench.point import telling, text, varied

if TYPE_CHECKING:
    from pathlib import Path

    from nqbench.compiler.static import StaticRow
    from nqbench.measure.events import RunOutcome
    from nqbench.point import Point
    from nqbench.solve.count import Count
    from nqbench.workloads.base import Workload

PIPE_WIDTH = 220
"""Columns of a table that goes into a file or a pipe: wide enough not to fold a name."""
PLAIN_INTERVAL_S = 10.0
"""Seconds between two progress lines in a log: often enough to see life, rare enough to read."""


def console(stderr: bool = False) -> Console:
    """A console; wide when piped, so that tables are not folded in a log."""
    made = Console(stderr=stderr, highlight=False)
    return made if made.is_terminal else Console(stderr=stderr, highlight=False, width=PIPE_WIDTH)


def note(text: str) -> None:
    """Print one sentence about what is going on (to standard error)."""
    console(stderr=True).print(escape(text), soft_wrap=True)


def tell_incomplete(runs: Iterable[Path]) -> None:
    """A sentence for every run whose records end too early: what is shown of it is not all."""
    from nqbench.runs.reading import incomplete

    for sentence in filter(None, map(incomplete, runs)):
        note(sentence)


@contextmanager
def progress() -> Iterator[PlainListener]:
    """A progress display that fits the terminal; it ends, however its block does."""
    from nqbench.cli.show.progress import RichListener

    made = console(stderr=True)
    listener = RichListener(made) if made.is_terminal else PlainListener(made)
    try:
        yield listener
    finally:
        listener.finished(None)


class PlainListener:
    """Progress as plain lines, at most one every ``PLAIN_INTERVAL_S`` seconds per stage."""

    def __init__(self, out: Console) -> None:
        self.out = out
        self.stage_name = ""
        self.total = 0
        self.done = 0
        self.last = 0.0

    def stage(self, name: str, total: int) -> None:
        """A new stage of ``total`` steps begins."""
        self.stage_name, self.total, self.done = name, total, 0
        self.last = time.monotonic()
        self.out.print(escape(f"{name}: {total}"))

    def advanced(self, record: Any = None) -> None:
        """One step of the stage is done; a failed record is named at once."""
        self.done += 1
        if record is not None and record.status not in ("ok", "skipped"):
            text = f"  {record.status}: {point_text(record)}: {record.reason}"
            self.out.print(escape(text), soft_wrap=True)
        now = time.monotonic()
        if self.total and now - self.last >= PLAIN_INTERVAL_S:
            self.last = now
            self.out.print(escape(f"  {self.stage_name}: {self.done} of {self.total}"))

    def message(self, text: str) -> None:
        """A sentence for the user."""
        self.out.print(escape(text), soft_wrap=True)

    def finished(self, outcome: Any) -> None:
        """The run is over; the caller shows the outcome."""


def point_text(record: Any) -> str:
    """A record's point in a few words."""
    point = record.point
    name = point.get("system") or point.get("sweep")
    return f"{name} N={point['factors'].get('n')}"


def show_points(points: Sequence[Point], estimate_s: float | None) -> None:
    """The points of a dry run, and how long they may take."""
    out = console()
    for sweep in dict.fromkeys(p.sweep for p in points):
        _show_sweep(sweep, [p for p in points if p.sweep == sweep])
    skipped = sum(1 for p in points if p.skip)
    text = f"{len(points) - skipped} points to measure, {skipped} skipped"
    if estimate_s is not None:
        text += f"; estimated time {duration(estimate_s)}"
    out.print(text)


def _show_sweep(sweep: str, points: Sequence[Point]) -> None:
    from nqbench.workloads import launch_factors

    told = varied(points)
    if all(point.system for point in points):
        told = ["n", *telling(points, launch_factors(points[0].workload))]
    first = points[0].factors
    same = {k for k in first if len({text(p.factors.get(k, "-")) for p in points}) == 1}
    fixed = {k: text(v) for k, v in first.items() if k in same and v != "-"}
    table = Table(
        title=f"{sweep}: {len(points)} points", caption=_pairs(fixed), title_justify="left"
    )
    columns = {"system": [p.system or "" for p in points]}
    columns |= {name: [text(p.factors.get(name, "-")) for p in points] for name in told}
    columns["jobs"] = [str(p.derived.get("jobs", "")) for p in points]
    columns["skipped because"] = [p.skip for p in points]
    used = {name: cells for name, cells in columns.items() if any(cells)}
    for name in used:
        table.add_column(name)
    print_fitting(console(), table, list(used), list(zip(*used.values(), strict=True)))


def _pairs(values: Mapping[str, Any]) -> str:
    return escape(", ".join(f"{k}={v}" for k, v in values.items()))


def duration(seconds: float) -> str:
    """Seconds as people write them."""
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def show_outcome(outcome: RunOutcome) -> None:
    """What a run came to: counts, every failure with its reason, the folder."""
    out = console()
    for failure in outcome.failures:
        text = f"{failure.status}: {point_text(failure)}: {failure.reason}"
        out.print(escape(text), soft_wrap=True)
    for reason, number in Counter(outcome.skipped.values()).items():
        out.print(escape(f"skipped {number}: {reason}"), soft_wrap=True)
    counts = ", ".join(f"{number} {status}" for status, number in outcome.counts.items() if number)
    ending = "so far" if outcome.interrupted else "done"
    out.print(escape(f"{ending}: {counts or 'nothing measured'} in {duration(outcome.wall_s)}"))
    out.print(escape(f"records: {outcome.path}"), soft_wrap=True)


def show_report(written: Any) -> None:
    """The path of each thing written, then the findings in words."""
    out = console()
    for path in written.paths:
        out.print(escape(str(path)), soft_wrap=True)
    for finding in written.findings:
        out.print(escape(f"* {finding}"), soft_wrap=True)


def show_count(result: Count) -> None:
    """a(N) with how it was found and checked."""
    out = console()
    out.print(f"a({result.n}) = {result.value}")
    out.print(escape(result.how))


def show_static(rows: Sequence[StaticRow], *, csv: bool) -> None:
    """Compiler resources per point and architecture."""
    if not rows:
        note("no point of this study is a GPU kernel: there is nothing to compile")
        return
    names = [f.name for f in fields(rows[0])]
    cells = [[_cell(getattr(row, name)) for name in names] for row in rows]
    if csv:
        csv_module.writer(sys.stdout).writerows([names, *cells])
        return
    _print_table(names, cells)


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def show_devices(rows: Iterable[Any]) -> None:
    """Where plans can run, and what is missing."""
    listed = list(rows)
    names = [f.name for f in fields(listed[0])]
    _print_table(names, [[_cell(getattr(row, name)) for name in names] for row in listed])


def show_systems(workloads: Sequence[Workload]) -> None:
    """All systems, a table of factors for each workload."""
    for workload in workloads:
        systems = workload.systems
        factors = list(dict.fromkeys(k for levels in systems.values() for k in levels))
        rows = [
            [name, *(text(levels.get(f, "")) for f in factors)] for name, levels in systems.items()
        ]
        console().print(f"workload: {workload.name}")
        _print_table(["system", *factors], rows)


def show_system(workload: Workload, system: str) -> None:
    """One system in full."""
    if system in workload.cpu_systems:
        alone = "" if workload.systems[system] else " and takes no factor but n"
        console().print(escape(f"{system} runs on the host's CPU{alone}"))
    for name, level in workload.systems[system].items():
        factor = workload.factors.get(name)
        meaning = factor.meaning if factor else ""
        console().print(escape(f"{name:>14} = {level!s:<16} {meaning}"))


def _print_table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    cells = list(rows)
    table = Table(box=SIMPLE_HEAD)
    for index, name in enumerate(names):
        table.add_column(name, no_wrap=index == 0, overflow="fold")
    print_fitting(console(), table, names, cells)
