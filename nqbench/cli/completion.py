"""What the shell completes: studies, systems, devices, papers, run folders.

Each function is given the beginning of a word and returns the words that it may become.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

import typer

Complete = Callable[[str], list[str]]
ASKED: Final = "_NQBENCH_COMPLETE"
"""The variable by which the shell's function asks; its value names the shell."""


def _words(found: Callable[[], Iterable[str]], *, files: bool = False) -> Complete:
    """Completes with the words found, and YAML files if asked for."""

    def complete(incomplete: str) -> list[str]:
        fitting = [word for word in found() if word.startswith(incomplete)]
        return [*fitting, *(_files(incomplete) if files else ())]

    return complete


def _packaged() -> Iterable[str]:
    from nqbench.study.packaged import studies

    return studies()


def _system_names() -> Iterator[str]:
    from nqbench.workloads import with_systems

    for workload in with_systems():
        yield from workload.systems


def _device_names() -> list[str]:
    """GPUs of this computer, models of the simulator, the CPU."""
    gpus = sorted(Path("/proc/driver/nvidia/gpus").glob("*"))  # without starting the driver
    models = import_module("nqbench.simulator.models").model_names()
    cuda = [f"cuda:{index}" for index in range(len(gpus))]
    return ["auto", *cuda, *(f"sim:{model}" for model in models), "cpu"]


studies = _words(_packaged, files=True)
systems_or_studies = _words(lambda: (*_system_names(), *_packaged()), files=True)
systems = _words(_system_names)
devices = _words(_device_names)
simulators = _words(lambda: (name for name in _device_names() if name.startswith("sim")))
models = _words(lambda: import_module("nqbench.simulator.models").model_names(), files=True)
papers = _words(lambda: import_module("nqbench.papers").paper_names())
runs = _words(lambda: [str(f.parent) for f in sorted(Path().glob("results/*/*/*/manifest.json"))])
formats = _words(
    lambda: (*(e := import_module("nqbench.report.exporters")).EXPORTERS, *e.FIGURE_FORMATS, e.HTML)
)


def _files(incomplete: str) -> list[str]:
    """Files that may be studies or models. Where nothing fits, the shell completes folders."""
    folder, slash, start = incomplete.rpartition("/")
    here = Path(f"{folder}{slash}")
    names = sorted(file.name for end in ("yaml", "yml") for file in here.glob(f"*.{end}"))
    return [f"{folder}{slash}{name}" for name in names if name.startswith(start)]


def completing(command: Callable[[], None]) -> None:
    """Run the command for a shell that asks for completions.

    Bash takes ``sim:mini`` for three words, and replaces the last of them.
    """
    kept, out = "", io.StringIO()
    if os.environ[ASKED] == "complete_bash":
        kept = _join_words()
    try:
        with contextlib.redirect_stdout(out):
            command()
    finally:
        for line in out.getvalue().splitlines():
            typer.echo(line.removeprefix(kept))


def _join_words() -> str:
    """Join what bash split at colons; returns the beginning of the last word that bash keeps."""
    words: list[str] = []
    index = place = int(os.environ.get("COMP_CWORD", "0"))
    kept = ""
    for i, word in enumerate(os.environ.get("COMP_WORDS", "").split("\n")):
        if words and (word == ":" or words[-1].endswith(":")):
            place -= i <= index
            kept = words[-1] + word * (word == ":") if i == index else kept
            words[-1] += word
        else:
            words.append(word)
    os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = "\n".join(words), str(place)
    return kept
