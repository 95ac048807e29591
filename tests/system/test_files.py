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
from nqbench.compiler.cache import Compiled, read_entry, write_entry
from nqbench.errors import DeviceError
from nqbench.system import files
from nqbench.system.files import CACHE_ENVIRONMENT, cache_folder, replacing


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("before", [None, "old"])
def test_readers_see_the_old_file_or_the_new_one(
    tmp_path: Path, before: str | None, durable: bool
) -> None:
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


def of_somebody(path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root gives folders away")
    os.chown(path, 65534, 65534)


def a_link_of_somebody(path: Path) -> None:
    real = path.with_name(f"{path.name} itself")
    path.rename(real)
    path.symlink_to(real)
    if os.getuid() != 0:
        pytest.skip("only root gives links away")
    os.chown(path, 65534, 65534, follow_symlinks=False)


def a_link_of_mine(path: Path) -> None:
    real = path.with_name(f"{path.name} itself")
    path.rename(real)
    path.symlink_to(real)


@pytest.mark.parametrize(
    ("made", "used"),
    [(shared, False), (of_somebody, False), (a_link_of_somebody, False), (a_link_of_mine, True)],
)
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
