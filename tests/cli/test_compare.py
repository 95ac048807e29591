"""The command ``compare``: exit codes, files, sentences."""

from __future__ import annotations

import csv
import io
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nqbench.report import github
from nqbench.runs.reading import line_of, read_records
from nqbench.study import load_study
from tests.cli.call import call
from tests.toys import run_here

STUDY = Path(__file__).with_name("compared.yaml").read_text(encoding="utf-8")
NOISE = "base=1e-7,noise=0.002,round=0.002"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of the same, one that is 5% slower, and two that only count."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "small.yaml").write_text(STUDY, encoding="utf-8")
    study = load_study(folder / "small.yaml")
    specs = {
        "old": f"fake:{NOISE},seed=1",
        "again": f"fake:{NOISE},seed=2",
        "slow": f"fake:{NOISE.replace('1e-7', '1.05e-7')},seed=3",
        "count": "fake:deterministic=1",
        "recount": "fake:deterministic=1,base=2e-4",
    }
    for name, spec in specs.items():
        run_here(study, spec, folder / name)
    return folder


@pytest.mark.parametrize(
    ("reference", "other", "gate", "code", "said"),
    [
        ("old", "slow", "slower:2%", 1, "--fail-on slower:2%: 4 points"),
        ("old", "slow", "slower:50%", 0, "(4 points: 4 faster)"),
        ("old", "again", "slower:2%", 0, "--fail-on slower:2%: none"),
        ("slow", "old", "slower", 0, "--fail-on slower: none"),
        ("count", "recount", "differs:1%", 1, "--fail-on differs:1%: 4 points"),
        ("count", "recount", "slower", 2, "needs a time, but"),
        ("old", "slow", "differs:1%", 2, "--fail-on differs needs a counter, but"),
        ("old", "slow", "worse", 2, "are compared by kernel time; use --fail-on slower"),
    ],
)
def test_gates(runs: Path, reference: str, other: str, gate: str, code: int, said: str) -> None:
    done = call("compare", runs / reference, runs / other, "--fail-on", gate)
    assert done.code == code
    assert said in done.said
    assert bool(done.out) == (code != 2), "a gate that nothing can hit is refused before the tables"


def test_a_point_that_no_longer_runs_fails_the_gate(runs: Path, tmp_path: Path) -> None:
    """The reverse is an improvement, and a skipped point is neither."""
    for status, code in (("crashed", 1), ("wrong", 1), ("skipped", 0), ("throttled", 0)):
        other = tmp_path / status
        shutil.copytree(runs / "again", other)
        records = read_records(other).records
        key = records[-1].key
        kept = [r for r in records if r.key != key]
        lost = next(r for r in records if r.key == key)
        made_up: Any = {"status": status, "reason": "made up", "value_s": None, "samples_s": ()}
        lines = map(line_of, [*kept, replace(lost, **made_up)])
        (other / "records.jsonl").write_bytes(b"".join(lines))
        done = call("compare", runs / "old", other, "--fail-on", "slower:2%")
        assert done.code == code, (status, done.said)
        assert ("and 1 that ran before and failed now" in done.said) == bool(code)
        assert "1 point could not be compared" in done.said
        assert call("compare", other, runs / "old", "--fail-on", "slower:2%").code == 0, status
        assert call("compare", runs / "old", runs / "slow", other).code == 0, "of three runs, one"


def test_workloads_are_not_mixed(runs: Path, tmp_path: Path) -> None:
    """Equal factors of different programs are a coincidence."""
    shutil.copytree(runs / "old", tmp_path / "other")
    manifest = tmp_path / "other" / "manifest.json"
    text = manifest.read_text(encoding="utf-8")
    manifest.write_text(text.replace('"workload": "counting"', '"workload": "fitness"'))
    done = call("compare", runs / "old", tmp_path / "other")
    assert done.code == 2
    assert "is a run of counting, but" in done.err
    manifest.write_text(text.replace("{", '{"statistic": "mean", ', 1))  # as of a foreign file
    assert "small reports means of its sam" in call("compare", runs / "old", tmp_path / "other").out


def test_levels_within_one_run(runs: Path) -> None:
    done = call("compare", runs / "old", "--by", "memory=global,shared")
    assert done.code == 0
    assert done.out.startswith("memory shared is as fast as memory global (2 points: 2 same)")
    assert "Paired by round" in done.said


def test_a_page_is_a_file_also_without_a_folder(runs: Path, tmp_path: Path) -> None:
    done = call("compare", runs / "old", runs / "slow", "--format", "html", cwd=tmp_path)
    assert done.code == 0
    assert [path.name for path in tmp_path.glob("plots/local/compare/*")] == ["compare.html"]


def test_files(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("compare", runs / "old", runs / "slow", "--out", out, "-f", "csv", "-f", "html")
    done = call(*words)
    assert done.code == 0
    written = {path.name for path in out.iterdir()}
    assert {"compare.md", "table-summary.csv", "compare.html"} <= written
    lines = (out / "table-points-time.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 5
    assert all(",slower," in line for line in lines[1:])
    page = (out / "compare.md").read_text(encoding="utf-8")
    assert page.startswith("# small: ")
    assert "against" in page.splitlines()[0]
    assert "is 1.05x faster ±" in page[: page.index("\n## ")]
    best = (out / "table-best.csv").read_text(encoding="utf-8").splitlines()
    assert best[0].startswith("N,variants,on,fastest,kernel_time_s,kernel_time_s_low")
    assert len(best) == 3
    assert "(<table-points-time.csv>)" in page
    done = call("compare", runs / "old", runs / "slow", "--format", "csv")
    assert done.code == 0
    assert "\nquantity,compared,with_reference,points,faster,slower,same,unclear" in done.out
    rows = csv.DictReader(io.StringIO("\n".join(lines)))
    assert all(1.02 < float(row["compared_over_reference"]) < 1.08 for row in rows)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("compare old", "needs two runs, or one run and, with --by, two levels of a factor: --by "),
        ("compare quick.yaml", "quick.yaml is a study; give a run folder that `nqbench run quick"),
        ("compare old old", "the same run is given twice"),
        ("compare old count", "these never share a column"),
        ("compare old nothing", "does not exist; give a run folder"),
        ("compare old slow --by memory=a,b", "are compared within one run, but 2 are given"),
        ("compare old --by memory=global", "needs a factor and two different levels"),
        ("compare old slow --margin wide", "--margin 'wide' is not a percentage"),
        ("compare old slow --margin 100%", "a margin of 100% makes no sense"),
        ("compare old slow --fail-on faster", "write slower, worse, differs"),
        ("compare old slow --fail-on slower:-2%", "--fail-on slower: '-2%' is not a percentage"),
        ("compare old slow --fail-on slower:2", "--fail-on slower: '2' is not a percentage"),
        ("compare old slow --out /proc/nowhere", "cannot be written to /proc/nowhere"),
        ("compare old slow --value tmie", "did you mean 'time'"),
    ],
)
def test_mistakes_end_with_exit_code_2(runs: Path, words: str, message: str) -> None:
    """Exit code 1 is kept for the gate."""
    names = ("old", "slow", "count", "nothing")
    done = call(*(runs / word if word in names else word for word in words.split()))
    assert done.code == 2
    assert message in done.err


@pytest.mark.parametrize("gate", [None, "slower:2%"])
def test_a_pull_request_sees_what_got_slower(gate: str | None, runs: Path, tmp_path: Path) -> None:
    step = tmp_path / "summary.md"
    words = ["compare", runs / "old", runs / "slow", "--format", "github"]
    words += ["--fail-on", gate] if gate else []
    printed = call(*words)
    written = call(*words, GITHUB_STEP_SUMMARY=str(step))
    assert printed.code == written.code == (1 if gate else 0)
    lines = written.out.splitlines()
    assert printed.out == written.out + step.read_text()
    kind = "error" if gate else "warning"
    form = rf"::{kind} title=nqbench%3A [^:,]+::kernel time: 1\.\d+x slower .* now\)"
    assert lines
    assert all(re.fullmatch(form, line) for line in lines), lines
    text = step.read_text()
    assert text.startswith("## ")
    assert "slower" in text
    assert (f"--fail-on {gate}" in text) == bool(gate)
    assert not call(*words[:1], runs / "old", runs / "again", *words[3:]).out.startswith("::")


def test_a_summary_fits_a_comment(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(github, "ROOM", 300)
    text = call("compare", runs / "old", runs / "slow", "--format", "github").out
    assert text.endswith("Tables that do not fit here are left out.\n")
