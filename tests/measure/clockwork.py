"""A small run that gives the same numbers however often it is stopped, to try killing on.

    python -m tests.measure.clockwork FOLDER {isolate,inline}

The test device draws each measurement's times from a model that knows only the plan and the round,
and really takes them, so that there is time to interrupt. One line goes to standard output for each
measurement that the runner has stored, as ``n round status``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from nqbench.facts import DeviceFacts
from nqbench.measure.events import Listener, RunOutcome
from nqbench.measure.runner import run_study
from nqbench.plan import Buffer, KernelPlan, Outputs, Plan
from nqbench.point import Level, Point
from nqbench.record import Record
from nqbench.study import Measure, Study
from nqbench.workloads.base import Workload

NAME: Final = "tests.measure.clockwork:CLOCKWORK"
DEVICE: Final = "fake:noise=0.003,round=0.004,seed=7,sleep=1"
SIZES: Final = (7, 8, 9, 10, 11)
"""Launches of 25 microseconds to 6.4 ms."""
HOW: Final = Measure(rounds=3, samples=6, target=0.01, budget_s=180.0)
"""Enough time that noise alone decides how many samples a measurement takes, even on a busy
machine."""
MEASUREMENTS: Final = len(SIZES) * (HOW.rounds + 1)
STARTED: Final = "started"
"""The first line: a stage has begun."""


class Clockwork(Workload):
    """Two raised to n."""

    name = NAME

    def plan(self, factors: Mapping[str, Level], system: str | None, device: DeviceFacts) -> Plan:
        """A plan that only the test device takes."""
        del system, device
        n = factors["n"]
        assert isinstance(n, int)
        out = Buffer("out", "uint64", 1, output=True)
        entry, about = f"tick<{n}>", {"n": n, "answer": 2**n}
        return KernelPlan(
            Path("clockwork.cu"),
            entry,
            ("out",),
            buffers=(out,),
            grid=(1, 1, 1),
            block=(32, 1, 1),
            about=about,
        )

    def answer(self, plan: Plan, outputs: Outputs) -> int:
        """Not asked for: the test device answers itself."""
        raise NotImplementedError

    def expected(self, factors: Mapping[str, Level]) -> int | None:
        """Two raised to n."""
        n = factors["n"]
        assert isinstance(n, int)
        return int(2**n)

    def work(self, factors: Mapping[str, Level]) -> float:
        """As the test device's times grow."""
        n = factors["n"]
        assert isinstance(n, int)
        return float(4**n)


CLOCKWORK: Final = Clockwork()


class Announcer(Listener):
    """Says which measurements are stored."""

    def stage(self, name: str, total: int) -> None:
        """A stage begins."""
        del name, total
        _say(STARTED)

    def advanced(self, record: Record | None = None) -> None:
        """A measurement is stored."""
        if record is not None:
            _say(f"{record.point['factors']['n']} {record.round} {record.status}")


def run(folder: Path, *, isolate: bool) -> RunOutcome:
    """Run, or resume."""
    study = Study.in_memory("clockwork", HOW)
    points = [Point(study.name, "sizes", NAME, None, {"n": n}) for n in SIZES]
    return run_study(study, points, DEVICE, folder, isolate=isolate, listener=Announcer())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; 0 if every point is measured."""
    folder, how = sys.argv[1:] if arguments is None else arguments
    outcome = run(Path(folder), isolate=how == "isolate")
    return 0 if outcome.counts == {"ok": len(SIZES)} else 1


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
