"""Results: the report of recorded runs, their rooflines and gallery, other programs' results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nqbench.cli import measuring, options
from nqbench.cli.options import argument, option
from nqbench.errors import FolderRefused, StoreError, StudyError


def report(
    runs: options.RunsIfAny = None,
    csv: Annotated[
        bool, option("--csv", "Instead every measurement as a line; --out names a file.")
    ] = False,
    roofline: Annotated[
        bool,
        option(
            "--roofline",
            "Instead the kernels of a GPU under its limits: bytes, FP32 and integer operations, as"
            " counted by a profiler (`counters: ncu`) or in a simulated run.",
        ),
    ] = False,
    ceilings: Annotated[
        Path | None,
        option(
            "--ceilings",
            "For --roofline: run of the study ceilings on that GPU; default: next to the runs.",
            metavar="RUN",
        ),
    ] = None,
    counters: Annotated[
        list[Path] | None,
        option(
            "--counters",
            "For --roofline: simulated run of the same points; repeatable.",
            metavar="RUN",
        ),
    ] = None,
    site: Annotated[
        bool,
        option(
            "--site",
            "Instead linked pages of runs, papers and comparisons in plots/site or --out;"
            " default: every run under results/reference.",
        ),
    ] = False,
    out: options.OutFolder = None,
    formats: options.Formats = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show the numbers of recorded runs; write their tables and figures."""

    from nqbench.cli.show import console, results

    console.hush(quiet)
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
        options.refuse(
            {"--ceilings": ceilings, "--counters": counters}, "only --roofline takes them"
        )
    results.note_incomplete([*runs, *(counters or ())])
    if csv:
        options.refuse({"--format": set(formats or ()) - {"csv"}}, "--csv writes one table")
        _write_measurements(runs, out)
    elif roofline:
        _roofline(runs, ceilings, counters or [], out, formats or [])
    elif site:
        options.refuse({"--format": formats}, "--site writes HTML")
        _site(runs, out)
    else:
        _show_and_write(runs, out, formats or [], as_json=as_json)


def _show_and_write(
    paths: list[Path], out: Path | None, formats: list[str], *, as_json: bool
) -> None:
    from nqbench.cli.show import documents, results
    from nqbench.report.items import read_run

    runs = list(map(read_run, paths))
    for run in () if as_json else runs:
        results.show_numbers(run, failures=True)
    written = measuring.write(runs, out, formats)
    if as_json:
        documents.print_report(runs, [written])
    else:
        results.show_files(written)


def _write_measurements(runs: list[Path], out: Path | None) -> None:
    """Every measurement as comma-separated values, to standard output or a file."""
    from nqbench.runs.frame import load
    from nqbench.system.files import DISK_ERRORS

    text = str(load(runs).to_csv(index=False, lineterminator="\n"))
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        failed = StoreError if error.errno in DISK_ERRORS else FolderRefused
        raise failed(f"{out} cannot be written: {error.strerror}") from error
    typer.echo(str(out))


def _roofline(
    runs: list[Path],
    ceilings: Path | None,
    counters: list[Path],
    out: Path | None,
    formats: list[str],
) -> None:
    from nqbench.cli.show import results, tables
    from nqbench.report.roofline import write_roofline

    written = write_roofline(runs, ceilings, counters, out, formats)
    for table in written.tables:
        tables.show_report_table(table)
    results.show_paths(written.paths)


def _site(runs: list[Path], out: Path | None) -> None:
    from nqbench.cli.show import console
    from nqbench.report.site import SITE, write_site

    for path in write_site(out or SITE, runs, options.shown_line()):
        console.say(str(path))


def import_(
    form: Annotated[str, argument("FORMAT", "nvbench.")],
    file: Annotated[
        Path,
        argument("FILE", "What `nvbench --json` wrote; a folder of such files: rounds."),
    ],
    out: options.RunFolder = None,
) -> None:
    """Make a run of another program's results: compare and report take it like any other."""
    from nqbench.interchange import import_run

    typer.echo(str(import_run(form, file, out)))
