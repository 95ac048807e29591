"""Exit codes, one sentence on errors, nothing lost."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from nqbench import __version__
from nqbench.cli.app import COMMANDS, FORMER
from nqbench.measure.run_state import RunOutcome
from tests.cli.call import ROOT, SURROUNDINGS, call, process

pytestmark = pytest.mark.usefixtures("undrawn")

TINY = Path(__file__).with_name("tiny.yaml").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a study and a wrong one."""
    (tmp_path / "study.yaml").write_text(TINY, encoding="utf-8")
    (tmp_path / "wrong.yaml").write_text(TINY.replace("system:", "sistem:"), encoding="utf-8")
    return tmp_path


HEAVY = {"numpy", "pandas", "scipy", "matplotlib", "rich", "yaml", "pydantic", "llvmlite", "numba"}
STARTED = """\
import sys
from nqbench import __main__ as program
sys.argv = ["nqbench", "--help"]
try:
    program.main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


ENDING = """\
import atexit, os, signal, sys
from nqbench import __main__ as program
atexit.register(os.kill, os.getpid(), signal.SIGINT)
sys.argv = ["nqbench", "--version"]
program.main()
"""


def test_ctrl_c_while_python_ends_prints_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


def test_help_loads_little_and_names_every_command() -> None:
    words, env = [sys.executable, "-c", STARTED], os.environ | SURROUNDINGS | {"COLUMNS": "60"}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert not HEAVY.intersection(done.stderr.split()), "which would take most of the time"
    wide = " ".join(done.stdout.split())
    for title, commands in COMMANDS.items():
        assert f"\n{title}:\n" in done.stdout
        for command in commands:
            about = (command.__doc__ or "").partition("\n")[0]
            assert f" {command.__name__.strip('_')} {about} " in f"{wide} ", "no sentence is cut"
    for command in (c for commands in COMMANDS.values() for c in commands):
        name = command.__name__.strip("_")
        assert call(name, "-h").out.startswith(f"Usage: nqbench {name} ")
    assert call("--version").out == f"nqbench {__version__}\n"


REMOVED_COMMANDS: dict[str, str] = json.loads(FORMER.read_text(encoding="utf-8"))


@pytest.mark.parametrize("former", REMOVED_COMMANDS)
def test_what_is_gone_says_what_to_use(former: str) -> None:
    command, *words = former.split()
    done = call(command, *words, "x")
    assert (done.code, done.out) == (2, "")
    assert done.err == f"nqbench: {former} is gone: it {REMOVED_COMMANDS[former]}\n"
    assert call(command, "x", *(f"--a={word}" for word in words)).err == done.err


def test_a_run_its_records_its_report_and_its_resumption(folder: Path) -> None:
    shown = call("run", "study.yaml", "--device", "sim", "--dry-run", cwd=folder)
    assert shown.code == 0
    assert "1 point to measure" in shown.out
    assert not (folder / "results").exists()

    done = process("run", "study.yaml", "--device", "sim", cwd=folder)
    assert done.code == 0, done.err
    run = folder / "results" / "local" / "sim-mini" / "tiny"
    before = (run / "records.jsonl").read_text()
    record = json.loads(before.splitlines()[-1])
    dry = [*RUN, "sim", "--dry-run", "--out", run]
    assert f"it would resume the run in {run}" in call(*dry, cwd=folder).err
    assert "the run there would be kept aside" in call(*dry, "--fresh", cwd=folder).err
    assert record["status"] == "ok"
    assert record["answer"] == record["expected"] == "4"
    lines = done.out.splitlines()
    assert lines[0].startswith("tiny on sim:mini: simulated, exact counts, no times ")
    assert "1 of 1 points right, " in lines[0]
    assert "time it: nqbench run study.yaml -d cuda:0" in lines[-2]
    page = folder / "plots" / "local" / "sim-mini" / "tiny" / "report.html"
    assert lines[-1] == f"Page   {page.as_uri()}"
    assert page.exists()

    again = call("run", "study.yaml", "--device", "sim", "--no-report", cwd=folder)
    assert again.code == 0
    assert (run / "records.jsonl").read_text() == before, "nothing is measured twice"


def test_other_points_of_a_study_lose_no_records(folder: Path) -> None:
    words = ("run", "study.yaml", "-d", "sim", "--no-report")
    run = folder / "results" / "local" / "sim-mini" / "tiny"
    assert call(*words, cwd=folder).code == 0
    first = (run / "records.jsonl").read_text()
    other = call(*words, "--axis", "n=7", "--axis", "block_size=32,64", cwd=folder)
    assert "kept: 1 earlier record of points that this command leaves out" in other.err
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["command"][-2:] == ["--axis", "block_size=32,64"]
    assert [point["factors"]["n"] for point in manifest["points"]] == [7, 7]
    both = (run / "records.jsonl").read_text()
    assert both.startswith(first)
    assert "resumed: 1 measurements" in call(*words, cwd=folder).err
    assert (run / "records.jsonl").read_text() == both, "nothing is measured twice"


def test_a_report_is_drawn_again_only_if_it_would_change(folder: Path) -> None:
    words = ("run", "study.yaml", "--device", "sim")
    assert call(*words, "--no-report", cwd=folder).code == 0
    page = folder / "plots" / "local" / "sim-mini" / "tiny" / "report.md"
    assert not page.exists()
    assert "up to date" not in call(*words, cwd=folder).said, "there was no report yet"
    drawn = page.stat().st_mtime_ns
    again = call(*words, cwd=folder)
    assert "nothing was measured; the report is up to date" in again.said
    assert again.out.rstrip().endswith("/tiny/report.html")
    assert page.stat().st_mtime_ns == drawn
    study = folder / "study.yaml"
    study.write_text(study.read_text().replace("table: results", "table: skipped"))
    assert "up to date" not in call(*words, cwd=folder).said, "another report is asked for"
    assert page.stat().st_mtime_ns > drawn


def test_a_run_that_measured_nothing_is_a_failure(folder: Path) -> None:
    """Each point is skipped for a good reason, but there is no result."""
    words = ("--device", "fake:base=9", "--budget", "100ms", "--no-report")
    done = call("run", "study.yaml", *words, cwd=folder)
    assert done.code == 1, done.err
    assert "1 skipped" in done.said


RUN = ("run", "study.yaml", "--device")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("run", "nowhere.yaml"), ("nowhere.yaml",)),
        (("run", "study"), ("no study file study", "did you mean 'study.yaml'?")),
        (("run", "wrong.yaml", "-d", "sim"), ("wrong.yaml:5", "did you mean 'system'")),
        ((*RUN, "gpu:0"), ("gpu", "cuda")),
        ((*RUN, "sim:gtx999"), ("gtx999",)),
        ((*RUN, "sim", "--budget", "soon"), ("--budget", "2m")),
        ((*RUN, "sim", "--budget", ""), ("--budget", "2m")),
        (("run", "study.yaml", "--dry-run", "--budget", "10"), ("--budget", "2m")),
        ((*RUN, "sim", "--axis", "m=8"), ("--axis m=8: there is no factor 'm'",)),
        ((*RUN, "replay:x"), ("no longer a device", "nqbench report RUN")),
        ((*RUN, "sim", "--out", "study.yaml"), ("cannot be written",)),
        ((*RUN, "sim", "--out", "results/reference/a"), ("never",)),
        ((*RUN, "sim", "--out", "study.yaml", "--dry-run"), ("cannot be written",)),
        (("static", "study.yaml", "--arch", " ,"), ("--arch", "sm_90")),
        (("static", "study.yaml", "--arch", "mini"), ("no architecture", "sm_90")),
        (("static", "study.yaml", "--arch", "sm_91"), ("sm_91", "sm_90")),
        (("count", "28"), ("28", "27")),
        (("count", "0"), ("1",)),
        (("kernels", "zhang2011.low"), ("zhang2011.low_divergence",)),
        (("report", "."), ("not a run folder",)),
        (("report", ".", "--csv", "-f", "md"), ("has no effect here (--csv writes one table)",)),
        (("report", ".", "-f", "xml"), ("'xml' is not one of 'md', 'csv'",)),
        (("report",), ("report needs the runs to report",)),
        (("report", "--site", "--csv"), ("--csv and --site are different reports",)),
        (("report", "--site", "--json"), ("--json has no effect here",)),
        (("report", ".", "--ceilings", "."), ("only --roofline takes it",)),
        (("init",), ("init needs a name",)),
        (("init", "a", "--workload", "fitness"), ("write `workload: fitness`",)),
        (("init", "a/b"), ("cannot be the name of a study",)),
        (("init", "study"), ("study.yaml exists", "another name")),
        (("init", "study.yaml"), ("study.yaml exists", "another name")),
        (("init", "study.cu"), ("study.yaml exists", "another name")),
        (("run", "a" * 300), ("too long",)),
        ((*RUN, "sim", "--out", "a" * 300), ("too long",)),
        (("report", "a" * 300), ("too long",)),
        (("run",), ("CONFIG",)),
        (("fly",), ("fly",)),
    ],
)
def test_wrong_command_lines_exit_with_2_and_a_sentence(
    folder: Path, words: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    done = call(*words, cwd=folder)
    assert done.code == 2, done.err
    for part in parts:
        assert part in done.err
    assert not (folder / "results").exists()
    if words[0] == "count":
        assert done.err.count("\n") == 1, "nothing about devices comes first"


def test_a_folder_that_is_a_file_is_a_wrong_command_line(folder: Path) -> None:
    """For every command that writes into ``--out``; nothing is measured before."""
    assert call("run", "study.yaml", "-d", "sim", "--no-report", cwd=folder).code == 0
    run = "results/local/sim-mini/tiny"
    for words in (
        ("report", run),
        ("run", "study.yaml", "-d", "sim"),
        ("reproduce", "zhang2011", "-d", "sim"),
        ("bottleneck", "ceilings.copy", "-d", "sim"),
    ):
        done = call(*words, "--out", "study.yaml", cwd=folder)
        assert done.code == 2, (words, done.err)
        assert done.err.splitlines()[-1].startswith("nqbench: "), words
    for more in ((), ("--csv",)):
        assert call("report", run, *more, "--out", "/proc/nqbench/x", cwd=folder).code == 2
    assert not (folder / "plots").exists()


@pytest.mark.parametrize("words", [(), ("--workload", "counting", "--schema")])
def test_init_writes_a_study_that_runs(tmp_path: Path, words: tuple[str, ...]) -> None:
    made = call("init", "my-study", *words, cwd=tmp_path)
    assert made.code == 0
    assert "nqbench run my-study.yaml --dry-run" in made.out
    files = {"my-study.yaml", "nqbench.schema.json" if "--schema" in words else "my-study.cu"}
    assert {path.name for path in tmp_path.iterdir()} == files
    study = (tmp_path / "my-study.yaml").read_text()
    assert study.startswith("# yaml-language-server: $schema=nqbench.schema.json\n")
    if "--schema" in words:
        form = json.loads((tmp_path / "nqbench.schema.json").read_text())
        assert form["title"] == "nqbench study"
        assert not list(jsonschema.Draft202012Validator(form).iter_errors(yaml.safe_load(study)))
    shown = call("run", "my-study.yaml", "--dry-run", "-d", "sim", cwd=tmp_path)
    assert shown.code == 0, shown.err
    assert "points to measure" in shown.out


def test_static_needs_no_gpu_and_takes_each_architecture_once(folder: Path) -> None:
    words = ("static", "study.yaml", "--arch", "sm_90,sm_80,sm_90", "--json")
    found = json.loads(call(*words, cwd=folder).out)
    assert {"registers", "occupancy"} <= found[0].keys()
    assert [(row["arch"], row["spill_load_bytes"]) for row in found] == [("sm_90", 0), ("sm_80", 0)]
    done = call("static", "study.yaml", "--arch", "sm_90,sm_80", cwd=folder)
    header, _, *rows = done.out.splitlines()
    assert "spill" not in header
    assert "spill_load_bytes 0" in rows[-1]


@pytest.mark.parametrize(
    ("words", "parts", "absent"),
    [
        ("count 1 -d cpu", ("a(1) = 1",), "simulated"),
        ("count 4 -d cpu", ("a(4) = 2",), "simulated"),
        ("count 8 -d sim", ("a(8) = 92", "simulated"), "%"),
        ("kernels", ("workload: counting", "workload: fitness", "cpu_threads"), "runs on the CPU"),
        ("kernels cpu.somers", ("runs on the CPU and takes no factor but n",), "threads ="),
        ("kernels fitness_schemes.cpu_threads", ("runs on the CPU\n", "threads = auto"), "no fact"),
    ],
)
def test_what_is_said(words: str, parts: tuple[str, ...], absent: str) -> None:
    done = call(*words.split())
    assert done.code == 0, done.err
    assert all(part in done.out for part in parts), done.out
    assert absent not in done.out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_output_that_cannot_be_written_is_one_sentence() -> None:
    command = [sys.executable, "-m", "nqbench", "kernels", "--json"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("nqbench: the output: No space left")
    assert done.stderr.count("\n") == 1


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    """Such names exist on old disks; manifests and pages hold the command, and are UTF-8."""
    name = os.fsdecode(b"caf\xe9")
    (tmp_path / f"{name}.yaml").write_text(TINY)
    run = call("run", f"{name}.yaml", "-d", "sim", "--out", name, cwd=tmp_path)
    assert run.code == 0, run.err
    manifest = json.loads((tmp_path / name / "manifest.json").read_bytes())
    assert manifest["study"]["file"] == r"caf\xe9.yaml"
    assert manifest["command"][-1] == r"caf\xe9"
    assert r"caf\xe9.yaml" in (tmp_path / name / "report" / "report.md").read_text()
    copy = tmp_path / f"{name}-copy"
    copy.mkdir()
    for file in ("manifest.json", "records.jsonl"):
        (copy / file).write_bytes((tmp_path / name / file).read_bytes())
    for words in (
        ("compare", name, copy.name, "--out", f"{name}-out"),
        ("report", name, "--csv", "--out", f"{name}.csv"),
        ("report", name, "--csv"),
        ("claims", name, "--paper", "tanaka2011"),
    ):
        done = call(*words, cwd=tmp_path)
        refused = words[0] == "claims"  # nothing of that paper is recorded here
        assert done.code == 2 * refused, (words, done.err)
    page = (tmp_path / f"{name}-out" / "compare.md").read_text()
    assert r"caf\\xe9-copy against caf\\xe9" in page
    summary = (tmp_path / f"{name}-out" / "table-summary.csv").read_text()
    assert r"nqbench compare" in summary
    own = tmp_path / name  # NVRTC takes the name of the source
    assert call("init", "own", cwd=own).code == 0
    done = call("check", "own.yaml", "--point", "block=64", "--point", "each=1", cwd=own)
    assert "nothing wrong" in done.out, done.err


def test_bottleneck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("ceilings.copy", "--n", "256", "-d", "sim:mini", "--out", tmp_path / "run")
    done = call("bottleneck", *words)
    assert done.code == 0, done.err
    assert "memory_only" in done.out
    assert (tmp_path / "run" / "report" / "table-bottleneck.md").exists()

    outcome = RunOutcome(tmp_path, {"skipped": 3}, (), {"a": "does not fit"}, 0.1, False)
    monkeypatch.setattr("nqbench.measure.runner.run_study", lambda *_, **__: outcome)
    done = call("bottleneck", "ceilings.copy", "-d", "sim:mini")
    assert done.code == 1, "nothing was measured"
    assert "done: 3 skipped" in done.out


@pytest.mark.parametrize(("typed", "found"), [("comp", "compare"), ("run --dry", "--dry-run")])
def test_the_shell_completes(monkeypatch: pytest.MonkeyPatch, typed: str, found: str) -> None:
    words = ["nqbench", *typed.split()]
    monkeypatch.setenv("_NQBENCH_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "\n".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    assert call().out.split() == [found]


def test_the_shell_is_told_how_to_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    monkeypatch.setenv("HOME", str(tmp_path))
    shown = call("--show-completion", "bash")
    assert "_NQBENCH_COMPLETE=complete_bash" in shown.out
    installed = call("--install-completion", "bash")
    assert installed.code == 0
    assert (tmp_path / ".bash_completions" / "nqbench.sh").read_text() == shown.out.rstrip()


REFERENCE = ROOT / "results" / "reference"


def test_json_holds_what_the_documentation_says(folder: Path) -> None:
    """The fields of each document, by command; all of them are in docs/reading-results.md."""
    study = folder / "study.yaml"
    study.write_text(TINY.replace("sim: [6]", "sim: [6, 7]"))
    run = "results/local/sim-mini/tiny"
    of_run = {"study", "device", "device_name", "provenance", "folder", "counts", "points"}
    of_run |= {"effects", "findings", "answer"}
    of_row = {"reference", "compared", "point", "n", "quantity", "verdict"}
    of_row |= {"compared_over_reference", "low", "high"}
    devices = {"spec", "kind", "name", "available", "note"}
    documented = (ROOT / "docs" / "reading-results.md").read_text()
    cases: list[tuple[str, Callable[[Any], Any], set[str]]] = [
        ("run study.yaml -d sim --dry-run", lambda d: d, {"points", "estimate_s"}),
        ("run study.yaml -d sim", lambda d: d, {"runs", "files", "not_made"}),
        ("run study.yaml -d sim", lambda d: d["runs"][0], {*of_run, "interrupted", "wall_s"}),
        (f"report {run} {run}", lambda d: d["runs"][1], of_run),
        (f"compare {run} copy", lambda d: d, {"findings", "points", "notes", "files"}),
        (f"compare {run} copy", lambda d: d["points"][0], of_row | {"p", "reason"}),
        ("devices", lambda d: d[0], devices),
        ("devices gtx480", lambda d: d[0], {"fact", "value", "source"}),
        ("kernels", lambda d: d[0], {"workload", "system", "cpu", "levels"}),
    ]
    found: dict[str, Any] = {}
    for words, part, fields in cases:
        if words not in found:
            done = call(*words.split(), "--json", cwd=folder)
            assert done.code == 0, done.said
            found[words] = json.loads(done.out)
        assert set(part(found[words])) == fields, words
        if words.startswith("report"):
            shutil.copytree(folder / run, folder / "copy")
        assert {f"`{field}`" for field in fields} <= set(re.findall(r"`\w+`", documented)), words

    made = found["run study.yaml -d sim"]
    assert [point["n"] for point in made["runs"][0]["points"]] == [6, 7]
    assert made["runs"][0]["counts"] == {"ok": 2}
    assert made["runs"][0]["points"][0]["warp_instructions"] > 0
    assert (folder / made["files"][0]).is_file()
    (one,) = json.loads(call("kernels", "tanaka2011.both", "--json").out)
    assert one["levels"]["layout"] == "interleaved"
    (paper,) = json.loads(call("claims", REFERENCE / "sim-mini" / "tanaka2011", "--json").out)
    assert paper["paper"] == "tanaka2011"
    assert {claim["verdict"] for claim in paper["claims"]} >= {"holds"}


def test_quiet_leaves_failures_and_errors(folder: Path) -> None:
    words = ("run", "study.yaml", "--quiet", "--no-report", "--device")
    assert call(*words, "sim", cwd=folder) == (0, "", "")
    assert (folder / "results/local/sim-mini/tiny/records.jsonl").exists()
    failed = call(*words, "fake:wrong=6", cwd=folder)
    assert (failed.code, failed.out) == (1, "")
    assert failed.err.startswith("wrong: zhang2011.low_divergence N=6: ")
    assert call("report", "--quiet", "nowhere", cwd=folder).err.startswith("nqbench: ")
