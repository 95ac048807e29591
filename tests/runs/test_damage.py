"""What goes wrong with a run folder, as a user sees it: a sentence, an exit code, nothing lost."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from nqbench.errors import DamageWarning
from nqbench.runs.folder import LOCK
from nqbench.runs.reading import CHECKSUM, MANIFEST, RECORDS, TORN, look_through, read_records
from tests.cli.call import call
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


def become_a_folder(file: Path) -> None:
    """Something that cannot be read at all."""
    file.unlink()
    file.mkdir()


MANIFESTS: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "truncated": (truncate, ("is not JSON", "the records are untouched", "delete it and run")),
    "a list": (lambda f: f.write_text("[]"), ("no version number", "the records are")),
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
    other = [str(shutil.copytree(folder, run / "other"))] if command == "compare" else []
    words = [command, str(folder), *other]
    words += ["--out", str(run / "plots")]
    assert "torn" not in call(*words).err
    os.truncate(folder / RECORDS, (folder / RECORDS).stat().st_size - 9)
    error = call(*words).err
    assert f"the last line of {folder / RECORDS} is torn and left out" in error
    os.truncate(folder / RECORDS, 0)
    empty = f"{folder / RECORDS} is empty or missing: no measurement is kept there; `nqbench run`"
    assert empty in call(*words).err
    (folder / RECORDS).unlink()
    said = call(*words).err
    assert empty in said
    assert "Traceback" not in said


def newer(line: bytes) -> bytes:
    """As a later nqbench might write it."""
    return line.replace(b'"version":1', b'"version":99').partition(CHECKSUM[:10])[0] + b"}"


def without_sum(line: bytes) -> bytes:
    """As nqbench wrote it before lines had checksums."""
    return line.partition(CHECKSUM[:10])[0] + b"}"


LINES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a number": (lambda _: b"17", "not a record (not a JSON object)"),
    "no key": (lambda _: b'{"round": 1}', "record lacks key"),
    "a digit": (lambda x: x.replace(b'"order":', b'"order":1'), "its checksum differs"),
    "a time": (lambda x: re.sub(rb'"wall_s":\d', b'"wall_s":7', x), "its checksum differs"),
    "the sum": (lambda x: x[:-3] + (b"0" if x[-3:-2] != b"0" else b"1") + x[-2:], "its checksum"),
    "the end": (lambda x: x[:-5], "its checksum differs"),
}


@pytest.mark.parametrize("name", LINES)
def test_a_damaged_line_costs_that_line(name: str, run: Path) -> None:
    change, said = LINES[name]
    file = run / "r" / RECORDS
    lines = file.read_bytes().splitlines()
    bad = change(lines[2])
    assert bad != lines[2]
    file.write_bytes(b"\n".join([*lines[:2], bad, *lines[3:]]) + b"\n")
    before = file.read_bytes()
    read = call("report", run / "r", "--out", run / "plots")
    assert (read.code, read.err.count(f"{file}:3: ")) == (0, 1), read.err
    assert said in read.err
    assert "that line is left out" in read.err
    assert file.read_bytes() == before
    with pytest.warns(DamageWarning, match=re.escape(f"{file}:3: ")):
        assert len(read_records(run / "r").records) == BLOCKS - 1
    again = call(*run_words(run))
    assert (again.code, f"{file}:3: " in again.said) == (0, True), again.said
    assert bad in (run / "r" / TORN).read_bytes()
    kept = file.read_bytes().splitlines()
    assert kept[: BLOCKS - 1] == [*lines[:2], *lines[3:]]
    assert len(read_records(run / "r").records) == BLOCKS


def test_records_without_checksums_are_read_as_before(run: Path) -> None:
    file = run / "r" / RECORDS
    before = read_records(run / "r").records
    lines = file.read_bytes().splitlines()
    assert all(CHECKSUM[:10] in line for line in lines)
    file.write_bytes(b"\n".join([*map(without_sum, lines[:4]), *lines[4:], b""]))
    assert read_records(run / "r").records == before


@pytest.mark.parametrize("command", ["run", "report"])
def test_a_record_of_a_later_nqbench_is_not_left_out(command: str, run: Path) -> None:
    file = run / "r" / RECORDS
    lines = file.read_bytes().splitlines()
    file.write_bytes(b"\n".join([*lines[:2], newer(lines[2]), *lines[3:], b""]))
    before = file.read_bytes()
    code, _, error = call(*(run_words(run) if command == "run" else ("report", run / "r")))
    assert code == 1
    assert f"{RECORDS}:3: record version 99 is newer than this nqbench reads" in sentence(error)
    assert file.read_bytes() == before


@pytest.mark.parametrize(("name", "code"), [(LOCK, 2), (TORN, 1)])
def test_a_file_that_leads_elsewhere_changes_none(name: str, code: int, run: Path) -> None:
    precious, file = run / "precious", run / "r" / RECORDS
    precious.write_text("kept")
    os.truncate(file, file.stat().st_size - 9)
    (run / "r" / name).unlink(missing_ok=True)
    (run / "r" / name).symlink_to(precious)
    done = call(*run_words(run))
    assert (done.code, precious.read_text()) == (code, "kept"), done.said
    assert "Too many levels of symbolic links" in sentence(done.err)


def test_a_folder_of_another_study(run: Path) -> None:
    (run / "study.yaml").write_text(STUDY.replace("tiny", "other"))
    code, _, error = call(*run_words(run))
    assert code == 2  # the command line names a folder that cannot serve; nothing was run
    assert "'tiny', not 'other'" in sentence(error)
    assert "--fresh" in error


def test_a_full_disk_keeps_measurements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line that is too long for the disk is cut short there, as a real disk does it."""
    (tmp_path / "study.yaml").write_text(STUDY)
    room, write = [3000], os.write

    def limited(descriptor: int, data: bytes) -> int:
        if Path(f"/proc/self/fd/{descriptor}").readlink().name != RECORDS:
            return write(descriptor, data)
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = write(descriptor, data[: room[0]])
        room[0] -= written
        return written

    monkeypatch.setattr("nqbench.runs.folder.os.write", limited)
    code, _, error = call(*run_words(tmp_path))
    assert code == 1
    said = sentence(error)
    assert "No space left on device; the records before this one are kept: make room" in said
    kept = look_through(tmp_path / "r")
    assert 1 <= len(kept.records) < BLOCKS
    assert kept.torn
    room[0] = 10**9
    assert call(*run_words(tmp_path)).code == 0
    assert len(read_records(tmp_path / "r").records) == BLOCKS


@pytest.mark.parametrize(
    ("step", "number", "code", "said"),
    [
        ("replacing", errno.ENOSPC, 1, "No space left on device; nothing was measured"),
        ("FileLock", errno.EROFS, 2, "written: Read-only file system; nothing was measured"),
    ],
)
def test_a_disk_that_takes_nothing(
    step: str, number: int, code: int, said: str, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full one refuses the manifest, a read-only one the lock."""

    def refuse(*args: object, **options: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(f"nqbench.runs.folder.{step}", refuse)
    for words in (run_words(run), [*run_words(run), "--out", str(run / "new")]):
        done = call(*words)
        assert done.code == code
        assert said in sentence(done.err)
