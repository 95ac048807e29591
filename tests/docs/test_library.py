"""The examples of docs/library.md run as written, and it lists the whole public interface."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import nqbench
from benchmarks.in_process import in_process
from nqbench.errors import AnalysisError, NqbenchError, StoreError, StudyError
from tests.toys import FAKE

pytestmark = pytest.mark.usefixtures("undrawn")

PAGE = Path(__file__).parents[2] / "docs" / "library.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)


@pytest.fixture(autouse=True)
def in_this_process() -> Iterator[None]:
    """Starting workers takes the longest; tests of ``measure`` have them as their subject."""
    with in_process():
        yield


def test_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for example in EXAMPLES:
        exec(compile(example, str(PAGE), "exec"), names)
    said = capsys.readouterr()
    for line in re.findall(r"print\(error\)  # (.*)", "".join(EXAMPLES)):
        assert line in said.out, "the page shows what is printed"
    assert not said.err
    assert (tmp_path / "layouts-report" / "report.md").exists()


def test_every_public_name_is_on_the_page_and_typed() -> None:
    text = PAGE.read_text(encoding="utf-8")
    types = {"Launched", "Study", "__version__"}
    assert {name for name in dir(nqbench) if f"nqbench.{name}(" in text} == {*dir(nqbench)} - types
    assert dir(nqbench) == nqbench.__all__
    for name in nqbench.__all__:
        assert getattr(nqbench, name).__doc__ or name == "__version__"
    with pytest.raises(AttributeError, match="nothing"):
        nqbench.nothing  # noqa: B018
    assert Path(nqbench.__file__).with_name("py.typed").exists()


def test_import_is_quick() -> None:
    heavy = ("numpy", "pandas", "pydantic", "matplotlib", "numba", "scipy", "typer")
    program = f"import sys, nqbench; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


STUDY = {
    "name": "small",
    "workload": "counting",
    "n": [6, 7],
    "fixed": {"memory": "shared", "depth": 2},
    "matrix": {"layout": ["per_thread", "interleaved"]},
    "measure": {"rounds": 2, "budget": "1s"},
}


def test_a_timed_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Seconds with intervals, effects, files; a second call measures nothing, and none prints."""
    run = nqbench.run(STUDY, FAKE, tmp_path / "run", budget="1m")
    assert run.outcome is not None
    assert run.outcome.counts["ok"] == 4
    table = run.table()
    assert list(table["n"]) == [6, 7, 6, 7] or list(table["n"]) == [6, 6, 7, 7]
    assert (table["time_s_low"] < table["time_s"]).all()
    assert (table["time_s"] < table["time_s_high"]).all()
    assert set(table["rounds"]) == {2}
    assert list(run.table("warp_instructions")["warp_instructions"].isna()) == [True] * 4
    best = run.best().iloc[0]
    assert (best["points"], best["value"]) == (2, table[table["n"] == 7]["time_s"].min())
    assert best["times_better_than_worst"] > 1
    assert best["layout"] in run._repr_html_()
    assert len(run.plot().axes) == 2
    effects = run.effects()
    assert list(effects["factor"]) == ["layout", "layout"]
    assert (effects["low"] < effects["to_over_from"]).all()
    with pytest.raises(AnalysisError, match="no quantity is called 'tiem'"):
        run.table("tiem")
    with pytest.raises(AnalysisError, match=f"no sweep 'nowhere'; choose from {STUDY['name']}"):
        run.effects("nowhere")
    with pytest.raises(StudyError, match="belongs to no paper"):
        nqbench.judge(run)
    assert len(nqbench.load(run)) == len(run.records)
    assert list(nqbench.load([run]).attrs["manifests"]) == [str(run.path)]
    before = run.records
    assert nqbench.run(STUDY, FAKE, tmp_path / "run").records == before
    assert f"nqbench.run small {FAKE}" in Path(run.report(tmp_path / "page").paths[0]).read_text()
    found = nqbench.compare(run, by="layout=per_thread,interleaved").table()
    assert list(found["compared"]) == ["layout interleaved"] * 2
    by = "layout=per_thread,interleaved"
    (within,) = nqbench.compare(run, by=by, margin="5%").comparisons
    assert within.margin == 0.05
    assert run.report(tmp_path / "page", "csv").paths[1].suffix == ".csv"
    page = Path(run.report(tmp_path / "page", "html").paths[0]).read_text(encoding="utf-8")
    assert "nqbench explain" not in page, "no command can name a dictionary"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"matrix": {"layuot": ["padded"]}}, "study['matrix']['layuot']: unknown factor 'layuot'"),
        ({"matrix": {"layout": ["padded", "x"]}}, "study['matrix']['layout'][1]: 'layout' takes"),
        ({"measure": {"rounds": True}}, "study['measure']['rounds']: YAML reads true"),
        ({"measure": {"rouns": 3}}, "did you mean 'rounds'"),
        ({"n": [6, "x"]}, "study['n'][1]: a size n is a whole number"),
        ({"n": None}, "study['n']: 'n' has no value"),
        ({"sweeps": []}, "study['sweeps']: 'sweeps' is empty"),
        ({"fixed": {"depth": 2.5j}}, "study holds '2.5j', of type complex"),
        ({"report": [{"table": "resluts"}]}, "study['report'][0]['table']: there is no table"),
    ],
)
def test_mistakes_in_a_dictionary_name_their_keys(changed: dict[str, object], said: str) -> None:
    with pytest.raises(StudyError) as caught:
        nqbench.expand(STUDY | changed, "sim:mini")
    assert said in str(caught.value)


def test_other_mistakes_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="the study is empty"):
        nqbench.load_study({})
    nested: dict[str, object] = {}
    nested["name"] = nested
    with pytest.raises(StudyError, match="refers to itself"):
        nqbench.load_study(nested)
    with pytest.raises(StoreError, match="not a run folder"):
        nqbench.Run(tmp_path)
    with pytest.raises(StudyError, match="a comparison needs two runs"):
        nqbench.compare()
    with pytest.raises(StudyError, match="name the runs to judge"):
        nqbench.judge()
    with pytest.raises(NqbenchError, match="no device is called"):
        nqbench.run(STUDY, "gpu", tmp_path / "run")
    for budget, said in ((0, "a budget of 0 s"), (float("nan"), "a budget of nan s"), ("3", "'3'")):
        with pytest.raises(StudyError, match=said):
            nqbench.run(STUDY, "fake", tmp_path / "run", budget=budget)
    assert not (tmp_path / "run").exists()
