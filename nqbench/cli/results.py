"""Results: the report of recorded runs, their rooflines and gallery, other programs' results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nqbench.cli import measuring
from nqbench.cli.options import (
    Formats,
    Json,
    OutFolder,
    Quiet,
    RunFolder,
    RunsIfAny,
    command_line,
    refuse,
)
from nqbench.errors import FolderRefused, StoreError, StudyError


def report(
    runs: RunsIfAny = None,
    csv: Annotated[
        bool,
        typer.Option("--csv", help="Instead every measurement as a line; --out names a file."),
    ] = False,
    roofline: Annotated[
        bool,
        typer.Option(
            "--roofline",
            help="Instead the kernels of a GPU under its limits: bytes, FP32 and integer"
            " operations, as counted by a profiler (`counters: ncu`) or in a simulated run.",
        ),
    ] = False,
    ceilings: Annotated[
        Path | None,
        typer.Option(
            "--ceilings",
            metavar="RUN",
            help="For --roofline: run of the study ceilings on that GPU; default: next to the"
            " runs.",
        ),
    ] = None,
    counters: Annotated[
        list[Path] | None,
        typer.Option(
            "--counters",
            metavar="RUN",
            help="For --roofline: simulated run of the same points; repeatable.",
        ),
    ] = None,
    site: Annotated[
        bool,
        typer.Option(
            "--site",
            help="Instead linked pages of runs, papers and comparisons in plots/site or --out;"
            " default: every run under results/reference.",
        ),
    ] = False,
    out: OutFolder = None,
    formats: Formats = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the numbers of recorded runs; write their tables and figures."""
    from nqbench.cli.show.console import hush
    from nqbench.cli.show.outcome import note_incomplete

    hush(quiet)
    if not (runs or site):
        raise StudyError("report needs the runs to report: nqbench report RUN")
    chosen = [name for name, on in _kinds(csv, roofline, site).items() if on]
    if len(chosen) > 1:
        raise StudyError(f"{chosen[0]} and {chosen[1]} are different reports; ask for one")
    runs = runs or []
    if chosen:
        refuse({"--json": as_json}, f"{chosen[0]} has no JSON form")
    if not roofline:
        refuse({"--ceilings": ceilings, "--counters": counters}, "only --roofline takes them")
    note_incomplete([*runs, *(counters or ())])
    if csv:
        refuse({"--format": set(formats or ()) - {"csv"}}, "--csv writes one table")
        _write_measurements(runs, out)
    elif roofline:
        _roofline(runs, ceilings, counters or [], out, formats or [])
    elif site:
        refuse({"--format": formats}, "--site writes HTML")
        _site(runs, out)
    else:
        measuring.report(runs, out, formats or (), as_json=as_json)


def _kinds(csv: bool, roofline: bool, site: bool) -> dict[str, bool]:
    return {"--csv": csv, "--roofline": roofline, "--site": site}


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
    from nqbench.cli.show.outcome import show_paths
    from nqbench.cli.show.tables import show_report_table
    from nqbench.report.roofline import write_roofline

    written = write_roofline(runs, ceilings, counters, out, formats)
    for table in written.tables:
        show_report_table(table)
    show_paths(written.paths)


def _site(runs: list[Path], out: Path | None) -> None:
    from nqbench.cli.show.console import say
    from nqbench.report.site import SITE, write_site
    from nqbench.system.files import shown_command

    for path in write_site(out or SITE, runs, shown_command(command_line())):
        say(str(path))


def import_(
    form: Annotated[str, typer.Argument(metavar="FORMAT", help="nvbench.")],
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="What `nvbench --json` wrote; a folder of such files: rounds."
        ),
    ],
    out: RunFolder = None,
) -> None:
    """Make a run of another program's results: compare and report take it like any other."""
    from nqbench.interchange import import_run

    typer.echo(str(import_run(form, file, out)))
