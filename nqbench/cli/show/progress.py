"""Progress while something is measured or compiled: a live table on a terminal, lines elsewhere.

Every device has a lane that knows its stage and its points; a display shows the lanes.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from nqbench.cli.show.console import console, duration, say
from nqbench.measure.events import Listener
from nqbench.point import labels
from nqbench.workloads import KERNEL

if TYPE_CHECKING:
    from nqbench.point import Point
    from nqbench.record import Record

PLAIN_INTERVAL_S: Final = 10.0
"""Seconds between two progress lines in a log: often enough to see life, rare enough to read."""
TICK_S: Final = 1.0
"""Seconds between two redraws while a point takes long, and the fewest while another device is
timed."""
DRAWING_SHARE: Final = 0.05
"""Largest share of a run's time that goes into redrawing."""
LAST_VALUES: Final = 5
BAR_WIDTH: Final = 20
WIDTH_OF_BAR: Final = 60
WIDTH_OF_VALUES: Final = 40
"""Columns of a terminal from which there is room for a bar, and for the last values."""
COUNTED: Final = "warp_instructions"
"""The counter that stands for a simulated point: a sign of life, not a cost."""


@contextmanager
def progress() -> Iterator[Lane]:
    """A live table on a terminal, lines elsewhere; it ends with the block."""
    out = console(stderr=True)
    display = LiveDisplay(out) if _animated(out) else Display(out)
    try:
        yield display.lane("")
    finally:
        display.close()


def _animated(out: Console) -> bool:
    """Whether lines can be redrawn, and the user has not asked for plain ones."""
    plain = out.quiet or os.environ.get("NO_COLOR")
    return out.is_interactive and out.file.isatty() and not plain


def failure_text(record: Record) -> str:
    """A failed record in one line: status, point, reason."""
    return f"{record.status}: {point_text(record)}: {record.reason}"


def point_text(record: Record) -> str:
    """The point of a record; one of a kernel of the user's own with its levels."""
    point = record.point
    name = point.get("system") or point.get("sweep")
    own = str(point.get("workload", "")).startswith(f"{KERNEL}:")
    levels = [f" {k}={v}" for k, v in point["factors"].items() if own and k != "n"]
    n = point["factors"].get("n")
    return f"{name} N={n}{''.join(levels)}"


class Lane(Listener):
    """What one device does: its stage, how far it is, and the points that it has.

    A run on one device has one lane without a name.
    """

    def __init__(self, display: Display, name: str) -> None:
        self.display, self.name = display, name
        self.stage_name, self.text = "", ""
        self.total = self.done = self.following = 0
        self.began = self.said = time.monotonic()
        self.current: dict[str, bool] = {}

    def points(self, points: Sequence[Point]) -> None:
        """The run measures these points."""
        self.display.name_points(points)

    def stage(self, name: str, total: int) -> None:
        """A new stage of ``total`` steps begins."""
        self.stage_name, self.total = name, total
        self.done = self.following = 0
        self.began = self.said = time.monotonic()
        self.current.clear()
        self.display.stage_began(self)

    def ahead(self, steps: int) -> None:
        """About so many steps follow after this stage."""
        self.following = steps

    def started(self, point: Point, *, timed: bool) -> None:
        """A point is about to be measured."""
        self.current[self.display.name_of(point.sweep, point.factors, point.label())] = timed
        self.display.point_began(self)

    def advanced(self, record: Record | None = None) -> None:
        """One step is done; a failed record is named at once."""
        self.done += 1
        if record is not None:
            of = record.point
            name = self.display.name_of(of["sweep"], of["factors"], of["label"])
            self.current.pop(name, None)
            if record.status == "ok":
                self.display.values.append((value_text(record), name))
            elif record.status != "skipped":
                self.message(failure_text(record))
        self.display.step_done(self)

    def status(self, text: str) -> None:
        """How far something is that has no steps."""
        self.text = text
        self.display.step_done(self)

    def message(self, text: str) -> None:
        """A sentence for the user."""
        self.display.say(f"{self.name}: {text}" if self.name else text)

    def device(self, name: str) -> Lane:
        """The lane of one of several devices."""
        return self.display.lane(name)

    @property
    def timed(self) -> bool:
        """Whether a point is being timed."""
        return any(list(self.current.values()))

    def line(self) -> str:
        """Stage, steps done, rate, time left."""
        if self.text:
            return self.text
        line = f"{self.stage_name}: {self.done} of {self.total}"
        passed_s = time.monotonic() - self.began
        if not self.done or not passed_s:
            return line
        rate = self.done / passed_s
        number, unit = (rate, "second") if rate >= 1 else (60 * rate, "minute")
        line += f", {number:.0f} per {unit}" if number >= 10 else f", {number:.2g} per {unit}"
        left_s = round((self.total - self.done + self.following) / rate)
        return f"{line}, {duration(left_s)} left" if left_s > 0 else line


class Display:
    """Lanes as lines of a log, at most one every ``PLAIN_INTERVAL_S`` seconds for each."""

    def __init__(self, out: Console) -> None:
        self.out = out
        self.lanes: list[Lane] = []
        self.values: deque[tuple[str, str]] = deque(maxlen=LAST_VALUES)
        self._names: dict[tuple[str, str], str] = {}

    def lane(self, name: str) -> Lane:
        """A further lane."""
        self.lanes.append(Lane(self, name))
        return self.lanes[-1]

    def name_points(self, points: Sequence[Point]) -> None:
        """Learn what distinguishes the points of a run."""
        for point, name in zip(points, labels(points), strict=True):
            self._names[point.sweep, str(point.factors)] = name

    def name_of(self, sweep: str, factors: Mapping[str, Any], otherwise: str) -> str:
        """What a point is called."""
        return self._names.get((sweep, str(dict(factors))), otherwise)

    def say(self, text: str) -> None:
        """A sentence for the user."""
        say(text, self.out)

    def stage_began(self, lane: Lane) -> None:
        """A lane has a new stage."""
        lane.message(f"{lane.stage_name}: {lane.total}")

    def point_began(self, lane: Lane) -> None:
        """A lane is about to measure a point."""

    def step_done(self, lane: Lane) -> None:
        """A lane is a step further."""
        now = time.monotonic()
        if (lane.total or lane.text) and now - lane.said >= PLAIN_INTERVAL_S:
            lane.said = now
            lane.message(lane.line())

    def close(self) -> None:
        """Nothing follows."""


class LiveDisplay(Display):
    """The last values, then a line for each lane, redrawn in place; messages scroll above it.

    It is redrawn before a point is handed to the device, and every ``TICK_S`` seconds while none
    is timed: on one device never in a timed region.
    """

    def __init__(self, out: Console) -> None:
        super().__init__(out)
        self._live: Live | None = None
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._drawn = self._cost_s = 0.0

    def stage_began(self, lane: Lane) -> None:  # noqa: ARG002 (all lanes are drawn)
        """Show it at once."""
        self._draw()

    def point_began(self, lane: Lane) -> None:
        """Show it, unless that would take much of the run or disturb another device."""
        others = any(other.timed for other in self.lanes if other is not lane)
        apart_s = max(self._cost_s / DRAWING_SHARE, TICK_S if others else 0.0)
        with self._lock:  # a tick may be drawing
            if time.monotonic() - self._drawn >= apart_s:
                self._draw()

    def step_done(self, lane: Lane) -> None:
        """What has no points is drawn when it says how far it is."""
        if lane.text and time.monotonic() - self._drawn >= TICK_S / 4:
            self._draw()

    def close(self) -> None:
        """Stop redrawing; the results take its place."""
        self._closed.set()
        with self._lock:
            if self._live is not None:
                self._live.stop()

    def _draw(self) -> None:
        with self._lock:
            if self._closed.is_set():
                return
            began = time.monotonic()
            if self._live is None:
                self._live = Live(
                    console=self.out,
                    get_renderable=self.render,
                    auto_refresh=False,
                    transient=True,
                    redirect_stdout=False,
                )
                self._live.start()
                threading.Thread(target=self._tick, daemon=True).start()
            self._live.refresh()
            self._drawn = time.monotonic()
            self._cost_s = self._drawn - began

    def _tick(self) -> None:
        while not self._closed.wait(TICK_S):
            with self._lock:  # a point that begins now waits until this is drawn
                if not any(lane.timed for lane in self.lanes):
                    self._draw()

    def render(self) -> RenderableType:
        """What is drawn; each row is one line, cut where the terminal is narrow."""
        lanes = [lane for lane in self.lanes if lane.stage_name or lane.text]
        rows: list[RenderableType] = [self._line(lane) for lane in lanes]
        if len(lanes) == 1 and (now := _now(lanes[0])):
            rows.append(self._one_line(now))
        room = self.out.height - len(rows) - 2
        shown = room > 0 and self.out.width >= WIDTH_OF_VALUES
        values = Table.grid(Column(justify="right"), Column(), padding=(0, 2, 0, 0))
        for value, name in list(self.values)[-room:] if shown else ():
            values.add_row(self._one_line(value), self._one_line(name))
        return Group(values, *rows, Text(""))  # where the terminal writes ^C

    def _one_line(self, text: str) -> Text:
        ascii_only = self.out.options.ascii_only  # which has no character for an ellipsis
        return Text(text, no_wrap=True, overflow="crop" if ascii_only else "ellipsis")

    def _line(self, lane: Lane) -> RenderableType:
        several = len(self.lanes) > 1 and lane.name
        line = self._one_line(f"{lane.name}: {lane.line()}" if several else lane.line())
        if self.out.width < WIDTH_OF_BAR or lane.text:
            return line
        row = Table.grid(Column(width=BAR_WIDTH), Column(), padding=(0, 1, 0, 0))
        row.add_row(ProgressBar(max(1, lane.total), lane.done, width=BAR_WIDTH), line)
        return row


def value_text(record: Record) -> str:
    """What a measurement gave: its time, or a counter."""
    if record.value_s is not None:
        return duration(record.value_s)
    if COUNTED in record.counters:
        return f"{record.counters[COUNTED]:,.0f} warp instr."
    return "verified"


def _now(lane: Lane) -> str:
    """What is being measured; the clock stands still while it is."""
    names = list(lane.current)
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"now: {names[0]}{more}" if names else ""
