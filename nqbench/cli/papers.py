"""Papers: run their experiments again, judge their claims."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import typer

from nqbench.cli import EXIT_INTERRUPTED, exit_code, measuring, options, show
from nqbench.cli.options import argument, option
from nqbench.errors import FolderRefused, NothingRuns, StudyError

OWN: Final = "sim:own"
"""In the place of a device: models of all GPUs that the paper has."""


def reproduce(
    papers: list[str] = argument("PAPER", "Papers by name."),
    device: options.DeviceName = "auto",
    out: Path | None = option("--out -o", "Folder to write into (one paper only).", None),
    budget: options.Budget = None,
    recorded: bool = option("--recorded", "Run nothing: use every run under results/.", False),
    cpu: options.CpuBaseline = None,
    quiet: options.Quiet = False,
) -> None:
    """Run a paper's experiments again: tables, figures, verdicts.

    --device sim:own runs its kernels on models of its own GPUs, with modelled times.
    """
    from nqbench.papers import paper_folder

    show.console.hush(quiet)
    if out is not None and len(papers) > 1:
        raise StudyError("--out takes one paper; leave it out for several")
    if out is not None and out.exists() and not out.is_dir():  # before anything is measured
        raise FolderRefused(f"--out {out} is not a folder; give another one")
    for name in papers:
        paper_folder(name)  # report a wrong name before anything is run
    if recorded:
        given = {"--device": device if device != "auto" else None, "--budget": budget}
        options.refuse(given, "--recorded runs nothing")
        from nqbench.report.papers import write

        for report in write.report_recorded(papers, out, cpu=cpu):
            show.results.show_paper(report)
        for name in (name for name in papers if not any(write.recorded([name]))):
            said = f"there is no run of {name} here: `nqbench reproduce {name}` makes one"
            show.console.note(said)
        return
    worst, left_out = 0, 0
    for name in papers:
        try:
            if device == OWN:
                worst = max(worst, _on_own_gpus(name, out, budget))
            else:
                worst = max(worst, _reproduce(name, device, out, budget, cpu))
        except NothingRuns as error:
            left_out += 1
            if left_out == len(papers):
                raise
            show.console.note(f"{name} is left out: {error}")
        if worst == EXIT_INTERRUPTED:  # whoever stops one paper does not want the next
            break
    if worst:
        raise typer.Exit(worst)


def _reproduce(
    name: str, device: str, out: Path | None, budget: float | None, cpu: Path | None
) -> int:
    """Reproduce one paper; the exit code is that of ``run``."""
    from nqbench.analysis.answer import Answer
    from nqbench.analysis.data.dataset import load_dataset
    from nqbench.analysis.data.for_papers import with_programs
    from nqbench.papers import load_paper, paper_folder
    from nqbench.report.papers.write import recorded_beside, write_paper
    from nqbench.report.writer import write_report
    from nqbench.runs.reading import default_out
    from nqbench.study import load_study

    study = load_study(paper_folder(name) / "study.yaml")
    spec = measuring.choose(device, study=study.name)
    outcome = measuring.measure(study, spec, budget=budget)
    show.results.show_outcome(outcome)
    if outcome.measured:
        # The study's own tables, next to the paper's.
        run, out = load_dataset(outcome.path), out or default_out(outcome.path)
        write_report(Answer(run), out)
        beside = recorded_beside(name, outcome.path)
        made = write_paper(load_paper(name), with_programs([run], cpu), out, beside=beside)
        show.results.show_paper(made, outcome.path)
    return exit_code(outcome)


def _on_own_gpus(name: str, out: Path | None, budget: float | None) -> int:
    """Run a paper's kernels on models of its own GPUs; the exit code is the worst of ``run``."""
    from nqbench.analysis.data.dataset import load_dataset
    from nqbench.papers import load_paper, paper_folder
    from nqbench.report.papers.write import write_own
    from nqbench.runs.reading import PLOTS
    from nqbench.simulator.models import is_model
    from nqbench.study import load_study

    paper, file = load_paper(name), paper_folder(name) / "own.yaml"
    if not file.is_file():
        raise NothingRuns(f"{name} has no study {file.name} for models of its own GPUs")
    study = load_study(file)
    cards = [card.id for card in paper.hardware if card.kind == "gpu" and is_model(card.id)]
    outcomes = []
    for card in cards:
        spec = measuring.choose(f"sim:{card}:cache:time", study=study.name)
        outcomes.append(measuring.measure(study, spec, budget=budget))
        show.results.show_outcome(outcomes[-1])
    runs = [load_dataset(one.path) for one in outcomes if one.counts.get("ok", 0)]
    if runs:
        show.results.show_paper(write_own(paper, runs, out or PLOTS / "local" / "own" / name))
    return max(map(exit_code, outcomes))


def claims(
    runs: options.RunsIfAny = None,
    paper: str | None = option(
        "--paper PAPER", "Judge this paper's claims; default: those of the runs.", None
    ),
    matrix: bool = option(
        "--matrix",
        "Instead what each change is worth: printed by the papers, modelled, measured; by"
        " device. Default: every run under results/.",
        False,
    ),
    cpu: options.CpuBaseline = None,
    out: options.OutFolder = None,
    formats: options.Formats = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Judge every claim of a paper by recorded runs.

    With --paper and without a run: the paper's scorecard, from the runs under results/. The exit
    code is 0 whatever the verdicts.
    """
    from nqbench.report.papers.write import claims_tables, recorded_scorecard

    show.console.hush(quiet)
    if matrix:
        options.refuse({"--paper": paper}, "--matrix has the rows of all papers")
        from nqbench.analysis.data.for_papers import load_all
        from nqbench.report.matrix import write_effects, write_recorded

        command = options.shown_line()
        if runs:
            reports = [write_effects(load_all(runs, cpu), out, command, formats or [])]
        else:
            reports = write_recorded(out, command, formats or [], cpu=cpu)
        if as_json:
            show.console.print_json([row for report in reports for row in report.cells.records()])
        for report in () if as_json else reports:
            show.console.show_report_table(report.matrix)
            show.results.show_paths(report.paths)
        return
    options.refuse({"--out": out, "--format": formats}, "claims writes files only of --matrix")
    if paper and not runs:
        card, scores = recorded_scorecard(paper, cpu)
        if as_json:
            show.console.print_json({"outcome": card.outcome, **scores.as_json("claims")})
        else:
            show.results.show_scorecard(card, scores)
        return
    if not runs:
        raise StudyError("claims needs the runs to judge by: nqbench claims RUN, or --paper PAPER")
    tables = claims_tables(runs, paper, cpu=cpu)
    if as_json:
        show.console.print_json([{"paper": p, **t.as_json("claims")} for p, t in tables.items()])
        return
    for table in tables.values():
        show.results.show_claims(table)
