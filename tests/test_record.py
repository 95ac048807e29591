"""Files that are valid JSON and yet no records: said when they are read, by field and value."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from nqbench.analysis.data.dataset import load_dataset
from nqbench.errors import StoreError
from nqbench.record import Record
from nqbench.runs.reading import MANIFEST, RECORDS
from nqbench.study import load_study
from tests.toys import run_here

ROOT = Path(__file__).parents[1]
STUDY = Path(__file__).with_name("small.yaml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    (folder / "s.yaml").write_text(STUDY, encoding="utf-8")
    spec = "fake:base=1e-6,noise=0.002"
    return run_here(load_study(folder / "s.yaml"), spec, folder / "r").path


def unsummed(line: str) -> dict[str, Any]:
    """A record's JSON; its checksum is of another subject."""
    return {name: value for name, value in json.loads(line).items() if name != "crc32"}


def parsed(run: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    lines = (run / RECORDS).read_text(encoding="utf-8").splitlines()
    return json.loads((run / MANIFEST).read_bytes()), [unsummed(line) for line in lines]


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["value_s"], math.nan, "value_s nan, which should be"),
        (["value_s"], -1.0, "value_s -1.0, which should be greater than or equal to"),
        (["value_s"], 5e-324, "value_s 5e-324, which should be greater than or equal to"),
        (["value_s"], math.inf, "value_s inf, which should be less than"),
        (["samples_s", 1], None, r"samples_s\[1\] None, which should be a valid number"),
        (["wall_s"], True, "wall_s True, which should be a valid number"),
        (["counters"], [], r"counters \[\], which should be a valid dictionary"),
        (["counters", "branches"], "many", "counters.branches 'many', which should be a valid"),
        (["counters", "branches"], math.nan, "counters.branches nan, which should be"),
        (["counters", "branches"], 10**401, "counters.branches 1000.*, which should be less than"),
        (["about", "n"], 1e101, r"about.n 1e\+101, which should be less than or equal to 1e100"),
        (["about", "n"], [8], r"about.n \[8\], which should be a valid"),
        (["telemetry"], None, "telemetry None, which should be a valid dictionary"),
        (["telemetry", "sm_mhz"], {"min": 1}, r"sm_mhz \{'min': 1\}, which does not belong"),
        (["telemetry", "clock_reasons"], "hot", "clock_reasons 'hot', which should be a valid"),
        (["answer"], 92, "answer 92, which should be a valid string"),
        (["round"], True, "round True, which should be a valid integer"),
        (["point", "sweep"], None, "point.sweep None, which should be a valid string"),
        (["point", "factors", "n"], -1, "point.factors.n -1, which should be a whole number"),
        (["point", "factors"], [], r"point.factors \[\], which should be a valid dictionary"),
        (["point", "factors", "blocks"], {"per_sn": 2}, "factors.blocks {'per_sn': 2}, which"),
    ],
)
def test_a_record_with_a_wrong_value(
    whole: Path, path: Sequence[str | int], value: object, said: str
) -> None:
    data = deepcopy(parsed(whole)[1][-1])
    put(data, path, value)
    with pytest.raises(StoreError, match=said):
        Record.from_json(data)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["points", 1, "factors", "n"], "x", r"has points\[1\].factors.n 'x', which"),
        (["points", 0, "factors"], 3, r"points\[0\].factors 3, which should be a valid dictionary"),
        (["points", 0], {"key": "k"}, r"lacks points\[0\].sweep"),
        (["device"], {"kind": "sim"}, "lacks device.facts"),
        (["study", "sweeps"], 3, "has study.sweeps 3, which should be a valid list"),
        (["study", "sweeps", 0, "matrix"], math.pi, r"study.sweeps\[0\].matrix 3.14"),
        (["device", "identity"], True, "device.identity True, which should be a valid dictionary"),
        (["device", "facts", "compute_capability"], 9, "device.facts.compute_capability 9"),
        (["command"], 7, "command 7, which should be a valid"),
        (["seed"], math.nan, "holds 'NaN', which is no number"),
        (["seed"], 10**401, r"holds '1000.*, which is no number up to 1e100"),
        (
            ["points", 1, "factors"],
            {},
            r"points\[1\].factors.n None, which should be a whole number",
        ),
        (["device", "facts", "multiprocessors"], 0, "multiprocessors 0, which should be greater"),
        (["protocol", "samples"], "x", "protocol.samples 'x', which should be a valid integer"),
        (["created"], "2026-11-23", "created '2026-11-23', which should be a date and time with"),
        (
            ["study", "kernel"],
            {"metrics": ["x"]},
            r"kernel.metrics \['x'\], which should be a valid",
        ),
    ],
)
def test_a_manifest_with_a_wrong_value(
    whole: Path, tmp_path: Path, path: Sequence[str | int], value: object, said: str
) -> None:
    manifest, records = parsed(whole)
    put(manifest, path, value)
    with pytest.raises(StoreError, match=said) as error:
        load_dataset(written(tmp_path / "r", manifest, records))
    assert "the records are untouched" in str(error.value)


@pytest.mark.parametrize("file", sorted((ROOT / "results" / "reference").glob("*/*/manifest.json")))
def test_the_runs_of_the_project_are_read(file: Path) -> None:
    assert load_dataset(file.parent).points


def put(data: Any, path: Sequence[str | int], value: object) -> None:
    for step in path[:-1]:
        data = data[step]
    data[path[-1]] = value


def written(run: Path, manifest: dict[str, Any], records: list[dict[str, Any]]) -> Path:
    run.mkdir(exist_ok=True)
    (run / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    text = "".join(json.dumps(record) + "\n" for record in records)
    (run / RECORDS).write_text(text, encoding="utf-8")
    return run
