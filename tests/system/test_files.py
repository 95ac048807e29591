"""A file is replaced as a whole or not at all."""

from __future__ import annotations

import getpass
import os
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from nqbench.cluster.host import alone
from nqbench.compiler.compiled import Compiled, read_entry, write_entry
from nqbench.errors import DeviceError
from nqbench.system import files
from nqbench.system.files import CACHE_ENVIRONMENT, cache_folder, kept_json, replacing, written


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("before", [None, "old"])
def test_readers_see_the_old_or_new_file(tmp_path: Path, before: str | None, durable: bool) -> None:
    path = tmp_path / "table.svg"
    if before is not None:
        path.write_text(before)
    with replacing(path, durable=durable) as temporary:
        assert (temporary.parent, temporary.suffix) == (tmp_path, ".svg")
        temporary.write_text("new")
        assert (path.read_text() if path.exists() else None) == before
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_keeps_the_old_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "table"
    path.write_text("old")
    with pytest.raises(TypeError), replacing(path) as temporary:
        temporary.write_text(b"half of it")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "nowhere" / "x") as temporary:
        temporary.write_text("x")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_cache_can_be_put_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_ENVIRONMENT, str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv(CACHE_ENVIRONMENT)
    assert cache_folder().name == "nqbench"


def shared(path: Path) -> None:
    path.chmod(0o777)


def given_away(path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(path, 65534, 65534, follow_symlinks=False)


def linked(path: Path) -> None:
    real = path.with_name(f"{path.name} itself")
    path.rename(real)
    path.symlink_to(real)


def linked_by_somebody(path: Path) -> None:
    linked(path)
    given_away(path)


FOLDERS = [(shared, False), (given_away, False), (linked_by_somebody, False), (linked, True)]


@pytest.mark.parametrize(("made", "used"), FOLDERS)
def test_what_others_can_write_is_no_cache_and_holds_no_locks(
    made: Callable[[Path], None], used: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code in the cache is run as it is found there."""
    entry = Compiled(b"image", "symbol", "log")
    monkeypatch.setenv(CACHE_ENVIRONMENT, str(tmp_path / "cache"))
    assert write_entry("key", entry)
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    assert read_entry("key") == entry
    locks = tmp_path / f"nqbench-{getpass.getuser()}"
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with alone(cpu=True):
        assert [path.name for path in locks.iterdir()] == ["nqbench-cpu.lock"]
    for folder in (tmp_path / "cache", locks):
        made(folder)
    files._trusted.cache_clear()
    assert (read_entry("key") == entry) == used
    assert (cache_folder() == tmp_path / "cache") == used
    refused = nullcontext() if used else pytest.raises(DeviceError, match="name another folder")
    with refused, alone(cpu=True):
        pass


def instead(make: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda path: path.rename(path.with_name("aside")) and make(path)


def changed(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(change(path.read_bytes()))


def another(path: Path) -> None:
    path.write_bytes(path.with_name(path.name.replace("1", "2")).read_bytes())


FILES: dict[str, tuple[Callable[[Path], object], bool]] = {
    "truncated": (changed(lambda raw: raw[:-7]), False),
    "a wrong digest": (changed(lambda raw: raw[:20] + bytes(9) + raw[29:]), False),
    "an altered byte": (changed(lambda raw: raw[:-1] + b"?"), False),
    "another's content": (another, False),
    "empty": (changed(lambda _: b""), False),
    "binary junk": (changed(lambda _: bytes(range(256)) * 99), False),
    "huge": (lambda path: os.truncate(path, 1 << 40), False),
    "a folder": (instead(Path.mkdir), False),
    "a pipe": (instead(os.mkfifo), False),
    "a device": (instead(lambda path: path.symlink_to("/dev/zero")), False),
    "a link to itself": (instead(lambda path: path.symlink_to(path.name)), False),
    "a link of somebody": (linked_by_somebody, False),
    "a link of mine": (linked, True),
    "writable for others": (shared, False),
    "of somebody": (given_away, False),
    "read-only": (lambda path: path.chmod(0o400), True),
}


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_of_the_cache_is_not_used(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel, a number and a source: each is right, and all but a folder are put right."""
    damage, used = FILES[name]
    monkeypatch.setenv(CACHE_ENVIRONMENT, str(tmp_path))
    made: list[int] = []

    def make(number: int) -> int:
        made.append(number)
        return number

    def looked_up(number: int) -> tuple[bool, int, bytes]:
        entry = Compiled(b"%d" % number, "symbol", "log")
        found = read_entry(f"key{number}")
        assert found in (None, entry)
        write_entry(f"key{number}", entry)
        value = kept_json(f"{number}.json", lambda: make(number))
        return found is not None, value, written(f"{number}.cu", b"// %d" % number).read_bytes()

    for number in (1, 2, 1):
        found = looked_up(number)
    assert (found, made) == ((True, 1, b"// 1"), [1, 2])
    for file in (tmp_path / "kernels" / "ke" / "key1", tmp_path / "1.json", tmp_path / "1.cu"):
        assert file.stat().st_mode & 0o777 == 0o600
        damage(file)
    assert looked_up(1) == (used, 1, b"// 1")
    assert len(made) == (2 if used else 3)
    assert looked_up(1) == (name != "a folder", 1, b"// 1")
