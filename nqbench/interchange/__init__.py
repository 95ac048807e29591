"""Results of other programs, in and out.

``open_runs`` reads what ``compare`` is given: run folders, nvbench JSON files, or folders of such
files (one per process, each a round). ``export_run`` writes a run in another format.
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

FORMATS: Final = ("nvbench", "csv")
"""Formats of ``export_run``."""


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
    if form == "nvbench":
        from nqbench.interchange.nvbench import export

        text = export(run, out)
    else:
        from nqbench.runs.frame import load

        text = str(load(run).to_csv(index=False, lineterminator="\n"))
    if out is not None:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(text, encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            failed = StoreError if error.errno in DISK_ERRORS else FolderRefused
            raise failed(f"{out} cannot be written: {error.strerror}") from error
    return text
