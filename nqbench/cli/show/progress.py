"""Progress while something is measured or compiled: live bars on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from nqbench.cli.show.console import console, duration, say
from nqbench.measure.events import Listener
from nqbench.workloads import KERNEL

PLAIN_INTERVAL_S: Final = 10.0
"""Seconds between two progress lines in a log: often enough to see life, rare enough to read."""


@contextmanager
def progress() -> Iterator[PlainListener]:
    """Live bars on a terminal, lines elsewhere; stopped however the block ends."""
    out = console(stderr=True)
    listener = RichListener(out) if out.is_terminal else PlainListener(out)
    try:
        yield listener
    finally:
        listener.finished(None)


def failure_text(record: Any) -> str:
    """A failed record in one line: status, point, reason."""
    point = record.point
    name = point.get("system") or point.get("sweep")
    own = str(point.get("workload", "")).startswith(f"{KERNEL}:")
    levels = [f" {k}={v}" for k, v in point["factors"].items() if own and k != "n"]
    n = point["factors"].get("n")
    return f"{record.status}: {name} N={n}{''.join(levels)}: {record.reason}"


class PlainListener(Listener):
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
        self.message(f"{name}: {total}")

    def advanced(self, record: Any = None) -> None:
        """One step of the stage is done; a failed record is named at once."""
        self.done += 1
        if record is not None and record.status not in ("ok", "skipped"):
            self.message(f"  {failure_text(record)}")
        now = time.monotonic()
        if self.total and now - self.last >= PLAIN_INTERVAL_S:
            self.last = now
            self.message(f"  {self.stage_name}: {self.done} of {self.total}")

    def message(self, text: str) -> None:
        """A sentence for the user."""
        say(text, self.out)

    def device(self, name: str) -> PlainListener:
        """The lines of one of several devices."""
        return PlainLane(self, name)

    def finished(self, outcome: Any) -> None:
        """The run is over; the caller shows the outcome."""


class RichListener(PlainListener):
    """One bar per stage; failures and messages scroll above it."""

    def __init__(self, out: Console) -> None:
        super().__init__(out)
        self.progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=out,
        )
        self.task: TaskID | None = None

    def stage(self, name: str, total: int) -> None:
        """Start a bar; the previous one stays as a finished line."""
        self.task = self.add(name, total)

    def add(self, name: str, total: int | None = None) -> TaskID:
        """A further bar."""
        self.progress.start()
        return self.progress.add_task(name, total=total, rate="")

    def advanced(self, record: Any = None) -> None:
        """Move the bar; a failed record is named at once."""
        if self.task is not None:
            self.progress.advance(self.task)
        if record is not None and record.status not in ("ok", "skipped"):
            self.message(failure_text(record))

    def device(self, name: str) -> PlainListener:
        """The bar of one of several devices."""
        return RichLane(self, name)

    def finished(self, outcome: Any) -> None:  # noqa: ARG002 - the listener protocol names it
        """Stop redrawing."""
        self.progress.stop()


class PlainLane(PlainListener):
    """Lines of one device: points done, rate, time left. Its thread is not the only one."""

    def __init__(self, whole: PlainListener, name: str) -> None:
        super().__init__(whole.out)
        self.whole, self.name = whole, name
        self.began = 0.0

    def stage(self, name: str, total: int) -> None:
        """A new stage of this device begins."""
        self.began = time.monotonic()
        super().stage(name, total)

    def advanced(self, record: Any = None) -> None:
        """One step is done; every ``PLAIN_INTERVAL_S`` seconds a line says how far it is."""
        self.done += 1
        if record is not None and record.status not in ("ok", "skipped"):
            self.message(failure_text(record))
        now = time.monotonic()
        if self.total and now - self.last >= PLAIN_INTERVAL_S:
            self.last = now
            rate = self.done / (now - self.began)
            left = duration((self.total - self.done) / rate)
            done = f"{self.done} of {self.total}, {rate:.3g} per second, {left} left"
            self.message(f"{self.stage_name}: {done}")

    def message(self, text: str) -> None:
        """A sentence about this device."""
        self.whole.message(f"{self.name}: {text}")


class RichLane(PlainLane):
    """One bar for all stages of a device."""

    def __init__(self, whole: RichListener, name: str) -> None:
        super().__init__(whole, name)
        self.progress = whole.progress
        self.task = whole.add(name)

    def stage(self, name: str, total: int) -> None:
        """The bar starts again."""
        self.began, self.done = time.monotonic(), 0
        self.progress.reset(self.task, total=total, description=f"{self.name}: {name}", rate="")

    def advanced(self, record: Any = None) -> None:
        """Move the bar; a failed record is named at once."""
        self.done += 1
        rate = self.done / max(time.monotonic() - self.began, 1e-3)
        self.progress.update(self.task, advance=1, rate=f"{rate:.3g}/s")
        if record is not None and record.status not in ("ok", "skipped"):
            self.message(failure_text(record))
