"""What ``nqbench check`` found."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from nqbench.cli.show.console import say
from nqbench.simulator.mistakes import sentence
from nqbench.system.suggest import listing, many

if TYPE_CHECKING:
    from nqbench.inspection import Checked
    from nqbench.simulator.mistakes import LineText, Mistake


def show_checked(found: Checked) -> None:
    """A paragraph for each mistake, then the sum."""
    for mistake in found.mistakes:
        _show(mistake)
    for label, reason in found.failed:
        say(f"{label}: could not be checked: {reason}")
    for reason, count in Counter(reason for _, reason in found.skipped).items():
        say(f"{many(count, 'point')} skipped: {reason}")
    if not found.checked:
        say("no point was checked" if found.failed else "no point is a kernel")
        return
    kinds = Counter(mistake.first.kind for mistake in found.mistakes)
    what = listing([f"{kind} ({count})" for kind, count in kinds.items()], "and")
    say(f"{many(len(found.checked), 'point')} checked: {what or 'nothing wrong was found'}")


def _show(mistake: Mistake) -> None:
    times = f"{mistake.count:,} time{'' if mistake.count == 1 else 's'}"
    say(f"{mistake.line}: {mistake.first.kind}, {times}, in kernel {mistake.kernel}")
    lines = [mistake.line]
    if mistake.other is not None and mistake.other != mistake.line:
        lines.append(mistake.other)
    for line in lines:
        _show_source(line)
    say(sentence(mistake.first), bullet="    ")
    rest = f" and {len(mistake.points) - 1} more" if len(mistake.points) > 1 else ""
    say(f"in {mistake.points[0]}{rest}", bullet="    ")
    say("")


def _show_source(line: LineText) -> None:
    if line.text:
        say(f"{line.line:>6} | {line.text.strip()}")
