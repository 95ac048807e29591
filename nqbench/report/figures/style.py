"""What all figures share: the style sheet, series that differ in more than colour, the footer."""

from __future__ import annotations

import colorsys
import io
import math
import re
import textwrap
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis.data.estimate import Estimate
from nqbench.report.table import Source

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

WIDTH_IN: Final = 9.0
"""Width of a figure in inches: 8-point type stays legible when a README scales it down."""
FOOTER_LINE_IN: Final = 0.11
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
LINES: Final[tuple[Any, ...]] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
GREY: Final = "#6b6b6b"
HATCH: Final = "////"
MAX_LABEL: Final = 40
"""Characters of a name in one line of a figure."""
MAX_LINES: Final = 4
"""Lines of a name; the tables beside a figure have the few longer ones in full."""
ON_CELL: Final = ("#010101", "#fefefe")
"""Text on a coloured cell, light or dark, which keeps its colour in dark mode."""
DARK: Final[Mapping[str, str]] = {
    **tomllib.loads(Path(__file__).with_name("dark.toml").read_text(encoding="utf-8")),
    **dict(zip(ON_CELL, ON_CELL, strict=True)),
}
"""What a colour of figures is in dark mode."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawing:
    """A finished figure: file name, title, alt text.

    ``around``  its title and its footer, which a page has elsewhere, each with its height in inches
    """

    name: str
    title: str
    alt: str
    figure: Figure
    around: tuple[tuple[Text, float], ...] = ()


PreparedFigure = Callable[[], Drawing]
"""Draws a figure whose data are already prepared and checked. Called within :func:`styled`."""
Placed = Sequence[tuple[float, Estimate]]
"""Values, each with its height on the y axis."""


@dataclass(frozen=True, slots=True)
class SeriesStyle:
    """Colour, marker and line of a series; marker and line identify it even without colour."""

    colour: str
    marker: str
    line: Any

    @property
    def keywords(self) -> dict[str, Any]:
        """For ``Axes.plot`` and ``Axes.errorbar``."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.line}


def series_style(index: int) -> SeriesStyle:
    """Style of the series number ``index``; 45 differ in marker or line, whatever the colour."""
    return SeriesStyle(*(looks[index % len(looks)] for looks in (COLOURS, MARKERS, LINES)))


def ordered_style(index: int, count: int) -> SeriesStyle:
    """Style of level ``index`` of ``count`` levels in order: from dark to light; see
    :func:`series_style` for markers and lines."""
    import matplotlib as mpl

    shade = mpl.colormaps["viridis"](0.9 * index / max(1, count - 1))
    return replace(series_style(index), colour=mpl.colors.to_hex(shade))


@contextmanager
def styled() -> Iterator[None]:
    """The project's look, on the Agg canvas, without touching the caller's settings.

    Matplotlib's remarks on names that are very long, or in letters its font lacks, tell a user
    nothing to do.
    """
    import matplotlib as mpl

    with (
        as_file(files("nqbench.report") / "nqbench.mplstyle") as sheet,
        mpl.rc_context(fname=sheet),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "constrained_layout not applied|Glyph", UserWarning)
        yield


def label_of(name: object, width: int = MAX_LABEL) -> str:
    """A name as a label: in lines of ``width`` characters, without control characters."""
    text = "".join(c if c.isprintable() or c == "\n" else " " for c in str(name))
    lines = [part for line in text.split("\n") for part in wrapped(line, width) or [""]]
    return "\n".join(lines[:MAX_LINES])


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` characters, broken between words, else after a sign."""
    made: list[str] = []
    for line in textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False):
        made.append("")
        for part in re.findall(r".+?[_./-]+|.+", line) if len(line) > width else [line]:
            made += [""] * (len(made[-1] + part) > width and made[-1] != "")
            made[-1] += part
    return [part for line in made for part in textwrap.wrap(line, width)]


def new_figure(height_in: float, width_in: float = WIDTH_IN) -> Figure:
    """An empty figure with room for title and footer; it needs no window system."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def finish(
    figure: Figure,
    name: str,
    title: str,
    source: Source,
    *,
    alt: str,
    subtitle: str = "",
    legend_of: Axes | None = None,
) -> Drawing:
    """Add title, footer and the legend of a panel, lay out once, and freeze the layout so that
    every format agrees."""
    width, height = figure.get_size_inches()
    # Characters in one line of 10-point bold type, of 8 points, of 6.5 points.
    heading, below = label_of(title, int(width * 11)), label_of(subtitle, int(width * 14.5))
    room = int(width * 18.5)
    footer = textwrap.wrap(f"{source}  |  {source.command}"[: 8 * room], room)
    title_in = 0.17 * (heading.count("\n") + 1)
    top_in = 0.12 + title_in + 0.17 * (below.count("\n") + 1 if below else 0)
    beside = bool(figure.legends)
    if legend_of is not None:
        legend_in = legend(figure, legend_of, top_in)
        beside, top_in, height = not legend_in, top_in + legend_in, height + legend_in
        figure.set_size_inches(width, height)
    top = top_in / height
    bottom_in = 0.2 + FOOTER_LINE_IN * len(footer)
    engine: Any = figure.get_layout_engine()
    rect = (0, bottom_in / height, 1, 1 - bottom_in / height - top)
    engine.set(rect=rect, h_pad=0.06, w_pad=0.06)
    bold: dict[str, Any] = {"fontsize": 10, "fontweight": "bold", "va": "top"}
    head = figure.text(0.01, 1 - 0.08 / height, heading, **bold)
    if below:
        figure.text(0.01, 1 - (0.12 + title_in) / height, below, fontsize=8, color=GREY, va="top")
    lowest: dict[str, Any] = {"fontsize": 6.5, "color": GREY, "va": "bottom"}
    foot = figure.text(0.01, 0.08 / height, label_of("\n".join(footer), room), **lowest)
    engine.execute(figure)
    figure.set_layout_engine(None)  # with any engine left, savefig draws once more to lay out
    around = ((head, 0 if beside else title_in + 0.06), (foot, bottom_in - 0.1))
    return Drawing(name, title, f"{alt} {source}.", figure, around)


def save(drawing: Drawing, path: Path, source: Source) -> None:
    """Write one format, chosen by the ending; the same input gives the same bytes."""
    about = f"{drawing.title}. {source}. Made by: {source.command}"
    by_suffix: dict[str, dict[str, Any]] = {
        ".svg": {"Date": None, "Creator": "nqbench", "Description": about},
        ".pdf": {"CreationDate": None, "Creator": "nqbench", "Subject": about},
        ".png": {"Software": "nqbench", "Description": about},
    }
    metadata = by_suffix[path.suffix] | {"Title": drawing.title}
    with styled():  # the style also sets how the elements of an SVG are numbered
        if path.suffix != ".svg":
            drawing.figure.savefig(path, metadata=metadata)
            return
        text = io.StringIO()
        drawing.figure.savefig(text, format="svg", metadata=metadata)
    # Viewers without the font should fall back to one of the same width.
    svg = text.getvalue().replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif")
    path.write_text(svg, encoding="utf-8")


def legend(figure: Figure, ax: Axes, below_in: float = 0.0) -> float:
    """The series of a panel, at the top of the figure, where they cover no data: beside its title,
    or in columns, so far below the top, where they are long. Returns the height they add."""
    handles, labels = ax.get_legend_handles_labels()
    if len(labels) < 2:
        return 0.0
    width, height = figure.get_size_inches()
    names = list(map(label_of, labels))
    room, longest = int(width * 14.5), max(map(len, names)) + 7
    columns, down_in, added_in = len(names), 0.02, 0.0
    place: dict[str, Any] = {"loc": "upper right"}
    if below_in and sum(len(name) + 7 for name in names) > room / 2:
        columns = max(1, room // longest)
        added_in = 0.05 + 0.16 * math.ceil(len(names) / columns)
        place, down_in, height = {"loc": "upper left"}, below_in, height + added_in
    place["bbox_to_anchor"] = (0.0 if added_in else 0.995, 1 - down_in / height)
    figure.legend(handles, names, ncols=columns, handletextpad=0.4, columnspacing=1.2, **place)
    return added_in


def dark(colour: str) -> str:
    """What a colour, as in ``#0072b2``, is in dark mode: as far from its background."""
    if colour in DARK:
        return DARK[colour]
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    made = colorsys.hls_to_rgb(hue, min(1 - lightness + 0.12, 0.9), saturation)
    return "#" + "".join(f"{round(255 * part):02x}" for part in made)


def panels(
    count: int, head_in: float, row_in: float, most: int = 3, **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure of small multiples and its panels, row by row; unused places stay empty.

    ``options`` are those of ``Figure.subplots``.
    """
    columns = min(count, most)
    rows = math.ceil(count / columns)
    figure = new_figure(head_in + row_in * rows)
    axes = list(figure.subplots(rows, columns, squeeze=False, **options).flat)
    for ax in axes[count:]:
        ax.set_visible(False)
    return figure, axes[:count]


def whiskers(estimates: Sequence[Estimate]) -> list[list[float]] | None:
    """Distances below and above for ``errorbar``; ``None`` without any interval."""
    if not any(e.bounded for e in estimates):
        return None
    low = [e.value - (e.value if e.low is None else e.low) for e in estimates]
    high = [(e.value if e.high is None else e.high) - e.value for e in estimates]
    return [low, high]


def interval_curve(
    ax: Axes, found: Mapping[Any, Estimate], look: Mapping[str, Any], label: str | None
) -> None:
    """A curve of estimates with their intervals by place on the x axis; nothing if there is none.

    ``look`` are keywords of ``Axes.errorbar``.
    """
    if found:
        values = list(found.values())
        heights = [e.value for e in values]
        shown = {"capsize": 2, **look}
        made = ax.errorbar(list(found), heights, yerr=whiskers(values), label=label, **shown)
        made.shown = "y", values  # type: ignore[attr-defined]


def dots(
    ax: Axes, found: Placed, colour: str, marker: str, *, said: Sequence[str] = (), **look: Any
) -> None:
    """Estimates as dots with horizontal intervals.

    ``said`` is what a page says of each where a reader points at it, instead of its value.
    """
    heights, values = [y for y, _ in found], [e for _, e in found]
    look |= {"xerr": whiskers(values), "fmt": marker, "color": colour}
    made = ax.errorbar([e.value for e in values], heights, **look)
    made.said, made.shown = said, ("x", values)  # type: ignore[attr-defined]
