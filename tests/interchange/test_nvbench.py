"""nvbench's JSON: read as it is written, imported as a run, refused in a sentence."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nqbench.analysis.compare.runs import compare_runs
from nqbench.analysis.data.quantities import TIME
from nqbench.errors import InterchangeError, StoreError
from nqbench.interchange import import_run, open_results, open_runs
from tests.cli.call import call

pytestmark = pytest.mark.usefixtures("undrawn")


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
STATE = "benchmarks 0 states 0"
GONE = object()
DAMAGED: tuple[tuple[str, Any, str], ...] = (
    ("benchmarks", GONE, "is no result of nvbench: benchmarks: field required"),
    ("meta version json major", 2, "json.major is 2: input should be 1"),
    ("benchmarks", [], "holds no benchmark with a state"),
    ("benchmarks", "x", "benchmarks is 'x': input should be a valid array"),
    ("benchmarks 0 name", GONE, "benchmarks[0].name: field required"),
    (f"{STATE} summaries", [{"data": []}], "states[0].summaries[0].tag: field required"),
    (f"{STATE} summaries", [summary(MEAN, "fast")],
     "summaries[0].data[0].value is 'fast': input should be a valid number"),
    (f"{STATE} summaries", [summary(MEAN, "-1.0")],
     f"tag '{MEAN}' value is -1.0: a positive number"),
    (f"{STATE} summaries", [], f"tag '{MEAN}' value is None: a positive"),
    (f"{STATE} axis_values 0 value", "-5", "axis 'n' of 'nqueens' is -5: a whole number"),
    (f"{STATE} axis_values 0 type", "int128", "does not match any of the expected tags"),
)  # fmt: skip


@pytest.mark.parametrize(("where", "value", "message"), DAMAGED)
def test_damage_is_named(tmp_path: Path, where: str, value: Any, message: str) -> None:
    made: Any = result()
    *path, last = (int(key) if key.isdecimal() else key for key in where.split())
    node = made
    for key in path:
        node = node[key]
    node[last] = value
    if value is GONE:
        del node[last]
    with pytest.raises(InterchangeError, match=re.escape(message)):
        open_results(write(tmp_path / "r.json", made))


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
    with pytest.raises(InterchangeError, match="is no result of nvbench: invalid JSON"):
        open_results(tmp_path / "r.json")
    (tmp_path / "r.json").unlink()
    with pytest.raises(InterchangeError, match=r"no \.json file is in it"):
        import_run("nvbench", tmp_path)


def test_an_import_is_a_run_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is compared with files that name fewer axes: points are matched by what both have."""
    monkeypatch.chdir(tmp_path)
    for folder in ("ours", "theirs"):
        (tmp_path / folder).mkdir()
    for index, time_s in enumerate((0.0110, 0.0111, 0.0110)):
        write(tmp_path / "theirs" / f"{index}.json", result(str(time_s)))
        made = json.loads(json.dumps(result(str(time_s / 1.1))).replace("gpu/mean", "gpu/median"))
        levels = {"system": ("string", "zhang2011.low_divergence"), "block_size": ("int64", "128")}
        made["benchmarks"][0]["states"][0]["axis_values"] += [
            {"name": name, "type": kind, "value": value} for name, (kind, value) in levels.items()
        ]
        write(tmp_path / "ours" / f"{index}.json", made)
    run = import_run("nvbench", Path("ours"))
    assert run == Path("results/local/nvbench/ours")
    for data in (open_results(run), open_results(Path("ours"))):
        (point,) = data.points
        assert point.levels == {"memory": "shared", "block_size": 128}
        assert point.values(TIME) == pytest.approx({1: 0.0100, 2: 0.0111 / 1.1, 3: 0.0100})
    theirs, ours = open_runs([Path("theirs"), run])
    found = compare_runs(theirs, ours, ("nvbench", "ours"))
    (row,) = found.rows
    assert row.verdict == "faster"
    assert row.ratio.value == pytest.approx(1 / 1.1)
    assert any("does not record system, block_size" in note for note in found.notes)
    assert any("means of its samples" in note for note in found.notes)
    done = call("report", run)
    assert done.code == 0, done.said
    assert "ours on NVIDIA H100 PCIe (nvbench): measured, 3 rounds" in done.out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("nvbench r.json -o run", 0, "run\n"),
        ("nvbench r.json -o twice", 2, "twice has a run already; give another folder with --out"),
        ("nvbench r.json -o r.json", 2, "r.json cannot be written"),
        ("nvbench nothing.json", 2, "nothing.json does not exist; give a file"),
        ("xml r.json", 2, "no import format is called 'xml'; known: nvbench"),
        ("kernel_tuner t1.json", 2, "import kernel_tuner is gone: it made a study of a kernel_tun"),
    ],
)
def test_the_command(folder: Path, words: str, code: int, said: str) -> None:
    for _ in range(1 + ("twice" in words)):
        done = call("import", *words.split(), cwd=folder)
    assert (done.code, said in done.said) == (code, True), done.said


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("import") / "r.json", result()).parent
