"""``nqbench claims`` and ``nqbench reproduce`` as scripts see them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from nqbench.cli import papers as commands
from nqbench.errors import NothingRuns
from tests.cli.call import ROOT, call

pytestmark = pytest.mark.usefixtures("undrawn")

SMALL = Path(__file__).with_name("zhang2011.yaml").read_text(encoding="utf-8")
FAKE = "fake:noise=0.001,round=0.001,spread=0.2,growth=1.1"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one paper, whose claims need no long count, and a small study."""
    folder = tmp_path / "experiments" / "zhang2011"
    folder.mkdir(parents=True)
    source = ROOT / "experiments" / "zhang2011" / "published.yaml"
    data = yaml.load(source.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    data["claims"] = [c for c in data["claims"] if c["kind"] == "ratio"]
    data["tables"], data["figures"] = data["tables"][:4], []
    text = yaml.safe_dump(data, allow_unicode=True, sort_keys=False)
    (folder / "published.yaml").write_text(text, encoding="utf-8")
    (folder / "study.yaml").write_text(SMALL, encoding="utf-8")
    return tmp_path


def measured(project: Path, name: str, study: str = SMALL) -> str:
    """The run folder of a study of its own."""
    text = study.replace("name: zhang2011", f"name: {name}")
    (project / "study.yaml").write_text(text, encoding="utf-8")
    done = call("run", "study.yaml", "-d", FAKE, "--no-report", cwd=project)
    assert done.code == 0, done.err
    return str(next(project.glob(f"results/local/*/{name}")))


def test_reproduce_runs_reports_and_judges(project: Path) -> None:
    done = call("reproduce", "zhang2011", "--device", FAKE, cwd=project)
    assert done.code == 0, done.err
    verdicts, shown = done.out.splitlines()[-2:]
    assert re.match(r"all \d+ verdicts: .*\d+ unclear.*; nqbench claims results/local/", verdicts)
    page = Path(shown.split()[1].removeprefix("file://"))
    assert page.name == "paper.html"
    text = page.with_suffix(".md").read_text(encoding="utf-8")
    assert "synthetic, made by the fake test device" in text
    assert "table 4: shared memory with no bank conflict" in text
    assert page.with_name("report.md").exists()
    run = next(project.glob("results/local/*/zhang2011"))

    said = r"^zhang2011: Optimization.*\n(On .*, of|Of) 6 main claims .*not measured"
    assert re.search(said, done.out, re.M)

    judged = call("claims", str(run), cwd=project)
    assert judged.code == 0
    assert "bank_conflict" in judged.out
    assert "not measured" in judged.out

    shutil.copytree(project / "experiments" / "zhang2011", project / "experiments" / "other")
    again = call("reproduce", "zhang2011", "other", "--recorded", cwd=project)
    assert again.code == 0, again.err
    assert (project / "plots" / "local" / "papers" / "zhang2011" / "paper.md").exists()
    assert "there is no run of other here" in again.err
    once = call("reproduce", "zhang2011", "--recorded", "--out", "elsewhere", cwd=project)
    assert once.code == 0, once.err
    assert (project / "elsewhere" / "paper.md").exists()

    wrong = call("claims", str(run), "--paper", "zhang2010", cwd=project)
    assert wrong.code == 2
    assert "did you mean 'zhang2011'" in wrong.err


def test_a_paper_runs_on_models_of_its_own_gpus(project: Path) -> None:
    """Its claims are judged by modelled times, and by nothing that was measured."""
    folder = project / "experiments" / "zhang2011"
    done = call("reproduce", "zhang2011", "--device", "sim:own", cwd=project)
    assert (done.code, "has no study own.yaml" in done.err) == (2, True)
    own = SMALL.replace("shared_conflict", "low_divergence")
    own = own.replace("shared_no_conflict", "pool_distributed")
    (folder / "own.yaml").write_text(own, encoding="utf-8")
    done = call("reproduce", "zhang2011", "--device", "sim:own", cwd=project)
    assert done.code == 0, done.err
    assert list(project.glob("results/local/sim-gtx480-cache-time/zhang2011/manifest.json"))
    text = (project / "plots" / "local" / "own" / "zhang2011" / "own.md").read_text("utf-8")
    row = next(line for line in text.splitlines() if line.startswith("| pool\\_hurts\\_15 |"))
    assert "(modelled)" in row
    assert "simulated at N=8" in row
    assert "effects have the measured sign" in text


def test_a_paper_without_a_result_is_a_failure(project: Path) -> None:
    study = project / "experiments" / "zhang2011" / "study.yaml"
    study.write_text(SMALL.replace("rounds: 2, budget: 1s", "rounds: 2"), encoding="utf-8")
    words = ("--device", "fake:base=9", "--budget", "100ms")
    done = call("reproduce", "zhang2011", *words, cwd=project)
    assert done.code == 1, done.said
    assert "done: 2 skipped" in done.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("reproduce", "zhang"), "no paper 'zhang'; did you mean 'zhang2011'"),
        (("reproduce", "zhang2011", "--recorded"), "no run of zhang2011 under results"),
        (
            ("reproduce", "zhang2011", "--recorded", "--device", "sim"),
            "--device has no effect here (--recorded runs nothing)",
        ),
        (("reproduce", "zhang2011", "--recorded", "--budget", "9s"), "--budget has no effect here"),
        (("reproduce", "zhang2011", "--device", "gpu"), "gpu"),
        (("claims", "nowhere"), "nowhere does not exist"),
        (("claims", "nowhere", "./nowhere"), "nowhere is given twice"),
        (("reproduce",), "PAPER"),
        (("claims",), "claims needs the runs to judge by"),
        (("claims", "--paper", "zhang2011"), "there is no run of zhang2011 under results"),
        (("claims", "nowhere", "--full"), "claims --full is gone: it counted iterations"),
        (("claims", "nowhere", "--out", "x"), "--out has no effect here"),
        (("claims", "nowhere", "--matrix", "--paper", "x"), "--paper has no effect here"),
        (("claims", "--matrix", "nowhere"), "nowhere does not exist"),
    ],
)
def test_mistakes_are_one_sentence(project: Path, words: tuple[str, ...], said: str) -> None:
    done = call(*words, cwd=project)
    assert done.code == 2
    assert said in done.err
    assert not (project / "results").exists()


def test_a_broken_file_names_its_line(project: Path) -> None:
    file = project / "experiments" / "zhang2011" / "published.yaml"
    text = file.read_text(encoding="utf-8").replace('time("shared_conflict")', 'time("shared")', 1)
    file.write_text(text, encoding="utf-8")
    line = next(i for i, row in enumerate(text.splitlines(), 1) if 'time("shared")' in row)
    run = measured(project, "mine")
    done = call("claims", run, "--paper", "zhang2011", cwd=project)
    assert done.code == 2
    assert f"published.yaml:{line}: there is no system 'shared'" in done.err
    unnamed = call("claims", run, cwd=project)
    assert unnamed.code == 2
    assert "belongs to no paper" in unnamed.err
    assert "--paper" in unnamed.err


@pytest.mark.parametrize(
    ("ends", "asked", "code"),
    [
        ([0, 0], 2, 0),
        ([1, 0], 2, 1),
        ([0, 130], 2, 130),
        ([130, 0], 1, 130),
        ([None, 0], 2, 0),  # no point for the device
        ([None, None], 2, 2),
    ],
)
def test_several_papers_continue_after_a_failure_but_not_after_an_interruption(
    ends: list[int | None], asked: int, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter(ends)

    def ended(name: str, *_: object) -> int:
        if (end := next(left)) is None:
            raise NothingRuns(f"nothing would run of {name}")
        return end

    monkeypatch.setattr(commands, "_reproduce", ended)
    done = call("reproduce", "zhang2011", "tanaka2011")
    assert (done.code, len(list(left))) == (code, 2 - asked)
    if ends == [None, 0]:
        assert "zhang2011 is left out: nothing would run of zhang2011" in done.err


def test_a_run_of_another_study_is_judged_where_it_has_something(project: Path) -> None:
    some = call("claims", measured(project, "mine"), "--paper", "zhang2011", cwd=project)
    assert some.code == 0, some.err
    assert "bank_conflict" in some.out

    other = re.sub(r"systems: \[.*\]", "systems: [tanaka2011.none]", SMALL)
    none = call("claims", measured(project, "other", other), "--paper", "zhang2011", cwd=project)
    assert none.code == 2
    assert "has nothing that zhang2011 speaks of" in none.err
    assert "`nqbench reproduce zhang2011` measures it as the paper did" in none.err
    assert none.err.count("\n") == 1
