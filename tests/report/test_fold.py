"""What a reader of a run's page sees first: on a desk, on a phone, in the dark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, ViewportSize

from nqbench.analysis.answer import Answer
from nqbench.analysis.data.dataset import Dataset, load_dataset
from nqbench.report.writer import write_report
from tests.builders import MINI, REPORT, Builder, ablation

DESK: Final[ViewportSize] = {"width": 1400, "height": 900}
PHONE: Final[ViewportSize] = {"width": 390, "height": 844}
LARGEST: Final = Path(__file__).parents[2] / "results/reference/h200/ablation"
NO_LINES: Final = [item for item in REPORT if item.get("figure") != "line"]
CLOSED: Final = [
    *("Every point", "Resources", "What did not run, and why", "How it was measured"),
    "How it was counted",
    *("Device and environment", "How to repeat it"),
]
ORDER: Final = ["Findings", "Effects", "Interactions", "Parameters", "Scaling", "Results"]


def own() -> Builder:
    """A kernel of one's own with eighty points and a long question."""
    run = Builder(rounds=2, study="tile", workload="kernel:tile", report=[])
    for tile in range(1, 41):
        for pad in (0, 1):
            run.time("tile", {"n": 256, "tile_width": tile, "pad": pad}, 1e-5 * tile * (2 - pad))
    return run


@pytest.fixture(scope="module", params=["measured", "simulated", "own"])
def page(
    request: pytest.FixtureRequest, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Page]:
    """Of the largest study of ours, of one like it in the simulator, and of a kernel of one's own;
    each is one file of at most two megabytes."""
    folder: Path = tmp_path_factory.mktemp("fold")
    runs: dict[str, Callable[[], Dataset]] = {
        "measured": lambda: load_dataset(LARGEST),
        "simulated": lambda: ablation(MINI, report=NO_LINES).data(),
        "own": lambda: own().data(),
    }
    (path,) = write_report(Answer(runs[request.param]()), folder, ("html",)).paths
    assert path.stat().st_size <= 2_000_000
    opened = browser.new_page(viewport=DESK)
    opened.goto(path.as_uri())
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def desk(page: Page) -> None:
    page.set_viewport_size(DESK)
    page.emulate_media(color_scheme="light")
    page.reload()


def texts(page: Page, selector: str) -> list[str]:
    return [text.strip() for text in page.locator(selector).all_inner_texts()]


def test_the_answer_and_its_figures_are_on_the_first_screen(page: Page) -> None:
    for part in (".cards", ".hero"):
        box = page.locator(part).first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= DESK["height"], part
    assert 2 <= page.locator(".card").count() <= 3
    drawn = texts(page, "figcaption")
    assert drawn[1:] == ["What each change is worth"]
    assert page.locator(".hero .drawing:visible").count() == len(drawn)


def test_sections_stand_in_order_and_what_explains_is_closed(page: Page) -> None:
    shown = texts(page, "main section > h2")
    assert shown == [title for title in ORDER if title in shown]
    assert {"Findings", "Effects", "Results"} <= {*shown}
    closed = texts(page, "details.box:not([open]) > summary")
    assert closed == sorted(closed, key=CLOSED.index)
    assert {"Every point", "How to repeat it"} <= {*closed}
    titles = [*texts(page, "main :is(h1, h2, h3):visible"), *texts(page, "figcaption")]
    assert len(titles) == len(set(titles)), "each title once"


def test_effects_are_one_table_of_one_size_and_quantity(page: Page) -> None:
    table = page.locator(".table").first
    shown = table.locator("thead th:visible").all_inner_texts()
    heads = [text.strip(" \u2195\n\xa0") for text in shown]
    assert heads[:2] == ["change", "effect"]
    if "N" in heads:  # there is one
        column = f"tbody td:nth-child({heads.index('N') + 1}):visible"
        assert len(set(table.locator(column).all_inner_texts())) == 1
    assert "quantity" not in heads
    said = table.locator("tbody td:nth-child(2):visible").all_inner_texts()
    assert any(text.endswith((" +", " -")) for text in said)
    assert not any("e-" in text or "e+" in text for text in said)
    assert len(said) < table.locator("tbody tr").count() or len(said) < 81


def test_on_a_phone_the_number_comes_first(page: Page) -> None:
    page.set_viewport_size(PHONE)
    page.reload()
    for box in page.locator("details.under, details.box").all():
        box.evaluate("one => { one.open = true; }")
    wide = page.evaluate(
        "[...document.querySelectorAll('table, .drawing')].filter(one =>"
        " one.checkVisibility() && one.getBoundingClientRect().right > innerWidth)"
        ".map(one => one.textContent.slice(0, 99))"
    )
    assert wide == []
    first: list[Any] = page.evaluate(
        "[...document.querySelectorAll('.table[data-switch] tbody:has(.lead)')]"
        ".map(one => [...one.rows].find(row => row.checkVisibility())).filter(row => row)"
        ".map(row => [...row.cells].filter(cell => cell.checkVisibility()).toSorted((a, b) =>"
        " a.getBoundingClientRect().top - b.getBoundingClientRect().top)[0].dataset.v)"
    )
    assert len(first) >= 2
    assert all(first), "a value stands on top of every row"


def test_figures_have_colours_of_their_own_in_the_dark(page: Page) -> None:
    fills = "name => [...document.querySelectorAll(name)].map(one => getComputedStyle(one).fill)"
    around, cells = (".hero .drawing:not(.narrow) text", ".drawing path[data-tip]")
    light = [page.evaluate(fills, name) for name in (around, cells)]
    page.emulate_media(color_scheme="dark")
    dark = [page.evaluate(fills, name) for name in (around, cells)]
    assert all(one != two for one, two in zip(light[0], dark[0], strict=True))
    assert light[1] == dark[1], "darker: higher is true of both"
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.drawing svg')).filter") == "none"
    )


def test_the_contents_follow_the_scroll(page: Page) -> None:
    for title in ("Findings", "Results", "Effects"):
        page.locator("h2", has_text=title).first.evaluate("one => one.scrollIntoView()")
        page.locator("nav [aria-current]", has_text=title).wait_for()
