"""What ``compare``, ``selftest`` and ``export`` do, without printing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nqbench.errors import AnalysisError, InterchangeError, StoreError, StudyError

if TYPE_CHECKING:
    from nqbench.analysis.compare.model import Comparison
    from nqbench.analysis.data.dataset import Dataset
    from nqbench.report.comparison import Findings
    from nqbench.selftest.statistics import SelfTest

GATES: Final = {"slower": "time", "differs": "counter"}
"""What ``--fail-on`` takes, and the kind of quantity that it speaks about."""


@dataclass(frozen=True, slots=True)
class Gate:
    """When a comparison fails: at a verdict whose ratio is off by at least ``threshold``."""

    verdict: str
    threshold: float = 0.0

    def hits(self, comparison: Comparison) -> int:
        """Points that break it. Raises ``StudyError`` where nothing could ever break it."""
        kind = GATES[self.verdict]
        rows = [row for row in comparison.rows if row.quantity.kind == kind]
        if not rows:
            other = "differs" if self.verdict == "slower" else "slower"
            what = "no times, only counts" if self.verdict == "slower" else "no counts, only times"
            raise StudyError(
                f"--fail-on {self.verdict}: {comparison.names[1]} and {comparison.names[0]} have"
                f" {what}; use --fail-on {other}"
            )
        return sum(row.verdict == self.verdict and self._far(row.ratio.value) for row in rows)

    def _far(self, ratio: float) -> bool:
        if self.verdict == "slower":
            return ratio >= 1 + self.threshold
        return abs(ratio - 1) >= self.threshold


def percentage(text: str, option: str) -> float:
    """``1%`` as 0.01. Raises ``StudyError``, also for a bare number: its unit would be a guess."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    if not match:
        raise StudyError(f"{option} {text!r} is no share; write a percentage such as 1% or 0.5%")
    return float(match[1]) / 100


def parse_gate(text: str) -> Gate:
    """``slower``, ``slower:2%``, ``differs``, ``differs:1%``. Raises ``StudyError``."""
    verdict, colon, threshold = text.partition(":")
    if verdict not in GATES:
        known = " or ".join(GATES)
        raise StudyError(f"--fail-on {text!r} is not known; write {known}, e.g. slower:2%")
    if not colon:
        return Gate(verdict)
    return Gate(verdict, percentage(threshold, f"--fail-on {verdict}:"))


def compare(
    paths: Sequence[Path],
    *,
    by: str | None,
    margin: str,
    value: str | None,
    command: str,
) -> Findings:
    """Compare runs with the first of them, or levels of a factor within one run.

    Raises ``StudyError`` for whatever is wrong with the request or the files: exit code 1 is kept
    for a gate that was hit.
    """
    try:
        return _compare(paths, by, percentage(margin, "--margin"), value, command)
    except (AnalysisError, StoreError, InterchangeError) as error:
        raise StudyError(str(error)) from error


def _compare(
    paths: Sequence[Path], by: str | None, margin: float, value: str | None, command: str
) -> Findings:
    from nqbench.analysis.compare.runs import compare_levels, compare_runs
    from nqbench.interchange import open_results
    from nqbench.report.comparison import Findings

    resolved = [path.resolve() for path in paths]
    if len(set(resolved)) < len(resolved):
        raise StudyError("the same run is given twice: a run equals itself; give another one")
    if by is not None:
        if len(paths) != 1:
            raise StudyError(f"--by compares within one run, but {len(paths)} are given")
        factor, levels = _levels(by)
        data = open_results(paths[0])
        within = [
            compare_levels(data, factor, (levels[0], level), margin=margin, value=value)
            for level in levels[1:]
        ]
        return Findings(tuple(within), (), (), command, several_devices=False)
    if len(paths) < 2:
        raise StudyError(
            "a comparison needs two runs, or one run and two levels of a factor:"
            " --by system=zhang2011.low_divergence,zhang2011.pool_distributed"
        )
    runs = [open_results(path) for path in paths]
    names = run_names(runs, paths)
    found = [
        compare_runs(runs[0], run, (names[0], name), margin=margin, value=value)
        for run, name in zip(runs[1:], names[1:], strict=True)
    ]
    return _with_devices(runs, names, tuple(found), command)


def _with_devices(
    runs: Sequence[Dataset], names: Sequence[str], found: tuple[Comparison, ...], command: str
) -> Findings:
    """Add what several devices say about each other."""
    from nqbench.analysis.compare.devices import rank_correlations, reversals
    from nqbench.analysis.data.quantities import HOST_TIME
    from nqbench.report.comparison import Findings

    if len({run.device for run in runs}) < 2:
        return Findings(found, (), (), command, several_devices=False)
    # Ranks and reversals are of what GPUs do; their hosts may differ too.
    shown = list(dict.fromkeys(b.quantity for c in found for b in c.blocks))
    shown = [what for what in shown if what != HOST_TIME]
    ranks = [r for what in shown for r in rank_correlations(runs, names, what)]
    turned = [r for what in shown for r in reversals(runs, names, what)]
    return Findings(found, tuple(ranks), tuple(turned), command, several_devices=True)


def run_names(runs: Sequence[Dataset], paths: Sequence[Path]) -> list[str]:
    """What to call each run: its device where that tells the runs apart, else its folder."""
    devices = [run.device_short for run in runs]
    if len(set(devices)) == len(devices):
        return devices
    return [str(path) for path in paths]


def _levels(by: str) -> tuple[str, list[str]]:
    factor, _, text = by.partition("=")
    levels = [level.strip() for level in text.split(",") if level.strip()]
    if len(levels) < 2 or len(set(levels)) < len(levels):
        raise StudyError(
            f"--by {by!r} needs a factor and two levels or more, the reference first:"
            " --by memory=global,shared"
        )
    return factor.strip(), levels


def write_comparison(findings: Findings, out: Path, formats: Sequence[str]) -> list[Path]:
    """Write the tables, figures and the page of a comparison."""
    from nqbench.report.comparison_writer import write_comparison as write

    try:
        return write(findings, out, formats or ("md", "csv"))
    except StoreError as error:  # exit code 1 is kept for a gate that was hit
        raise StudyError(str(error)) from error


def rendered(findings: Findings, form: str) -> str:
    """Every table of a comparison in one format, one after the other."""
    from nqbench.report.comparison import tables_of
    from nqbench.report.exporters import exporter

    chosen = exporter(form)
    return "\n".join(chosen.render(table) for table in tables_of(findings))


def export(run: Path, form: str, out: Path | None) -> str:
    """A run in another format; written to ``out`` where that is given."""
    from nqbench.interchange import export_run

    text = export_run(run, form, out)
    if out is not None:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(text, encoding="utf-8")
        except OSError as error:
            raise StoreError(f"{out} cannot be written: {error.strerror}") from error
    return text


def check_self_test(
    run: Path | None, trials: int | None, device: str | None, out: Path | None, budget: str | None
) -> None:
    """Raise ``StudyError`` for options that have no meaning together."""
    given = {"--trials": trials, "--device": device, "--out": out, "--budget": budget}
    named = [option for option, value in given.items() if value is not None]
    if run is not None and named:
        raise StudyError(
            f"{named[0]} is for a self-test that measures; {run} is only judged again:"
            " give the run alone, or leave it out"
        )
    if device is None and (out is not None or budget is not None):
        raise StudyError("--out and --budget belong to a run on a device: add --device cuda:0")
    if device is not None and trials is not None:
        raise StudyError("--trials is for the test device; on a device each pair is one trial")


def judged_again(run: Path) -> SelfTest:
    """What a recorded run of the self-test says.

    Raises ``StudyError`` for whatever is no such run: exit code 1 is kept for a broken limit.
    """
    from nqbench.selftest.device import judge_run

    try:
        return judge_run(run)
    except (AnalysisError, StoreError) as error:
        raise StudyError(str(error)) from error


def self_test(trials: int | None, progress: Callable[[str], None]) -> SelfTest:
    """The statistics against known truth, on the test device and all cores."""
    from nqbench.selftest.statistics import TRIALS
    from nqbench.selftest.statistics import self_test as run
    from nqbench.selftest.trials import SCENARIOS
    from nqbench.system.cpu import cpu_count

    processes = min(cpu_count(), len(SCENARIOS))
    return run(TRIALS if trials is None else trials, processes=processes, progress=progress)


def self_test_device(
    spec: str, out: Path | None, budget: str | None, listener: Any, command: Sequence[str]
) -> tuple[SelfTest, Path]:
    """An A/A run on a device and what it says; also the run's folder."""
    from nqbench.cli.measuring import budget_seconds, run_folder
    from nqbench.measure.runner import run_study
    from nqbench.selftest.device import judge_run, study, times

    times(spec)
    same_twice = study()
    outcome = run_study(
        same_twice,
        spec,
        out or run_folder(same_twice, spec),
        fresh=True,
        budget_s=budget_seconds(budget),
        listener=listener,
        command=command,
    )
    return judge_run(outcome.path), outcome.path
