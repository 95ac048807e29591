"""Results: reports of recorded runs, comparisons, their proof, other programs' runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from nqbench.cli import EXIT_FAILED, measuring, options, show
from nqbench.cli.options import argument, option
from nqbench.errors import AnalysisError, InterchangeError, StoreError, StudyError

if TYPE_CHECKING:
    from nqbench.analysis.compare.request import Findings, Gate

GITHUB: Final = "github"


def report(
    runs: options.RunsIfAny = None,
    csv: bool = option("--csv", "Instead every measurement as a line; --out names a file.", False),
    roofline: bool = option(
        "--roofline", "Instead kernels of a GPU, by counters of ncu, under its limits.", False
    ),
    ceilings: Path | None = option(
        "--ceilings RUN",
        "For --roofline: run of the study ceilings; default: next to the runs.",
        None,
    ),
    site: bool = option(
        "--site", "Instead linked pages in plots/site or --out; default: results/reference.", False
    ),
    out: options.OutFolder = None,
    formats: options.Formats = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show what recorded runs say; write tables, figures and a page."""
    from nqbench.runs.frame import write_csv

    show.console.hush(quiet)
    if not (runs or site):
        raise StudyError("report needs the runs to report: nqbench report RUN")
    kinds = {"--csv": csv, "--roofline": roofline, "--site": site}
    chosen = [name for name, asked in kinds.items() if asked]
    if len(chosen) > 1:
        raise StudyError(f"{chosen[0]} and {chosen[1]} are different reports; ask for one")
    runs = runs or []
    if chosen:
        options.refuse({"--json": as_json}, f"{chosen[0]} has no JSON form")
    if not roofline:
        options.refuse({"--ceilings": ceilings}, "only --roofline takes it")
    if csv:
        options.refuse({"--format": set(formats or ()) - {"csv"}}, "--csv writes one table")
        text = write_csv(runs, out)
        typer.echo(out or text, nl=out is not None)
    elif roofline:
        from nqbench.report.roofline import write_roofline

        table, paths = write_roofline(runs, ceilings, out, formats or [])
        show.console.show_report_table(table)
        show.results.show_paths(paths)
    elif site:
        options.refuse({"--format": formats}, "--site writes HTML")
        from nqbench.report.site import SITE, write_site

        show.results.show_paths(write_site(out or SITE, runs, options.shown_line()))
    else:
        from nqbench.analysis.answer import Answer
        from nqbench.analysis.data.dataset import load_dataset
        from nqbench.report.page import unused
        from nqbench.report.table import slug

        read = [Answer(load_dataset(run)) for run in runs]
        for run in () if as_json else read:
            points = run.data.points
            missing = [(p.status, f"{p.name} N={p.n}", p.reason) for p in points if not p.ok]
            show.results.show_reasons(missing, some_ran=len(missing) < len(points))
            show.answer.show_answer(run)
        taken: set[str] = set()
        folders = [
            out / unused(slug(r.data.name, r.data.device), taken) if out and read[1:] else out
            for r in read
        ]
        reports = [measuring.write(*one, formats or ()) for one in zip(read, folders, strict=True)]
        if as_json:
            measuring.print_runs(read, reports)
        else:
            show.console.say("")
            for written in reports:
                show.results.show_files(written)


def compare(
    runs: list[Path] = argument("RUN", "Run folders or nvbench files; the first is the reference."),
    by: str | None = option(
        "--by", "Within one run: FACTOR=REFERENCE,LEVEL..., paired by round.", None
    ),
    margin: str = option("--margin", "Differences up to this count as the same.", "1%"),
    value: str | None = option(
        "--value", "A phase or counter instead of the usual quantities.", None
    ),
    fail_on: str | None = option(
        "--fail-on",
        "Exit code 1 if a point is slower[:2%], a counter is worse or differs[:1%], or a point"
        " no longer runs.",
        None,
    ),
    out: options.OutFolder = None,
    formats: list[str] | None = option(
        "--format -f FORMAT",
        "md, csv, tex, html; svg, pdf, png; github: annotations, and a summary of the step.",
        None,
    ),
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare several runs, or the levels of a factor within one."""
    from nqbench.analysis.compare.request import Gate, compare_datasets, parse_percentage
    from nqbench.interchange import open_runs
    from nqbench.system.files import printable

    show.console.hush(quiet)
    gate = Gate.parse(fail_on) if fail_on else None
    try:
        findings = compare_datasets(
            open_runs(runs),
            [printable(run) for run in runs],
            by=by,
            margin=parse_percentage(margin, "--margin"),
            value=value,
            command=options.shown_line(),
        )
        broken, said = gate.judge(findings) if gate else (False, "")
        forms = [form for form in formats or () if form != GITHUB]
        if GITHUB in (formats or ()):
            _tell_github(findings, gate, said and f"--fail-on {fail_on}: {said}")
        if forms or out or as_json or not formats:
            _show_comparison(findings, out, forms, as_json=as_json)
    except (AnalysisError, StoreError, InterchangeError) as error:  # the gate's exit code is 1
        raise StudyError(str(error)) from error
    if gate is not None:
        show.console.note(f"--fail-on {fail_on}: {said}")
        if broken:
            raise typer.Exit(EXIT_FAILED)


def _tell_github(findings: Findings, gate: Gate | None, said: str) -> None:
    """Print annotations; add the summary to that of the step, or print it where there is none."""
    from nqbench.report import github

    for line in github.commands(findings, gate):
        typer.echo(line)
    text, step = github.summary(findings, said), os.environ.get("GITHUB_STEP_SUMMARY")
    if step:
        with Path(step).open("a", encoding="utf-8") as file:
            file.write(text)
    else:
        typer.echo(text, nl=False)


def _show_comparison(
    findings: Findings, out: Path | None, formats: list[str], *, as_json: bool
) -> None:
    """Write files with ``--out``, print tables with ``--format`` alone, else show a summary.

    A page of HTML is a file in any case.
    """
    from nqbench.analysis.compare import wording
    from nqbench.report.comparison import rendered, write_comparison
    from nqbench.report.exporters import HTML
    from nqbench.runs.reading import PLOTS

    if HTML in formats:
        out = out or PLOTS / "local" / "compare"
    if formats and out is None and not as_json:
        for form in formats:
            typer.echo(rendered(findings, form), nl=False)
        return
    paths = write_comparison(findings, out, formats or ("md", "csv")) if out else []
    if as_json:
        show.console.print_json(wording.as_json(findings) | {"files": [*map(str, paths)]})
    else:
        show.results.show_comparison(findings, paths)


def verify(
    runs: list[Path] = argument("RUN", "Run folders."),
    package: Path | None = option(
        "--package DIR",
        "Also write the run, with nqbench and all else that it needs, into a new folder.",
        None,
    ),
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Derive again what runs say, from their records: is it so?

    Checksums, answers, statistics, tables, figures, verdicts; no device is used. Exit code 1: some
    of it is not so, and the output names what.
    """
    from nqbench.verify.checks import verify as verify_run
    from nqbench.verify.package import write_package

    show.console.hush(quiet)
    if package and runs[1:]:
        raise StudyError("--package takes one run")
    found, done = [], set[Path]()
    for run in runs:
        with show.progress.progress() as row:
            found.append(verify_run(run, lambda name: row.status(f"deriving again: {name}"), done))
        if not as_json:
            show.results.show_verified(found[-1])
    if as_json:
        show.console.print_json([one.as_json() for one in found])
    if not all(one.holds for one in found):
        raise typer.Exit(EXIT_FAILED)
    if package and found[0].run:
        write_package(found[0].run, package)
        show.results.show_paths([package])


def import_(
    form: str = argument("PROGRAM", "nvbench."),
    file: Path = argument("FILE", "What `nvbench --json` wrote; a folder of such files: rounds."),
    out: options.RunFolder = None,
) -> None:
    """Make a run of nvbench's results, to report and to compare."""
    from nqbench.interchange import import_run

    try:
        typer.echo(str(import_run(form, file, out)))
    except (StoreError, InterchangeError) as error:  # the command line names a file that is none
        raise StudyError(str(error)) from error
