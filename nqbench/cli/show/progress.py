"""Progress while something is measured or compiled: a live table on a terminal, lines elsewhere.

Every device has a row that knows its stage and its points; a display shows the rows.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.live import Live
from rich.text import Text

from nqbench.cli.show.console import console, duration, say
from nqbench.measure.run_state import Listener
from nqbench.point import labels
from nqbench.workloads import KERNEL

if TYPE_CHECKING:
    from nqbench.point import Point
    from nqbench.record import Record

PLAIN_INTERVAL_S: Final = 10.0
"""Seconds between two progress lines in a log: often enough to see life, rare enough to read."""
TICK_S: Final = 1.0
"""The fewest seconds between two redraws while another device is timed."""


@contextmanager
def progress() -> Iterator[ProgressRow]:
    """A live table on a terminal, lines elsewhere; it ends with the block."""
    out = console(stderr=True)
    # Lines can be redrawn, and the user has not asked for plain ones.
    live = out.is_interactive and out.file.isatty() and not out.quiet
    display = Display(out, live=live and not os.environ.get("NO_COLOR"))
    try:
        yield display.row("")
    finally:
        display.close()


_NUMBER: Final = re.compile(r"0x[0-9a-f]+|\d+(\.\d+)?")


def kind_of(status: str, reason: str) -> tuple[str, str]:
    """What points have in common that failed for one reason, numbers aside."""
    return status, _NUMBER.sub("#", reason)


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


class ProgressRow(Listener):
    """What one device does: its stage, how far it is, and the points that it has.

    A run on one device has one row without a name.
    """

    def __init__(self, display: Display, name: str) -> None:
        self.display, self.name = display, name
        self.stage_name, self.text = "", ""
        self.total = self.done = self.following = 0
        self.began = self.said = time.monotonic()
        self.current: dict[str, bool] = {}

    def points(self, points: Sequence[Point]) -> None:
        """The run measures these points: learn what distinguishes them."""
        for point, name in zip(points, labels(points), strict=True):
            self.display.names[point.sweep, str(dict(point.factors))] = name

    def stage(self, name: str, total: int) -> None:
        """A new stage of ``total`` steps begins."""
        self.stage_name, self.total = name, total
        self.done = self.following = 0
        self.began = self.said = time.monotonic()
        self.current.clear()
        if not self.display.live:
            self.message(f"{name}: {total}")
        self.display.draw()

    def ahead(self, steps: int) -> None:
        """About so many steps follow after this stage."""
        self.following = steps

    def started(self, point: Point, *, timed: bool) -> None:
        """A point is about to be measured."""
        key = point.sweep, str(dict(point.factors))
        self.current[self.display.names.get(key, point.label())] = timed
        # Now and then, more rarely where that would disturb another device.
        others = any(row.timed for row in self.display.rows if row is not self)
        self.display.draw(TICK_S if others else TICK_S / 4)

    def advanced(self, record: Record | None = None) -> None:
        """One step is done; the first failure of each kind is named at once."""
        self.done += 1
        if record is not None:
            point = record.point
            key = point["sweep"], str(dict(point["factors"]))
            name = self.display.names.get(key, point["label"])
            self.current.pop(name, None)
            if not record.measured and record.status != "skipped":
                kind = kind_of(record.status, record.reason)
                if kind not in self.display.said:
                    self.message(failure_text(record))
                self.display.said.add(kind)
        self.display.step_done(self)

    def status(self, text: str) -> None:
        """How far something is that has no steps."""
        self.text = text
        self.display.step_done(self)

    def message(self, text: str) -> None:
        """A sentence for the user."""
        say(f"{self.name}: {text}" if self.name else text, self.display.out)

    def device(self, name: str) -> ProgressRow:
        """The row of one of several devices."""
        return self.display.row(name)

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
    """Rows: on a terminal (``live``) a line for each, redrawn in place, and messages scroll above;
    elsewhere lines of a log, at most one every ``PLAIN_INTERVAL_S`` seconds for each.

    It is redrawn before a point is handed to the device: on one device never in a timed region.
    """

    def __init__(self, out: Console, *, live: bool = False) -> None:
        self.out, self.live = out, live
        self.rows: list[ProgressRow] = []
        self.names: dict[tuple[str, str], str] = {}
        self.said: set[tuple[str, str]] = set()
        how: dict[str, Any] = {"auto_refresh": False, "transient": True, "redirect_stdout": False}
        self._live = Live(console=out, get_renderable=self.render, **how) if live else None
        self._drawn = 0.0

    def row(self, name: str) -> ProgressRow:
        """A further row."""
        self.rows.append(ProgressRow(self, name))
        return self.rows[-1]

    def step_done(self, row: ProgressRow) -> None:
        """A row is a step further; what has no points is drawn when it says how far it is."""
        now = time.monotonic()
        if self.live:
            if row.text:
                self.draw(TICK_S / 4)
        elif (row.total or row.text) and now - row.said >= PLAIN_INTERVAL_S:
            row.said = now
            row.message(row.line())

    def close(self) -> None:
        """Stop redrawing; the results take its place."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def draw(self, apart_s: float = 0.0) -> None:
        """Redraw, if that was done ``apart_s`` seconds ago or earlier."""
        if self._live is not None and time.monotonic() - self._drawn >= apart_s:
            self._live.start()  # the first time
            self._live.refresh()
            self._drawn = time.monotonic()

    def render(self) -> Text:
        """What is drawn: a line for each row, cut where the terminal is narrow; of one row also
        what is measured now, when the clock stands still."""
        shown = [row for row in self.rows if row.stage_name or row.text]
        several = len(self.rows) > 1
        lines = [
            f"{row.name}: {row.line()}" if several and row.name else row.line() for row in shown
        ]
        if len(shown) == 1 and (names := list(shown[0].current)):
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            lines.append(f"now: {names[0]}{more}")
        return Text("\n".join([*lines, ""]), no_wrap=True, overflow="ellipsis")  # room for ^C
