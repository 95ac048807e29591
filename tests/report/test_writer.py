"""The whole report: which files, what the index says, what happens when something is missing."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nqbench.errors import FolderRefused, StoreError, StudyError
from nqbench.report.items import items_of
from nqbench.report.page import Folder
from nqbench.report.writer import ReadRun, read_run, write_report
from nqbench.runs.layout import default_out
from tests.builders import H100, MINI, Builder, ablation, factorial

Serve = Callable[..., list[ReadRun]]


@pytest.fixture
def serve(tmp_path_factory: pytest.TempPathFactory) -> Serve:
    """Writes runs, and reads them."""
    folder = tmp_path_factory.mktemp("runs")
    numbers = itertools.count()

    def add(*builders: Builder) -> list[ReadRun]:
        return [read_run(one.write(folder / f"run{next(numbers)}")) for one in builders]

    return add


EFFECTS = [{"table": "effects", "of": "factorial"}, {"figure": "heatmap", "of": "factorial"}]


def test_every_item_is_written_and_linked(serve: Serve, tmp_path: Path) -> None:
    written = write_report(serve(ablation(rounds=2)), tmp_path, ("md", "csv", "tex", "html")).paths
    assert written[0] == tmp_path / "report.md"
    assert sorted(written) == sorted(tmp_path.iterdir())
    assert all(path.stat().st_size > 0 for path in written)
    stems = {path.stem for path in written}
    assert {"table-effects-factorial", "figure-ranking-factorial", "report"} <= stems
    for stem in stems:
        if stem.startswith("figure-"):
            assert {p.suffix for p in written if p.stem == stem} == {".svg", ".pdf", ".png"}
    index = (tmp_path / "report.md").read_text()
    links = re.findall(r"\]\(<([^>]*)>\)", index)
    assert set(links) == {p.name for p in written} - {"report.md", "report.html"}
    page = (tmp_path / "report.html").read_text()
    for text in (index, page):
        assert "NVIDIA H100 PCIe (cuda:0)" in text
        assert "measured, 2 rounds" in text
        assert "nqbench run configs/ablation.yaml" in text
        assert "Strongest factor" in text


def test_simulated_report_never_says_measured_of_kernels(serve: Serve, tmp_path: Path) -> None:
    runs = serve(factorial(MINI, (9, 10), report=[{"table": "results"}, {"table": "skipped"}]))
    write_report(runs, tmp_path, figure_formats=("svg",))
    text = (tmp_path / "report.md").read_text()
    assert "**simulated**" in text
    assert "measured" not in text


def test_what_lacks_data_is_a_sentence_not_a_crash(serve: Serve, tmp_path: Path) -> None:
    builder = Builder(H100, report=[*EFFECTS, {"table": "skipped"}])
    builder.fail("factorial", {"n": 15, "memory": "shared"}, "launch_error", "out of memory")
    report = write_report(serve(builder), tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert text.count("Not made: ") == 2
    assert [said.partition(".")[0] for said in report.not_made] == [
        "table: effects of factorial",
        "figure: heatmap of factorial",
    ]
    assert "0 of 1 points ok" in text
    assert "out of memory" in text
    assert {p.stem for p in report.paths} == {"report", "table-skipped"}


def test_time_asked_of_a_simulated_run_says_why_not(serve: Serve, tmp_path: Path) -> None:
    report = [{"figure": "ranking", "of": "factorial", "value": "time"}]
    write_report(serve(factorial(MINI, (9,), report=report)), tmp_path)
    assert "a simulator counts, it does not time" in (tmp_path / "report.md").read_text()


def test_an_item_of_a_newer_study_is_a_sentence(serve: Serve, tmp_path: Path) -> None:
    report = [{"figure": "hologram", "of": "factorial"}, {"table": "results"}]
    written = write_report(serve(factorial(sizes=(15,), report=report)), tmp_path).paths
    assert "no figure is called 'hologram'" in (tmp_path / "report.md").read_text().replace(
        "\\", ""
    )
    assert any(p.stem == "table-results-factorial" for p in written)


def test_the_same_item_twice_makes_two_files(serve: Serve, tmp_path: Path) -> None:
    report = [{"table": "effects", "of": "factorial"}] * 2
    written = write_report(serve(factorial(sizes=(15,), report=report)), tmp_path, ("csv",)).paths
    assert {p.name for p in written[1:]} == {
        "table-effects-factorial.csv",
        "table-effects-factorial-2.csv",
    }


def test_no_two_tables_of_a_page_have_one_latex_label(serve: Serve, tmp_path: Path) -> None:
    run = factorial(sizes=(15,), report=[{"table": "effects", "of": "factorial"}] * 2)
    written = write_report([*serve(run), *serve(run)], tmp_path, ("tex",)).paths
    labels = [re.findall(r"\\label\{(.*?)\}", p.read_text())[0] for p in written[1:]]
    assert len(set(labels)) == len(labels) == 4


def test_several_runs_get_a_folder_each(serve: Serve, tmp_path: Path) -> None:
    runs = serve(
        factorial(sizes=(15,), report=EFFECTS[:1]), factorial(MINI, (9,), report=EFFECTS[:1])
    )
    report = write_report(runs, tmp_path, ("md",))
    for word in ("measured", "simulated"):
        assert any(word in finding for finding in report.findings)
    folders = {p.parent.name for p in report.paths[1:]}
    assert folders == {"ablation-nvidia-h100-pcie-cuda-0", "ablation-mini-sm-90-rules-sim-mini"}
    text = (tmp_path / "report.md").read_text()
    for link in re.findall(r"\]\(<([^>]*)>\)", text):
        assert (tmp_path / link).exists()


def test_a_study_without_a_list_still_gets_its_results(serve: Serve, tmp_path: Path) -> None:
    written = write_report(serve(factorial(sizes=(15,), report=[])), tmp_path, ("md",)).paths
    assert "table-results-factorial.md" in {p.name for p in written}


def test_writing_twice_changes_no_byte(serve: Serve, tmp_path: Path) -> None:
    runs = serve(factorial(sizes=(15,), report=[{"figure": "effects", "of": "factorial"}]))
    before = {p: p.read_bytes() for p in write_report(runs, tmp_path).paths}
    after = {p: p.read_bytes() for p in write_report(runs, tmp_path).paths}
    assert before == after


def test_no_half_written_file_is_left(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str, encoding: str) -> None:
        path.write_bytes(text.encode(encoding)[:5])
        raise OSError(28, "No space left on device")

    runs = serve(factorial(sizes=(15,), report=EFFECTS))
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(StoreError, match=r"No space left on device; give another folder"):
        write_report(runs, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_a_sentence(serve: Serve, tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    runs = serve(factorial(sizes=(15,), report=EFFECTS))
    for out in (blocker / "out", Path("/proc/nqbench"), tmp_path / ("long" * 100)):
        with pytest.raises(FolderRefused, match="the report cannot be written to"):
            write_report(runs, out)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_a_sentence(serve: Serve, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(FolderRefused, match="Permission denied"):
        write_report(serve(factorial(sizes=(15,), report=EFFECTS)), tmp_path / "out")


@pytest.mark.parametrize(
    ("many", "options", "match"),
    [
        (1, {"formats": ("docx",)}, "'docx'"),
        (1, {"figure_formats": ("gif",)}, "'gif'"),
        (0, {}, "at least one run"),
    ],
)
def test_what_is_refused_before_anything_is_written(
    serve: Serve, tmp_path: Path, many: int, options: dict[str, Any], match: str
) -> None:
    with pytest.raises(StudyError, match=match):
        write_report(serve(*[factorial(sizes=(15,))] * many), tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("run", "out"),
    [
        ("results/local/cuda-0/ablation", "plots/local/cuda-0/ablation"),
        ("results/reference/h100/ablation", "plots/reference/h100/ablation"),
        ("/data/results/local/sim/quick", "/data/plots/local/sim/quick"),
        ("elsewhere/run", "elsewhere/run/report"),
        ("results/other/run", "results/other/run/report"),
    ],
)
def test_default_folder_follows_the_run(run: str, out: str) -> None:
    assert default_out(Path(run)) == Path(out)


@pytest.mark.parametrize("entry", [{"x": "depth"}, {"figure": "line", "n": "ten"}, "results"])
def test_a_damaged_report_list_is_a_sentence(entry: object) -> None:
    builder = factorial(rounds=2)
    builder.report = [entry]  # type: ignore[list-item]
    with pytest.raises(StoreError, match=r"is damaged: its report list .* delete study\.report"):
        items_of(builder.data())


def test_what_is_not_made_any_more_does_not_stay_beside_the_new(tmp_path: Path) -> None:
    first = Folder(tmp_path)
    for name in ("table-old.md", "table-old.csv", "table-kept.csv", "figure-old.svg"):
        first.text(name, "1")
    first.page(
        "report.md",
        "[md](<table-old.md>) [csv](<table-old.csv>) [c](<table-kept.csv>)"
        " ![](<figure-old.svg>) [x](<../elsewhere.md>) [n](<notes.md>)",
    )
    (tmp_path / "notes.md").write_text("mine")
    (tmp_path / "table-mine.md").write_text("not linked: not ours")
    again = Folder(tmp_path)
    again.text("table-kept.md", "2")  # another format of the same: both stay
    again.page("report.md", "[md](<table-kept.md>)")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"report.md", "notes.md", "table-mine.md", "table-kept.md", "table-kept.csv"}
