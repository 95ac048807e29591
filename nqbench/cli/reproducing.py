"""What ``claims`` and ``reproduce`` do, without printing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nqbench.errors import StudyError

if TYPE_CHECKING:
    from nqbench.analysis.claims.judge import Verdict
    from nqbench.analysis.claims.runs import Observed
    from nqbench.papers.schema import Paper
    from nqbench.report.papers.write import PaperReport
    from nqbench.report.table import Table

STUDY: Final = "study.yaml"
RESULTS: Final = Path("results")
KINDS: Final = ("reference", "local")
"""Runs that are part of the project, and a user's own: each get a folder under ``plots``."""


def study_of(paper: str) -> Path:
    """The study that runs a paper again. Raises ``StudyError`` for an unknown paper."""
    from nqbench.papers import paper_folder

    return paper_folder(paper) / STUDY


def claims(
    runs: Sequence[Path], paper: str | None, *, full: bool = False
) -> list[tuple[Table, list[Verdict]]]:
    """The verdict tables of runs: one per paper that they speak about.

    Raises ``StudyError`` (no paper's run, unknown paper, runs that say nothing about the paper
    asked for) and ``StoreError`` (no run).
    """
    from dataclasses import replace

    from nqbench.analysis.claims.judge import judge
    from nqbench.analysis.claims.runs import observe, papers_of
    from nqbench.report.papers.verdict_table import claims_table
    from nqbench.report.papers.write import joint_source

    observed = [observe(run) for run in runs]
    found = []
    for one in papers_of(observed, paper):
        mine = observed if paper else [r for r in observed if r.data.name == one.id]
        verdicts = judge(one, mine, full=full)
        table = claims_table(one, verdicts, joint_source(mine))
        strangers = [said for run in mine if (said := _of_another_study(one, run))]
        if len(strangers) == len(mine) and not any(map(_rests_on_a_run, verdicts)):
            raise StudyError("; ".join(strangers))
        found.append((replace(table, notes=(*strangers, *table.notes)), verdicts))
    return found


def _rests_on_a_run(verdict: Verdict) -> bool:
    from nqbench.analysis.claims.judge import ENUMERATED

    return verdict.device != ENUMERATED and verdict.word != "not measured"


def _of_another_study(paper: Paper, run: Observed) -> str:
    """What a run of another study has of a paper; nothing to say of the paper's own run."""
    if run.data.name == paper.id:
        return ""
    spoken_of = {paper.system(system.id) for system in paper.systems if system.system}
    there = len(spoken_of & {point.system for point in run.data.points})
    many = "all" if there == len(spoken_of) else there or "none"
    return (
        f"{run.path} is a run of study '{run.data.name}' and has {many} of the"
        f" {len(spoken_of)} systems that {paper.id} speaks of; `nqbench reproduce {paper.id}`"
        " measures them as the paper did"
    )


def report_paper(
    name: str, runs: Sequence[Path], out: Path | None, *, full: bool = False
) -> PaperReport:
    """Write a paper's tables, figures and verdicts from runs."""
    from nqbench.analysis.claims.runs import observe
    from nqbench.papers import load_paper
    from nqbench.report import default_out
    from nqbench.report.papers import write_paper

    paper: Paper = load_paper(name)
    return write_paper(
        paper, [observe(run) for run in runs], out or default_out(runs[0]), full=full
    )


def report_recorded(
    names: Sequence[str], out: Path | None = None, *, full: bool = False
) -> list[PaperReport]:
    """Write papers again from every run of them under ``results``; nothing is run.

    ``out`` is for one paper; where it has runs of both kinds each gets a folder there. Papers
    without a run are left out. Raises ``StudyError`` where there is none at all.
    """
    reports = []
    for name in names:
        kinds = {kind: runs for kind in KINDS if (runs := recorded_runs(name, kind))}
        for kind, runs in kinds.items():
            folder = Path("plots") / kind / "papers" / name
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


def recorded_runs(name: str, kind: str) -> list[Path]:
    """Run folders of a paper's study under ``results/KIND/DEVICE``."""
    found = (RESULTS / kind).glob(f"*/{name}/manifest.json")
    return sorted(manifest.parent for manifest in found)
