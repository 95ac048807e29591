"""Sixty studies that somebody else wrote to do harm: each is one sentence, and nothing happens."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from nqbench.errors import NqbenchError
from nqbench.study import expand, load_study
from tests.study.fake import SIM

HEAD = "name: s\nworkload: counting\nn: [8]\n"
LETTERS = "abcdefghij"


def laughs(first: str, more: str) -> str:
    """Anchors of which each holds ten of the one before."""
    lines = [f"a: &a {first}"]
    lines += [
        f"{x}: &{x} " + more.format(", ".join(f"*{y}" for _ in range(10)), y)
        for y, x in itertools.pairwise(LETTERS)
    ]
    return "\n".join(lines)


def where(*texts: str) -> list[tuple[str, str]]:
    return [(HEAD + f'fixed: {{depth: 2}}\nwhere: "{text}"\n', ":5: ") for text in texts]


def level(*texts: str) -> list[tuple[str, str]]:
    return [(HEAD + f"fixed: {{depth: {text}}}\n", "") for text in texts]


def name(*texts: str) -> list[tuple[str, str]]:
    return [
        (f"name: {text}\nworkload: counting\nn: [8]\nfixed: {{depth: 2}}\n", "name")
        for text in texts
    ]


STUDIES: list[tuple[str | bytes, str]] = [
    # bombs
    (laughs("[x, x]", "[{0}]"), "more than 100,000 values"),
    (laughs("{x: y}", "{{p: [{0}]}}"), "more than 100,000 values"),
    (laughs("{x: y}", "{{<<: *{1}, q: [{0}]}}"), "more than 100,000 values"),
    (HEAD + "fixed: &f {depth: 2, more: *f}\n", "refers to itself"),
    (HEAD + "matrix: {depth: " + "[" * 20_000 + "]" * 20_000 + "}\n", "nested too deeply"),
    (HEAD + "matrix: " + "{a: " * 20_000 + "1" + "}" * 20_000 + "\n", "nested too deeply"),
    (HEAD + "".join(f"{' ' * i}a{i}:\n" for i in range(1200)), "nested too deeply"),
    (HEAD + "about: " + "x" * 2_000_000, "larger than 1,000,000 bytes"),
    (HEAD + "matrix: {depth: [" + "2, " * 120_000 + "2]}\n", "more than 100,000 values"),
    (HEAD + "matrix: {depth: {range: [2, 1000000000]}}\n", "20,000"),
    (HEAD + "n: {range: [1, 99999999999]}\n", "n"),
    (
        HEAD + "matrix: {block_size: {range: [1, 1024]}, pool_size: {range: [1, 900]}}\n",
        "combinations",
    ),
    # tags
    (HEAD + "about: !!python/object/apply:os.system ['touch owned']\n", "has no meaning here"),
    (HEAD + "about: !!python/object/new:os.system [id]\n", "has no meaning here"),
    (HEAD + "about: !!python/name:os.system\n", "has no meaning here"),
    (HEAD + "about: !!python/module:os\n", "has no meaning here"),
    (HEAD + "about: !!python/tuple [1]\n", "has no meaning here"),
    (HEAD + "about: !!binary aGk=\n", "has no meaning here"),
    (HEAD + "fixed: !!set {depth}\n", "has no meaning here"),
    (HEAD + "fixed: !!omap [depth: 2]\n", "has no meaning here"),
    (HEAD + "about: !evil x\n", "has no meaning here"),
    ("!!python/object:os.x {name: s}\n", "has no meaning here"),
    ("%TAG ! tag:evil,2000:\n---\n!x {name: s}\n", "has no meaning here"),
    # expressions
    *where("9**9**9**9 > n", "'a' * 10**9 == 'b'", "().__class__.__base__ == n"),
    *where(
        "__import__('os').system('touch owned') == 0", "(lambda: 1)() == n", "n.real.__class__ == n"
    ),
    *where(
        "[x for x in range(10**9)] == n",
        "(n := 5) == n",
        "f'{n}' == 'x'",
        "open('owned', 'w') == n",
    ),
    *where(
        "exec('1') == n",
        "device.__init__ == n",
        "min(*[1, 2]) == n",
        "1 << 9999999 > n",
        "n[0] == 1",
    ),
    *where("(" * 400 + "n" + ")" * 400 + " == 1"),
    *level(
        "'9 ** 9 ** 9'",
        "'__import__(\"os\")'",
        "\"n if open('x') else 2\"",
        ".inf",
        ".nan",
        "1e999",
    ),
    *level(
        "1" * 5000, "0x" + "f" * 400, "-1", "null", "[[2]]", "{range: [9, 1]}", "{per_sm: 99999999}"
    ),
    # names
    *name(
        "../../owned", "/tmp/owned", "a/b", "..", '"a\\nb"', '"\\x00"', '"\\u202eslx"', "'~'", "''"
    ),
    # bytes
    (HEAD.encode("utf-16"), "UTF-8"),
    (b"\xff\xfe\x00" * 9, "UTF-8"),
    (HEAD.encode() + b"about: \xe9\n", "UTF-8"),
    (HEAD + "about: a\x00b\n", "control character"),
    (HEAD + "about: a\x1b]0;owned\x07\n", "control character"),
    ("\ufeff", "empty"),
    ("", "empty"),
    ("--- a\n--- b\n", "second YAML document"),
]


def test_there_are_sixty() -> None:
    assert len(STUDIES) >= 60, len(STUDIES)


@pytest.mark.parametrize("number", range(len(STUDIES)))
def test_a_hostile_study_is_refused(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, said = STUDIES[number]
    file = tmp_path / "study.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NqbenchError) as caught:
        expand(load_study(file), SIM)
    message = str(caught.value)
    assert message.startswith(f"{file}:")
    assert said in message
    assert message.isprintable()
    assert len(message) < len(str(file)) + 1000
    assert [path.name for path in tmp_path.iterdir()] == ["study.yaml"]
