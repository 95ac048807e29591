"""Studies and papers by name from any folder, and the study that `nqbench init` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from nqbench.errors import StudyError
from nqbench.papers import load_paper, paper_folder
from nqbench.simulator.models import load_model
from nqbench.study import expand, load_study, packaged
from nqbench.study.own_kernel import ArgumentFile, CheckFile, FactorFile, KernelFile
from nqbench.study.packaged import find_study, studies, write_template
from nqbench.study.schema import StudyFile, SweepFile


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_study_and_a_paper_by_name_from_any_folder(elsewhere: Path) -> None:
    assert load_study("ablation").name == "ablation"
    assert load_study("zhang2011").path == paper_folder("zhang2011") / "study.yaml"
    assert load_paper("tanaka2011").id == "tanaka2011"


def test_a_wheel_carries_them_too(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaged, "__file__", str(elsewhere / "nqbench" / "study" / "packaged.py"))
    (elsewhere / "configs").mkdir()  # somebody else's, next to an installed package
    data = elsewhere / "nqbench" / "_data"
    for file in (data / "configs" / "one.yaml", data / "experiments" / "two" / "study.yaml"):
        file.parent.mkdir(parents=True)
        file.touch()
    assert studies() == {
        "one": data / "configs" / "one.yaml",
        "two": data / "experiments" / "two" / "study.yaml",
    }


def test_what_is_here_comes_first(elsewhere: Path) -> None:
    own = elsewhere / "experiments" / "zhang2011"
    own.mkdir(parents=True)
    (own / "study.yaml").touch()
    assert find_study(Path("zhang2011")) == Path("experiments/zhang2011/study.yaml")
    (elsewhere / "quick").touch()
    assert find_study(Path("quick")) == Path("quick")
    (elsewhere / "ablation").mkdir()
    assert find_study(Path("ablation")).name == "ablation.yaml"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            "ablatoin",
            "no study file ablatoin and no packaged study of that name; did you mean 'ablation'",
        ),
        ("xyz", "nqbench comes with ablation, "),
        ("ablation.yaml", "there is no study file ablation.yaml"),
        ("configs/ablation", "there is no study file configs/ablation"),
    ],
)
def test_a_wrong_name(elsewhere: Path, given: str, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        load_study(given)


def test_the_template_runs_and_names_every_key(elsewhere: Path) -> None:
    file = elsewhere / "my-study.yaml"
    write_template("my-study", file, "counting")
    study = load_study(file)
    assert (study.name, "my-study.yaml --dry-run" in study.text) == ("my-study", True)
    points = expand(study, load_model("mini").facts)
    assert {point.sweep for point in points} == {sweep.name for sweep in study.sweeps}
    assert not any(point.skip for point in points)
    for key in {*StudyFile.model_fields, *SweepFile.model_fields, *study.measure.as_json()}:
        assert f"{key.removesuffix('_s')}:" in study.text, key


def test_the_template_of_a_kernel_runs_and_names_every_key(elsewhere: Path) -> None:
    study, source = write_template("mine", elsewhere / "mine.yaml")
    assert source.name == "mine.cu"
    points = expand(load_study(study), load_model("mini").facts)
    assert len(points) == 9
    for form in (KernelFile, ArgumentFile, CheckFile, FactorFile):
        for key in form.model_fields:
            assert f"{key}:" in study.read_text(), key


@pytest.mark.parametrize(
    ("name", "file", "said"),
    [
        ("mine", "mine.yaml", "mine.yaml exists; nothing was written"),
        ("mine", "mine.yml", "mine.cu exists; nothing was written"),
        ("a b", "other.yaml", "'a b' cannot be the name of a study; a name has"),
        ("mine", "nowhere/mine.yaml", "cannot be written: No such file"),
    ],
)
def test_a_template_is_not_written(elsewhere: Path, name: str, file: str, said: str) -> None:
    for there in ("mine.yaml", "mine.cu"):
        (elsewhere / there).write_text("mine")
    with pytest.raises(StudyError, match=said):
        write_template(name, elsewhere / file)
    assert sorted(path.name for path in elsewhere.iterdir()) == ["mine.cu", "mine.yaml"]
    assert (elsewhere / "mine.yaml").read_text() == "mine"
