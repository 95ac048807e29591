"""A study is a program: what one that lies outside the current checkout would run here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from nqbench.errors import StudyError
from nqbench.system.files import digest, kept_json
from nqbench.system.yaml_marks import read
from nqbench.workloads import KERNEL

CODE = ("command", "function", "workload")
"""Keys of a study whose values name commands and Python: the last two with a colon."""


def tell_code(path: Path, tell: Callable[[str], object]) -> None:
    """Tell once what a study file from outside the checkout, or the folder, that one is in can run:
    its commands and its Python. Again once the study or that Python has changed."""
    path, here = path.resolve(), Path.cwd()
    checkout = next((f for f in (here, *here.parents) if (f / ".git").exists()), here)
    if not path.is_file() or path.is_relative_to(checkout):
        return
    found: list[str] = []
    with suppress(StudyError):  # which is told where the study is read
        found = list(dict.fromkeys(_code(read(path).data)))
    if found:
        named = (path.parent / word.partition(":")[0] for word in found)
        known = digest([path, *(file for file in named if file.suffix == ".py")])
        said = (
            f"{path} is not of this folder's checkout, and a study is a program: it runs"
            f" {', '.join(found)}; read what you did not write (said once)"
        )
        kept_json(f"told/{known}", lambda: [said, tell(said)][:1])


def _code(data: Any, key: str = "") -> Iterator[str]:
    if isinstance(data, dict):
        for name, value in data.items():
            yield from _code(value, name)
    elif key == CODE[0]:
        yield " ".join(map(str, data)) if isinstance(data, list) else str(data)
    elif key in CODE and ":" in str(data) and not str(data).startswith(f"{KERNEL}:"):
        yield str(data)
    elif isinstance(data, list):
        for value in data:
            yield from _code(value)
