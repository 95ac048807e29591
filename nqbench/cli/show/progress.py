"""The live progress display of a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from nqbench.cli.show.console import PlainListener, point_text


class RichListener(PlainListener):
    """One bar per stage; failures and messages scroll above it."""

    def __init__(self, out: Console) -> None:
        super().__init__(out)
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=out,
        )
        self.task: TaskID | None = None

    def stage(self, name: str, total: int) -> None:
        """Start a bar; the previous one stays as a finished line."""
        if self.task is None:
            self.progress.start()
        self.task = self.progress.add_task(escape(name), total=total)

    def advanced(self, record: Any = None) -> None:
        """Move the bar; a failed record is named at once."""
        if self.task is not None:
            self.progress.advance(self.task)
        if record is not None and record.status not in ("ok", "skipped"):
            text = f"{record.status}: {point_text(record)}: {record.reason}"
            self.progress.console.print(escape(text))

    def message(self, text: str) -> None:
        """A sentence above the bars."""
        self.progress.console.print(escape(text))

    def finished(self, outcome: Any) -> None:  # noqa: ARG002 - the listener protocol names it
        """Stop redrawing."""
        self.progress.stop()
