"""The command line as a process: whatever is broken around it, a sentence is all that is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

import nqbench
from nqbench.__main__ import lacking
from nqbench.errors import DeviceUnavailable
from nqbench.measure.worker import pool as process
from nqbench.runs.reading import RECORDS, read_records
from nqbench.system import crash
from tests.measure.test_pool import wait_until
from tests.toys import FAKE, STUDY

HANGS = "fake:seed=3,hang=8,from_round=1"
"""Its first round waits until somebody ends it."""
NQBENCH = [sys.executable, "-m", "nqbench"]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    file = tmp_path / "s.yaml"
    file.write_text(STUDY)
    return file


def said(words: list[str], **around: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        words,
        capture_output=True,
        check=False,
        env=os.environ | around,
        encoding="utf-8",
        errors="surrogateescape",
    )
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return done


@pytest.mark.parametrize(
    "encoding", ["ascii", pytest.param("utf-8:strict", marks=pytest.mark.full)]
)
def test_names_that_the_output_has_no_letters_for(encoding: str, study: Path) -> None:
    out = study.parent / os.fsdecode(b"\xc3\x9cn \xff 'q\"")
    done = said(
        [*NQBENCH, "run", str(study), "-d", FAKE, "-o", str(out)], PYTHONIOENCODING=encoding
    )
    assert done.returncode == 0, done.stderr
    assert "3 of 3 points right" in done.stdout
    assert len(read_records(out).records) == 6
    assert (out / "report" / "report.md").exists()


@pytest.fixture
def hang_up() -> Iterator[None]:
    """SIGHUP as a terminal's programs have it: under nohup it is ignored, here and in children."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hang_up")
@pytest.mark.parametrize(
    "name", ["SIGINT", "SIGTERM", pytest.param("SIGHUP", marks=pytest.mark.full)]
)
def test_being_ended_keeps_what_was_measured(name: str, study: Path) -> None:
    out = study.parent / "r"
    words = [*NQBENCH, "run", str(study), "-d", HANGS, "-o", str(out), "--fresh"]
    records = out / RECORDS
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        assert wait_until(lambda: records.exists() and records.read_bytes().count(b"\n") >= 3)
        run.send_signal(signal.Signals[name])
        shown, error = run.communicate()
    assert run.returncode == 130, error
    assert (shown + error).count("kept") == 1
    assert not (out / "report").exists()
    assert "interrupted; what was measured is kept; resume with: nqbench run" in error
    assert "--fresh" not in error  # that would start over
    assert "Traceback" not in error
    found = read_records(out)
    assert not found.torn
    assert len(found.records) >= 3


INTERRUPTED = """
import os, runpy, signal, sys
def interrupt(event, arguments, waited_for=[sys.argv.pop(1)]):
    if event == "import" and arguments[0] in waited_for:
        waited_for.clear()
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(interrupt)
runpy.run_module("nqbench", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("module", ["nqbench.cli.app", "yaml", "nqbench.measure.runner"])
def test_ctrl_c_at_any_moment_of_the_start(module: str, study: Path) -> None:
    """When nqbench begins to load a module, from its first to its last."""
    run = [module, "run", str(study), "-d", FAKE, "-o", str(study.parent / "r")]
    done = said([sys.executable, "-c", INTERRUPTED, *run])
    # A shell shows 130 for both: Python ends by the signal if a module's code was interrupted.
    assert done.returncode in (130, -signal.SIGINT), done.stderr


def test_ctrl_c_waits_for_no_launch_under_way() -> None:
    code = (
        "import sys, time\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "from nqbench import __main__\nimport nqbench.cli.app as app\n"
        "ThreadPoolExecutor(1).submit(time.sleep, 600)\n"
        "app.main = lambda: sys.exit(130)\n__main__.main()"
    )
    assert said([sys.executable, "-c", code]).returncode == 130


@pytest.mark.parametrize("words", ["check zhang2011.low_divergence", "reproduce x --recorded"])
def test_what_measures_nothing_keeps_nothing(words: str) -> None:
    run = [sys.executable, "-c", INTERRUPTED, "nqbench.study.load", *words.split()]
    done = said(run)
    assert (done.returncode, done.stderr) == (130, "nqbench: interrupted; nothing was measured\n")


def test_a_deleted_working_directory(study: Path) -> None:
    gone = study.parent / "gone"
    gone.mkdir()
    script = f'cd "{gone}" && rmdir "{gone}" && exec "$@"'
    around = {"PYTHONPATH": str(Path(nqbench.__file__).parent.parent)}
    words = ["sh", "-c", script, "sh", *NQBENCH, "run", str(study), "-d", FAKE]
    done = said(words, **around)
    assert done.returncode == 1
    assert done.stderr.startswith("nqbench: the working directory has been deleted")


def test_without_the_packages_it_needs(study: Path) -> None:
    venv.EnvBuilder(symlinks=True).create(study.parent / "empty")
    python = study.parent / "empty/bin/python"
    around = {"PYTHONPATH": str(Path(nqbench.__file__).parent.parent)}
    done = said([str(python), "-m", "nqbench", "run", str(study)], **around)
    assert done.returncode == 2
    assert f"the Python package typer is not installed for {python}" in done.stderr
    assert "make setup" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_package_that_cannot_be_loaded_is_told_by_its_cause() -> None:
    numpy = "\n\nIMPORTANT: read this\n\nOriginal error was: x.so: no such file\n"
    assert "loaded (Original error was: x.so: no such file)" in lacking(ImportError(numpy))


def test_an_unforeseen_exception_is_a_sentence_with_its_place() -> None:
    code = (
        "import sys; from nqbench import __main__ as m; from nqbench.cli import app as cli\n"
        "def main(): {}['key that is not there']\n"
        "cli.main = main; sys.argv = ['nqbench']; m.main()"
    )
    done = said([sys.executable, "-c", code])
    assert done.returncode == 1
    assert done.stderr.startswith("nqbench: unexpected KeyError in ")
    assert "'key that is not there'" in done.stderr
    assert "NQBENCH_TRACEBACK=1" in done.stderr
    with pytest.raises(AssertionError, match="Traceback"):
        said([sys.executable, "-c", code], NQBENCH_TRACEBACK="1")


def test_the_place_is_in_our_own_code_and_not_in_the_library_that_raised() -> None:
    import json

    try:
        json.loads("{")
    except ValueError as error:
        line = crash.summary(error)
    assert line.startswith("unexpected JSONDecodeError in tests/system/test_process.py:")
    assert "(test_the_place_is_in_our_own_code" in line


def test_a_system_that_starts_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    for broken, error, said in (
        ("subprocess.Popen", BlockingIOError(11, "Busy"), r"Busy.*ulimit"),
        ("tempfile.TemporaryFile", FileNotFoundError(2, "No folder"), r"No folder.*TMPDIR"),
    ):
        refuse = mock.Mock(side_effect=error)
        monkeypatch.setattr(broken, refuse)
        with pytest.raises(DeviceUnavailable, match=f"no worker can be started: .*{said}"):
            process.WorkerProcess("cpu")
