"""The documentation's examples run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nqbench.facts import DeviceFacts
from nqbench.study import Measure, expand
from tests.study.fake import H100, TURING, study_of

TEXT = (Path(__file__).parents[2] / "docs" / "study-format.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", TEXT, flags=re.DOTALL | re.MULTILINE)


def complete(example: str) -> str:
    """A fragment of a study, with what it leaves out."""
    if example.startswith("name:"):
        return example
    if not re.search(r"^ *n:", example, flags=re.MULTILINE):
        example = f"n: [12]\n{example}"
    if not re.search(r"^(system|systems|fixed|matrix|zip|sweeps):", example, flags=re.MULTILINE):
        example = f"system: zhang2011.low_divergence\n{example}"
    return f"name: example\n{example}"


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
@pytest.mark.parametrize("facts", [TURING, H100], ids=lambda facts: facts.kind)
def test_example(number: int, facts: DeviceFacts, tmp_path: Path) -> None:
    points = expand(study_of(tmp_path, complete(EXAMPLES[number])), facts)
    assert any(not point.skip for point in points)


def test_measure_example_shows_the_defaults(tmp_path: Path) -> None:
    assert len(EXAMPLES) >= 10
    example = next(text for text in EXAMPLES if text.startswith("measure:"))
    assert study_of(tmp_path, complete(example)).measure == Measure()
