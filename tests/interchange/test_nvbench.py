"""nvbench's JSON: read as it is written, written so that it reads back, refused in a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nqbench.analysis.compare.runs import compare_runs
from nqbench.analysis.data.quantities import TIME
from nqbench.errors import AnalysisError, InterchangeError, StoreError, StudyError
from nqbench.interchange import export_run, open_results
from nqbench.record import Record
from nqbench.runs.reading import MANIFEST, RECORDS

GPU = {"name": "NVIDIA H100 PCIe", "compute_capability": [9, 0], "multiprocessors": 114}


def summary(tag: str, value: Any, kind: str = "float64") -> dict[str, Any]:
    return {"tag": tag, "name": "x", "data": [{"name": "value", "type": kind, "value": value}]}


def result(time_s: Any = "0.0125", **state: Any) -> dict[str, Any]:
    """A file as version 1 of the format has it."""
    axes = [
        {"name": "N", "type": "int64", "value": "15"},
        {"name": "memory", "type": "string", "value": "shared"},
    ]
    made = {
        "name": "Device=0 N=15 memory=shared",
        "device": 0,
        "axis_values": axes,
        "summaries": [
            summary("nv/cold/sample_size", "499", "int64"),
            summary("nv/cold/time/gpu/mean", time_s),
            summary("nv/cold/time/gpu/stdev/relative", None),
        ],
        "is_skipped": False,
    }
    return {
        "meta": {"version": {"json": {"major": 1, "minor": 0, "patch": 0}}},
        "devices": [{"id": 0, "name": "NVIDIA H100 PCIe"}],
        "benchmarks": [{"name": "nqueens", "index": 0, "states": [made | state]}],
    }


def write(path: Path, data: Any) -> Path:
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_a_state_becomes_a_point(tmp_path: Path) -> None:
    data = open_results(write(tmp_path / "r.json", result()))
    (point,) = data.points
    assert (point.sweep, point.system, point.n) == ("nqueens", "", 15)
    assert point.levels == {"memory": "shared"}
    assert point.values(TIME) == {1: 0.0125}
    assert data.device == "NVIDIA H100 PCIe (nvbench)"


def test_samples_next_to_the_file_give_the_median(tmp_path: Path) -> None:
    (tmp_path / "r.json-bin").mkdir()
    np.asarray([1.0, 2.0, 9.0], dtype="<f4").tofile(tmp_path / "r.json-bin" / "0.bin")
    named = [
        {"name": "filename", "type": "string", "value": "r.json-bin/0.bin"},
        {"name": "size", "type": "int64", "value": "3"},
    ]
    made = result()
    made["benchmarks"][0]["states"][0]["summaries"].append(
        {"tag": "nv/json/bin:nv/cold/sample_times", "data": named}
    )
    (point,) = open_results(write(tmp_path / "r.json", made)).points
    assert point.values(TIME) == {1: 2.0}


def test_files_of_a_folder_are_rounds(tmp_path: Path) -> None:
    for index, time_s in enumerate(("0.010", "0.012", "0.011")):
        write(tmp_path / f"{index}.json", result(time_s))
    (point,) = open_results(tmp_path).points
    assert point.values(TIME) == {1: 0.010, 2: 0.012, 3: 0.011}


def test_a_skipped_state_keeps_its_reason(tmp_path: Path) -> None:
    made = result(is_skipped=True, skip_reason="too large", summaries=None)
    (point,) = open_results(write(tmp_path / "r.json", made)).points
    assert (point.status, point.reason) == ("skipped", "too large")


MEAN = "nv/cold/time/gpu/mean"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f, s: f.clear(), "is not a result of nvbench"),
        (lambda f, s: f["meta"]["version"]["json"].update(major=2), "json.major is 2: only 1"),
        (lambda f, s: f.update(benchmarks=[]), "holds no benchmark with a state"),
        (lambda f, s: f.update(benchmarks="x"), "benchmarks is 'x': input should be a valid list"),
        (lambda f, s: f["benchmarks"][0].pop("name"), r"benchmarks\[0\]\.name is missing"),
        (
            lambda f, s: s.update(summaries=[{"data": []}]),
            r"states\[0\]\.summaries\[0\]\.tag is missing",
        ),
        (
            lambda f, s: s.update(summaries=[summary(MEAN, "fast")]),
            r"summaries\[0\]\.data\[0\]\.value is 'fast': input should be a valid number",
        ),
        (
            lambda f, s: s.update(summaries=[summary(MEAN, "-1.0")]),
            rf"tag '{MEAN}' value is -1\.0: a positive number",
        ),
        (lambda f, s: s.update(summaries=[]), f"tag '{MEAN}' value is None: a positive"),
        (
            lambda f, s: s["axis_values"][0].update(type="int128"),
            r"axis_values\[0\] is .*'int128'.* does not match any of the expected tags",
        ),
    ],
)
def test_damage_is_named(tmp_path: Path, change: Any, message: str) -> None:
    made = result()
    change(made, made["benchmarks"][0]["states"][0])
    with pytest.raises(InterchangeError, match=message):
        open_results(write(tmp_path / "r.json", made))


@settings(deadline=None)  # files on a busy disk
@given(st.data())
def test_any_value_anywhere_ends_in_points_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """One node of a valid file is replaced by something else."""
    made: Any = result()
    node: Any = made
    while isinstance(node, dict | list) and node:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(node[key], dict | list) or data.draw(st.integers(0, 4)) == 0:
            odd = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
            node[key] = data.draw(odd | st.just([]) | st.just({}) | st.just([[]]))
            break
        node = node[key]
    path = write(tmp_path_factory.mktemp("odd") / "r.json", made)
    said = ""
    try:
        assert open_results(path).points
    except InterchangeError as error:
        said = str(error)
    assert not said or str(path) in said


def test_a_missing_file_and_one_that_is_not_json(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does not exist; give a run folder"):
        open_results(tmp_path / "absent")
    (tmp_path / "r.json").write_text("{", encoding="utf-8")
    with pytest.raises(InterchangeError, match="is not JSON"):
        open_results(tmp_path / "r.json")


def make_run(path: Path, samples: dict[int, list[float]], *, kind: str = "cuda") -> Path:
    """A run folder with one point and these samples by round."""
    point = {
        "study": "s",
        "sweep": "factorial",
        "workload": "counting",
        "system": "zhang2011.low_divergence",
        "label": "x",
        "factors": {"n": 15, "memory": "shared", "block_size": 128},
    }
    device = {"spec": f"{kind}:0", "kind": kind, "identity": {}, "facts": GPU}
    manifest = {
        "version": 1,
        "study": {"name": "s", "workload": "counting"},
        "command": ["nqbench", "run", "s.yaml"],
        "device": device,
        "points": [{**point, "key": "k"}],
    }
    path.mkdir()
    (path / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    records = [
        Record(
            "k", point, f"{kind}:0", r, "ok", value_s=float(np.median(v)), samples_s=tuple(v)
        ).as_json()
        for r, v in samples.items()
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (path / RECORDS).write_text(lines, encoding="utf-8")
    return path


times = st.floats(1e-7, 1e3)


@settings(deadline=None)  # files on a busy disk
@given(st.dictionaries(st.integers(1, 9), st.lists(times, min_size=1, max_size=5), min_size=1))
def test_export_reads_back_as_the_same_points(
    tmp_path_factory: pytest.TempPathFactory, samples: dict[int, list[float]]
) -> None:
    folder = tmp_path_factory.mktemp("trip")
    run, file = make_run(folder / "run", samples), folder / "run.json"
    file.write_text(export_run(run, "nvbench", file), encoding="utf-8")
    (before,), (after,) = open_results(run).points, open_results(file).points
    assert (after.sweep, after.system, after.n) == (before.sweep, before.system, before.n)
    assert after.levels == before.levels
    assert after.values(TIME) == before.values(TIME)
    written = json.loads(file.read_text(encoding="utf-8"))
    tags = {s["tag"]: s for s in written["benchmarks"][0]["states"][0]["summaries"]}
    every = [v for r in sorted(samples) for v in samples[r]]
    assert tags["nv/cold/sample_size"]["data"][0]["value"] == str(len(every))
    mean = float(tags["nv/cold/time/gpu/mean"]["data"][0]["value"])
    assert mean == pytest.approx(np.mean(every))
    binary = np.fromfile(folder / "run.json-bin" / "0.bin", dtype="<f4")
    assert binary == pytest.approx(np.asarray(every, dtype="<f4"))


def test_nvbench_compared_with_a_run(tmp_path: Path) -> None:
    """Their file names fewer factors: points are matched by those that both have."""
    run = make_run(tmp_path / "run", {1: [0.0100], 2: [0.0101], 3: [0.0100]})
    theirs = tmp_path / "nvbench"
    theirs.mkdir()
    for index, time_s in enumerate(("0.0110", "0.0111", "0.0110")):
        write(theirs / f"{index}.json", result(time_s))
    found = compare_runs(open_results(theirs), open_results(run), ("nvbench", "nqbench"))
    (row,) = found.rows
    assert row.verdict == "faster"
    assert row.ratio.value == pytest.approx(0.0100 / 0.0110, rel=0.01)
    assert any("does not record system, block_size" in note for note in found.notes)
    assert any("means of its samples" in note for note in found.notes)


def test_csv_holds_every_measurement(tmp_path: Path) -> None:
    lines = export_run(make_run(tmp_path / "run", {1: [1.0], 2: [2.0]}), "csv", None).splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("run,study,sweep")


def test_what_cannot_be_exported(tmp_path: Path) -> None:
    with pytest.raises(AnalysisError, match=r"has no times, .* \(it is simulated\)"):
        export_run(make_run(tmp_path / "sim", {1: [1.0]}, kind="sim"), "nvbench", None)
    with pytest.raises(
        StudyError, match="no export format is called 'xml'; known: nvbench, kernel_tuner, csv"
    ):
        export_run(tmp_path / "sim", "xml", None)
