"""Writes the tables and the figure of a roofline into a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from nqbench.report.exporters import exporter
from nqbench.report.figures.style import Drawing, save, styled
from nqbench.report.table import Source, Table
from nqbench.report.writer import FIGURE_FORMATS, Folder


def write(
    out: Path,
    tables: Sequence[Table],
    draw: Callable[[], Drawing],
    source: Source,
    formats: Sequence[str],
    figure_formats: Sequence[str] = FIGURE_FORMATS,
) -> list[Path]:
    """Write everything; ``draw`` is called in the project's style.

    Raises ``StudyError`` for an unknown format and ``StoreError`` where the folder refuses.
    """
    chosen = [exporter(name) for name in formats]
    folder = Folder(out)
    for table in tables:
        for one in chosen:
            folder.text(f"table-{table.name}{one.suffix}", one.render(table))
    with styled():
        drawing = draw()
        for form in figure_formats:
            name = f"figure-{drawing.name}.{form}"
            folder.put(name, lambda path: save(drawing, path, source))
    return folder.written
