"""Pages: what a report shows, in order.

A page is a list of blocks; every report (of runs, of a comparison, of a paper) is built with one
:class:`Page`. :func:`markdown` writes them with links to the files beside the page, :func:`html` as
one file that holds everything.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from nqbench.errors import FolderRefused, StoreError
from nqbench.report import exporters
from nqbench.report.figures.inline import inline_svg, palette
from nqbench.report.figures.style import Drawing, save
from nqbench.report.table import Source, Table, slug
from nqbench.system.files import DISK_ERRORS, replacing

FORMATS: Final = ("md", "csv", "html")
"""The default formats of tables; figures are SVG unless another of theirs is asked for."""
_SHOWN_FIRST: Final = ("svg", "png")
"""What a browser shows."""
PALETTE: Final = "/* the colours of figures */"
"""Where they stand in a page."""
LINKED: Final = re.compile(r"\(<((?:table|figure)-[^<>/]+)>\)")
"""A link of a page to a table or figure in its folder."""


Files = tuple[tuple[str, str], ...]
"""The formats of a table or figure, each with its link relative to the page."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 1 is the largest.

    ``folded``  on an HTML page a box that is closed: a section, or what stands under another one
    ``short``   its name in the contents
    """

    level: int
    text: str
    folded: bool = False
    short: str = ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Plain text; ``lead``: the answer that a page opens with."""

    text: str
    lead: bool = False


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of sentences."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Card:
    """A part of the answer: what it is about, the number or the word, what explains it.

    ``bad``  something went wrong
    """

    label: str
    value: str
    texts: tuple[str, ...] = ()
    bad: bool = False


@dataclass(frozen=True, slots=True)
class Cards:
    """Cards beside each other, which open a page."""

    cards: tuple[Card, ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """A page that another one leads to: what it is of, its question, its answer, a small figure.

    ``kind``   the section that it stands in
    ``label``  the device, in a word or two
    ``asks``   empty where the title says it
    """

    kind: str
    title: str
    target: str
    label: str = ""
    asks: str = ""
    texts: tuple[str, ...] = ()
    svg: str = ""


@dataclass(frozen=True, slots=True)
class Tiles:
    """Pages beside each other, on HTML pages."""

    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """Provenance, device, how much came out, and the command."""

    source: Source
    counts: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A table on the page.

    ``sized``    whether a page shows one of its sizes at a time
    ``anchors``  the place of each row's point on the page; none where rows are not points
    ``inline``   whether a Markdown page shows it; if not, it only links the files
    ``size``     text before the links
    """

    table: Table
    sized: bool = False
    anchors: tuple[str, ...] = ()
    inline: bool = True
    files: Files = ()
    size: str = ""

    @property
    def switched(self) -> bool:
        """Whether it is shown one size and one quantity at a time."""
        return bool(self.table.points) or self.sized

    @property
    def brief(self) -> Table:
        """What a Markdown page shows: of several sizes that of the first row."""
        if not self.sized:
            return self.table
        at, rows = [c.name for c in self.table.columns].index("N"), self.table.rows
        return replace(self.table, rows=tuple(row for row in rows if row[at] == rows[0][at]))

    @property
    def charted(self) -> bool:
        """Whether its rows can be drawn beside each other: points, or values with intervals."""
        return bool(self.table.points) or any(c.spread and not c.plain for c in self.table.columns)

    @property
    def lead(self) -> int:
        """The column that a narrow screen shows first: of points the first value, of changes the
        effect; -1: none."""
        columns = self.table.columns
        if not self.table.points:
            return 1 if columns[1:] and columns[1].plain else -1
        return next((i for i, c in enumerate(columns) if c.kind != "text" and c.name != "N"), -1)


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure: the file that a Markdown page shows, and its drawing for HTML; either may be
    empty.

    ``narrow``  the drawing for a narrow screen, where there is one of its own
    """

    alt: str
    link: str = ""
    svg: str = ""
    files: Files = ()
    narrow: str = ""


@dataclass(frozen=True, slots=True)
class Beside:
    """Figures beside each other, on HTML pages, each with its title and its part of the width."""

    pictures: tuple[tuple[str, Picture, float], ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values, on HTML pages; folded under ``title`` if that is given."""

    rows: tuple[tuple[str, str], ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """Commands or a file as they are, on HTML pages; folded under ``title`` if that is given."""

    text: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class PointDetail:
    """Everything recorded about a point.

    ``anchor``        its place on the page
    ``measurements``  a row of texts per measurement, below ``headings``
    ``samples``       each measurement's samples, after its name
    """

    anchor: str
    title: str
    value: str
    facts: tuple[tuple[str, str], ...]
    headings: tuple[str, ...] = ()
    measurements: tuple[tuple[str, ...], ...] = ()
    samples: tuple[tuple[str, str], ...] = ()
    commands: str = ""


@dataclass(frozen=True, slots=True)
class Details:
    """The points of a sweep, folded, on HTML pages."""

    title: str
    points: tuple[PointDetail, ...]


Text = Heading | Paragraph | Bullets | Cards | Origin
PageBlock = Text | Shown | Picture | Beside | Tiles | Facts | Code | Details


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what follows it, on the HTML page; ``short`` is its name in the contents.

    ``inside``  the sections of level 3 that belong to it
    """

    id: str
    level: int
    title: str
    short: str
    folded: bool
    blocks: list[PageBlock]
    inside: list[Section]


def anchor(key: str) -> str:
    """The name of a point's place on the page."""
    return slug("point", key[:12])


def markdown(blocks: Sequence[PageBlock]) -> str:
    """The blocks as GitHub Markdown, without those that only HTML pages have, and without headings
    that nothing follows."""
    texts: list[str] = []
    heads: list[Heading] = []
    known = [block.source for block in blocks if isinstance(block, Origin)]
    written = exporters.macro("block_text")
    for block in blocks:
        if isinstance(block, Heading):
            heads = [*(head for head in heads if head.level < block.level), block]
        elif text := written(block, known).rstrip("\n"):
            texts += [f"{'#' * head.level} {exporters.escape(head.text)}" for head in heads]
            texts.append(text)
            heads = []
    return "\n\n".join(texts).rstrip() + "\n"


def html(blocks: Sequence[PageBlock], home: str = "") -> str:
    """The blocks as one HTML page that needs no other file and no network.

    ``home`` is its link to the page that leads here.
    """
    found = sections(blocks)
    title = found[0].title if found else "Report"
    known = [block.source for block in blocks if isinstance(block, Origin)]
    page = exporters.templates().get_template("page.html")
    text = page.render(title=title, sections=found, known=known, home=home, colours=PALETTE)
    return exporters.readable(text.replace(PALETTE, palette(text), 1))


def sections(blocks: Sequence[PageBlock]) -> list[Section]:
    """A section for each heading; what stands before the first one is left out."""
    found: list[Section] = []
    last: Section | None = None
    taken = {"main"}
    for block in blocks:
        if isinstance(block, Heading):
            name = unused(slug(block.text), taken)
            page = found[0].title if found else ""
            short = block.short or block.text.removeprefix(page).lstrip(",: ") or block.text
            last = Section(name, block.level, block.text, short, block.folded, [], [])
            (found[-1].inside if found and block.level > 2 else found).append(last)
        elif last:
            last.blocks.append(block)
    return found


def unused(wanted: str, taken: set[str]) -> str:
    """The name, or the first of ``NAME-2``, ``NAME-3``, ... that is free; taken from now on."""
    names = (wanted if i == 1 else f"{wanted}-{i}" for i in itertools.count(1))
    name = next(name for name in names if name not in taken)
    taken.add(name)
    return name


@contextmanager
def _folder_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if isinstance(error, FileNotFoundError):
            reason = "no folder can be created there"
        raise (StoreError if error.errno in DISK_ERRORS else FolderRefused)(
            f"the report cannot be written to {error.filename2 or path}: {reason};"
            " give another folder with --out"
        ) from error


class Page:
    """A page that is being built, and the files it links, each written atomically.

    ``files``  those written so far, without the page itself
    Tables of more than ``inline_rows`` rows are linked, not shown. Raises ``StudyError`` for an
    unknown format, before anything is written.
    """

    def __init__(
        self, out: Path, formats: Sequence[str], *, inline_rows: int | None = None, home: str = ""
    ) -> None:
        self.wants_html = exporters.HTML in formats
        of_figures = [name for name in formats if name in exporters.FIGURE_FORMATS]
        of_tables = [name for name in formats if name != exporters.HTML and name not in of_figures]
        self._exporters = {name: exporters.exporter(name) for name in of_tables}
        self._figure_formats = of_figures or (exporters.FIGURE_FORMATS[:1] if of_tables else ())
        self._inline_rows, self._home, self._out = inline_rows, home, out
        self._taken: set[str] = set()
        self._pictures = 0
        self.files: list[Path] = []
        self.blocks: list[PageBlock] = []

    def add(self, *blocks: PageBlock) -> None:
        """Put blocks at the end."""
        self.blocks += blocks

    def heading(self, text: str, level: int = 2, *, folded: bool = False, short: str = "") -> None:
        """Put a heading at the end; see :class:`Heading`."""
        self.add(Heading(level, text, folded, short))

    def table(
        self,
        table: Table,
        *,
        level: int = 2,
        suffix: str = "",
        inline: bool = True,
        size: str = "",
        said: Collection[str] = (),
        folded: bool = False,
    ) -> None:
        """Write a table in every format, show it and link its files, after its ``size``.

        Level 0 shows it without a heading. Notes that the page has ``said`` already stay in the
        files alone.
        """
        if level:
            self.heading(table.title, level, folded=folded)
        notes = tuple(note for note in table.notes if note not in said)
        shown = replace(table.shown or table, notes=notes)
        # LaTeX takes one table of each label, and runs of one study on one device share them.
        label = unused(table.label, self._taken)
        labelled = replace(table, name=table.name + label.removeprefix(table.label))
        name = "-".join(part for part in (f"table-{table.name}", suffix) if part)
        texts = {form: export(labelled) for form, export in self._exporters.items()}
        files = self._files(name, {form: _text(text) for form, text in texts.items()})
        anchors = tuple(anchor(key) if key else "" for key in shown.points)
        sized = table.shown is not None and any(c.name == "N" for c in shown.columns)
        made = Shown(shown, sized, anchors, inline, files, size)
        few = self._inline_rows is None or len(made.brief.rows) <= self._inline_rows
        self.add(replace(made, inline=inline and few))

    def drawing(
        self,
        drawing: Drawing,
        source: Source,
        *,
        level: int = 2,
        folded: bool = False,
        html: bool = True,
    ) -> None:
        """Write a figure in every format, show it and link its files.

        Level 0 shows it without heading and links. Without ``html`` only Markdown pages have it.
        """
        if level:
            self.heading(drawing.title, level, folded=folded)
        saved = dict.fromkeys(self._figure_formats, partial(save, drawing, source=source))
        files = self._files(f"figure-{drawing.name}", saved)
        links = dict(files)
        shown = next((links[name] for name in _SHOWN_FIRST if name in links), "")
        svg = self.inline(drawing, titled=not level) if html else ""
        self.add(Picture(drawing.alt, shown, svg, files if level or not html else ()))

    def inline(self, drawing: Drawing, *, titled: bool = False) -> str:
        """A figure for the inside of the page, without its title unless ``titled``; empty without
        an HTML page. It names the marks of the figure, so files are written before."""
        if not self.wants_html:
            return ""
        self._pictures += 1
        return inline_svg(drawing, f"f{self._pictures}", titled=titled)

    def _files(self, name: str, contents: Mapping[str, Callable[[Path], object]]) -> Files:
        """Write a table or figure in every format; its links from the page.

        A name that this report has used becomes another one: a second heat map of one sweep is
        ``...-2``.
        """
        stem = unused(name, self._taken)
        self.files += [self._put(f"{stem}.{form}", write) for form, write in contents.items()]
        return tuple((form, f"{stem}.{form}") for form in contents)

    def _put(self, name: str, write: Callable[[Path], object]) -> Path:
        """Let ``write`` make a temporary file and put it in place."""
        target = self._out / name
        with _folder_errors(self._out):
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target) as temporary:
                write(temporary)
        return target

    def write(self, name: str) -> list[Path]:
        """Write ``NAME.md`` and ``NAME.html``; with no other format than ``html``, that one alone.

        Files that the earlier ``NAME.md`` linked and that were not written again are removed: a
        table that is no longer made would otherwise remain, with old numbers. Returns every file,
        the page first. Raises ``StoreError`` if the folder cannot be written.
        """
        pages = []
        if self._exporters or not self.wants_html:
            old, made = self._out / f"{name}.md", {path.stem for path in self.files}
            with _folder_errors(self._out):
                for link in LINKED.findall(old.read_text(encoding="utf-8")) if old.exists() else ():
                    if Path(link).stem not in made:
                        (self._out / link).unlink(missing_ok=True)
            pages.append(self._put(f"{name}.md", _text(markdown(self.blocks))))
        if self.wants_html:
            pages.append(self._put(f"{name}.html", _text(html(self.blocks, self._home))))
        return [*pages, *self.files]


def _text(text: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(text, encoding="utf-8")
