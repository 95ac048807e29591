"""Every mistake gives one sentence with file:line, what is wrong, and what to write instead.

In each example the line at fault carries the comment ``#!``.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from nqbench.errors import StudyError
from nqbench.study import expand, load_study
from tests.study.fake import CPU, SIM, points_of

HEAD = "name: s\nn: [10]\n"
BASE = HEAD + "fixed: {depth: 4}\n"
SWEEPS = HEAD + "sweeps:\n"

STARTS = {"alone": "", "head": HEAD, "base": BASE, "sweeps": SWEEPS}
MISTAKES = tomllib.loads(Path(__file__).with_name("mistakes.toml").read_text(encoding="utf-8"))
FIXED_LINES = {"syntax": 3, "colon in text": 3, "tab": 4, "second document": 4}


@pytest.mark.parametrize("name", MISTAKES)
def test_sentence_and_line(name: str, tmp_path: Path) -> None:
    case = MISTAKES[name]
    (text,) = (start + case[key] for key, start in STARTS.items() if key in case)
    at = FIXED_LINES.get(name) or text[: text.index("#!")].count("\n") + 1
    with pytest.raises(StudyError) as caught:
        points_of(tmp_path, text)
    message = str(caught.value)
    assert caught.value.place is not None, message
    assert f"study.yaml:{at}: " in message
    for word in case["says"].split():
        assert word.strip(",") in message, message
    assert "\n" not in message
    assert len(message) < len(str(tmp_path)) + 420, "one sentence, not a paragraph"


def test_first_mistake_in_the_file_is_reported(tmp_path: Path) -> None:
    text = "name: s\nn: [10]\nfixed: {depth: 4}\nmeasure: {rounds: 0}\nreprot: [x]\nabuot: x\n"
    with pytest.raises(StudyError, match=r"study\.yaml:4: 'rounds'"):
        points_of(tmp_path, text)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ablatoin.yaml", r"no study file .*ablatoin.yaml; did you mean .*ation"),
        ("nowhere/x.yaml", "no study file"),
        ("", r"is a folder, not a study; .*ablation\.yaml"),
    ],
)
def test_a_path_that_is_no_study(name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "ablation.yaml").write_text("name: x")
    with pytest.raises(StudyError, match=said):
        load_study(tmp_path / name)


EXPLODING = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"] + [
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)
]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", r"study\.yaml:1: the file is empty"),
        (b"# only a comment\n---\n", r"study\.yaml:1: the file is empty"),
        (b"name: s\nabout: caf\xe9\n", r"study\.yaml:2: .*UTF-8 text \(byte 0xe9\)"),
        (b"# " + b"x" * 1_000_000, "larger than 1,000,000 bytes"),
        (b"name: " + b"[" * 5000 + b"]" * 5000, "nested too deeply"),
        ("\n".join(EXPLODING).encode(), "more than 100,000 values"),
        (
            "\ufeffname: s\r\nn: 10\r\nfixd: {depth: 4}\r\n".encode(),
            r"study\.yaml:3: unknown key 'fixd'",
        ),
        (b"name: s\nworkload: countin\nn: [10]\nfixed: {depth: 4}", r"study\.yaml:2: .*countin"),
    ],
    ids=range(8),
)
def test_whole_files(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_bytes(content)
    with pytest.raises(StudyError, match=said):
        expand(load_study(path), SIM)


def test_nothing_runs_on_this_device(tmp_path: Path) -> None:
    with pytest.raises(
        StudyError, match=r"study\.yaml:\d+: nothing would run on test CPU: all points \(1\)"
    ):
        points_of(tmp_path, BASE, CPU)
    with pytest.raises(StudyError, match=r"study\.yaml:2: nothing would run: .* 'cpu'"):
        points_of(tmp_path, "name: s\nn: {sim: [10]}\nfixed: {depth: 4}", CPU)
