"""Execute the notebooks of docs/notebooks and keep their outputs (part of `make docs`).

    python scripts/notebooks.py

Nothing that changes from run to run is kept, so that a difference is a difference of the results.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import nbformat
from nbclient import NotebookClient

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
TIMEOUT_S: Final = 120


def main() -> int:
    """Execute all, in place."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(executed(path), path)
    return 0


def executed(path: Path) -> Any:
    """The notebook with the outputs of its cells. Raises ``CellExecutionError``."""
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(path.parent)}}
    NotebookClient(
        notebook, timeout=TIMEOUT_S, record_timing=False, resources=where, kernel_name="python3"
    ).execute()
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


if __name__ == "__main__":
    sys.exit(main())
