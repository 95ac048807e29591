"""Runs that are kept: packed records, checked by their sums."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nqbench.runs.folder import RunWriter
from nqbench.runs.reading import MANIFEST, PACKED, RECORDS, SUMS, read_records
from tests.cli.call import ROOT

KEPT = ROOT / "results" / "reference" / "sim-mini" / "zhang2011"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(KEPT, tmp_path / "run"))


def test_every_reference_run_is_packed_and_matches_its_sums() -> None:
    runs = sorted(path.parent for path in (ROOT / "results" / "reference").rglob(MANIFEST))
    assert len(runs) > 30
    for run in runs:
        assert {PACKED, SUMS} <= {path.name for path in run.iterdir()}
        assert not (run / RECORDS).exists()
        subprocess.run(["sha256sum", "--quiet", "-c", SUMS], cwd=run, check=True)


def test_packing_changes_no_record_and_gives_the_same_bytes_again(copy: Path) -> None:
    before, packed = read_records(copy).records, (copy / PACKED).read_bytes()
    with RunWriter(copy) as writer:
        assert writer.repair().records == before
    assert not {PACKED, SUMS} & {path.name for path in copy.iterdir()}, "a file to append to"
    assert read_records(copy).records == before
    script = str(ROOT / "scripts" / "pack_runs.py")
    subprocess.run([sys.executable, script, str(copy)], check=True)
    assert ((copy / PACKED).read_bytes(), (copy / RECORDS).exists()) == (packed, False)
