"""Sixty studies that somebody else wrote to do harm: each is one sentence, and nothing happens."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from nqbench.errors import NqbenchError
from nqbench.study import expand, load_study
from tests.study.fake import SIM

TEXTS = tomllib.loads(Path(__file__).with_name("hostile.toml").read_text(encoding="utf-8"))
START = {"name": "s", "workload": "counting", "n": "[8]", "fixed": "{depth: 2}"}


def study(**values: str) -> bytes:
    return "".join(f"{name}: {text}\n" for name, text in (START | values).items()).encode()


def laughs(first: str, more: str) -> bytes:
    """Anchors of which each holds ten of the one before."""
    lines = [f"a: &a {first}"]
    for old, new in zip("abcdefghi", "bcdefghij", strict=True):
        lines.append(f"{new}: &{new} " + more.format(", ".join([f"*{old}"] * 10), old))
    return "\n".join(lines).encode()


STUDIES: list[bytes] = [
    *(study(about=text) for text in TEXTS["about"]),
    *(study(where=f'"{text}"') for text in [*TEXTS["where"], "(" * 400 + "n" + ")" * 400]),
    *(
        study(fixed=f"{{depth: {text}}}")
        for text in [*TEXTS["depth"], "1" * 5000, "0x" + "f" * 400]
    ),
    *(study(name=text) for text in TEXTS["name"]),
    *(laughs("[x, x]", "[{0}]"), laughs("{x: y}", "{{p: [{0}]}}")),
    *(laughs("{x: y}", "{{<<: *{1}, q: [{0}]}}"), study(fixed="&f {depth: 2, more: *f}")),
    *(study(fixed="[" * 20_000 + "]" * 20_000), study(fixed="{a: " * 20_000 + "1" + "}" * 20_000)),
    study() + "".join(f"{' ' * i}a{i}:\n" for i in range(1200)).encode(),
    *(study(about="x" * 2_000_000), study(matrix="{depth: [" + "2, " * 120_000 + "2]}")),
    study(matrix="{block_size: {range: [1, 1024]}, pool_size: {range: [1, 900]}}"),
    *(study(n="{range: [1, 99999999999]}"), b"!!python/object:os.x {name: s}\n"),
    *(b"%TAG ! tag:evil,2000:\n---\n!x {name: s}\n", b"--- a\n--- b\n", b"\xef\xbb\xbf", b""),
    *(study().decode().encode("utf-16"), b"\xff\xfe\x00" * 9, study(about="\xe9")[:-2]),
    *(study(about="a\x00b"), study(about="a\x1b]0;owned\x07")),
]


@pytest.mark.parametrize("number", range(len(STUDIES)))
def test_each_one_is_refused(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(STUDIES) >= 60
    file = tmp_path / "study.yaml"
    file.write_bytes(STUDIES[number])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NqbenchError) as caught:
        expand(load_study(file), SIM)
    message = str(caught.value)
    assert message.startswith(f"{file}:")
    assert message.isprintable()
    assert len(message) < len(str(file)) + 1000
    assert [path.name for path in tmp_path.iterdir()] == ["study.yaml"]


def test_a_pipe_without_a_writer_is_empty(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "study.yaml")
    with pytest.raises(NqbenchError, match="the file is empty"):
        load_study(tmp_path / "study.yaml")
