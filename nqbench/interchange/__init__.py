"""Results of other programs, in and out.

``open_results`` reads whatever ``compare`` is given: a run folder, an nvbench JSON file, or a
folder of such files (one per process, each a round). ``export_run`` writes a run for others.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nqbench.errors import StoreError, StudyError
from nqbench.runs.folder import MANIFEST

if TYPE_CHECKING:
    from nqbench.analysis.data.dataset import Dataset

Exporter = Callable[[Path, Path | None], str]
"""Takes a run folder and the file to be written (``None``: standard output); returns the text."""


def open_results(path: Path) -> Dataset:
    """A run folder, an nvbench file or a folder of nvbench files. Raises ``StoreError``."""
    from nqbench.interchange import nvbench_in

    path = Path(path)
    if path.is_file():
        return nvbench_in.read_files([path])
    files = sorted(path.glob("*.json"))
    if files and not (path / MANIFEST).exists():
        return nvbench_in.read_files(files)
    if not path.exists():
        raise StoreError(
            f"{path} does not exist; give a run folder that `nqbench run` wrote, or a file that"
            " `nvbench --json` wrote"
        )
    from nqbench.analysis.data.collect import load_dataset

    return load_dataset(path)


def export_run(run: Path, form: str, out: Path | None) -> str:
    """Text of a run in another format; files beside ``out`` are written where the format has them.

    Raises ``StudyError`` for an unknown format, ``StoreError`` and ``AnalysisError`` for a run that
    cannot be read or has nothing that the format holds.
    """
    if form not in FORMATS:
        raise StudyError(f"no export format is called {form!r}; known: {', '.join(FORMATS)}")
    return FORMATS[form](run, out)


def _nvbench(run: Path, out: Path | None) -> str:
    from nqbench.interchange.nvbench_out import export

    return export(run, out)


def _csv(run: Path, out: Path | None) -> str:  # noqa: ARG001 (one interface for all formats)
    from nqbench.runs.folder import load

    return str(load(run).to_csv(index=False, lineterminator="\n"))


FORMATS: Final[dict[str, Exporter]] = {"nvbench": _nvbench, "csv": _csv}
