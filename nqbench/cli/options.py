"""Arguments and options that several commands share, what the shell completes of them (studies,
systems, devices, papers, run folders), and how they are parsed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from nqbench.errors import StudyError
from nqbench.system.files import from_here, printable, shown_command

if TYPE_CHECKING:
    from nqbench.cluster.connect import ClusterTarget

FRESH: Final = "--fresh"


def _systems() -> Iterator[str]:
    for workload in import_module("nqbench.workloads").with_systems():
        yield from workload.systems


def _models() -> Iterable[str]:
    return import_module("nqbench.simulator.models").model_names()  # type: ignore[no-any-return]


def _devices() -> Iterator[str]:
    """GPUs of this computer, models of the simulator, the CPU."""
    gpus = sorted(Path("/proc/driver/nvidia/gpus").glob("*"))  # without starting the driver
    yield from ("auto", *(f"cuda:{index}" for index in range(len(gpus))), *_simulators(), "cpu")


def _simulators() -> Iterator[str]:
    return (f"sim:{model}" for model in _models())


def _formats() -> Iterator[str]:
    exporters = import_module("nqbench.report.exporters")
    yield from (*exporters.EXPORTERS, *exporters.FIGURE_FORMATS, exporters.HTML)


WORDS: Final[Mapping[str, Callable[[], Iterable[str]]]] = {
    "CONFIG": lambda: import_module("nqbench.study.packaged").studies(),
    "SYSTEM": _systems,
    "DEVICE": _devices,
    "SIMULATOR": _simulators,
    "MODEL": _models,
    "PAPER": lambda: import_module("nqbench.papers").paper_names(),
    "RUN": lambda: (str(f.parent) for f in sorted(Path().glob("results/*/*/*/manifest.json"))),
    "FORMAT": _formats,
}
"""What an argument or option may be, by the word that stands for it in the help."""


def completed(form: str) -> Callable[[str], list[str]] | None:
    """What completes a value that the help calls ``SYSTEM|CONFIG``; ``None`` for other words."""
    found = [WORDS[word] for word in form.split("|") if word in WORDS]

    def complete(incomplete: str) -> list[str]:
        return [w for words in found for w in words() if w.startswith(incomplete)]

    return complete if found else None


def option(form: str, about: str, default: Any = ...) -> Any:
    """An option by its names and what follows them: ``--device -d NAME``."""
    names = [word for word in form.split() if word.startswith("-")]
    value = form.removeprefix(" ".join(names)).strip()
    found = completed(value)
    return typer.Option(default, *names, help=about, autocompletion=found, metavar=value or None)


def argument(name: str, about: str, default: Any = ...) -> Any:
    """An argument by the name that the help gives it; one without a default must be given."""
    told = _tell_code if "CONFIG" in name else None
    found = completed(name)
    return typer.Argument(default, metavar=name, help=about, autocompletion=found, callback=told)


def _tell_code(context: typer.Context, given: Any) -> Any:
    """Before a study is read, which may load its Python: what one from elsewhere runs."""
    files = [Path(one) for one in (given if isinstance(given, list) else [given or ""])]
    if any(file.suffix in (".yaml", ".yml") for file in files) and not context.resilient_parsing:
        from nqbench.cli.show.console import note
        from nqbench.study.outside import tell_code

        for file in files:
            tell_code(file, note)
    return given


Config = Annotated[Path, argument("CONFIG", "A study file (YAML), or a packaged study's name.")]
RunsIfAny = Annotated[list[Path] | None, argument("RUN", "Run folders.")]
DeviceName = Annotated[
    str, option("--device -d DEVICE", "auto, cuda:0, cpu, sim:MODEL, sim:MODEL:cache:time.")
]
RunFolder = Annotated[Path | None, option("--out -o", "Run folder; default: results/local/...")]
OutFolder = Annotated[Path | None, option("--out -o", "Folder for tables, figures and the page.")]
Fresh = Annotated[bool, option(FRESH, "Start over instead of resuming (old records are kept).")]
BudgetText = Annotated[str | None, option("--budget", "Time for the whole run: 90s, 10m, 1h.")]
Formats = Annotated[
    list[str] | None,
    option("--format -f FORMAT", "md, csv, tex, html; figures: svg, pdf, png; repeatable."),
]
Full = Annotated[
    bool, option("--full", "Compute deterministic counts of large boards too (minutes, once).")
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


def budget_seconds(text: str | None) -> float | None:
    """``--budget`` in seconds: a duration as in a study, ``10m`` or ``1m30s``."""
    from nqbench.study import duration_s

    try:
        return None if text is None else duration_s(text)
    except StudyError as error:
        raise StudyError(f"--budget: {error.message}") from error


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
