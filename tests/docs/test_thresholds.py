"""The table of thresholds agrees with the code and lists every one that measuring uses."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

from nqbench.study import Measure

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "measuring.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("## Every threshold")[2].partition("\n## ")[0]
ROWS = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \| (.+) \|$", TABLE, re.MULTILINE)
DECIDING = ("sampling/sampling", "sampling/warmup", "sampling/telemetry", "rounds", "budget")
"""Modules of ``measure`` that decide how long to measure and what counts."""
PRIVATE = {"SHARE_S"}
"""``budget`` / ``rounds``, for measurements outside a study."""


@pytest.mark.parametrize(("name", "value", "where"), [row[:3] for row in ROWS])
def test_the_value_is_that_of_the_code(name: str, value: str, where: str) -> None:
    if where == "study":
        how = Measure()
        real = {"rounds": how.rounds, "budget": how.budget_s, "timeout": how.timeout_s}[name]
    else:
        module, *inside = re.findall(r"`([\w.]+)`", where)
        owner = importlib.import_module(f"nqbench.{module}")
        for part in inside:
            owner = getattr(owner, part)
        real = getattr(owner, name)
    assert float(value.removesuffix(" s")) == real


def test_every_threshold_of_measuring_is_listed() -> None:
    listed = {name for name, *_ in ROWS}
    for module in DECIDING:
        tree = ast.parse((ROOT / "nqbench" / "measure" / f"{module}.py").read_text("utf-8"))
        numbers = {
            node.target.id
            for node in tree.body
            if isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, int | float)
        }
        assert numbers - PRIVATE <= listed, module
