"""Results of other programs, in and out.

``open_runs`` reads what ``compare`` is given: run folders, nvbench JSON files, or folders of such
files (one per process, each a round). ``export_run`` writes a run in another format,
``import_study`` makes a study of another program's file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nqbench.errors import FolderRefused, StoreError, StudyError
from nqbench.runs.reading import MANIFEST
from nqbench.system.files import DISK_ERRORS

if TYPE_CHECKING:
    from nqbench.analysis.data.dataset import Dataset

FORMATS: Final = ("nvbench", "kernel_tuner", "csv")
"""Formats of ``export_run``."""
IMPORTS: Final = ("kernel_tuner",)
"""Formats of ``import_study``."""


def open_results(path: Path) -> Dataset:
    """A run folder, an nvbench file or a folder of nvbench files. Raises ``StoreError``."""
    from nqbench.interchange import nvbench

    path = Path(path)
    if path.is_file():
        return nvbench.read_files([path])
    files = sorted(path.glob("*.json"))
    if files and not (path / MANIFEST).exists():
        return nvbench.read_files(files)
    if not path.exists():
        raise StoreError(
            f"{path} does not exist; give a run folder that `nqbench run` wrote, or a file that"
            " `nvbench --json` wrote"
        )
    from nqbench.analysis.data.collect import load_dataset

    return load_dataset(path)


def open_runs(paths: Sequence[Path]) -> list[Dataset]:
    """Results to be compared. Raises ``StudyError`` if one is given twice, ``StoreError``."""
    resolved = [Path(path).resolve() for path in paths]
    if len(set(resolved)) < len(resolved):
        raise StudyError("the same run is given twice; give another one to compare it with")
    return [open_results(path) for path in paths]


def export_run(run: Path, form: str, out: Path | None) -> str:
    """Text of a run in another format, written to ``out`` where that is given.

    Some formats write more files next to ``out``. Raises ``StudyError`` for an unknown format,
    ``StoreError`` if the run cannot be read or ``out`` cannot be written, and ``AnalysisError`` if
    the run has nothing that the format can hold.
    """
    if form not in FORMATS:
        raise StudyError(f"no export format is called {form!r}; known: {', '.join(FORMATS)}")
    if form in ("nvbench", "kernel_tuner"):
        from importlib import import_module

        try:
            text = str(import_module(f"{__name__}.{form}").export(run, out))
        except OSError as error:  # of a file beside ``out``
            raise _unwritable(error, out or run) from error
    else:
        from nqbench.runs.frame import load

        text = str(load(run).to_csv(index=False, lineterminator="\n"))
    if out is not None:
        _write(out, text)
    return text


def import_study(form: str, file: Path, out: Path | None) -> tuple[str, tuple[str, ...]]:
    """The study that another program's file describes, and a sentence for all that it lacks.

    It is written to ``out`` where that is given, and names files from the folder of ``out``, by
    default the current one. Raises ``StudyError`` for an unknown format, ``InterchangeError`` for a
    file that it cannot read, ``FolderRefused`` if ``out`` exists or cannot be written.
    """
    if form not in IMPORTS:
        raise StudyError(f"no import format is called {form!r}; known: {', '.join(IMPORTS)}")
    from nqbench.interchange.kernel_tuner import import_space

    if out is not None and out.exists():
        raise FolderRefused(f"{out} exists already; give another name with --out")
    made = import_space(file, out.parent if out else Path())
    if out is not None:
        _write(out, made.text)
    return made.text, made.notes


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise _unwritable(error, path) from error


def _unwritable(error: OSError, path: Path) -> StoreError:
    failed = StoreError if error.errno in DISK_ERRORS else FolderRefused
    return failed(f"{path} cannot be written: {error.strerror}")
