"""The answer of a run on one screen: at most 24 lines of 100 columns."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nqbench.analysis import wording
from nqbench.analysis.answer import MODELLED, Answer, FactorStep
from nqbench.analysis.findings import gains, interaction, opening, programs, superlative
from nqbench.cli.show import console
from nqbench.system.files import from_here, printable

WIDTH: Final = 100
"""Columns of the screen that the answer is made for."""
SIZES: Final = 3
"""Of the sizes, the largest: an effect with its interval takes more room."""
ROWS: Final = 8
"""Factors in the table, the strongest; the page has all of them."""


def show_answer(answer: Answer, ending: str = "") -> None:
    """The headline with how many points came out right and the ``ending``, what each change does,
    the best points."""
    data = answer.data
    right = ", ".join(filter(None, [data.outcome, ending]))
    head = f"{data.name} on {data.device_short}: {manner(answer)}"
    console.say(f"{head:<{WIDTH - len(right) - 2}}  {right}")
    if answer.question:
        console.say(answer.question)
    if answer.best and not data.simulated:
        console.say("")
        console.say(opening(answer))
    if answer.changes:
        console.say("")
        _changes(answer)
    for sentence in (answer.turns, interaction(answer), answer.limits, programs(answer)):
        if sentence:
            console.say(sentence)
    counted = answer.best if data.simulated else []
    lines = [(wording.capital(superlative(best)), best) for best in counted]
    lines += [(best.sweep, best) for best in answer.elsewhere]
    if lines:
        console.say("")
    room = max((len(head) for head, _ in lines), default=0) + 3
    for head, best in lines[:4]:
        over = f" ({', '.join(gains(best))})" if gains(best) else ""
        value = wording.amount(best.value.value, best.what)
        console.say(f"{wording.short(best.name)}: {value}{over}", bullet=f"{head:<{room}}")
    if not (answer.best or answer.changes):
        console.say("Nothing to compare yet: no two points of one size finished.")


def show_next(answer: Answer, config: Path, *, checked: bool = False) -> None:
    """Commands that go on with a study: a time, the races (unless ``checked``), the lines behind
    the numbers."""
    if answer.data.programs_only:
        return  # nothing to look into
    study = shlex.quote(from_here(printable(config)))
    model = answer.data.spec.removeprefix("sim:").partition(":")[0]
    steps = {"find races": f"nqbench check {study}", "by source line": f"nqbench explain {study}"}
    if answer.data.simulated and MODELLED not in {q.name for q in answer.quantities}:
        timed = {"time it": f"nqbench run {study} -d cuda:0"}
        steps = {**timed, "model the time": f"-d sim:{model}:cache:time", **steps}
        steps.pop("by source line")
    if checked:
        del steps["find races"]
    console.say("    ".join(f"{what}: {how}" for what, how in steps.items()), bullet="Next   ")


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
    first, data = answer.changes[0], answer.data
    count = len(data.select(first.sweep, (first.n,), cpu=data.programs_only))
    where = f"{first.sweep}, {count} {'points' if data.programs_only else 'kernels'}"
    title = f"What each change does, everything else equal ({where}, N = {first.n})"
    console.say(f"{title:<{WIDTH - 22}}  + better  - worse")
    shown = answer.changes[:ROWS]
    found = _by_quantity(answer, shown) if data.simulated else _by_size(answer, shown)
    changes = [f"{level(change.base)} -> {level(change.level)}" for change in shown]
    columns = [("", [change.factor for change in shown]), ("", changes), *found]
    rows = list(map(list, zip(*(cells for _, cells in columns), strict=True)))
    console.show_table([head for head, _ in columns], rows)


def _by_quantity(answer: Answer, shown: Sequence[FactorStep]) -> list[tuple[str, list[str]]]:
    """A column for each quantity that some change alters, and for the modelled time, which was
    asked for; at the largest size."""
    found = []
    for what in answer.quantities:
        effects = (change.effects.get(what.name) for change in shown)
        cells = [str(effect.difference) if effect else "" for effect in effects]
        if set(cells) - {"", "same"} or what.name == MODELLED:
            found.append((what.plain, cells))
    return found[:4]


def _by_size(answer: Answer, shown: Sequence[FactorStep]) -> list[tuple[str, list[str]]]:
    """A column for each of the largest sizes, with the times."""
    found = [change.by_size(answer.quantities[0]) for change in shown]
    sizes = sorted({n for one in found for n in one})[-SIZES:]
    return [
        (
            f"N = {n}",
            [one[n].difference.said(spread=n == sizes[-1]) if n in one else "" for one in found],
        )
        for n in sizes
    ]


def level(value: object) -> str:
    """A level; of a system without the paper's name."""
    return re.sub(r"^[a-z_]+\d*\.(?=[a-z])", "", str(value))
