"""Pages: what a report shows, in order.

A page is a list of blocks; every report (of runs, of a comparison, of a paper) is built with one
:class:`Page`. :func:`markdown` writes them with links to the files beside the page, :func:`html` as
one file that holds everything.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Final

from nqbench.errors import FolderRefused, StoreError
from nqbench.report.exporters import (
    FIGURE_FORMATS,
    HTML,
    body,
    code,
    escape,
    exporter,
    readable,
    templates,
)
from nqbench.report.figures.inline import inline_svg
from nqbench.report.figures.style import Drawing, save
from nqbench.report.table import Source, Table, slug
from nqbench.system.files import DISK_ERRORS, replacing

FORMATS: Final = ("md", "csv")
"""The default formats of tables; figures are SVG unless another of theirs is asked for."""
_SHOWN_FIRST: Final = ("svg", "png")
"""What a browser shows."""
LINKED: Final = re.compile(r"\(<((?:table|figure)-[^<>/]+)>\)")
"""A link of a page to a table or figure in its folder."""


Files = tuple[tuple[str, str], ...]
"""The formats of a table or figure, each with its link relative to the page."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 1 is the largest. Of ``web`` sections only HTML pages have anything."""

    kind: ClassVar[str] = "heading"
    level: int
    text: str
    web: bool = False


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Plain text."""

    kind: ClassVar[str] = "paragraph"
    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of sentences."""

    kind: ClassVar[str] = "bullets"
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """Provenance, device, how much came out, and the command."""

    kind: ClassVar[str] = "origin"
    source: Source
    counts: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A table on the page.

    ``run``     the run that the points of its rows belong to
    ``inline``  whether a Markdown page shows it; if not, it only links the files
    ``size``    text before the links
    """

    kind: ClassVar[str] = "table"
    table: Table
    run: str = ""
    inline: bool = True
    files: Files = ()
    size: str = ""

    @property
    def anchors(self) -> list[str]:
        """The anchor of each row's point; empty where a row has none."""
        keys = self.table.points or ("",) * len(self.table.rows)
        return [anchor(self.run, key) if key else "" for key in keys]

    @property
    def charted(self) -> bool:
        """Whether its rows can be drawn beside each other: points, or values with intervals."""
        return bool(self.table.points) or any(c.spread for c in self.table.columns)


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure: the file that a Markdown page shows, and its drawing for HTML; either may be
    empty."""

    kind: ClassVar[str] = "picture"
    alt: str
    link: str = ""
    svg: str = ""
    files: Files = ()


@dataclass(frozen=True, slots=True)
class Link:
    """A link to another page."""

    kind: ClassVar[str] = "link"
    text: str
    target: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values, on HTML pages; folded under ``title`` if that is given."""

    kind: ClassVar[str] = "facts"
    rows: tuple[tuple[str, str], ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """Commands or a file as they are, on HTML pages; folded under ``title`` if that is given."""

    kind: ClassVar[str] = "code"
    text: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class PointDetail:
    """Everything recorded about a point.

    ``measurements``  a row of texts per measurement, below ``headings``
    ``samples``       each measurement's samples, after its name
    """

    key: str
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

    kind: ClassVar[str] = "details"
    title: str
    points: tuple[PointDetail, ...]
    run: str = ""

    def anchor(self, point: PointDetail) -> str:
        """The place of one of its points."""
        return anchor(self.run, point.key)


PageBlock = Heading | Paragraph | Bullets | Origin | Shown | Picture | Link | Facts | Code | Details


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what follows it, on the HTML page; ``short`` is its name in the contents."""

    id: str
    level: int
    title: str
    short: str
    blocks: list[PageBlock]


def anchor(run: str, key: str) -> str:
    """The name of a point's place on the page; ``run`` distinguishes the runs of a page."""
    return slug("point", run, key[:12])


def markdown(blocks: Sequence[PageBlock]) -> str:
    """The blocks as GitHub Markdown, without the sections that only HTML pages have."""
    texts: list[str] = []
    web = False
    for block in blocks:
        if isinstance(block, Heading):
            web = block.web
        if not web:
            texts += _markdown(block)
    return "\n\n".join(texts).rstrip() + "\n"


def _markdown(block: PageBlock) -> list[str]:
    match block:
        case Heading(level, text):
            return [f"{'#' * level} {escape(text)}"]
        case Paragraph(text):
            return [escape(text)]
        case Bullets(texts):
            return ["\n".join(f"- {escape(text)}" for text in texts)]
        case Origin(source, counts):
            where = f"**{escape(source.provenance)}** on {escape(source.device)}"
            return [f"{where}; {counts}. Made by {code(source.command)}."]
        case Shown(table):
            return [body(table)] * block.inline + _links(block.files, block.size)
        case Picture(alt, link):
            return [f"![{escape(alt)}](<{link}>)"] * bool(link) + _links(block.files)
        case Link(text, target):
            return _links(((text, target),))
        case Facts() | Code() | Details():
            return []


def _links(files: Files, before: str = "") -> list[str]:
    links = " · ".join(f"[{name}](<{link}>)" for name, link in files)
    return [before + links] * bool(files)


def html(blocks: Sequence[PageBlock], home: str = "") -> str:
    """The blocks as one HTML page that needs no other file and no network.

    ``home`` is its link to the page that leads here.
    """
    found = sections(blocks)
    title = found[0].title if found else "Report"
    known = [block.source for block in blocks if isinstance(block, Origin)]
    page = templates().get_template("page.html")
    return readable(page.render(title=title, sections=found, known=known, home=home))


def sections(blocks: Sequence[PageBlock]) -> list[Section]:
    """A section for each heading; what stands before the first one is left out."""
    found: list[Section] = []
    taken = {"main"}
    for block in blocks:
        if isinstance(block, Heading):
            name = unused(slug(block.text), taken)
            taken.add(name)
            page = found[0].title if found else ""
            short = block.text.removeprefix(page).lstrip(",: ") or block.text
            found.append(Section(name, block.level, block.text, short, []))
        elif found:
            found[-1].blocks.append(block)
    return found


@dataclass(slots=True)
class Folder:
    """Writes the files of one folder, each atomically; never uses a name twice."""

    path: Path
    written: list[Path] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def name(self, wanted: str) -> str:
        """A name not used yet in this report: a second heat map of one sweep is ``...-2``."""
        chosen = unused(wanted, self.names)
        self.names.add(chosen)
        return chosen

    def text(self, name: str, text: str) -> Path:
        """Write a text file."""
        return self.put(name, lambda path: path.write_text(text, encoding="utf-8"))

    def page(self, name: str, text: str) -> Path:
        """Write the page that links the other files; call it last.

        Files that the earlier page linked and that were not written again are removed: a table that
        is no longer made would otherwise remain, with old numbers.
        """
        old = self.path / name
        with _folder_errors(self.path):
            linked = set(LINKED.findall(old.read_text(encoding="utf-8"))) if old.exists() else set()
            made = {path.stem for path in self.written}
            for link in linked:
                if Path(link).stem not in made:
                    (self.path / link).unlink(missing_ok=True)
        return self.text(name, text)

    def put(self, name: str, write: Callable[[Path], object]) -> Path:
        """Let ``write`` make a temporary file and put it in place."""
        target = self.path / name
        with _folder_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            with replacing(target) as temporary:
                write(temporary)
        self.written.append(target)
        return target


def unused(wanted: str, taken: set[str]) -> str:
    """The name, or the first of ``NAME-2``, ``NAME-3``, ... that is not taken."""
    names = (wanted if i == 1 else f"{wanted}-{i}" for i in itertools.count(1))
    return next(name for name in names if name not in taken)


@contextmanager
def _folder_errors(path: Path) -> Iterator[None]:
    """Turn file-system errors into one sentence."""
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
    """A page that is being built, and the folders of the files it links.

    Tables of more than ``inline_rows`` rows are linked, not shown. Raises ``StudyError`` for an
    unknown format, before anything is written.
    """

    def __init__(
        self,
        out: Path,
        formats: Sequence[str],
        *,
        inline_rows: int | None = None,
        home: str = "",
    ) -> None:
        self.wants_html = HTML in formats
        of_figures = [name for name in formats if name in FIGURE_FORMATS]
        of_tables = [name for name in formats if name != HTML and name not in of_figures]
        self._exporters = {name: exporter(name) for name in of_tables}
        self._figure_formats = of_figures or (FIGURE_FORMATS[:1] if of_tables else ())
        self._inline_rows = inline_rows
        self._home = home
        self._out = Folder(out)
        self._folders = [self._out]
        self._labels: set[str] = set()
        self._web = False
        self._depth = 0
        self._pictures = 0
        self.run = ""
        self.blocks: list[PageBlock] = []

    @contextmanager
    def only_html(self) -> Iterator[None]:
        """Sections that begin inside are for HTML pages, and are not written as files."""
        before, self._web = self._web, True
        try:
            yield
        finally:
            self._web = before

    @contextmanager
    def group(self, title: str) -> Iterator[None]:
        """What is added inside stands under a heading of its own."""
        self.heading(title)
        self._depth = 1
        try:
            yield
        finally:
            self._depth = 0

    def enter(self, name: str) -> None:
        """Write what follows into a subfolder of the page's folder: it is of another run."""
        self.run = self._out.name(name)
        self._folders.append(Folder(self._out.path / self.run))

    def add(self, *blocks: PageBlock) -> None:
        """Put blocks at the end."""
        self.blocks += blocks

    def heading(self, text: str, level: int = 2) -> None:
        """Put a heading at the end."""
        self.add(Heading(level + self._depth, text, self._web))

    def table(
        self,
        table: Table,
        *,
        level: int = 2,
        suffix: str = "",
        inline: bool = True,
        size: str = "",
        said: Collection[str] = (),
    ) -> None:
        """Write a table in every format, show it and link its files, after its ``size``.

        Notes that the page has ``said`` already stay in the files alone.
        """
        self.heading(table.title, level)
        shown = replace(table, notes=tuple(n for n in table.notes if n not in said))
        inline &= self._inline_rows is None or len(table.rows) <= self._inline_rows
        files = () if self._web else self._write(table, suffix)
        self.add(Shown(shown, self.run, inline, files, size))

    def _write(self, table: Table, suffix: str) -> Files:
        """The files of a table, which is renamed where another one of the page has its label: LaTeX
        takes one of each, and two runs of one study on one device have tables that are called
        alike."""
        label = unused(table.label, self._labels)
        self._labels.add(label)
        labelled = replace(table, name=table.name + label.removeprefix(table.label))
        folder = self._folders[-1]
        name = folder.name("-".join(part for part in (f"table-{table.name}", suffix) if part))
        return self._linked(
            [folder.text(f"{name}.{form}", f(labelled)) for form, f in self._exporters.items()]
        )

    def drawing(self, drawing: Drawing, source: Source, *, level: int = 2, of: str = "") -> None:
        """Write a figure in every format, show it and link its files; its heading ends with ``of``.

        Level 0 shows it without heading and links.
        """
        if level:
            self.heading(drawing.title + of, level)
        files = () if self._web else self._save(drawing, source)
        links = dict(files)
        shown = next((links[name] for name in _SHOWN_FIRST if name in links), "")
        svg = ""
        if self.wants_html:  # after the files: it names the marks of the figure
            self._pictures += 1
            svg = inline_svg(drawing, f"f{self._pictures}")
        self.add(Picture(drawing.alt, shown, svg, files if level else ()))

    def _save(self, drawing: Drawing, source: Source) -> Files:
        folder = self._folders[-1]
        name = folder.name(f"figure-{drawing.name}")
        return self._linked(
            [
                folder.put(f"{name}.{form}", lambda path: save(drawing, path, source))
                for form in self._figure_formats
            ]
        )

    def _linked(self, files: Sequence[Path]) -> Files:
        """Formats and links of files from the page, with forward slashes."""
        return tuple(
            (path.suffix[1:], Path(os.path.relpath(path, self._out.path)).as_posix())
            for path in files
        )

    @property
    def files(self) -> list[Path]:
        """The files written so far, without the page itself."""
        return [path for folder in self._folders for path in folder.written]

    def write(self, name: str) -> list[Path]:
        """Write ``NAME.md`` and ``NAME.html``; with no other format than ``html``, that one alone.

        Returns every file, the page first. Raises ``StoreError`` if the folder cannot be written.
        """
        files, pages = self.files, []
        if self._exporters or not self.wants_html:
            pages.append(self._out.page(f"{name}.md", markdown(self.blocks)))
        if self.wants_html:
            pages.append(self._out.text(f"{name}.html", html(self.blocks, self._home)))
        return [*pages, *files]
