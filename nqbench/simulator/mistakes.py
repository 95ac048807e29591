"""The sanitizer: a plan runs in the checked mode, and its mistakes are gathered by place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from nqbench.errors import KernelFault, LaunchTimeout
from nqbench.plan import Kernel, KernelPlan, MultiLaunchPlan
from nqbench.simulator.launching import prepare
from nqbench.simulator.sanitizer import CodePlace, Finding, Thread
from nqbench.simulator.simulation import Simulation
from nqbench.system.files import cache_folder

TIMEOUT_S: Final = 120.0
"""Of a launch in the checked mode, which is 15 to 210 times slower than an ordinary one."""


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
        fault: KernelFault | None = None
        try:
            prepared.launch(timeout_s)
        except KernelFault as error:
            fault = error
        except LaunchTimeout as error:
            if not any(list(watch.findings()) for _, watch in prepared.watches()):
                raise
            if timeout_s >= TIMEOUT_S:
                fault = KernelFault(str(error))
        watches = prepared.watches()
        for kernel, watch in watches:
            findings = list(watch.findings())
            races = {f.other for f in findings if f.kind == "race"}
            races |= {f.place for f in findings if f.kind == "race"}
            for finding in findings:
                # What another thread was to write first is a race, and no second mistake.
                if finding.kind != "uninitialised" or finding.place not in races:
                    yield kernel, finding
        if fault is None:
            return
        stop, found = of_fault(str(fault)), [f for _, watch in watches for f in watch.findings()]
        if not any(f.kind == stop.kind and stop.place in (f.place, f.other) for f in found):
            stopped = next((k for k, _ in watches if f"kernel {k.entry}:" in str(fault)), None)
            yield stopped or watches[0][0], stop


_PLACE: Final = re.compile(r"PTX line (\d+)(?: \((.+?):(\d+)\))?")
_AT_BARRIER: Final = ("went past a barrier", "different bar.sync", "waits at barrier")


def of_fault(message: str) -> Finding:
    """What stopped a launch."""
    where = _PLACE.search(message)
    ptx, file, line = where.groups() if where else ("0", None, None)
    kind = "fault"
    if any(words in message for words in _AT_BARRIER):
        kind = "divergent barrier"
    elif "deadlock" in message:
        kind = "deadlock"
    elif "still running" in message:
        kind = "endless"
    return Finding(kind, CodePlace(file or "", int(line or 0), int(ptx)), message=message)


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


def source_line(kernel: Kernel, place: CodePlace) -> LineText:
    """A line of a kernel's source or of a file that it includes, by the file's name."""
    if not place.file:
        return LineText("", place.ptx_line, "")
    folders = (kernel.source.parent, *kernel.include, *kernel.source.parents[1:3])
    path = next((f / place.file for f in folders if (f / place.file).is_file()), None)
    if kernel.source.name == place.file:
        path = kernel.source
    if path is None:
        return LineText(place.file, place.line, "")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    text = lines[place.line - 1].rstrip() if 0 < place.line <= len(lines) else ""
    try:
        shown = path.resolve().relative_to(Path.cwd())
    except ValueError:
        shown = Path(path.name) if path.is_relative_to(cache_folder()) else path
    return LineText(str(shown), place.line, text)


def who(thread: Thread) -> str:
    """``block 0, thread 5``; all three indices where more than the first are in use."""
    names = ("block", "thread")
    return ", ".join(
        f"{name} {place[0] if not any(place[1:]) else place}"
        for name, place in zip(names, thread, strict=True)
    )


VERBS: Final = {"ld": "reads", "st": "writes", "cp": "copies", "atom": "updates", "red": "updates"}


def sentence(first: Finding) -> str:
    """What happened the first time, in words."""
    if not first.threads:
        return first.message
    verb = VERBS.get(first.opcode.partition(".")[0], "accesses")
    what = _target(first)
    if first.kind == "out of bounds":
        near = f", {first.message}" if first.message else ", near no buffer"
        place = f"{first.nbytes} bytes of {first.space} memory at address {first.address:#x}"
        return f"{who(first.threads[0])} {verb} {place}{near}"
    if first.kind == "misaligned":
        near = f" ({first.message})" if first.message else ""
        wrong = f"address {first.address:#x}{near} is not a multiple of {first.nbytes}"
        return f"{who(first.threads[0])} {verb} {what}: {wrong}"
    if first.kind == "uninitialised":
        return f"{who(first.threads[0])} {verb} {what}, which nothing has written"
    if first.kind == "divergent barrier":
        here, there = map(who, first.threads)
        return (
            f"{here} waits at this barrier while {there} of the same block waits at another; every"
            " thread must reach the same one"
        )
    return f"{who(first.threads[0])} {_change(first, what)}, which {_other(first)}"


def _target(first: Finding) -> str:
    if not first.buffer:
        return f"{first.space} memory at {first.address:#x}"
    element = "" if first.element is None else f"[{first.element}]"
    if " " in first.buffer:
        return first.buffer + (f", element {first.element}" if element else "")
    return first.buffer + element


def _change(first: Finding, what: str) -> str:
    does = first.does[0]
    if does == "reads":
        return f"reads {what}" + (f" = {first.values[0]}" if first.values else "")
    if not first.values:
        return f"updates {what} atomically"
    before, after = first.values
    return f"writes {what} = {after} (before: {before})"


def _other(first: Finding) -> str:
    """What the other thread did."""
    block, thread = first.threads[1]
    same = block == first.threads[0][0]
    name = who((block, thread)).partition(", ")[2] if same else who((block, thread))
    return f"{name} {first.does[1]}; nothing orders the two"
