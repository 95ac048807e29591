"""Run folders: what is written is there, what is torn is mended, what is not ours stays."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nqbench.errors import DamageWarning, StoreError
from nqbench.record import Record
from nqbench.runs import reading
from nqbench.runs.folder import LOCK, RunWriter
from nqbench.runs.frame import column_of, load
from nqbench.vocabulary import COUNTERS


def record(key: str = "k", round_: int = 1, **more: Any) -> Record:
    """A measured block."""
    fields: dict[str, Any] = {
        "key": key,
        "point": {
            "study": "s",
            "sweep": "w",
            "workload": "counting",
            "system": None,
            "label": "w N=8",
            "factors": {"n": 8, "memory": "shared", "blocks": {"per_sm": 4}},
        },
        "device": "cuda:0",
        "round": round_,
        "status": "ok",
        "answer": "92",
        "expected": "92",
        "value_s": 0.5,
        "samples_s": (0.4, 0.5, 0.6),
        "phases": {"kernel": 0.5, "total": 0.7},
        "resources": {"registers": 40, "carveout": 100},
        "about": {"jobs": 12},
    }
    return Record(**{**fields, **more})


def manifest(*keys: str, kind: str = "cuda") -> dict[str, Any]:
    """A manifest that lists points with these keys."""
    return {
        "study": {"name": "s"},
        "device": {"kind": kind, "facts": {"name": "d"}},
        "points": [{"key": key, "sweep": "w", "factors": {"n": 8}} for key in keys],
    }


def run(path: Path, *records: Record, keys: tuple[str, ...] = ("k",), kind: str = "cuda") -> Path:
    """A run folder with these records."""
    with RunWriter(path) as writer:
        writer.write_manifest(manifest(*keys, kind=kind))
        for each in records:
            writer.append(each)
    return path


def test_a_run_does_not_go_on_into_a_deleted_file(tmp_path: Path) -> None:
    path = tmp_path / "r"
    with RunWriter(path) as writer:
        writer.append(record("a"))
        (path / reading.RECORDS).rename(tmp_path / "elsewhere")
        writer.append(record("b"))  # moved, so nothing is lost
        (tmp_path / "elsewhere").unlink()
        with pytest.raises(StoreError, match="was deleted while the run wrote to it"):
            writer.append(record("c"))


def test_the_disk_is_flushed_at_once_unless_records_come_in_a_burst(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    now = [100.0]
    monkeypatch.setattr("nqbench.runs.folder.os.fsync", flushed.append)
    monkeypatch.setattr("nqbench.runs.folder.time.monotonic", lambda: now[0])
    with RunWriter(tmp_path / "r") as writer:
        for wait, count in [(1.0, 1), (0.2, 2), (0.01, 2), (0.01, 2), (0.2, 3)]:
            now[0] += wait
            writer.append(record())
            assert len(flushed) == count
    assert len(flushed) == 4  # and what a burst left, at the end


@given(cut=st.integers(min_value=0))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_cut_anywhere_keeps_every_complete_record(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "cut"
    path.mkdir(exist_ok=True)
    lines = [json.dumps(record(round_=r).as_json()).encode() + b"\n" for r in range(4)]
    content = b"".join(lines)
    content = content[: cut % (len(content) + 1)]
    (path / reading.RECORDS).write_bytes(content)
    complete = content.count(b"\n")
    found = reading.look_through(path)
    assert [r.round for r in found.records] == list(range(complete))
    assert bool(found.torn) == (not content.endswith(b"\n") and bool(content))
    with RunWriter(path) as writer:
        writer.repair()
        writer.append(record(round_=9))
    assert [r.round for r in reading.read_records(path).records] == [*range(complete), 9]


def test_a_folder_has_one_writer_at_a_time(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from nqbench.runs.folder import RunWriter\n"
        "with RunWriter(Path(sys.argv[1])): print('have it', flush=True); input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "r")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"have it\n"
        with pytest.raises(StoreError, match="being written by another run"):
            RunWriter(tmp_path / "r")
        other.kill()
    RunWriter(tmp_path / "r").close()  # a lock does not outlive its owner


def test_a_folder_that_may_or_can_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="cannot be written"):
        RunWriter(tmp_path / "file" / "r")
    (tmp_path / "results" / "reference").mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "results" / "reference")
    for path in (tmp_path / "results" / "reference" / "h100" / "x", link / "x"):
        with pytest.raises(StoreError, match="reference run"):
            RunWriter(path)
        assert not path.exists()


def test_starting_over_loses_nothing(tmp_path: Path) -> None:
    path = run(tmp_path / "r", record())
    before = (path / reading.RECORDS).read_bytes()
    with RunWriter(path) as writer:
        aside = writer.archive()
        assert writer.archive() is None
    assert aside is not None
    assert (aside / reading.RECORDS).read_bytes() == before
    assert sorted(p.name for p in path.iterdir() if p.name != LOCK) == ["old"]


def test_load_gives_one_row_per_measurement_with_every_column(tmp_path: Path) -> None:
    failed = record("w", status="wrong", reason="no", value_s=None, samples_s=(), phases={})
    path = run(tmp_path / "r", record(), record(round_=2, value_s=0.7), failed, keys=("k", "w"))
    table = load(path)
    assert len(table) == 3
    assert table.attrs["manifest"]["study"]["name"] == "s"
    first, _, wrong = (row for _, row in table.iterrows())
    levels = [first[name] for name in ("n", "memory", "blocks", "jobs")]
    assert levels == [8, "shared", "4/SM", 12]
    assert (first["samples"], first["answer"]) == (3, "92")
    assert "system" not in table, "no point has one"
    assert (first["kernel_s"], first["total_s"], first["registers"]) == (0.5, 0.7, 40)
    assert set(COUNTERS) <= set(table.columns)
    assert table["warp_instructions"].isna().all()
    assert wrong["status"] == "wrong"
    assert math.isnan(wrong["value_s"])
    assert math.isnan(wrong["kernel_s"])
    assert str(table["value_s"].dtype) == "float64"


def test_only_the_last_measurement_of_a_point_as_it_is_planned_counts(tmp_path: Path) -> None:
    """One made again takes the place of the first; those of an earlier version are left out."""
    timeout, again = record(status="timeout", value_s=None), record(value_s=0.9)
    assert list(load(run(tmp_path / "again", timeout, again))["value_s"]) == [0.9]
    both = run(tmp_path / "old", record("old", value_s=9.0), record("k", value_s=1.0))
    assert list(load(both)["value_s"]) == [1.0]
    with pytest.warns(DamageWarning, match="is empty or missing"):
        empty = load(run(tmp_path / "empty"))
    assert len(empty) == 0
    assert {"value_s", "status", "key", "round"} <= set(empty.columns)
    old = {**record().as_json(), "about": {"held_samples": 3}}
    assert Record.from_json(old).about == {"blocked_samples": 3}, "an earlier name of a number"


def test_host_baselines_of_a_simulated_run_are_not_simulated(tmp_path: Path) -> None:
    counted = record("k", device="sim:mini", value_s=None, counters={"barriers": 5})
    timed = record("h", device="cpu")
    table = load(run(tmp_path / "r", counted, timed, keys=("k", "h"), kind="sim"))
    assert list(table["device_kind"]) == ["sim", "cpu"]
    assert list(table["simulated"]) == [True, False]
    assert table["barriers"].iloc[0] == 5


def test_a_factor_called_like_a_column_keeps_a_column_of_its_own(tmp_path: Path) -> None:
    own = {"order": "sorted", "registers": 32, "sm_mhz": 1, "carveout": 7, "factor_order": 2}
    point = {**record().point, "factors": {"n": 8, **own}}
    shown = load(run(tmp_path / "r", record(point=point, order=5), record("j"), keys=("k", "j")))
    first = shown.iloc[0]
    assert (first["order"], first["registers"], first["carveout"]) == (5, 40, 100)
    renamed = {column_of(name, ("order", "registers", "sm_mhz", "carveout")) for name in own}
    assert renamed == {f"factor_{name}" for name in own}
    assert [first[f"factor_{name}"] for name in own] == list(own.values())
    assert "sm_mhz" not in shown.columns


def test_import_nqbench_is_quick_and_has_load() -> None:
    code = "import sys, nqbench; assert 'pandas' not in sys.modules; print(nqbench.load.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "load"
