"""The command line: each command parses, calls one function, prints.

Exit codes are a contract: 0 all points measured and verified; 1 some points failed; 2 the study or
the command line is wrong (nothing was run); 130 interrupted (what was measured is kept).
Everything heavy is imported inside the commands, so that ``nqbench --help`` stays quick.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from nqbench.cli.boards import register as register_boards
from nqbench.cli.bottleneck import register as register_bottleneck
from nqbench.cli.compare import register
from nqbench.cli.exit_codes import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_WRONG, exit_code
from nqbench.cli.papers import register as register_papers
from nqbench.errors import (
    DeviceUnavailable,
    FolderRefused,
    InfeasibleError,
    NqbenchError,
    StudyError,
)

app = typer.Typer(
    help="Reproducible benchmarks and ablations of irregular search on GPUs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

FRESH: Final = "--fresh"
HELP: Final = frozenset(["--help"])
NEED_LITTLE: Final = ("kernels", "devices", "schema")
"""Commands that list and compute nothing."""

Config = Annotated[Path, typer.Argument(metavar="CONFIG", help="A study file (YAML).")]
DeviceOption = Annotated[
    str, typer.Option("--device", "-d", help="auto, cuda:0, sim:NAME, cpu or replay:RUN.")
]
OutOption = Annotated[Path | None, typer.Option("--out", "-o", help="Folder to write into.")]


def _version(asked: bool) -> None:
    if asked:
        from nqbench.system.versions import __version__

        typer.echo(f"nqbench {__version__}")
        raise typer.Exit


@app.callback()
def common(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 (its callback acts)
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print it and exit."),
    ] = False,
) -> None:
    """Reproducible benchmarks and ablations of irregular search on GPUs."""
    command = context.invoked_subcommand
    if command != "doctor" and not HELP.intersection(sys.argv):  # the doctor tells what is missing
        from nqbench.system.memory import LIST_BYTES, ROOM_BYTES, check_room

        check_room(LIST_BYTES if command in NEED_LITTLE else ROOM_BYTES)


@app.command()
def run(
    config: Config,
    device: DeviceOption = "auto",
    out: OutOption = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over instead of resuming (old records are kept).")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the points and an estimate; run nothing.")
    ] = False,
    budget: Annotated[
        str | None, typer.Option("--budget", help="Time for the whole run: 90s, 10m, 1h.")
    ] = None,
    no_report: Annotated[
        bool, typer.Option("--no-report", help="Measure only; draw nothing.")
    ] = False,
) -> None:
    """Measure a study and write its tables and figures."""
    from nqbench.cli import measuring as actions
    from nqbench.cli.show import console as terminal
    from nqbench.study import load_study

    budget_s = actions.budget_seconds(budget)
    study = load_study(config)
    choice = actions.choose(device)
    if device == "auto":
        terminal.note(choice.why)
    if dry_run:
        points = actions.plan_points(study, choice.spec)
        terminal.show_points(points, actions.estimate(points, study, choice.spec))
        return
    with terminal.progress() as listener:
        outcome = actions.measure(
            study,
            choice.spec,
            out=out,
            fresh=fresh,
            budget_s=budget_s,
            listener=listener,
            command=_command(),
        )
    terminal.show_outcome(outcome)
    if outcome.interrupted:  # whoever stops a run does not want to wait for its figures
        raise typer.Exit(EXIT_INTERRUPTED)
    if not no_report and outcome.counts.get("ok", 0):
        terminal.show_report(actions.report([outcome.path], None, ()))
    if code := exit_code(outcome):
        raise typer.Exit(code)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")],
    out: OutOption = None,
    formats: Annotated[
        list[str] | None, typer.Option("--format", "-f", help="md, csv, tex, html; repeatable.")
    ] = None,
) -> None:
    """Write the tables and figures of recorded runs."""
    from nqbench.cli import measuring as actions
    from nqbench.cli.show import console as terminal

    terminal.tell_incomplete(runs)
    terminal.show_report(actions.report(runs, out, tuple(formats or ())))


@app.command()
def count(
    n: Annotated[int, typer.Argument(metavar="N", help="Board size, 1 to 27.")],
    device: DeviceOption = "auto",
) -> None:
    """Count the solutions for N queens by the fastest verified path."""
    from nqbench.cli import measuring as actions
    from nqbench.cli.show import console as terminal
    from nqbench.solve.count import check_size, count_solutions

    check_size(n)  # before a word on devices
    choice = actions.choose(device)
    if device == "auto":
        terminal.note(choice.why)
    terminal.show_count(count_solutions(n, choice.spec))


@app.command()
def static(
    config: Config,
    arch: Annotated[
        str, typer.Option("--arch", help="Architectures, separated by commas.")
    ] = "sm_75,sm_80,sm_90,sm_120",
    csv: Annotated[bool, typer.Option("--csv", help="Comma-separated values.")] = False,
) -> None:
    """Registers, spills, shared memory and occupancy of every point; needs no GPU."""
    from nqbench.cli import measuring as actions
    from nqbench.cli.show import console as terminal
    from nqbench.study import load_study

    archs = [a.strip() for a in arch.split(",") if a.strip()]
    study = load_study(config)
    with terminal.progress() as listener:
        rows = actions.static_rows(study, archs, listener=listener)
    terminal.show_static(rows, csv=csv)


@app.command()
def kernels(
    system: Annotated[str | None, typer.Argument(metavar="[SYSTEM]")] = None,
) -> None:
    """List the systems; with a name, show what that one is made of."""
    from nqbench.cli import measuring as actions
    from nqbench.cli.show import console as terminal

    if system is None:
        terminal.show_systems(actions.workloads_with_systems())
    else:
        terminal.show_system(*actions.find_system(system))


@app.command()
def devices() -> None:
    """List where plans can run here, and what is missing for the rest."""
    from nqbench.cli.show import console as terminal
    from nqbench.devices.registry import list_devices

    terminal.show_devices(list_devices())


@app.command()
def doctor(
    device: Annotated[
        str, typer.Option("--device", "-d", help="auto, cuda:0, sim or cpu: what is to be used.")
    ] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="The findings as JSON.")] = False,
) -> None:
    """Say what this machine has and lacks, and the commands that mend it; changes nothing.

    Exit code 1 if something is missing that the device needs.
    """
    import json

    from nqbench.cli.show.doctor import show_doctor
    from nqbench.doctor import examine

    report = examine(device)
    if as_json:
        typer.echo(json.dumps(report.as_json(), indent=2))
    else:
        show_doctor(report)
    if not report.usable:
        raise typer.Exit(EXIT_FAILED)


@app.command()
def schema() -> None:
    """Print the JSON Schema of study files."""
    import json

    from nqbench.study import schema as study_schema

    typer.echo(json.dumps(study_schema(), indent=2))


register(app)
register_papers(app)
register_boards(app)
register_bottleneck(app)


def _command() -> list[str]:
    """The command line as a user would type it again.

    It goes into UTF-8 files, so bytes of a file name that are not UTF-8 are spelt out.
    """
    words = (os.fsencode(word).decode("utf-8", "backslashreplace") for word in sys.argv[1:])
    return ["nqbench", *words]


def _say(error: NqbenchError) -> None:
    typer.echo(f"nqbench: {error}", err=True)


def _what(error: OSError) -> str:
    if error.filename is None:
        try:
            Path.cwd()
        except OSError:
            return "the working directory has been deleted; change into another one"
    # A library that cannot be loaded has no number, so that Python leaves strerror empty.
    return f"{error.filename or 'the output'}: {error.strerror}" if error.strerror else str(error)


def main() -> None:
    """Turn expected errors into one sentence and the contract's exit code."""
    try:
        app()
    except (StudyError, DeviceUnavailable, InfeasibleError, FolderRefused) as error:
        _say(error)
        sys.exit(EXIT_WRONG)
    except NqbenchError as error:
        _say(error)
        sys.exit(EXIT_FAILED)
    except SystemExit as end:
        if end.code == EXIT_INTERRUPTED:  # Ctrl-C, which typer turns into this
            again = shlex.join(word for word in _command() if word != FRESH)  # it would start over
            typer.echo(
                f"nqbench: interrupted; what was measured is kept; resume with: {again}", err=True
            )
        raise
    except BrokenPipeError:
        # The reader went away (``nqbench ... | head``): nothing to say, and nowhere to say it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)
    except OSError as error:
        # What the rooms can explain they turn into an NqbenchError; left are the streams.
        typer.echo(f"nqbench: {_what(error)}", err=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)
