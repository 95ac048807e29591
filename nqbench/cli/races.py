"""Races in a kernel of the user's own: what ``run`` looks for, and what it says at its end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nqbench.cli.show import console, listings
from nqbench.cli.show.progress import progress
from nqbench.system.suggest import many

if TYPE_CHECKING:
    from nqbench.inspection import Checked
    from nqbench.measure.run_state import RunOutcome
    from nqbench.study import Study

CHECK_S: Final = 20.0
"""What the check that ends a run may take; or as long as the run itself."""
NO_BARRIER: Final = "a barrier missing?"
"""In reasons of the simulator that a race may explain."""
SIGNS: Final = re.compile(rf"{re.escape(NO_BARRIER)}|ILLEGAL_ADDRESS|MISALIGNED_ADDRESS")
"""The same, and what a GPU says of a stray access."""


@dataclass
class Races:
    """What is known of them. ``command`` looks for them; ``why`` says why nobody has. A kernel of
    nqbench's (not ``own``) is checked by its tests."""

    command: str
    own: bool = True
    found: Checked | None = None
    why: str = ""

    @property
    def mistakes(self) -> bool:
        """Whether something is wrong."""
        return self.found is not None and bool(self.found.mistakes)

    def show_mistakes(self, outcome: RunOutcome) -> None:
        """The mistakes that were found; else where to look if something is wrong."""
        if self.found is not None and self.found.checked:
            for mistake in self.found.mistakes:
                listings.show_mistake(mistake)
        elif any(r.status == "wrong" or SIGNS.search(r.reason) for r in outcome.failures):
            console.say(f"A race or a stray access? `{self.command}` looks for both")

    def line(self) -> str:
        """``races: none found at N = 64 (8 configurations, 1.2 s)``."""
        if self.found is None or not self.found.checked:
            return f"races: not checked ({', '.join(filter(None, [self.why, self.command]))})"
        found = self.found
        kinds = Counter(mistake.first.kind for mistake in found.mistakes)
        what = ", ".join(f"{kind} ({n})" for kind, n in kinds.items())
        what = str(kinds.total()) if {*kinds} == {"race"} else what or "none"
        every = len(found.checked) + len(found.late)
        of = f"{len(found.checked)} of " if found.late else ""
        sizes = ", ".join(map(str, found.sizes))
        said = f"races: {what} found at N = {sizes} ({of}{many(every, 'configuration')},"
        said += f" {console.duration(found.wall_s)})"
        return said + (f"; for the others: {self.command}" if found.late else "")


def look_for_races(
    study: Study, config: object, outcomes: Sequence[RunOutcome], spec: str
) -> Races | None:
    """Check the configurations of a study's own kernel at their smallest sizes in the simulator.

    Without those that did not run. An empty ``spec`` stands for several devices, and nothing is
    checked then; ``None`` where no kernel ran.
    """
    from nqbench.devices.registry import facts_for, open_simulator
    from nqbench.inspection import check_points
    from nqbench.study import expand
    from nqbench.study.asked import smallest

    races = Races(f"nqbench check {config}", own=":" in study.workload)
    if study.kernel is None:
        return None if study.workload == "programs" else races
    if not spec.startswith("sim") or any(outcome.interrupted for outcome in outcomes):
        return races
    failed = {
        (r.point["sweep"], r.point["system"], str(dict(r.point["factors"])))
        for outcome in outcomes
        for r in outcome.failures
        if r.status not in ("wrong", "check_error") and NO_BARRIER not in r.reason
    }
    points = [p for p in expand(study, facts_for(spec)) if not (p.skip or p.program)]
    ran = [p for p in points if (p.sweep, p.system, str(dict(p.factors))) not in failed]
    if not ran:
        return None
    limit_s = max(CHECK_S, *(outcome.wall_s for outcome in outcomes))
    with progress() as listener:
        model = ":".join(spec.split(":")[:2])  # neither an order nor caches matter for a race
        simulator = open_simulator(model, checked=True)
        try:
            races.found = check_points(smallest(ran), simulator, listener, limit_s)
        except KeyboardInterrupt:
            races.why = "interrupted"
    return races
