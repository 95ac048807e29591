"""The command line as scripts see it: exit codes, one sentence on errors, nothing lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nqbench import __version__

TINY = """\
name: tiny
about: One kernel on one small board
workload: counting
n: {sim: [6], cuda: [6], cpu: [6]}
system: zhang2011.low_divergence
measure: {rounds: 2, budget: 1s}
report:
  - {table: results}
"""
HELP_LIMIT_S = 0.4
"""Promised start-up time of ``nqbench --help``."""


def nqbench(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nqbench", *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONWARNINGS": "error", "COLUMNS": "200"},
        timeout=120,
        check=False,
    )


def write(folder: Path, text: str) -> Path:
    path = folder / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_help_is_quick_and_names_every_command() -> None:
    times = []
    for _ in range(5):
        started = time.perf_counter()
        shown = nqbench("--help")
        times.append(time.perf_counter() - started)
    assert shown.returncode == 0
    for command in ("run", "report", "count", "static", "kernels", "devices", "doctor", "schema"):
        assert command in shown.stdout
    # The fastest of five: a busy machine can slow a process down, never speed it up.
    assert min(times) < HELP_LIMIT_S


def test_run_leaves_records_and_tables(tmp_path: Path) -> None:
    done = nqbench("run", str(write(tmp_path, TINY)), "--device", "sim", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "results" / "local" / "sim-mini" / "tiny"
    record = json.loads((folder / "records.jsonl").read_text().splitlines()[-1])
    assert record["status"] == "ok"
    assert record["answer"] == record["expected"] == "4"
    assert str(folder.relative_to(tmp_path)) in done.stdout
    written = [line for line in done.stdout.splitlines() if line.startswith("plots/local/")]
    assert written
    assert all((tmp_path / line).exists() for line in written)


def test_dry_run_runs_nothing(tmp_path: Path) -> None:
    shown = nqbench("run", str(write(tmp_path, TINY)), "--device", "sim", "--dry-run", cwd=tmp_path)
    assert shown.returncode == 0
    assert "1 point to measure" in shown.stdout
    assert not (tmp_path / "results").exists()


def test_a_run_that_measured_nothing_is_no_success(tmp_path: Path) -> None:
    """Each point is left out for a good reason, and still there is no number."""
    study = str(write(tmp_path, TINY))
    words = ("--device", "fake:base=9", "--budget", "100ms", "--no-report")
    done = nqbench("run", study, *words, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "1 skipped" in done.stdout + done.stderr


def test_resume_measures_nothing_twice(tmp_path: Path) -> None:
    study = str(write(tmp_path, TINY))
    nqbench("run", study, "--device", "sim", "--no-report", cwd=tmp_path)
    records = tmp_path / "results" / "local" / "sim-mini" / "tiny" / "records.jsonl"
    before = records.read_text()
    again = nqbench("run", study, "--device", "sim", "--no-report", cwd=tmp_path)
    assert again.returncode == 0
    assert records.read_text() == before


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("run", "nowhere.yaml"), ("nowhere.yaml",)),
        (("run", "study.yaml", "--device", "gpu:0"), ("gpu", "cuda")),
        (("run", "study.yaml", "--device", "sim:gtx999"), ("gtx999",)),
        (("run", "study.yaml", "--device", "sim", "--budget", "soon"), ("--budget", "2m")),
        (("run", "study.yaml", "--device", "sim", "--budget", ""), ("--budget", "2m")),
        (("run", "study.yaml", "--dry-run", "--budget", "10"), ("--budget", "2m")),
        (("run", "study.yaml", "--device", "replay:x"), ("no device is called 'replay:x'",)),
        (("run", "study.yaml", "--device", "sim", "--out", "study.yaml"), ("cannot be written",)),
        (("run", "study.yaml", "--device", "sim", "--out", "results/reference/a"), ("never",)),
        (("static", "study.yaml", "--arch", " ,"), ("--arch", "sm_90")),
        (("static", "study.yaml", "--arch", "mini"), ("no architecture", "sm_90")),
        (("count", "28"), ("28", "27")),
        (("count", "0"), ("1",)),
        (("kernels", "zhang2011.low"), ("zhang2011.low_divergence",)),
        (("static", "study.yaml", "--arch", "sm_91"), ("sm_91", "sm_90")),
        (("run",), ("CONFIG",)),
        (("fly",), ("fly",)),
    ],
)
def test_wrong_command_lines_exit_with_2_and_a_sentence(
    tmp_path: Path, words: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    write(tmp_path, TINY)
    done = nqbench(*words, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr
    assert not (tmp_path / "results").exists()


def test_a_wrong_size_is_said_before_a_word_on_devices() -> None:
    done = nqbench("count", "28")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_a_wrong_study_names_file_and_line(tmp_path: Path) -> None:
    write(tmp_path, TINY.replace("system:", "sistem:"))
    done = nqbench("run", "study.yaml", "--device", "sim", cwd=tmp_path)
    assert done.returncode == 2
    assert "study.yaml:5" in done.stderr
    assert "system" in done.stderr


def test_report_of_something_that_is_no_run(tmp_path: Path) -> None:
    done = nqbench("report", str(tmp_path))
    assert done.returncode == 2
    assert "not a run folder" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("n", [1, 4, 8])
def test_count_on_the_cpu(n: int) -> None:
    done = nqbench("count", str(n), "--device", "cpu")
    assert done.returncode == 0
    assert f"a({n}) = {({1: 1, 4: 2, 8: 92})[n]}" in done.stdout


def test_count_in_the_simulator() -> None:
    done = nqbench("count", "8", "--device", "sim")
    assert done.returncode == 0
    assert "a(8) = 92" in done.stdout
    assert "simulated" in done.stdout


def test_static_needs_no_gpu(tmp_path: Path) -> None:
    write(tmp_path, TINY)
    done = nqbench("static", "study.yaml", "--arch", "sm_80,sm_90", "--csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    header, *rows = done.stdout.splitlines()
    assert "registers" in header
    assert "occupancy" in header
    assert [row.split(",")[1] for row in rows] == ["sm_80", "sm_90"]


def test_static_takes_each_architecture_once(tmp_path: Path) -> None:
    write(tmp_path, TINY)
    done = nqbench("static", "study.yaml", "--arch", "sm_90,sm_80,sm_90", "--csv", cwd=tmp_path)
    assert [row.split(",")[1] for row in done.stdout.splitlines()[1:]] == ["sm_90", "sm_80"]


def test_a_host_system_is_described() -> None:
    shown = nqbench("kernels", "cpu.somers")
    assert shown.returncode == 0
    assert "takes no factor but n" in shown.stdout


def test_systems_of_every_workload_are_listed() -> None:
    shown = nqbench("kernels").stdout
    for name in ("workload: counting", "workload: fitness", "fitness_schemes.cpu_threads"):
        assert name in shown
    described = nqbench("kernels", "fitness_schemes.cpu_threads").stdout
    assert "runs on the CPU\n" in described
    assert "threads = auto" in described


def test_version() -> None:
    assert nqbench("--version").stdout == f"nqbench {__version__}\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("command", ["schema", "kernels"])
def test_output_that_cannot_be_written_is_one_sentence(command: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "nqbench", command],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("nqbench: the output: No space left")
    assert done.stderr.count("\n") == 1


def test_a_file_name_that_is_not_utf8(tmp_path: Path) -> None:
    """Such names exist on old disks; the manifest holds the command, and is UTF-8."""
    name = os.fsdecode(b"caf\xe9.yaml")
    (tmp_path / name).write_text(TINY)
    done = nqbench("run", name, "--device", "sim", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "results/local/sim-mini/tiny/manifest.json").read_bytes())
    assert manifest["study"]["file"] == r"caf\xe9.yaml"
    assert r"caf\xe9.yaml" in (tmp_path / "plots/local/sim-mini/tiny/report.md").read_text()


def test_schema_is_json() -> None:
    shown = json.loads(nqbench("schema").stdout)
    assert shown["properties"]["workload"]["description"]


def test_ctrl_c_says_that_nothing_is_lost_and_draws_nothing(tmp_path: Path) -> None:
    long = TINY.replace("n: {sim: [6]", "n: {sim: [6, 7, 8, 9, 10, 11, 12, 13, 14, 15]")
    write(tmp_path, long)
    process = subprocess.Popen(
        [sys.executable, "-m", "nqbench", "run", "study.yaml", "--device", "sim"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    records = tmp_path / "results" / "local" / "sim-mini" / "tiny" / "records.jsonl"
    deadline = time.monotonic() + 60
    while not (records.exists() and records.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in said
    assert "nqbench run study.yaml --device sim" in said
    assert records.read_text()
    assert not (tmp_path / "plots").exists()
