"""Results of other programs as runs.

``open_runs`` reads what ``compare`` is given: run folders, nvbench JSON files, or folders of such
files (one per process, each a round). ``import_run`` writes a run folder of such files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nqbench.errors import FolderRefused, StoreError, StudyError
from nqbench.runs.reading import MANIFEST

if TYPE_CHECKING:
    from nqbench.analysis.data.dataset import Dataset


def import_run(form: str, path: Path, out: Path | None = None) -> Path:
    """Write the results of another program, a file or a folder of files, as a run; its folder.

    It is ``results/local/FORMAT/NAME`` by default. Raises ``StudyError`` for an unknown format,
    ``StoreError`` and ``InterchangeError`` for files that cannot be read, ``FolderRefused`` if the
    folder has a run or cannot be written.
    """
    if form != "nvbench":
        raise StudyError(f"no import format is called {form!r}; known: nvbench")
    from nqbench.interchange import nvbench
    from nqbench.runs.folder import RunWriter
    from nqbench.runs.reading import local_folder

    if not path.exists():
        raise StoreError(f"{path} does not exist; give a file that `nvbench --json` wrote")
    manifest, records = nvbench.read_files(_files(path) or [path], path.stem)
    folder = out or local_folder(path.stem, form)
    if (folder / MANIFEST).exists():
        raise FolderRefused(f"{folder} has a run already; give another folder with --out")
    with RunWriter(folder) as writer:
        writer.write_manifest(manifest)
        for record in records:
            writer.append(record)
    return folder


def open_runs(paths: Sequence[Path]) -> list[Dataset]:
    """Results to be compared. Raises ``StudyError`` if one is given twice, ``StoreError``."""
    resolved = [Path(path).resolve() for path in paths]
    if len(set(resolved)) < len(resolved):
        raise StudyError("the same run is given twice; give another one to compare it with")
    return [open_results(Path(path)) for path in paths]


def open_results(path: Path) -> Dataset:
    """A run folder, an nvbench file or a folder of nvbench files. Raises ``StoreError``."""
    from nqbench.analysis.data.dataset import collect, load_dataset

    if path.suffix in (".yaml", ".yml"):
        raise StoreError(f"{path} is a study; give a run folder that `nqbench run {path}` wrote")
    if files := _files(path):
        from nqbench.interchange import nvbench

        return collect(*nvbench.read_files(files, path.stem))
    if not path.exists():
        raise StoreError(
            f"{path} does not exist; give a run folder that `nqbench run` wrote, or a file that"
            " `nvbench --json` wrote"
        )
    return load_dataset(path)


def _files(path: Path) -> list[Path]:
    """The files of another program that a path means; none if it is a run folder, or nothing."""
    if path.is_file():
        return [path]
    return [] if (path / MANIFEST).exists() else sorted(path.glob("*.json"))
