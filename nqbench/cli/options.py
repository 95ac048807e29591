"""Arguments and options that several commands share, and how they are parsed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from nqbench.cli import completion
from nqbench.errors import StudyError
from nqbench.system.files import printable

FRESH: Final = "--fresh"

Config = Annotated[
    Path,
    typer.Argument(
        metavar="CONFIG",
        help="A study file (YAML), or a packaged study's name.",
        autocompletion=completion.studies,
    ),
]
RunsIfAny = Annotated[
    list[Path] | None,
    typer.Argument(metavar="RUN", help="Run folders.", autocompletion=completion.runs),
]
Device = Annotated[
    str,
    typer.Option(
        "--device",
        "-d",
        help="auto, cuda:0, sim:NAME or cpu.",
        autocompletion=completion.devices,
    ),
]
RunFolder = Annotated[
    Path | None, typer.Option("--out", "-o", help="Run folder; default: results/local/...")
]
OutFolder = Annotated[
    Path | None, typer.Option("--out", "-o", help="Folder for tables, figures and the page.")
]
Fresh = Annotated[
    bool, typer.Option(FRESH, help="Start over instead of resuming (old records are kept).")
]
Budget = Annotated[
    str | None, typer.Option("--budget", help="Time for the whole run: 90s, 10m, 1h.")
]
Formats = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        "-f",
        help="md, csv, tex, html; repeatable.",
        autocompletion=completion.formats,
    ),
]
Full = Annotated[
    bool,
    typer.Option(
        "--full", help="Compute deterministic counts of large boards too (minutes, once)."
    ),
]
CpuBaseline = Annotated[
    Path | None,
    typer.Option(
        "--cpu",
        metavar="RUN",
        help="Take the times of CPU programs from this run, for all sizes.",
        autocompletion=completion.runs,
    ),
]
Gpus = Annotated[
    str | None,
    typer.Option("--gpus", metavar="all|0,1", help="GPUs of this computer, a worker for each."),
]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", metavar="tcp://HOST:PORT", help="Workers of a Dask scheduler."),
]
ClusterFile = Annotated[
    Path | None,
    typer.Option("--cluster", metavar="FILE", help="A YAML file that starts workers: SSH, Slurm."),
]
Insecure = Annotated[
    bool,
    typer.Option("--insecure", help="Allow other computers without encryption (docs/cluster.md)."),
]
Json = Annotated[bool, typer.Option("--json", help="The result as JSON.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print nothing but errors and points that failed.")
]


def budget_seconds(text: str | None) -> float | None:
    """``--budget`` in seconds: a duration as in a study, ``10m`` or ``1m30s``."""
    from nqbench.study import duration_s

    if text is None:
        return None
    try:
        return duration_s(text)
    except StudyError as error:
        raise StudyError(f"--budget: {error.message}") from error


def refuse(given: Mapping[str, object], why: str) -> None:
    """Raise ``StudyError`` if one of these options has a value, because it would have no effect."""
    for option, value in given.items():
        if value:
            raise StudyError(f"{option} has no effect here ({why}); leave it out")


def command_line() -> list[str]:
    """The command as a user would type it again, fit for a UTF-8 file."""
    return ["nqbench", *map(printable, sys.argv[1:])]
