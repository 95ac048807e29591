"""Two GPUs of one computer share a sweep and a count. Skipped with fewer."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from nqbench.count.chunks import ChunkedBoard, CountLog
from nqbench.devices.cuda.query import find_gpus
from nqbench.errors import DeviceUnavailable
from nqbench.runs.reading import read_manifest, read_records
from tests.cli.call import process


@pytest.fixture(autouse=True)
def several() -> None:
    """Skips the tests without two GPUs."""
    try:
        found = len(find_gpus())
    except DeviceUnavailable as absence:
        pytest.skip(str(absence))
    if found < 2:
        pytest.skip("this computer has one GPU")


def test_a_sweep_is_measured_on_both(tmp_path: Path) -> None:
    done = process("run", "quick", "--gpus", "all", "--out", tmp_path / "run", "--no-report")
    assert done.code == 0, done.err
    records = read_records(tmp_path / "run").records
    assert {record.device for record in records} == {"cuda:0", "cuda:1"}
    assert {record.status for record in records} == {"ok"}
    known = read_manifest(tmp_path / "run")["devices"]
    assert len({device["identity"]["uuid"] for device in known}) == 2


@pytest.mark.parametrize("halves", [False, True])
def test_a_count_over_both_is_right(halves: bool, tmp_path: Path) -> None:
    """By jobs, or by groups of half boards, as the file was begun."""
    log = tmp_path / "log"
    with closing(CountLog(log, ChunkedBoard.of(20, halves).head)):
        pass
    done = process("count", 20, "--gpus", "all", "--log", log)
    assert (done.code, "a(20) = 39029188884" in done.out) == (0, True), done.err
