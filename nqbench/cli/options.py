"""Arguments and options that several commands share, and how they are parsed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from nqbench.cli import show
from nqbench.errors import StudyError
from nqbench.system.files import from_here, printable, shown_command

if TYPE_CHECKING:
    from nqbench.cluster.connect import ClusterTarget

FRESH: Final = "--fresh"
Format = StrEnum("Format", "md csv tex html svg pdf png")


def option(form: str, about: str, default: Any = ..., **more: Any) -> Any:
    """An option by its names and what follows them: ``--device -d NAME``."""
    names = [word for word in form.split() if word.startswith("-")]
    value = form.removeprefix(" ".join(names)).strip()
    return typer.Option(default, *names, help=about, metavar=value or None, **more)


def argument(name: str, about: str, default: Any = ...) -> Any:
    """An argument by the name that the help gives it; one without a default must be given."""
    told = _tell_code if "CONFIG" in name else None
    return typer.Argument(default, metavar=name, help=about, callback=told)


def _tell_code(context: typer.Context, given: Any) -> Any:
    """Before a study is read, which may load its Python: what one from elsewhere runs."""
    files = [Path(one) for one in (given if isinstance(given, list) else [given or ""])]
    if any(file.suffix in (".yaml", ".yml") for file in files) and not context.resilient_parsing:
        from nqbench.study.outside import tell_code

        for file in files:
            tell_code(file, show.console.note)
    return given


def _budget_s(text: str) -> float:
    """Seconds of a duration as in a study, ``10m`` or ``1m30s``."""
    from nqbench.study import duration_s

    try:
        return duration_s(text)
    except StudyError as error:
        raise StudyError(f"--budget: {error.message}") from error


Config = Annotated[Path, argument("CONFIG", "A study file (YAML), or a packaged study's name.")]
RunsIfAny = Annotated[list[Path] | None, argument("RUN", "Run folders.")]
DeviceName = Annotated[
    str, option("--device -d DEVICE", "auto, cuda:0, cpu, sim:MODEL, sim:MODEL:cache:time.")
]
RunFolder = Annotated[Path | None, option("--out -o", "Run folder; default: results/local/...")]
OutFolder = Annotated[Path | None, option("--out -o", "Folder for tables, figures and the page.")]
Fresh = Annotated[bool, option(FRESH, "Start over instead of resuming (old records are kept).")]
Budget = Annotated[
    float | None,
    option("--budget BUDGET", "Time for the whole run: 90s, 10m, 1h.", parser=_budget_s),
]
Formats = Annotated[
    list[Format] | None,
    option("--format -f FORMAT", "md, csv, tex, html; figures: svg, pdf, png; repeatable."),
]
CpuBaseline = Annotated[
    Path | None, option("--cpu RUN", "Run with the times of CPU programs, for all sizes.")
]
Gpus = Annotated[str | None, option("--gpus all|0,1", "GPUs of this computer, a worker for each.")]
Scheduler = Annotated[
    str | None, option("--scheduler tcp://HOST:PORT", "Workers of a Dask scheduler.")
]
ClusterPath = Annotated[
    Path | None, option("--cluster FILE", "A YAML file that starts workers: SSH, Slurm.")
]
Insecure = Annotated[
    bool, option("--insecure", "Allow other computers without encryption (docs/cluster.md).")
]
Json = Annotated[bool, option("--json", "The result as JSON.")]
Quiet = Annotated[bool, option("--quiet -q", "Print nothing but errors and points that failed.")]


def cluster_target(
    gpus: str | None, scheduler: str | None, cluster: Path | None, insecure: bool
) -> ClusterTarget | None:
    """The cluster that these options name; ``None`` for this computer alone."""
    if (gpus, scheduler, cluster) == (None, None, None):
        return None
    from nqbench.cluster.connect import ClusterTarget

    return ClusterTarget(gpus, scheduler, cluster, insecure)


def refuse(given: Mapping[str, object], why: str) -> None:
    """Raise ``StudyError`` if one of these options has a value, because it would have no effect."""
    for option, value in given.items():
        if value:
            raise StudyError(f"{option} has no effect here ({why}); leave it out")


def command_line() -> list[str]:
    """The command as a user would type it again, fit for a UTF-8 file."""
    return ["nqbench", *(from_here(printable(word)) for word in sys.argv[1:])]


def shown_line() -> str:
    """The command fit for a page that others read."""
    return shown_command(command_line())
