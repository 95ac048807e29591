"""The rectangle that numbers the moves of a local search, drawn from the mapping that is run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nqbench.analysis.data.observed import Observed
from nqbench.papers.schema import Paper
from nqbench.papers.schema_shown import PaperFigure
from nqbench.report.figures.style import COLOURS, Drawing, finish, new_figure
from nqbench.report.table import Source, slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OWN, _FOLDED = COLOURS[5], COLOURS[4]


def mapping(
    paper: Paper,  # noqa: ARG001 (all drawings are called alike)
    figure: PaperFigure,
    runs: Sequence[Observed],  # noqa: ARG001
    source: Source,
) -> list[Drawing]:
    """The triangle of moves and the rectangle it becomes, for each size of the figure."""
    drawing = new_figure(1.2 + 2.4 * len(figure.n))
    axes = drawing.subplots(len(figure.n), 2, squeeze=False)
    for (left, right), n in zip(axes, figure.n, strict=True):
        cells = numbered(n)
        _triangle(left, cells, n)
        _rectangle(right, cells)
        left.set_title(f"n = {n}: number of the move that swaps x and y", fontsize=8)
        right.set_title("the same moves, row by row: x, y", fontsize=8)
    title = f"Figure {figure.number}: {figure.title}"
    alt = "Triangles of pairs x < y, and the rectangles that their rows are folded into."
    subtitle = "light blue: rows of the triangle as they are; orange: rows from its end, reversed"
    name = slug("paper", figure.id)
    return [finish(drawing, name, title, source, alt=alt, subtitle=subtitle)]


def numbered(n: int) -> list[tuple[int, int, int, int, bool]]:
    """Of each move: row and column in the rectangle, x, y, and whether it was folded there."""
    from nqbench.workloads.local_search.mapping import RECTANGLE, moves_of, positions

    m = n - 1
    width = m if m % 2 else m - 1
    found = []
    for k in range(moves_of(n)):
        x, y = positions(k, n, RECTANGLE)
        row, column = divmod(k, width)
        found.append((row, column, int(x), int(y), x != row + 1))
    return found


def _triangle(ax: Axes, cells: Sequence[tuple[int, int, int, int, bool]], n: int) -> None:
    for number, (_, _, x, y, folded) in enumerate(cells):
        _cell(ax, y, x, str(number), folded=folded)
    ax.set_xlim(1.5, n - 0.5)
    ax.set_ylim(n - 1.5, 0.5)
    ax.set_xlabel("y")
    ax.set_ylabel("x")
    ax.set_aspect("equal")
    ax.grid(visible=False)
    ax.set_xticks(range(2, n))
    ax.set_yticks(range(1, n - 1))


def _rectangle(ax: Axes, cells: Sequence[tuple[int, int, int, int, bool]]) -> None:
    for row, column, x, y, folded in cells:
        _cell(ax, column, row, f"{x},{y}", folded=folded)
    ax.set_xlim(-0.5, max(c[1] for c in cells) + 0.5)
    ax.set_ylim(max(c[0] for c in cells) + 0.5, -0.5)
    ax.set_yticks(sorted({c[0] for c in cells}))
    ax.set_xlabel("column")
    ax.set_ylabel("row")
    ax.set_aspect("equal")
    ax.grid(visible=False)


def _cell(ax: Axes, x: float, y: float, text: str, *, folded: bool) -> None:
    from matplotlib.patches import Rectangle

    colour = _FOLDED if folded else _OWN
    ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor="white"))
    ax.text(x, y, text, ha="center", va="center", fontsize=7)
