"""The HTML page of a run: one valid file that needs no other, complete and escaped."""

from __future__ import annotations

import csv
import itertools
import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import html5lib
import pytest

from nqbench.analysis.answer import Answer
from nqbench.analysis.data.dataset import load_dataset
from nqbench.report.circumstances import details
from nqbench.report.writer import write_report
from tests.builders import FACTORIAL, H100, MINI, TRUTH, Builder, combinations, factorial

FILES = ("md", "csv")
NASTY = (
    "</td></details><script>alert(1)</script><img src=x onerror=alert(2)> \"'&amp; `<img src=y>`"
)
REPORT = [
    {"table": "effects", "of": "factorial"},
    {"figure": "effects", "of": "factorial"},
    {"figure": "ranking", "of": "factorial", "title": NASTY},
    {"figure": "hologram"},
]


def nasty_run() -> Builder:
    run = factorial(sizes=(15,), rounds=2, report=REPORT, command=("nqbench", "run", NASTY))
    run.device = {**run.device, "identity": {"name": NASTY, "driver": NASTY}}
    run.fail(
        "factorial",
        {**combinations(FACTORIAL)[0], "n": 16},
        "launch_error",
        f"{NASTY}\x1b[0m\0\x85",
    )
    run.skip("launch", {"n": 16, "block_size": 512}, NASTY, "zhang2011.low_divergence")
    return run


class Page:
    def __init__(self, path: Path) -> None:
        self.text = path.read_text(encoding="utf-8")
        # Raises at the first thing that is not valid HTML.
        self.root = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(self.text)

    def all(self, path: str) -> list[Element]:
        return list(self.root.findall(path))

    def table(self, title: str) -> Element:
        (found,) = [
            table
            for table in self.all(".//table")
            if "".join(table[0].itertext()).startswith(f"{title} (")
        ]
        return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's files without its page (``files``), and with it (``both``)."""
    folder = tmp_path_factory.mktemp("page")
    run = Answer(nasty_run().data())
    for name, formats in {"files": FILES, "both": (*FILES, "html")}.items():
        write_report(run, folder / name, formats)
    return folder


@pytest.fixture(scope="module")
def page(folder: Path) -> Page:
    return Page(folder / "both/report.html")


def texts(element: Element) -> list[str]:
    return ["".join(cell.itertext()) for cell in element]


def test_it_is_alone_and_what_others_wrote_is_text(page: Page) -> None:
    for element in page.root.iter():
        for name, value in element.attrib.items():
            assert not name.startswith("on")
            if name.rpartition("}")[2] in ("src", "href", "action", "data", "poster"):
                assert value.startswith(("#", "data:,", "data:image/png;base64,")), value
    assert "@import" not in page.text
    assert not re.search(r"url\((?!#)", page.text)
    assert "default-src 'none'" in page.text
    headings = {e.get("id") for tag in ("h1", "h2", "h3") for e in page.all(f".//main//{tag}")}
    closed = {e.get("id") for e in page.all(".//details//h3")}  # their box is in the contents
    assert {f"#{name}" for name in headings - closed} == {
        e.get("href") for e in page.all(".//nav//a")
    }
    assert (len(page.all(".//script")), len(page.all(".//img"))) == (1, 0)
    row = page.table("What did not run, and why").findall("tbody/tr")[0]
    assert texts(row)[-2:] == ["launch_error", f"{NASTY}\ufffd[0m\ufffd\ufffd"]


def test_every_table_figure_and_point_is_on_it(page: Page, folder: Path) -> None:
    drawn = [svg[0].text for svg in page.all(".//{*}svg[@role='img']")]
    opening = ["All points of sweep factorial, N = 15", "What each change is worth"]
    assert drawn == [title for title in opening for _ in ("wide", "narrow")]
    assert len(list((folder / "files").glob("figure-*.svg"))) == 2
    shown = [[texts(row)[0] for row in table.findall("tbody/tr")] for table in page.all(".//table")]
    for path in (folder / "files").glob("table-*.csv"):
        rows = list(csv.DictReader(path.read_text().splitlines()))
        heads = [
            f"{r['factor']}: {r['from']} → {r['to']}" if "from" in r else next(iter(r.values()))
            for r in rows
        ]
        assert heads in shown, path
    assert len(page.all(".//div[@class='point']")) == 24 + 2
    results = page.table("Results of sweep factorial")
    assert len(results.findall("tbody/tr/th/a")) == 24 + 1
    assert "no figure is called" in page.text


def test_the_other_formats_are_the_same_with_and_without_it(folder: Path) -> None:
    written = {
        name: {path.name: path.read_bytes() for path in (folder / name).iterdir()}
        for name in ("files", "both")
    }
    assert written["both"].pop("report.html")
    assert written["both"] == written["files"]


def test_cells_carry_the_numbers_that_csv_files_have(page: Page) -> None:
    results = page.table("Results of sweep factorial")
    heads = [head.attrib["data-names"] for head in results.findall("thead/tr/th")]
    time = next(i for i, head in enumerate(heads) if head.startswith("kernel_time_s|"))
    assert heads[time] == "kernel_time_s|kernel_time_s_low|kernel_time_s_high"
    value, low, high = map(float, results.findall("tbody/tr")[0][time].attrib["data-v"].split())
    assert low < value < high
    assert value == pytest.approx(0.01 * 0.5 * 0.8 * 0.9 * 0.7, rel=0.01), "the best on top"


def test_a_point_has_its_samples_conditions_and_command(tmp_path: Path) -> None:
    run = Builder(rounds=2, report=[{"table": "results"}])
    state = {"power_mw": {"min": 1000, "median": 2000, "max": 3000}, "clock_reasons": ["idle"]}
    run.time("launch", {"n": 15, "block_size": 64}, 0.004, "zhang2011.low_divergence")
    folder = run.write(tmp_path / "run")
    records = folder / "records.jsonl"
    records.write_text(
        records.read_text()
        .replace('"samples_s": []', '"samples_s": [0.004, 0.0041239]')
        .replace('"telemetry": {}', f'"telemetry": {str(state).replace(chr(39), chr(34))}')
    )
    page = Page(write_report(Answer(load_dataset(folder)), tmp_path / "out", ("html",)).paths[0])
    (point,) = page.all(".//div[@class='point']")
    said = "".join(point.itertext())
    assert "4 4.1239 ms" in said
    assert "nqbench explain configs/ablation.yaml --point sweep=launch" in said
    assert "power (W)" in said
    assert "idle" in said


@pytest.mark.parametrize(
    ("device", "sweep", "system", "levels", "command"),
    [
        (H100, "factorial", "", {"depth": 4}, "configs/ablation.yaml --point sweep=factorial "),
        (MINI, "factorial", "", {"depth": 4}, " --n 9 --device sim:mini"),
        (H100, "launch", "tanaka2011.both", {}, " --point block_size="),
        (H100, "launch", "cpu.somers", {}, None),
    ],
)
def test_the_command_that_explains_a_point_names_what_was_varied(
    device: Any, sweep: str, system: str, levels: dict[str, Any], command: str | None
) -> None:
    matrix = {"loop": ["branchy", "irrc"], "depth": {"sim": [4], "cuda": ["n - 11", "n - 10"]}}
    sweeps = [
        {"name": "factorial", "matrix": matrix},
        {"name": "launch", "matrix": {"block_size": []}},
    ]
    run = Builder(device, rounds=1, sweeps=sweeps)
    for block, n in itertools.product((32, 64), (9, 10)):
        known = {**levels, "n": n, "block_size": block if system else 64, "rows": "n"}
        known |= {} if system else {"loop": "irrc" if block == 32 else "branchy"}
        if run.simulated:
            run.count(sweep, known, {"warp_instructions": 100.0})
        else:
            run.time(sweep, known, 0.01, system)
    (found,) = details(run.data())
    said = found.points[0].commands
    assert said.startswith("nqbench explain ") == (command is not None)
    if command:
        assert command in said
        assert ("--point loop=irrc" in said) == (not system)
        assert "rows" not in said
        assert ("depth" in said) == run.simulated  # its levels on a GPU are others


def test_a_mark_says_its_change_size_and_effect(page: Page) -> None:
    marks = [title.text or "" for title in page.all(".//{*}use/{*}title")]
    worth = [mark for mark in marks if " → " in mark]
    assert len(worth) == 2 * len(TRUTH)  # for a wide screen and for a narrow one
    factor = f"{1 / TRUTH['shared']:.2f}x faster"
    assert any(re.fullmatch(rf"memory: global → shared, N=15: {factor} ±.*% \+", m) for m in worth)
    assert sum(bool(re.fullmatch(r"[\d.]+ ms \[.* ms\]", mark)) for mark in marks) == 2 * 24
