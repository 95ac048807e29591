"""What of a file written for nvcc is host code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from nqbench.compiler.host import marks_of, pieces, without

CASES: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("hosts.yaml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", CASES)
def test_host_functions_go_and_lines_stay(case: str) -> None:
    text, names = CASES[case]["text"], CASES[case]["keeps"]
    host = [p for p in pieces(text, marks_of(text)) if p.function and not p.device]
    left = without(text, host)
    assert left.count("\n") == text.count("\n")
    assert [n for n in re.findall(r"\b(?:kept|gone)\d?\b", left) if n != "gone"][
        : len(names)
    ] == names
    assert "gone" not in left
    directives = [line for line in text.split("\n") if line.startswith("#")]
    assert [line for line in left.split("\n") if line.startswith("#")] == directives
    for name in names:  # where it was
        assert _line(left, name) == _line(text, name)


def _line(text: str, name: str) -> int:
    found = re.search(rf"\b{name}\b", text)
    assert found is not None
    return text.count("\n", 0, found.start())
