"""The benchmark that says where a recorded run's time went, against a run with known parts."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest

from benchmarks.run_overhead import describe
from nqbench.runs.reading import read_records
from tests.measure.test_runner import measure, sizes


def number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    assert found, text
    return float(found[1])


def test_kernels_and_what_lies_outside_them_add_up_to_the_measurements(tmp_path: Path) -> None:
    measure(tmp_path / "r", sizes(8, 9), "fake:sleep=1,base=2e-3")
    text = describe(tmp_path / "r")
    records = [r for r in read_records(tmp_path / "r").records if r.round > 0]
    assert "6 timed measurements of 2 points" in text
    outside = number(r"([\d.]+) ms outside\s+kernels, ", text)
    inside = number(r"kernels, ([\d.]+) ms inside", text)
    wall_ms = sum(record.wall_s for record in records) / 2 * 1e3
    assert abs(outside + inside - wall_ms) <= 0.11  # both are printed to a tenth
    # ten launches of 2 ms and ten of 8 ms in each of three rounds, four of them to warm up
    assert inside > 3 * 10 * (2 + 8) / 2 - 1
    assert "between two measurements of a worker" in text


def test_a_run_without_times_says_so(tmp_path: Path) -> None:
    measure(tmp_path / "r", sizes(8), "fake:deterministic=1")
    assert "no timed measurement" in describe(tmp_path / "r")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["overhead", "--points", "0"], "0 is less than 1"),
        (["durability", "--kills", "0"], "0 is less than 1"),
        (["mutations", "--count", "-3"], "-3 is less than 1"),
        (["overhead", "RUN"], "which is not a time"),
    ],
)
def test_nonsense_is_refused(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """None of anything would pass for a success."""
    (tmp_path / "manifest.json").write_text("{}")
    measured = {"key": "k", "device": "cuda:0", "round": 1, "status": "ok", "value_s": "fast"}
    point = dict.fromkeys(("study", "sweep", "workload", "label"), "") | {"system": None}
    line = json.dumps({**measured, "point": {**point, "factors": {}}})
    (tmp_path / "records.jsonl").write_text(line + "\n")
    module = importlib.import_module(f"benchmarks.{words[0]}")
    with pytest.raises(SystemExit) as end:
        module.main([str(tmp_path) if word == "RUN" else word for word in words[1:]])
    assert end.value.code == 2
    assert said in capsys.readouterr().err
