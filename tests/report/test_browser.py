"""Pages in a real browser: what a reader sees, clicks and prints, in headless Chromium.

One browser and one report of each kind serve all tests. Without a browser they are skipped, which
is an error where ``CI=true``: continuous integration installs one (``.ci/run``).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import html5lib
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from nqbench.report.writer import write_report
from tests.builders import factorial

CHROMIUM: Final = ("chromium", "chromium-browser", "google-chrome")
WIDE: Final[ViewportSize] = {"width": 1400, "height": 1000}
PHONE: Final[ViewportSize] = {"width": 390, "height": 844}
PAPER: Final[ViewportSize] = {"width": 718, "height": 1000}
"""A4 less the margins that Chromium prints with, in CSS pixels."""
RULES: Final = {
    "light": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"],
    "dark": ["color-contrast"],
}
"""What axe-core looks for; another scheme changes nothing but colours."""


@dataclass(slots=True)
class Opened:
    """A page in the browser, and what it has complained of since."""

    path: Path
    page: Page
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        why = "no Chromium to test pages in: apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=program)
        yield opened
        opened.close()


def report(folder: Path) -> Path:
    items = ("effects", "interactions", "results", "skipped")
    wanted = [{"table": name} for name in items] + [{"figure": "ranking"}]
    run = factorial(rounds=2, report=wanted).write(folder / "run")
    write_report([run], folder, ("html",), ("svg",))
    return folder / "report.html"


KINDS: Final[dict[str, Callable[[Path], Path]]] = {"report": report}
"""Pages by kind, each with the function that writes it into a folder."""


@pytest.fixture(scope="module", params=KINDS)
def opened(
    request: pytest.FixtureRequest, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Opened]:
    path = KINDS[request.param](tmp_path_factory.mktemp(request.param))
    page = browser.new_page(viewport=WIDE)
    opened = Opened(path, page)
    page.on("request", lambda sent: opened.requests.append(sent.url))
    page.on("pageerror", lambda error: opened.errors.append(str(error)))
    page.on("console", lambda said: opened.errors.append(said.text))
    page.goto(path.as_uri())
    yield opened
    page.close()


def test_markup_is_valid(opened: Opened) -> None:
    parser = html5lib.HTMLParser()
    parser.parse(opened.path.read_text(encoding="utf-8"))
    assert parser.errors == []
    ids = opened.page.locator("[id]").evaluate_all("all => all.map(one => one.id)")
    assert sorted(ids) == sorted(set(ids))


def test_links_lead_somewhere(opened: Opened) -> None:
    links = opened.page.locator("a").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    ids = set(opened.page.locator("[id]").evaluate_all("all => all.map(one => one.id)"))
    for link in links:
        place, _, anchor = link.partition("#")
        if "://" in place:
            continue
        assert (opened.path.parent / place).exists(), link
        assert place or not anchor or anchor in ids, link


@pytest.mark.parametrize("scheme", RULES)
def test_everyone_can_read_it(opened: Opened, scheme: Any) -> None:
    opened.page.emulate_media(color_scheme=scheme)
    found = Axe().run(opened.page, options={"runOnly": RULES[scheme]}).response["violations"]
    opened.page.emulate_media(color_scheme="light")
    assert [(one["id"], one["help"], one["nodes"][0]["html"][:200]) for one in found] == []


@pytest.mark.parametrize(("medium", "size"), [("screen", PHONE), ("print", PAPER)])
def test_it_fits_the_width(opened: Opened, medium: Any, size: ViewportSize) -> None:
    opened.page.emulate_media(media=medium)
    opened.page.set_viewport_size(size)
    wide = opened.page.evaluate("document.documentElement.scrollWidth")
    opened.page.emulate_media(media="screen")
    opened.page.set_viewport_size(WIDE)
    assert wide <= size["width"]


def test_nothing_is_fetched_and_nothing_fails(opened: Opened) -> None:
    folder = opened.path.parent.as_uri()
    assert [url for url in opened.requests if not url.startswith(folder)] == []
    assert opened.errors == []
