"""The sanitizer: a plan runs in the checked mode, and its mistakes are gathered by place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from nqbench.errors import KernelFault, LaunchTimeout
from nqbench.plan import Kernel, KernelPlan, MultiLaunchPlan
from nqbench.simulator.findings import Finding
from nqbench.simulator.launching import prepare
from nqbench.simulator.ptx import Where
from nqbench.simulator.simulation import Simulation
from nqbench.system.files import cache_folder

TIMEOUT_S: Final = 120.0
"""Of a launch in the checked mode, which takes up to 30 times as long as an ordinary one."""


@dataclass(frozen=True, slots=True)
class LineText:
    """A line of a source file; ``path`` as far as it was found, ``text`` empty if it was not."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.path else f"PTX line {self.line}"


@dataclass(slots=True)
class Mistake:
    """One mistake at one place: over all points, launches and threads.

    ``first`` is its first occurrence, ``count`` how many there were, ``points`` where.
    """

    first: Finding
    kernel: str
    line: LineText
    other: LineText | None = None
    count: int = 0
    points: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Plain form."""
        first = self.first
        named = ("opcode", "space", "buffer", "element", "address", "message")
        lines = [
            {"file": line.path, "line": line.line, "text": line.text.strip()}
            for line in (self.line, self.other)
            if line is not None
        ]
        return {
            **{"kind": first.kind, "kernel": self.kernel, **lines[0]},
            "other": lines[1] if self.other else None,
            **{"count": self.count, "points": self.points},
            **{name: getattr(first, name) for name in named},
            **{"type": first.dtype, "bytes": first.nbytes},
            "threads": [{"block": block, "thread": thread} for block, thread in first.threads],
            **{"does": list(first.does), "values": list(first.values)},
        }


def run_checked(
    plan: KernelPlan | MultiLaunchPlan, simulation: Simulation, timeout_s: float = TIMEOUT_S
) -> Iterator[tuple[Kernel, Finding]]:
    """Launch a plan once in a simulation that is ``checked``; gives what is wrong with its kernels.

    Raises what ``prepare`` raises, and ``LaunchTimeout``.
    """
    with prepare(simulation, plan) as prepared:
        stop: Finding | None = None
        try:
            prepared.launch(timeout_s)
        except KernelFault as error:
            stop = error.finding
        except LaunchTimeout as error:
            stop = error.finding
            if not stop and not any(list(watch.findings()) for _, watch in prepared.watches()):
                raise
        watches = prepared.watches()
        for kernel, watch in watches:
            findings = list(watch.findings())
            races = {f.other for f in findings if f.kind == "race"}
            races |= {f.place for f in findings if f.kind == "race"}
            lost = {f.place for f in findings if f.kind == "lost update"}
            lost |= {f.other for f in findings if f.kind == "unfinished copy" and f.other}
            for f in findings:
                # What another thread was to write first is a race, and no second mistake. Nor is
                # a race whose write is lost to another one, or not there yet.
                twice = f.kind == "uninitialised" and f.place in races
                if not twice and not (f.kind == "race" and {f.place, f.other} & lost):
                    yield kernel, f
        if stop is None:
            return
        found = [f for _, watch in watches for f in watch.findings()]
        if not any(f.kind == stop.kind and stop.place in (f.place, f.other) for f in found):
            stopped = next((k for k, _ in watches if f"kernel {k.entry}:" in stop.message), None)
            yield stopped or watches[0][0], stop


def gather(mistakes: list[Mistake], kernel: Kernel, finding: Finding, label: str) -> None:
    """Count a finding with those of the same kind at the same lines, in either order."""
    line = source_line(kernel, finding.place)
    other = None if finding.other is None else source_line(kernel, finding.other)
    for mistake in mistakes:
        same = {line, other} == {mistake.line, mistake.other}
        if mistake.first.kind == finding.kind and same:
            break
    else:
        mistake = Mistake(finding, kernel.entry, line, other)
        mistakes.append(mistake)
    mistake.count += finding.count
    if label not in mistake.points:
        mistake.points.append(label)


def source_line(kernel: Kernel, place: Where) -> LineText:
    """A line of a kernel's source or of a file that it includes, by the file's name."""
    if not place.file:
        return LineText("", place.line, "")
    folders = (kernel.source.parent, *kernel.include, *kernel.source.parents[1:3])
    path = next((f / place.file for f in folders if (f / place.file).is_file()), None)
    if kernel.source.name == place.file:
        path = kernel.source
    if path is None:
        return LineText(place.file, place.source_line, "")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    number = place.source_line
    text = lines[number - 1].rstrip() if 0 < number <= len(lines) else ""
    try:
        shown = path.resolve().relative_to(Path.cwd())
    except ValueError:
        shown = Path(path.name) if path.is_relative_to(cache_folder()) else path
    return LineText(str(shown), number, text)
