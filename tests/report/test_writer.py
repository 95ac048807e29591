"""The whole report: which files, what the index says, what happens when something is missing."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nqbench.analysis.answer import Answer
from nqbench.errors import FolderRefused, StoreError, StudyError
from nqbench.report.items import items_of
from nqbench.report.page import Page
from nqbench.report.table import Column, Source, Table
from nqbench.report.writer import write_report
from nqbench.runs.reading import default_out
from tests.builders import H100, MINI, Builder, factorial

TABLES = ("results", "effects", "resources")
"""Those of every report, whatever the study lists."""
LINK = re.compile(r"\]\(<([^>]*)>\)")


def small(**options: Any) -> Builder:
    return factorial(sizes=(15,), rounds=2, **options)


def page_of_one_table(out: Path, form: str = "md") -> None:
    page, source = Page(out, (form,)), Source("d", "measured", "nqbench")
    page.table(Table("kept", "Kept", (Column("a"),), (("1",),), source))
    page.write("report")


def test_every_item_is_written_and_linked_with_the_same_bytes_each_time(tmp_path: Path) -> None:
    report = [{"table": "results"}, {"figure": "effects", "of": "factorial"}]
    tables, figures = ("md", "csv", "tex"), ("svg", "pdf", "png")
    run = Answer(small(report=report).data())
    before, written = (
        {path: path.read_bytes() for path in write_report(run, tmp_path, forms).paths}
        for forms in [(*tables, *figures, "html")] * 2
    )
    assert before == written
    assert next(iter(written)) == tmp_path / "report.md"
    assert sorted(written) == sorted(tmp_path.iterdir())
    assert all(written.values())
    assert {path.name for path in written} == {
        *("report.md", "report.html"),
        *(f"table-{name}-factorial.{form}" for name in TABLES for form in tables),
        *(f"figure-effects-factorial.{form}" for form in figures),  # no interaction matters
    }
    index = (tmp_path / "report.md").read_text()
    assert set(LINK.findall(index)) == {p.name for p in written} - {"report.md", "report.html"}
    page = (tmp_path / "report.html").read_text()
    for text in (index, page):
        assert "NVIDIA H100 PCIe (cuda:0)" in text
        assert "measured, 2 rounds" in text
        assert "nqbench run configs/ablation.yaml" in text
        assert "Fastest of " in text


def test_a_study_without_a_list_still_gets_its_results(tmp_path: Path) -> None:
    """Those of a simulator are never called measured."""
    write_report(Answer(factorial(MINI, (9, 10), report=[]).data()), tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert "table-results-factorial.md" in text
    assert "**simulated**" in text
    assert "measured" not in text


def failed() -> Builder:
    builder = Builder(H100)
    builder.fail("factorial", {"n": 15, "memory": "shared"}, "launch_error", "out of memory")
    return builder


@pytest.mark.parametrize(
    ("builder", "item", "why"),
    [
        (failed, {"table": "effects", "of": "factorial"}, "varies no factor"),
        (failed, {"figure": "ranking", "of": "factorial"}, "no finished point"),
        (lambda: factorial(MINI, (9,)), {"figure": "ranking", "of": "factorial", "value": "time"},
         "a simulator counts, it does not time"),
        (small, {"figure": "hologram", "of": "factorial"}, "no figure is called 'hologram'"),
    ],
)  # fmt: skip
def test_what_cannot_be_made_says_why(
    builder: Callable[[], Builder], item: dict[str, str], why: str, tmp_path: Path
) -> None:
    """For want of data, in a simulator, of a newer version; the rest is made."""
    made = builder()
    made.report = [item, {"table": "scale"}, {"table": "results"}]  # one that is no more
    report = write_report(Answer(made.data()), tmp_path, ("md",))
    assert len(report.not_made) == 1
    assert why in report.not_made[0]
    assert {"report", "table-results-factorial"} <= {p.stem for p in report.paths}
    assert (tmp_path / "report.md").read_text().count("Not made: ") == 1


def test_names_and_labels_are_told_apart(tmp_path: Path) -> None:
    """The same item twice has two files; the same tables of several runs have LaTeX labels of their
    own."""
    twice = [{"table": "effects", "of": "factorial"}] * 2
    made, labels = {"h100": small(report=twice), "mini": factorial(MINI, (9,), report=twice)}, []
    for name, run in made.items():
        paths = write_report(Answer(run.data()), tmp_path / name, ("md", "tex")).paths
        names = {path.name for path in paths[1:]}
        effects = {
            f"table-effects-factorial{i}.{form}" for i in ("", "-2") for form in ("md", "tex")
        }
        assert effects <= names
        assert set(LINK.findall(paths[0].read_text())) == names
        texts = [path.read_text() for path in paths if path.suffix == ".tex"]
        labels += [re.findall(r"\\label\{(.*?)\}", text)[0] for text in texts]
    assert len(set(labels)) == len(labels) > 6


def test_no_half_written_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, text: str, encoding: str) -> None:
        path.write_bytes(text.encode(encoding)[:5])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(StoreError, match=r"No space left on device; give another folder"):
        page_of_one_table(tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_that_cannot_be_made_and_an_unknown_format_are_a_sentence(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    for out in (blocker / "out", Path("/proc/nqbench"), tmp_path / ("long" * 100)):
        with pytest.raises(FolderRefused, match="the report cannot be written to"):
            page_of_one_table(out)
    with pytest.raises(StudyError, match="'docx'"):
        page_of_one_table(tmp_path / "none", "docx")
    assert list(tmp_path.iterdir()) == [blocker]


@pytest.mark.parametrize(
    ("run", "out"),
    [
        ("results/local/cuda-0/ablation", "plots/local/cuda-0/ablation"),
        ("results/reference/h100/ablation", "plots/reference/h100/ablation"),
        ("/data/results/local/sim/quick", "/data/plots/local/sim/quick"),
        ("results/other/run", "results/other/run/report"),
    ],
)
def test_default_folder_follows_the_run(run: str, out: str) -> None:
    assert default_out(Path(run)) == Path(out)


@pytest.mark.parametrize("entry", [{"x": "depth"}, "results"])
def test_a_damaged_report_list_is_a_sentence(entry: Any) -> None:
    with pytest.raises(StoreError, match=r"is damaged: its report list .* delete study\.report"):
        items_of(small(report=[entry]).data())


def test_what_is_not_made_any_more_does_not_stay_beside_the_new(tmp_path: Path) -> None:
    """Another format of what is made again stays, and what the old page did not link."""
    for name in ("table-old.md", "table-old.csv", "figure-old.svg", "table-mine.md", "notes.md"):
        (tmp_path / name).write_text("1")
    links = "(<table-old.md>) (<table-old.csv>) (<figure-old.svg>) (<notes.md>) (<table-kept.csv>)"
    (tmp_path / "report.md").write_text(f"{links} (<../table-elsewhere.md>)")
    (tmp_path / "table-kept.csv").write_text("1")
    page_of_one_table(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"report.md", "notes.md", "table-mine.md", "table-kept.md", "table-kept.csv"}
