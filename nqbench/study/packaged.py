"""The studies and papers that come with nqbench, found by name from any folder.

In a checkout they are next to the package (``configs/``, ``experiments/``); a wheel carries copies.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Final, Literal

from nqbench.errors import StudyError
from nqbench.study.model import NAME_PATTERN, NAME_RULE
from nqbench.study.schema import schema
from nqbench.system.suggest import nearest, shown
from nqbench.workloads.base import KERNEL

SCHEMA_FILE: Final = "nqbench.schema.json"
"""The JSON Schema beside studies: their first line names it for editors."""
STUDY: Final = "study.yaml"
"""The study in the folder of a paper."""
SOURCES: Final = (".cu", ".cuh")
"""How files with kernels end."""
EXPERIMENTS: Final = Path("experiments")
"""A user's own papers, in the current folder."""


def packaged(name: Literal["configs", "experiments"]) -> Path:
    """The folder of our studies, or of our papers: the checkout's, else the wheel's."""
    package = Path(__file__).parents[1]
    checkout = package.parent / name
    is_checkout = (package.parent / "pyproject.toml").is_file() and checkout.is_dir()
    return checkout if is_checkout else package / "_data" / name


def papers_with(file: str) -> dict[str, Path]:
    """The folder of every paper that has ``file``, by name; one of the same name in
    ``./experiments`` comes first."""
    found = [
        path.parent
        for folder in (packaged("experiments"), EXPERIMENTS)
        for path in sorted(folder.glob(f"*/{file}"))
    ]
    return {folder.name: folder for folder in found}


def studies() -> dict[str, Path]:
    """Every study that can be run by name, with its file: ours, then one for each paper."""
    papers = {name: folder / STUDY for name, folder in papers_with(STUDY).items()}
    return {file.stem: file for file in sorted(packaged("configs").glob("*.yaml"))} | papers


def find_study(given: Path) -> Path:
    """The file that is meant: a path as it is, or a packaged study by its bare name.

    Raises ``StudyError`` with the nearest name for an unknown bare name.
    """
    name = str(given)
    if given.suffix in SOURCES:
        raise StudyError(
            f"{given} is a file with a kernel, not a study: `nqbench check {given}` checks a launch"
            f" of it, `nqbench init {given.stem}` writes a study to start from"
        )
    if given.is_file() or given.suffix or given.name != name:
        return given
    known = studies()
    if name in known:
        return known[name]
    here = [file for end in (".yaml", ".yml") if (file := given.with_suffix(end)).is_file()]
    close = str(here[0]) if here else nearest(name, known)
    if close is None and given.exists():
        return given
    hint = f"did you mean '{close}'?" if close else f"nqbench comes with {', '.join(known)}"
    raise StudyError(f"there is no study file {name} and no packaged study of that name; {hint}")


def write_template(name: str, path: Path, workload: str = KERNEL) -> list[Path]:
    """Write a commented study called ``name`` to start from: one of a kernel of the user's own, and
    its .cu file, or one of the workload ``counting``. Returns the files, the study first.

    Raises ``StudyError`` for another workload, for a name that a results folder cannot have, and if
    a file exists or cannot be written.
    """
    kernel = workload == KERNEL
    if not kernel and workload != "counting":
        raise StudyError(
            f"--workload {workload}: there are templates for kernel and counting; for another"
            f" workload write `workload: {workload}` in that of counting"
        )
    if not re.fullmatch(NAME_PATTERN, name):
        raise StudyError(f"{shown(name)} cannot be the name of a study; {NAME_RULE}")
    templates = {path: "kernel_template.yaml" if kernel else "template.yaml"}
    if kernel:
        templates[path.with_suffix(".cu")] = "kernel_template.cu"
    for file in templates:
        if file.exists():
            raise StudyError(f"{file} exists; nothing was written: choose another name")
    words = {word.replace("NAME", name): word for word in ("name: NAME", "[NAME,", "NAME.cu")}
    for file, template in templates.items():
        text = files("nqbench.study").joinpath(template).read_text(encoding="utf-8")
        for new, old in {str(path): "FILE", SCHEMA_FILE: "SCHEMA", **words}.items():
            text = text.replace(old, new)
        _write(file, text, "x")
    return list(templates)


def write_schema(folder: Path) -> Path:
    """Write the JSON Schema of study files where templates say that it is, in place of an older
    one. Raises ``StudyError`` if it cannot be written."""
    file = folder / SCHEMA_FILE
    _write(file, json.dumps(schema(), indent=1) + "\n", "w")
    return file


def _write(file: Path, text: str, mode: Literal["x", "w"]) -> None:
    try:
        with file.open(mode, encoding="utf-8") as written:
            written.write(text)
    except OSError as error:
        raise StudyError(f"{file} cannot be written: {error.strerror}") from error
