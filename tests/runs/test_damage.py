"""What goes wrong with a run folder, as a user sees it: a sentence, an exit code, nothing lost."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nqbench.runs.folder import RunWriter
from nqbench.runs.reading import MANIFEST, RECORDS, TORN, read_records
from tests.cli.call import ROOT, call
from tests.toys import FAKE, STUDY

BLOCKS = 6


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run and its study, to be copied and damaged."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "study.yaml").write_text(STUDY)
    done = call(*run_words(folder))
    assert done.code == 0, done.err
    assert len(read_records(folder / "r").records) == BLOCKS
    return folder


def run_words(folder: Path) -> list[str]:
    """The command that makes the run, or continues with it."""
    where = ["--device", FAKE, "--out", str(folder / "r"), "--no-report"]
    return ["run", str(folder / "study.yaml"), *where]


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A copy of the run."""
    shutil.copytree(whole, tmp_path / "copy")
    return tmp_path / "copy"


def sentence(error: str) -> str:
    """The one error that standard error tells, after whatever progress it shows."""
    assert "Traceback" not in error
    lines = [line for line in error.strip().splitlines() if line.startswith("nqbench: ")]
    assert len(lines) == 1, error
    return lines[0]


def truncate(file: Path) -> None:
    """What a file system may leave after a power failure."""
    os.truncate(file, file.stat().st_size // 2)


def make_newer(file: Path) -> None:
    """As a later nqbench might write it."""
    data = json.loads(file.read_text())
    file.write_text(json.dumps({**data, "version": 99, "more": []}))


def cut_out(file: Path) -> None:
    """Valid JSON without a part that is needed."""
    data = json.loads(file.read_text())
    del data["device"]["facts"]
    file.write_text(json.dumps(data))


def become_a_folder(file: Path) -> None:
    """Something that cannot be read at all."""
    file.unlink()
    file.mkdir()


MANIFESTS: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "truncated": (truncate, ("is not JSON", "6 records are untouched", "delete it and run")),
    "binary": (lambda f: f.write_bytes(b"\xff\x00" * 99), ("is not JSON", "6 records")),
    "nested": (lambda f: f.write_text("[" * 10**5), ("is not JSON", "6 records")),
    "a list": (lambda f: f.write_text("[]"), ("no version number", "6 records")),
    "in part": (cut_out, ("lacks device.facts", "6 records are untouched")),
    "newer": (make_newer, ("newer than this nqbench reads", "nothing was changed", "update")),
    "unreadable": (become_a_folder, ("cannot be read: Is a directory",)),
}


@pytest.mark.parametrize("name", MANIFESTS)
@pytest.mark.parametrize("command", ["run", "report"])
def test_a_damaged_manifest(name: str, command: str, run: Path) -> None:
    damage, words = MANIFESTS[name]
    damage(run / "r" / MANIFEST)
    before = (run / "r" / RECORDS).read_bytes()
    code, _, error = call(*(run_words(run) if command == "run" else ("report", run / "r")))
    assert code == 1
    assert all(word in sentence(error) for word in words), error
    assert (run / "r" / RECORDS).read_bytes() == before


def test_a_lost_manifest_costs_no_measurement(run: Path) -> None:
    """What the sentence about a damaged manifest advises."""
    (run / "r" / MANIFEST).unlink()
    before = (run / "r" / RECORDS).read_bytes()
    code, out, error = call(*run_words(run))
    assert code == 0
    assert "6 measurements are already finished" in out + error
    assert (run / "r" / RECORDS).read_bytes() == before


def test_a_torn_line_is_told_and_measured_again(run: Path) -> None:
    file = run / "r" / RECORDS
    os.truncate(file, file.stat().st_size - 9)
    code, out, error = call(*run_words(run))
    assert (code, "Traceback" in error) == (0, False)
    assert "5 complete records are kept, that measurement is repeated" in out + error
    assert len(read_records(run / "r").records) == BLOCKS
    assert (run / "r" / TORN).stat().st_size > 0


@pytest.mark.parametrize("command", ["report", "compare"])
def test_a_reader_tells_what_it_leaves_out(run: Path, command: str) -> None:
    """A table of what is left looks like a table of everything."""
    folder = run / "r"
    words = [command, str(folder), *([str(folder)] if command == "compare" else [])]
    words += ["--out", str(run / "plots")]
    assert "torn" not in call(*words).err
    os.truncate(folder / RECORDS, (folder / RECORDS).stat().st_size - 9)
    error = call(*words).err
    assert f"the last line of {folder / RECORDS} is torn and left out" in error
    os.truncate(folder / RECORDS, 0)
    assert f"{folder / RECORDS} is empty: no measurement is kept there" in call(*words).err
    (folder / RECORDS).unlink()
    said = call(*words).err
    assert f"{folder} has no {RECORDS}: no measurement is kept there; `nqbench run`" in said
    assert "Traceback" not in said


LINES: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "garbage": (b"\x00\xff\xfe not JSON", ("not a record", "move that line out")),
    "a number": (b"17", ("not a record (not a JSON object)", "move that line out")),
    "nested": (b"[" * 10**5, ("not a record", "move that line out")),
    "no key": (b'{"round": 1}', ("lacks key", "nothing was changed")),
    "newer": (b'{"version": 99}', ("newer than this nqbench reads", "update nqbench")),
}


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("command", ["run", "report"])
def test_a_damaged_line_in_the_middle(name: str, command: str, run: Path) -> None:
    line, words = LINES[name]
    file = run / "r" / RECORDS
    lines = file.read_bytes().splitlines()
    file.write_bytes(b"\n".join([*lines[:2], line, *lines[2:]]) + b"\n")
    before = file.read_bytes()
    code, _, error = call(*(run_words(run) if command == "run" else ("report", run / "r")))
    assert code == 1
    assert f"{RECORDS}:3: " in sentence(error)
    assert all(word in error for word in words), error
    assert file.read_bytes() == before


def test_two_runs_in_one_folder(run: Path) -> None:
    with RunWriter(run / "r"):
        code, _, error = call(*run_words(run))
    assert code == 2
    assert "being written by another run; wait for it, or give another --out" in sentence(error)


def test_a_folder_of_another_study(run: Path) -> None:
    (run / "study.yaml").write_text(STUDY.replace("tiny", "other"))
    code, _, error = call(*run_words(run))
    assert code == 2  # the command line names a folder that cannot serve; nothing was run
    assert "'tiny', not 'other'" in sentence(error)
    assert "--fresh" in error


CALL = """
import sys
from tests.cli.call import ROOT, call
done = call(*sys.argv[1:])
sys.stdout.write(done.out)
sys.stderr.write(done.err)
sys.exit(done.code)
"""


def command(out: Path, device: str = FAKE) -> str:
    """The run as a shell command, of the study in the working directory."""
    words = ["run", "study.yaml", "-d", device, "-o", str(out), "--no-report"]
    return shlex.join([sys.executable, "-c", CALL, *words])


MOUNTED = """
set -e
mount -t tmpfs -o size={size} tmpfs "$1"
cd "$2"
set +e
{commands}
"""


def mounted(size: str, commands: str, *folders: Path) -> subprocess.CompletedProcess[str]:
    """Run shell commands with a small file system of their own at the first folder ($1)."""
    possible = (
        shutil.which("unshare")
        and not subprocess.run(
            ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", str(folders[0])],
            capture_output=True,
            check=False,
        ).returncode
    )
    if not possible:
        pytest.skip("cannot mount a file system here: unshare -rm is missing or not allowed")
    script = MOUNTED.format(size=size, commands=commands)
    return subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", *map(str, folders)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_a_full_disk_keeps_what_was_measured(tmp_path: Path) -> None:
    disk, work, kept = (tmp_path / name for name in ("disk", "work", "kept"))
    disk.mkdir()
    work.mkdir()
    (work / "study.yaml").write_text(STUDY)
    # So noisy that each measurement keeps its 500 samples: 10 kB a line.
    attempt = f'{command(disk / "r", "fake:noise=0.3")}; echo "exit $?";'
    more = 'cp -r "$1/r" "$3"; mount -o remount,size=8m "$1";'
    commands = f'{attempt} {more} {attempt} grep -c "" "$1/r/records.jsonl"'
    done = mounted("36k", commands, disk, work, kept)
    first, second = done.stdout.split("exit ")[1:]
    assert first.startswith("1\n"), done.stdout + done.stderr
    said = sentence(done.stderr)
    assert "No space left on device; the records before this one are kept: make room" in said
    assert 1 <= len(read_records(kept).records) < BLOCKS
    assert second.startswith("0\n"), done.stdout + done.stderr
    assert done.stdout.endswith(f"{BLOCKS}\n")


FULL = "No space left on device; nothing was measured"
READ_ONLY = "cannot be written: Read-only file system; nothing was measured"
REMOUNT = 'cp -r r "$1"; mount -o remount,ro "$1"; '


@pytest.mark.parametrize(
    ("size", "before", "name", "code", "said"),
    [
        ("4k", "", "new", 1, FULL),
        ("1m", REMOUNT, "new", 2, READ_ONLY),
        ("1m", REMOUNT, "r", 2, READ_ONLY),
    ],
    ids=["full", "read-only", "read-only, to be continued"],
)
def test_a_disk_that_takes_nothing(
    size: str, before: str, name: str, code: int, said: str, run: Path, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    done = mounted(size, f"{before}{command(disk / name)}; echo $?", disk, run)
    assert done.stdout.split()[-1] == str(code), done.stdout
    assert said in sentence(done.stderr)
