"""One vocabulary: every word in the project's own YAML files and records is a known one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from nqbench.study.report_items import REPORT_KINDS
from nqbench.vocabulary import COUNTERS, STATUSES
from nqbench.workloads import get, phases

ROOT = Path(__file__).parents[1]
STUDIES = sorted([*ROOT.glob("configs/*.yaml"), *ROOT.glob("experiments/*/study.yaml")])


def words_of(study: dict[str, Any]) -> set[str]:
    """Every name of a factor that a study uses."""
    found: set[str] = set()
    for part in [study, *study.get("sweeps", [])]:
        for key in ("fixed", "matrix", "zip"):
            found |= set(part.get(key, {}))
    for item in study.get("report", []):
        found |= {item[key] for key in ("x", "y", "series") if key in item}
    return found


@pytest.mark.parametrize("path", STUDIES, ids=lambda p: p.stem)
def test_studies_speak_the_vocabulary(path: Path) -> None:
    study = yaml.safe_load(path.read_text(encoding="utf-8"))
    workload = get(study.get("workload", "counting"))
    assert words_of(study) <= {*workload.factors, "system", "n"}
    for item in study.get("report", []):
        kind = "table" if "table" in item else "figure"
        assert any(known.form == kind and known.name == item[kind] for known in REPORT_KINDS)
        if "value" in item:
            assert item["value"] in {"time", *phases(), *COUNTERS}


def test_there_are_studies() -> None:
    assert {path.stem for path in STUDIES} >= {"ablation", "quick", "scaling"}


def test_no_word_has_two_meanings() -> None:
    assert not set(phases()) & set(COUNTERS)
    assert not set(STATUSES) & set(COUNTERS)
