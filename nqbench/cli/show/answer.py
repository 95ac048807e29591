"""The answer of a run on one screen: at most 24 lines of 100 columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from nqbench.analysis import wording
from nqbench.analysis.answer import MODELLED, Answer, Best, FactorStep
from nqbench.analysis.findings import gains, interaction, opening, programs, superlative
from nqbench.cli.show import console

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nqbench.analysis.data.quantities import Quantity

WIDTH: Final = 100
"""Columns of the screen that the answer is made for."""
COLUMNS: Final = 4
"""Quantities beside each other."""
SIZES: Final = 3
"""Of the sizes, the largest: an effect with its interval takes more room."""
ROWS: Final = 8
"""Factors in the table, the strongest; the page has all of them."""
LISTED: Final = 4
"""Lines of the best points."""


def show_answer(answer: Answer, ending: str = "") -> None:
    """The headline with how many points came out right and the ``ending``, what each change does,
    the best points."""
    data = answer.data
    ok = sum(p.ok for p in data.points)
    right = ", ".join(filter(None, [f"{ok} of {len(data.points)} points right", ending]))
    head = f"{data.name} on {data.device_short}: {manner(answer)}"
    console.say(f"{head:<{WIDTH - len(right) - 2}}  {right}")
    about = " ".join(str(data.study.get("about") or "").split())
    if about.endswith("?"):
        console.say(about)
    if answer.best and not data.simulated:
        console.say("")
        console.say(opening(answer))
    if answer.changes:
        console.say("")
        _changes(answer)
    for sentence in (answer.turns, interaction(answer), answer.limits, programs(answer)):
        if sentence:
            console.say(sentence)
    lines = list(_best(answer))
    if lines:
        console.say("")
    room = max(len(head) for head, _ in lines) + 3 if lines else 0
    for name, text in lines[:LISTED]:
        console.say(text, bullet=f"{name:<{room}}")
    if not (answer.best or answer.changes):
        console.say("Nothing to compare yet: no two points of one size finished.")


def show_next(answer: Answer, *, checked: bool = False) -> None:
    """Commands that go on from here: a time, the races (unless ``checked``), the lines behind the
    numbers."""
    study = _study(answer.data.command)
    if not study or answer.data.programs_only:
        return
    model = answer.data.spec.removeprefix("sim:").partition(":")[0]
    steps = {
        "find races": f"nqbench check {study}",
        "by source line": f"nqbench explain {study}",
    }
    if answer.data.simulated and MODELLED not in {q.name for q in answer.quantities}:
        timed = {"time it": f"nqbench run {study} -d cuda:0"}
        steps = {**timed, "model the time": f"-d sim:{model}:cache:time", **steps}
        steps.pop("by source line")
    if checked:
        del steps["find races"]
    console.say("    ".join(f"{what}: {how}" for what, how in steps.items()), bullet="Next   ")


def _study(command: str) -> str:
    """The study of ``nqbench run STUDY ...``; empty for another command."""
    words = command.split()
    named = [w for w in words[2:3] if not w.startswith("-")]
    return named[0] if words[1:2] == ["run"] and named else ""


def manner(answer: Answer) -> str:
    """How the numbers came about, in a few words."""
    data = answer.data
    if not data.simulated:
        return data.provenance
    if any(q.name == MODELLED for q in answer.quantities):
        return "simulated, exact counts, modelled times"
    return "simulated, exact counts, no times"


def _changes(answer: Answer) -> None:
    """A table of what the strongest step of each factor does: by quantity, or of times by size."""
    first = answer.changes[0]
    where = f"{first.sweep}, {_of(answer, first)}"
    title = f"What each change does, everything else equal ({where}, N = {first.n})"
    console.say(f"{title:<{WIDTH - 22}}  + better  - worse")
    shown = answer.changes[:ROWS]
    heads, cells = (
        _by_size(answer, shown) if not answer.data.simulated else _by_quantity(answer, shown)
    )
    rows = [
        [change.factor, f"{level(change.base)} -> {level(change.level)}", *row]
        for change, row in zip(shown, cells, strict=True)
    ]
    console.show_table(["", "", *heads], rows)


def _of(answer: Answer, step: FactorStep) -> str:
    programs = answer.data.programs_only
    points = answer.data.select(step.sweep, (step.n,), cpu=programs)
    return f"{len(points)} {'points' if programs else 'kernels'}"


def _by_quantity(answer: Answer, shown: Sequence[FactorStep]) -> tuple[list[str], list[list[str]]]:
    """The quantities that some change alters, at the largest size."""
    told = [q for q in answer.quantities if any(_cell(c, q) not in ("", "same") for c in shown)]
    told = told[:COLUMNS]
    return [q.plain for q in told], [[_cell(change, what) for what in told] for change in shown]


def _by_size(answer: Answer, shown: Sequence[FactorStep]) -> tuple[list[str], list[list[str]]]:
    """The times at the largest sizes."""
    found = [change.by_size(answer.quantities[0]) for change in shown]
    sizes = sorted({n for one in found for n in one})[-SIZES:]
    cells = [
        [wording.marked(one[n], spread=n == sizes[-1]) if n in one else "" for n in sizes]
        for one in found
    ]
    return [f"N = {n}" for n in sizes], cells


def _cell(change: FactorStep, what: Quantity) -> str:
    effect = change.effects.get(what.name)
    return "" if effect is None else wording.marked(effect)


def _best(answer: Answer) -> Iterator[tuple[str, str]]:
    """The best point of the answering sweep by each count, then of each other sweep."""
    for best in answer.best if answer.data.simulated else ():
        name = superlative(best)
        yield name[0].upper() + name[1:], _line(best)
    for best in answer.elsewhere:
        yield best.sweep, _line(best)


def _line(best: Best) -> str:
    value = wording.amount(best.value.value, best.what)
    over = gains(best)
    return f"{wording.short(best.name)}: {value}" + (f" ({', '.join(over)})" if over else "")


def level(value: object) -> str:
    """A level; of a system without the paper's name."""
    return re.sub(r"^[a-z_]+\d*\.(?=[a-z])", "", str(value))
