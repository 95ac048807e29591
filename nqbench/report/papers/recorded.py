"""Papers from recorded runs: the verdict tables of given runs, and the pages of every run there is.

Nothing is measured here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from nqbench.analysis.claims.judge import ENUMERATED, Verdict, judge
from nqbench.analysis.data.observed import Observed, observe, papers_of
from nqbench.errors import StudyError
from nqbench.papers import load_paper
from nqbench.papers.schema import Paper
from nqbench.report.papers.verdicts import claims_table
from nqbench.report.papers.write import PaperReport, joint_source, write_paper
from nqbench.report.table import Table
from nqbench.report.writer import default_out
from nqbench.runs.layout import KINDS, PLOTS, RESULTS, recorded_runs


def claims_tables(runs: Sequence[Path], paper: str | None, *, full: bool = False) -> list[Table]:
    """The verdict tables of runs: one for each paper that they are about.

    ``full`` lets deterministic counts walk large trees. Raises ``StudyError`` (no paper's run,
    unknown paper, runs that have nothing of the paper asked for) and ``StoreError`` (not a run).
    """
    observed = [observe(run) for run in runs]
    found = []
    for one in papers_of(observed, paper):
        mine = observed if paper else [r for r in observed if r.data.name == one.id]
        verdicts = judge(one, mine, full=full)
        table = claims_table(one, verdicts, joint_source(mine))
        strangers = [said for run in mine if (said := _of_another_study(one, run))]
        if len(strangers) == len(mine) and not any(map(_rests_on_a_run, verdicts)):
            raise StudyError("; ".join(strangers))
        found.append(replace(table, notes=(*strangers, *table.notes)))
    return found


def _rests_on_a_run(verdict: Verdict) -> bool:
    return verdict.device != ENUMERATED and verdict.word != "not measured"


def _of_another_study(paper: Paper, run: Observed) -> str:
    """What a run of another study has of a paper; empty for the paper's own run."""
    if run.data.name == paper.id:
        return ""
    spoken_of = {paper.system(system.id) for system in paper.systems if system.system}
    there = len(spoken_of & {point.system for point in run.data.points})
    many = "all" if there == len(spoken_of) else there or "none"
    return (
        f"{run.path} is a run of study '{run.data.name}' and has {many} of the"
        f" {len(spoken_of)} systems that {paper.id} names; `nqbench reproduce {paper.id}`"
        " measures them as the paper did"
    )


def report_paper(
    name: str, runs: Sequence[Path], out: Path | None, *, full: bool = False
) -> PaperReport:
    """Write a paper's tables, figures and verdicts from runs, by default beside their reports."""
    observed = [observe(run) for run in runs]
    return write_paper(load_paper(name), observed, out or default_out(runs[0]), full=full)


def report_recorded(
    names: Sequence[str], out: Path | None = None, *, full: bool = False
) -> list[PaperReport]:
    """Write papers again from every run of them under ``results``.

    ``out`` is for one paper; where it has runs of both kinds each gets a folder there. Papers
    without a run are left out. Raises ``StudyError`` where there is none at all.
    """
    reports = []
    for name in names:
        kinds = {kind: runs for kind in KINDS if (runs := recorded_runs(name, kind))}
        for kind, runs in kinds.items():
            folder = PLOTS / kind / "papers" / name
            if out is not None:
                folder = out / kind if len(kinds) > 1 else out
            reports.append(report_paper(name, runs, folder, full=full))
    if not reports:
        raise StudyError(
            f"there is no run of {', '.join(names)} under {RESULTS}; `nqbench reproduce {names[0]}`"
            " makes one"
        )
    return reports


def never_run(names: Sequence[str]) -> list[str]:
    """Papers without a run under ``results``."""
    return [name for name in names if not any(recorded_runs(name, kind) for kind in KINDS)]
