"""What each line of a kernel's source costs: a table, and a figure of one warp."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nqbench.report.figures import style
from nqbench.report.page import FORMATS, Page
from nqbench.report.table import Column, Source, Table, slug, tabulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LANES: Final = 32
MAX_BINS: Final = 600
"""Columns of the picture of a warp's life: about as many as a panel has dots."""
NOTE: Final = (
    "slots: issue slots (a count, not a time); warps, threads: PTX instructions, per warp and per"
    " active thread; lanes: active ones of an instruction; divergent: branches whose lanes part;"
    " conflicts: bank conflicts; sectors per request to local and global memory"
)
SHOWN: Final = 12
"""Lines in the sorted table on a terminal; the listing has all."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the source with its counters (``simulator.tally.SOURCE_COUNTS``).

    ``file`` is empty for instructions that belong to no line.
    """

    file: str
    line: int
    text: str
    counts: Mapping[str, int]

    @property
    def place(self) -> str:
        """``file:line``."""
        return f"{self.file}:{self.line}" if self.file else "(no line)"

    @property
    def efficiency(self) -> float:
        """Active lanes of an instruction as a fraction of all."""
        return self.counts["thread_instructions"] / (LANES * self.counts["warp_instructions"])

    @property
    def sectors(self) -> float | None:
        """Sectors per request to local and global memory; ``None`` without requests."""
        requests = self.counts["local_requests"] + self.counts["global_requests"]
        found = self.counts["local_sectors"] + self.counts["global_sectors"]
        return found / requests if requests else None


@dataclass(frozen=True, slots=True)
class Explained:
    """A kernel of a point: its lines, and the life of its first warp.

    ``steps``   instructions and lanes (a bit mask) of each basic block that the warp ran
    """

    label: str
    kernel: str
    lines: Sequence[SourceLine]
    steps: Sequence[tuple[int, int]] = ()

    @property
    def slots(self) -> int:
        """Issue slots of the whole kernel."""
        return sum(line.counts["issue_slots"] for line in self.lines)

    @property
    def title(self) -> str:
        """What it is called in tables and figures."""
        return f"{self.label}, {self.kernel}" if self.kernel else self.label

    def as_json(self) -> dict[str, Any]:
        """Plain form."""
        return {
            "point": self.label,
            "kernel": self.kernel,
            "lines": [
                {
                    **{"file": line.file, "line": line.line, "text": line.text},
                    **line.counts,
                    "lane_efficiency": line.efficiency,
                    "sectors_per_request": line.sectors,
                }
                for line in self.lines
            ],
        }


def lines_table(found: Explained, source: Source) -> Table:
    """The lines, those with the most issue slots first."""
    ranked = sorted(found.lines, key=lambda line: -line.counts["issue_slots"])
    columns, rows = tabulate(
        ranked,
        (Column("line"), lambda line: line.place),
        (Column("issue slots", "number"), lambda line: line.counts["issue_slots"]),
        (Column("share", "number", "%"), lambda line: 100 * _share(line, found)),
        (Column("warps", "number"), lambda line: line.counts["warp_instructions"]),
        (Column("threads", "number"), lambda line: line.counts["thread_instructions"]),
        (Column("lanes", "number", "%"), lambda line: 100 * line.efficiency),
        (Column("divergent", "number"), lambda line: line.counts["divergent_branches"] or None),
        (Column("conflicts", "number"), lambda line: line.counts["bank_conflicts"] or None),
        (Column("sectors/request", "number"), lambda line: line.sectors),
        (Column("source"), lambda line: line.text.strip()),
    )
    return Table(slug("lines", found.title), found.title, columns, rows, source, (NOTE,))


def dearest(found: Explained) -> tuple[list[str], list[list[str]]]:
    """The first lines of the table in few columns, for a terminal: headings and rows."""
    names = ["line", "share", "slots", "threads", "lanes", "div.", "confl.", "s/req"]
    ranked = sorted(found.lines, key=lambda line: -line.counts["issue_slots"])
    rows = []
    for line in ranked[:SHOWN]:
        counts = ("divergent_branches", "bank_conflicts")
        rows.append(
            [
                *(Path(line.place).name, f"{_share(line, found):.1%}"),
                *(_short(line.counts[key]) for key in ("issue_slots", "thread_instructions")),
                f"{line.efficiency:.0%}",
                *(_short(line.counts[key]) if line.counts[key] else "" for key in counts),
                "" if line.sectors is None else f"{line.sectors:.1f}",
            ]
        )
    return names, rows


def _share(line: SourceLine, found: Explained) -> float:
    return line.counts["issue_slots"] / found.slots if found.slots else 0.0


def listing(found: Explained, width: int) -> list[str]:
    """The source with its numbers, one text per line, cut to ``width``.

    Only lines that cost something, and the gaps between them; lines of files that could not be read
    have no text.
    """
    head = f"{'slots':>6} {'lanes':>5} {'confl.':>7} {'s/req':>5} {'line':>5}"
    texts = [f"{head} | {found.title}"[:width]]
    for file in dict.fromkeys(line.file for line in found.lines if line.file):
        texts.append(f"{file}:"[:width])
        last = 0
        for line in (line for line in found.lines if line.file == file):
            if last and line.line > last + 1:
                texts.append(f"{'...':>{len(head)}} |")
            last = line.line
            conflicts = line.counts["bank_conflicts"]
            numbers = (
                f"{_share(line, found):>6.1%} {line.efficiency:>5.0%}"
                f" {_short(conflicts) if conflicts else '':>7}"
                f" {'' if line.sectors is None else format(line.sectors, '.1f'):>5} {line.line:>5}"
            )
            texts.append(f"{numbers} | {line.text}"[:width].rstrip())
    return texts


def _short(number: int) -> str:
    """At most seven characters."""
    for factor, unit in ((10**9, "G"), (10**6, "M"), (10**4, "k")):
        if number >= factor:
            scale = 1000 if unit == "k" else factor
            return f"{number / scale:.1f}{unit}"
    return str(number)


def lanes_figure(found: Sequence[Explained], source: Source) -> style.Drawing:
    """Which lanes of the first warp are active, instruction by instruction; a panel per kernel."""
    shown = [one for one in found if one.steps]
    figure, axes = style.panels(len(shown), 0.9, 1.35, most=1)
    for ax, one in zip(axes, shown, strict=True):
        _lanes_panel(ax, one)
    axes[-1].set_xlabel("instructions that the warp has issued")
    title = "Lanes of one warp over time"
    subtitle = "The first warp of the grid; dark: the lane is active"
    alt = "For each kernel a picture with a row per lane, dark where it is active."
    return style.finish(figure, "lanes", title, source, alt=alt, subtitle=subtitle)


def _lanes_panel(ax: Axes, one: Explained) -> None:
    lengths = np.array([length for length, _ in one.steps])
    masks = np.array([mask for _, mask in one.steps], np.int64)
    active = (masks[:, None] >> np.arange(LANES) & 1).astype(float)
    total = int(lengths.sum())
    bins = min(MAX_BINS, total)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    edges = np.linspace(0, total, bins + 1)
    summed = np.vstack([np.zeros(LANES), np.cumsum(active * lengths[:, None], axis=0)])
    at = np.array([np.interp(edges, ends, summed[:, lane]) for lane in range(LANES)])
    picture = np.diff(at, axis=1) / np.diff(edges)
    ax.imshow(
        picture, aspect="auto", cmap="Blues", vmin=0, vmax=1, interpolation="nearest",
        extent=(0, total, LANES - 0.5, -0.5),
    )  # fmt: skip
    mean = float((active.sum(axis=1) * lengths).sum() / (LANES * total))
    ax.set_title(f"{one.title}: {mean:.0%} of the lanes active", loc="left")
    ax.set_ylabel("lane")
    ax.set_yticks([0, 15, 31])
    ax.grid(visible=False)


def write_explained(
    found: Sequence[Explained], source: Source, out: Path, formats: Sequence[str] = ()
) -> list[Path]:
    """Write a page with the tables and figures into a folder; returns the files, the page first."""
    page = Page(out, tuple(formats) or FORMATS)
    page.heading(f"Counters by source line: {source.run}", 1)
    with style.styled():
        if any(one.steps for one in found):
            page.drawing(lanes_figure(found, source), source)
    for one in found:
        page.table(lines_table(one, source))
    return page.write("explain")
