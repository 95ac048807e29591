"""Two GPUs of one computer: twice the speed, the same values. Skipped with fewer."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import two_gpus
from nqbench.devices.cuda.query import find_gpus
from nqbench.errors import DeviceUnavailable
from nqbench.runs.reading import read_manifest, read_records


@pytest.fixture(autouse=True)
def several() -> None:
    """Skips the tests without two GPUs."""
    try:
        found = len(find_gpus())
    except DeviceUnavailable as absence:
        pytest.skip(str(absence))
    if found < 2:
        pytest.skip("this computer has one GPU")


def test_a_sweep_over_both_is_faster_and_gives_the_same_values(tmp_path: Path) -> None:
    speed, agree = two_gpus.sweep("2s", 2, two_gpus.Report(tmp_path))
    assert speed > 1.6  # processes start anew for each round, which short budgets feel
    assert agree > 0.9
    records = read_records(tmp_path / "all").records
    assert {record.device for record in records} == {"cuda:0", "cuda:1"}
    assert {record.status for record in records} == {"ok"}
    known = read_manifest(tmp_path / "all")["devices"]
    assert len({device["identity"]["uuid"] for device in known}) == 2


def test_a_count_over_both_is_faster(tmp_path: Path) -> None:
    (speed,) = two_gpus.counts([20], two_gpus.Report(tmp_path))
    assert speed > 1.85
