"""The JSON Schema: what it accepts is what the reader accepts, and every key is described."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from nqbench.study import schema
from nqbench.system.yaml_marks import read
from nqbench.workloads import get, names

ROOT = Path(__file__).parents[2]
CONFIGS = [*sorted(ROOT.glob("configs/*.yaml")), *sorted(ROOT.glob("examples/*/*.yaml"))]


@pytest.fixture(scope="module")
def real() -> dict[str, Any]:
    return schema()


def errors(form: dict[str, Any], study: object) -> list[str]:
    found = jsonschema.Draft202012Validator(form).iter_errors(study)
    return [error.message for error in found]


def test_is_a_schema(real: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(real)
    assert real["title"] == "nqbench study"


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_accepts_the_configs(real: dict[str, Any], path: Path) -> None:
    assert CONFIGS
    assert errors(real, read(path).data) == []


@pytest.mark.parametrize(
    "change",
    [
        {"matrx": {}},
        {"name": "a/b"},
        {"name": 3},
        {"fixed": {"block_size": 1.5}},
        {"fixed": {"block_size": [1]}},
        {"matrix": {"block_size": 3}},
        {"matrix": {}},
        {"matrix": {"block_size": {"range": [1]}}},
        {"n": []},
        {"n": {"gpu": [1]}},
        {"n": None},
        {"infeasible": "skipp"},
        {"measure": {"rounds": 0}},
        {"measure": {"target": "5"}},
        {"report": [{"table": "nothing"}]},
        {"sweeps": []},
        {"kernel": {"source": "a.cu"}},
        {"kernel": {"source": "a.cu", "entry": "f", "grid": 1, "block": 1, "gird": 1}},
        {"where": 3},
    ],
    ids=str,
)
def test_refuses(real: dict[str, Any], change: dict[str, Any]) -> None:
    study = {"name": "s", "n": [10], "fixed": {"block_size": 64}}
    assert errors(real, study) == []
    assert errors(real, study | change)


def described(form: Any, path: str = "") -> Iterator[tuple[str, bool]]:
    if isinstance(form, dict):
        for name, inner in form.get("properties", {}).items():
            if not path.endswith(("/range", "/step")):
                yield f"{path}/{name}", "description" in inner or "$ref" in inner
        for key, inner in form.items():
            yield from described(inner, f"{path}/{key}")


def test_every_key_of_the_grammar_is_described(real: dict[str, Any]) -> None:
    inner = ("sim", "cuda", "cpu", "range", "step", "per_sm")
    keys = [(path, ok) for path, ok in described(real) if path.rsplit("/", 1)[-1] not in inner]
    assert len(keys) > 40
    assert [path for path, ok in keys if not ok] == []


def test_factors_and_systems_are_spelt_out(real: dict[str, Any]) -> None:
    """A name that two workloads share tells both meanings."""
    described = real["$defs"]["SweepFile"]["properties"]["matrix"]["properties"]
    assert described == real["properties"]["matrix"]["properties"]
    assert "zhang2011.low_divergence" in described["system"]["description"]
    assert "system" not in real["properties"]["fixed"]["properties"]
    for name in names():
        for factor in get(name).factors.values():
            text = described[factor.name]["description"]
            assert factor.meaning in text
            assert all(level in text for level in factor.levels)
    assert "counting: " in described["block_size"]["description"]


def test_no_form_is_written_out_at_every_factor(real: dict[str, Any]) -> None:
    assert len(json.dumps(real)) < 100_000
