"""What the shell completes: studies, systems, devices, papers, run folders.

Each function is given the beginning of a word and returns the words that it may become.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import typer

ASKED: Final = "_NQBENCH_COMPLETE"
"""The variable by which the shell's function asks; its value names the shell."""


def studies(incomplete: str) -> list[str]:
    """Packaged studies by name, and YAML files."""
    from nqbench.study.packaged import studies as packaged

    return [*_fitting(packaged(), incomplete), *_files(incomplete)]


def systems(incomplete: str) -> list[str]:
    """Systems of all workloads."""
    from nqbench.workloads import with_systems

    return _fitting((name for one in with_systems() for name in one.systems), incomplete)


def systems_or_studies(incomplete: str) -> list[str]:
    """What ``check`` and ``explain`` take."""
    return [*systems(incomplete), *studies(incomplete)]


def devices(incomplete: str) -> list[str]:
    """GPUs of this computer, models of the simulator, the CPU."""
    from nqbench.simulator.models import model_names

    gpus = sorted(Path("/proc/driver/nvidia/gpus").glob("*"))  # without starting the driver
    cuda = [f"cuda:{index}" for index in range(len(gpus))]
    return _fitting(["auto", *cuda, *(f"sim:{m}" for m in model_names()), "cpu"], incomplete)


def simulators(incomplete: str) -> list[str]:
    """Models of the simulator as devices."""
    return [name for name in devices(incomplete) if name.startswith("sim")]


def models(incomplete: str) -> list[str]:
    """Models of the simulator, and files that describe one."""
    from nqbench.simulator.models import model_names

    return [*_fitting(model_names(), incomplete), *_files(incomplete)]


def papers(incomplete: str) -> list[str]:
    """Papers by name."""
    from nqbench.papers import paper_names

    return _fitting(paper_names(), incomplete)


def runs(incomplete: str) -> list[str]:
    """Run folders under ``results``."""
    found = sorted(Path().glob("results/*/*/*/manifest.json"))
    return _fitting((str(manifest.parent) for manifest in found), incomplete)


def formats(incomplete: str) -> list[str]:
    """Formats of tables and pages."""
    from nqbench.report.exporters import EXPORTERS, HTML

    return _fitting((*EXPORTERS, HTML), incomplete)


def _fitting(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def _files(incomplete: str) -> list[str]:
    """Files that may be studies or models. Where nothing fits, the shell completes folders."""
    folder, slash, start = incomplete.rpartition("/")
    here = Path(f"{folder}{slash}")
    names = sorted(file.name for end in ("yaml", "yml") for file in here.glob(f"*.{end}"))
    return [f"{folder}{slash}{name}" for name in _fitting(names, start)]


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
