"""The gallery, and each kind of its pages in headless Chromium: what a reader sees, clicks, prints.

One browser and one report of each kind serve all tests. Without a browser they are skipped, which
is an error where ``CI=true``: continuous integration installs one (``.ci/run``).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import html5lib
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, ViewportSize

from nqbench.analysis.answer import Answer
from nqbench.analysis.data.dataset import load_dataset
from nqbench.errors import StudyError
from nqbench.report.site import write_site
from nqbench.report.writer import write_report
from tests.builders import SYSTEMS, Builder, device, factorial

WIDE: Final[ViewportSize] = {"width": 1400, "height": 1000}
PHONE: Final[ViewportSize] = {"width": 390, "height": 844}
PAPER: Final[ViewportSize] = {"width": 1030, "height": 700}
"""A4 on its side, less the margins, in CSS pixels."""
RULES: Final = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice")
ALIKE: Final = ("svg g", "tbody tr:nth-child(n+3)", ".points details:nth-child(n+3)")
"""What looks like its neighbours: axe-core takes a millisecond for each element."""


@dataclass(slots=True)
class Tab:
    """A page in the browser, and what it has fetched and complained of since."""

    path: Path
    page: Page
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def table(self, title: str) -> Table:
        """The table of that title."""
        caption = self.page.locator("caption", has_text=title)
        return Table(self.page.locator(".table", has=caption))


@dataclass(slots=True)
class Table:
    """A table on a page, with its tools."""

    box: Locator

    def click(self, button: str) -> None:
        self.box.get_by_role("button", name=button, exact=True).click()

    def choose(self, label: str, level: str) -> None:
        self.box.get_by_role("combobox", name=label, exact=True).first.select_option(level)

    def shown(self) -> list[list[str]]:
        """The rows that can be seen, as texts."""
        found: list[list[str]] = self.box.locator(".scroll tbody").evaluate(
            "body => [...body.rows].filter(row => row.checkVisibility())"
            ".map(row => [...row.cells].map(cell => cell.textContent))"
        )
        return found

    def marks(self) -> list[str]:
        """The marks of its ranking from top to bottom, as what is said of them."""
        found: list[str] = self.box.locator(".chart [data-tip]").evaluate_all(
            "all => all.map(one => one.dataset.tip)"
        )
        return found


def recorded(folder: Path) -> list[Path]:
    """Small runs: an ablation, a paper's on two GPUs and again, one of a kernel of one's own."""
    items = ("results", "effects", "skipped")
    wanted = [{"table": name} for name in items] + [{"figure": "ranking"}]
    runs = {"H100/ablation": factorial(device("NVIDIA H100"), rounds=2, report=wanted)}
    for seed, name in enumerate(("H100/feinbube2010", "H100/again", "H200/feinbube2010")):
        options: dict[str, Any] = {"seed": seed, "command": ("nqbench", "reproduce", name)}
        paper = Builder(device(f"NVIDIA {name[:4]}"), rounds=2, study="feinbube2010", **options)
        for i, system in enumerate(SYSTEMS[:5]):
            value = 0.02 / (1 + i / 8) * (1e5 if i == 3 and name.startswith("H200") else 1)
            paper.time("sizes", {"n": 16, "block_size": 64, "depth": 4}, value, system)
        runs[name] = paper
    own = runs["H100/transpose"] = Builder(rounds=2, study="transpose", workload="kernel:transpose")
    for tile in (16, 32):
        own.time("transpose", {"n": 256, "tile": tile}, 1e-5 * tile)
    return [builder.write(folder / name) for name, builder in runs.items()]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The gallery of the small runs."""
    folder = tmp_path_factory.mktemp("site")
    assert len(list(write_site(folder, recorded(folder / "runs")))) == 5
    return folder


Times = dict[tuple[str, ...], float]
"""The time in seconds of each point: its four levels and N, as texts."""


@pytest.fixture(scope="module")
def times(site: Path) -> Times:
    """The results as the exporter writes them, in the order of the study."""
    run = site / "runs/H100/ablation"
    written = write_report(Answer(load_dataset(run)), site / "files", ("csv",)).paths
    table = next(path for path in written if path.name == "table-results-factorial.csv")
    with table.open(encoding="utf-8") as file:
        rows = [[*row.values()] for row in csv.DictReader(file)]
    return {tuple(row[:5]): float(row[5]) for row in rows if row[5]}


PAGES: Final = {
    "run": "H100/ablation/report.html",
    "comparison": "compare/feinbube2010/compare.html",
    "paper": "papers/feinbube2010/paper.html",
    "index": "index.html",
}
"""A page of each kind."""
Tabs = Callable[[str], Tab]
"""Opens a page of a kind, once. Whatever is done there, nothing is fetched or fails."""
every_page = pytest.mark.parametrize("kind", PAGES)


@pytest.fixture(scope="module")
def tabs(browser: Browser, site: Path) -> Iterator[Tabs]:
    opened: dict[str, Tab] = {}

    def tab(kind: str) -> Tab:
        if kind not in opened:
            page, path = browser.new_page(viewport=WIDE), site / PAGES[kind]
            page.set_default_timeout(5000)
            found = opened[kind] = Tab(path, page)
            page.on("request", lambda sent: found.requests.append(sent.url))
            page.on("pageerror", lambda error: found.errors.append(str(error)))
            page.on("console", lambda said: found.errors.append(said.text))
            page.on("dialog", lambda dialog: found.errors.append(dialog.message))
            page.goto(path.as_uri())
        return opened[kind]

    yield tab
    for found in opened.values():
        found.page.close()
        assert set(found.requests) == {found.path.as_uri()}
        assert found.errors == []


@pytest.fixture
def run(tabs: Tabs) -> Tab:
    """The page of a run, to click in, without filters: every row of every table can be seen."""
    found = tabs("run")
    found.page.evaluate(
        "for (const more of document.querySelectorAll('.all')) more.click();"
        "for (const box of document.querySelectorAll('.box')) box.open = true;"
        "for (const one of document.querySelectorAll('.filters select, .filters input')) {"
        " one.value = ''; one.dispatchEvent(new Event('input'));"
        " one.dispatchEvent(new Event('change')); }"
    )
    return found


@every_page
def test_markup_is_valid_and_links_lead_somewhere(kind: str, site: Path) -> None:
    """Also without a browser."""
    path = site / PAGES[kind]
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    root = parser.parse(path.read_text(encoding="utf-8"))
    assert parser.errors == []
    ids = [name for one in root.iter() if (name := one.get("id")) is not None]
    assert len(ids) == len(set(ids))
    for link in (one.attrib["href"] for one in root.findall(".//a[@href]")):
        place, _, anchor = link.partition("#")
        assert "://" in place or (path.parent / place).exists(), link
        assert place or anchor in ids, link


def violations(page: Page, *rules: str) -> list[tuple[str, str, str]]:
    """What axe-core finds: rule, what it asks for, the first element that breaks it."""
    context = {"exclude": [[selector] for selector in ALIKE]}
    options = {"runOnly": rules, "resultTypes": ["violations"]}
    found = Axe().run(page, context, options).response["violations"]
    return [(one["id"], one["help"], one["nodes"][0]["html"][:200]) for one in found]


@every_page
def test_everyone_can_read_it(kind: str, tabs: Tabs) -> None:
    page = tabs(kind).page
    assert violations(page, *RULES) == []
    assert page.locator("svg[role=img]:not([aria-labelledby]), img:not([alt])").count() == 0
    media: tuple[tuple[Any, ViewportSize], ...] = (("screen", PHONE), ("print", PAPER))
    for medium, size in media:
        page.emulate_media(media=medium)
        page.set_viewport_size(size)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], medium
    page.emulate_media(media="screen")
    page.set_viewport_size(WIDE)


def test_a_column_sorts_both_ways(run: Tab, tabs: Tabs, times: Times) -> None:
    table = run.table("Results of sweep")
    for down in (False, True):
        table.click("kernel time")
        keys = [tuple(row[:5]) for row in table.shown()]
        assert keys == sorted(times, key=lambda key: times[key], reverse=down)
    table.click("N")
    assert [row[4] for row in table.shown()] == ["15"] * 24 + ["16"] * 24
    comparison = tabs("comparison")
    comparison.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    table = comparison.table("kernel time: H200/feinbube2010 against H100/feinbube2010")
    table.click("corrected p")  # texts that are numbers, of both notations
    values = [float(row[5]) for row in table.shown()]
    assert values == sorted(values)
    assert min(values) < 1e-4 < max(values)


def test_filters_leave_the_rows_that_fit_which_are_copied(run: Tab, times: Times) -> None:
    table = run.table("Results of sweep")
    table.choose("memory", "shared")
    table.choose("loop", "irrc")
    found = {key: time for key, time in times.items() if (key[0], key[2]) == ("shared", "irrc")}
    assert {tuple(row[:5]) for row in table.shown()} == set(found)
    assert table.box.locator("output").inner_text() == f"{len(found)} of {len(times)} rows"
    run.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    table.click("Copy as CSV")
    table.box.get_by_role("button", name="Copied").wait_for()
    text = run.page.evaluate("navigator.clipboard.readText()")
    rows = [tuple(row.values()) for row in csv.DictReader(io.StringIO(text))]
    assert {row[:5]: float(row[5]) for row in rows} == pytest.approx(found)
    table.box.get_by_label("contains").fill("global_pool")
    assert [row[3] for row in table.shown()] == ["global_pool"] * 4
    table.choose("memory", "")
    assert len(table.shown()) == 8


def test_the_ranking_follows_filter_quantity_and_size(run: Tab, times: Times) -> None:
    table = run.table("Results of sweep")
    chart = table.box.locator(".chart")
    chart.evaluate("chart => { chart.open = true; }")
    for mark in (chart.locator("circle").last, run.page.locator(".wide use[data-tip]").first):
        mark.hover(force=True)
        said = run.page.locator(".tip").inner_text()
        assert re.search(r"\d ms (±|\[)", said), said
    largest = {key: time for key, time in times.items() if key[4] == "16"}
    best = min(largest, key=lambda key: largest[key])
    assert len(table.marks()) == len(largest)
    assert table.marks()[0].startswith(", ".join(best[:4]))
    table.choose("memory", "global")
    assert len(table.marks()) == len(largest) / 2
    chart.get_by_role("combobox", name="N", exact=True).select_option("15")
    table.choose("quantity", "split time")
    assert all(mark.endswith(": 100.0 µs") for mark in table.marks())


def test_a_point_leads_to_its_samples(run: Tab) -> None:
    table = run.table("Results of sweep")
    table.box.locator("tbody a").last.click()
    point = run.page.locator(":target")
    assert point.is_visible()
    assert "14200" in point.inner_text()


def test_the_theme_switches(run: Tab) -> None:
    """By a button, or as the system has it; dark colours can be read too."""
    paper = "getComputedStyle(document.body).backgroundColor"
    light = run.page.evaluate(paper)
    run.page.get_by_role("button", name="Dark colours").click()
    assert (dark := run.page.evaluate(paper)) != light
    assert violations(run.page, "color-contrast") == []
    run.page.emulate_media(media="print")
    assert run.page.evaluate(paper) == light
    run.page.emulate_media(media="screen")
    run.page.get_by_role("button", name="Light colours").click()
    assert run.page.evaluate(paper) == light
    run.page.reload()
    run.page.emulate_media(color_scheme="dark")
    assert run.page.evaluate(paper) == dark


def test_the_index_names_every_run(site: Path) -> None:
    """A run that was repeated on one device is compared, but its paper's page takes the first."""
    index = (site / PAGES["index"]).read_text(encoding="utf-8")
    links = [link for link in re.findall(r'href="([^"#]+)"', index) if link != "data:,"]
    assert sorted(links) == [
        "H100/ablation/report.html",
        "H100/transpose/report.html",
        "compare/feinbube2010/compare.html",
        "papers/feinbube2010/paper.html",
    ]
    paper = (site / PAGES["paper"]).read_text(encoding="utf-8")
    assert "nqbench reproduce H200/feinbube2010" in paper
    assert "nqbench reproduce H100/again" not in paper
    others = "H100/again, H200/feinbube2010"
    assert f"feinbube2010: {others} against H100/feinbube2010" in index
    assert re.search(r"<p>On H100 and H200, of 6 main claims \d+ ", index)
    assert ">5 recorded runs<" in index
    assert "Fastest of 24 (N = 16): memory shared" in index, "the first finding"
    assert re.search(r"24 points by kernel time: [\d.]+ ms to [\d.]+ ms</title>", index)


def test_the_fold_of_index_comparison_and_paper(tabs: Tabs) -> None:
    """Answers and a figure are seen without scrolling; on a phone nothing is cut."""
    index, comparison, paper = (tabs(name).page for name in ("index", "comparison", "paper"))
    first = [page.locator(".table").first for page in (comparison, paper)]
    for place in (index.locator(".tile svg").first, *first):
        box = place.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 900
    said = comparison.locator(".lead-in").inner_text()
    assert "faster ±0.9% than H200/feinbube2010 (5 points: 1 faster, 4 unclear)" in said


def test_a_gallery_needs_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StudyError, match="no run under results/reference"):
        list(write_site(tmp_path))
