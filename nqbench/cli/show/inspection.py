"""What ``check`` found and ``explain`` counted, beside the kernel's source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nqbench.cli.show.console import console, say
from nqbench.cli.show.tables import show_table
from nqbench.report.explain import NOTE, dearest, listing
from nqbench.simulator.mistakes import sentence
from nqbench.system import suggest

if TYPE_CHECKING:
    from nqbench.inspection import Checked
    from nqbench.report.explain import Explained
    from nqbench.report.table import Source
    from nqbench.simulator.mistakes import Mistake


def show_checked(found: Checked) -> None:
    """A paragraph for each mistake, then the sum."""
    for mistake in found.mistakes:
        _show_mistake(mistake)
    for label, reason in found.failed:
        say(f"{label}: could not be checked: {reason}")
    for reason, count in Counter(reason for _, reason in found.skipped).items():
        say(f"{suggest.many(count, 'point')} skipped: {reason}")
    if not found.checked:
        say("no point was checked" if found.failed else "no point is a kernel")
        return
    kinds = Counter(mistake.first.kind for mistake in found.mistakes)
    what = suggest.listing([f"{kind} ({count})" for kind, count in kinds.items()], "and")
    say(f"{suggest.many(len(found.checked), 'point')} checked: {what or 'nothing wrong was found'}")


def _show_mistake(mistake: Mistake) -> None:
    times = f"{mistake.count:,} time{'' if mistake.count == 1 else 's'}"
    say(f"{mistake.line}: {mistake.first.kind}, {times}, in kernel {mistake.kernel}")
    lines = [mistake.line]
    if mistake.other is not None and mistake.other != mistake.line:
        lines.append(mistake.other)
    for line in lines:
        if line.text:
            say(f"{line.line:>6} | {line.text.strip()}")
    say(sentence(mistake.first), bullet="    ")
    rest = f" and {len(mistake.points) - 1} more" if len(mistake.points) > 1 else ""
    say(f"in {mistake.points[0]}{rest}", bullet="    ")
    say("")


def show_explained(found: Sequence[Explained], source: Source) -> None:
    """For each kernel the dearest lines, then the annotated source."""
    out = console()
    for one in found:
        say(f"{one.title} ({source})")
        show_table(*dearest(one))
        for text in listing(one, out.width):
            out.print(text, markup=False, soft_wrap=True)
        say("")
    if found:
        say(NOTE)
