"""A file is replaced as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

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
