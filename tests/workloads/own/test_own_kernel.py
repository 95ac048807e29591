"""A kernel from YAML alone: what it computes, how it is checked, what a mistake says."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import yaml

from nqbench import load
from nqbench.analysis.data.dataset import load_dataset
from nqbench.analysis.data.quantities import metrics_of
from nqbench.devices.registry import facts_for
from nqbench.errors import InfeasibleError, StudyError
from nqbench.measure import manifest
from nqbench.runs.reading import read_records
from nqbench.study import expand, load_study
from tests.cli.call import call
from tests.toys import run_here

pytestmark = pytest.mark.usefixtures("undrawn")

HERE: Final = Path(__file__).parent
SOURCE: Final = (HERE / "scale.cu").read_text(encoding="utf-8")
STUDY: Final = (HERE / "scale.yaml").read_text(encoding="utf-8")
CHECK = """
import numpy as np

def seen(n, step):
    found = np.zeros(8, int)
    for i in range(0, n, step):
        found[(i + 1) % 8] += 1
    return found

def fails(x):
    return x[10_000]

def ends(x):
    raise SystemExit(3)
"""


CASES: Final[dict[str, dict[str, dict[str, Any]]]] = yaml.safe_load(
    (HERE / "cases.yaml").read_text(encoding="utf-8")
)
CHECK_ERRORS = ("the check of", "check.py:", "text.npy", "other.py", "the reference")


def cases(group: str, wanted: str) -> pytest.MarkDecorator:
    """The changes of each case of a group of ``cases.yaml``, and what is wanted of it."""
    rows = [
        ({k: v for k, v in one.items() if k != wanted}, one.get(wanted, ["ok"]))
        for one in CASES[group].values()
    ]
    return pytest.mark.parametrize(("changes", wanted), rows, ids=CASES[group])


def with_sources(folder: Path) -> Path:
    """The folder with the kernel, a header and the functions that check it."""
    (folder / "headers").mkdir()
    (folder / "headers" / "factor.cuh").write_text("#pragma once\n")
    (folder / "scale.cu").write_text(SOURCE)
    (folder / "check.py").write_text(CHECK)
    (folder / "more").mkdir()
    (folder / "more" / "two.h").write_text("const float TWO = 2;\n")
    text = '#include "two.h"\n__device__ float doubled(float a) { return TWO * a; }\n'
    (folder / "more" / "doubled.cu").write_text(text + "int main() { return puts(0); }\n")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return with_sources(tmp_path)


def study_with(folder: Path, changes: dict[str, Any], text: str = STUDY) -> Path:
    """The study with values replaced (``None``: removed) by their keys, joined by dots."""
    data = yaml.safe_load(text)
    for keys, value in changes.items():
        *outer, last = keys.split("/")
        place = data
        for key in outer:
            place = place.setdefault(key, {})
        if value is None:
            del place[last]
        else:
            place[last] = value
    path = folder / "scale.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    return path


def measured(
    folder: Path, changes: dict[str, Any] | None = None, device: str = "sim:mini"
) -> dict[str, Any]:
    """The study's run, with the status and the reason of its last record."""
    study = load_study(study_with(folder, changes or {}))
    isolate = device != "sim:mini"
    outcome = run_here(study, device, folder / "run", isolate=isolate)
    records = read_records(folder / "run").records
    return {"counts": outcome.counts, "reason": records[-1].reason, "records": records}


@cases("right", "ends")
def test_it_runs_and_is_right(folder: Path, changes: dict[str, Any], ends: list[str]) -> None:
    found = measured(folder, changes)
    assert [*found["counts"]] == ends, found["reason"]


def test_a_file_of_numpy_is_read_and_compared(folder: Path) -> None:
    x = np.random.default_rng(1).random(64, dtype="float32")
    np.save(folder / "x.npy", x)
    weights = np.arange(4, dtype="float32") / 4
    np.save(folder / "y64.npy", np.float32(3) * np.float32(0.5) * x + np.tile(weights, 16))
    changes = {
        "n": 64,
        "kernel/arguments/x": {"dtype": "float32", "contents": "x.npy"},
        "kernel/check/y": {"file": "y{n}.npy", "absolute": 1e-6},
    }
    assert measured(folder, changes)["counts"] == {"ok": 2}
    np.save(folder / "y64.npy", np.zeros(64))
    assert measured(folder, changes)["counts"] == {"wrong": 2}, "a changed file is a changed check"


@cases("wrong", "says")
def test_what_goes_wrong_is_a_status_with_a_reason(
    folder: Path, changes: dict[str, Any], says: str
) -> None:
    (folder / "other.py").write_text("def f(z):\n    return z\n")
    (folder / "text.npy").write_text("1 2 3")
    found = measured(folder, changes)
    assert "ok" not in found["counts"]
    assert ("check_error" in found["counts"]) == says.startswith(CHECK_ERRORS)
    assert says in found["reason"] or re.search(says, found["reason"])
    assert str(folder) not in found["reason"]
    assert "\n" not in found["reason"]


@cases("sweeps", "points")
def test_factors_that_a_sweep_leaves_out_take_all_levels(
    folder: Path, changes: dict[str, Any], points: list[list[Any]]
) -> None:
    study = load_study(study_with(folder, {"n": 64, **changes}))
    found = expand(study, facts_for("sim:mini"))
    assert [[p.system, p.factors["step"]] for p in found] == points
    listed = study.as_json()["sweeps"][0].get("matrix", {})
    assert ("step" in listed) == (len({step for _, step in points}) > 1), "reports order levels"


@cases("mistakes", "says")
def test_a_mistake_is_said_with_its_line(folder: Path, changes: dict[str, Any], says: str) -> None:
    path = study_with(folder, changes)
    with pytest.raises((StudyError, InfeasibleError)) as caught:
        expand(load_study(path), facts_for("sim:mini"))
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"{path}:")
    assert "\n" not in str(caught.value)


def test_what_a_kernel_prints_is_shown_and_kept(folder: Path) -> None:
    """Also what it printed before a fault."""
    text = SOURCE.replace(
        "if (i < n) y[i] = FACTOR", 'if (i == 2) printf("x %d\\n", n); if (i < n) y[i] = FACTOR'
    )
    (folder / "scale.cu").write_text(text)
    changes = {"kernel/entry": "naive", "kernel/factors/step": [1], "matrix": {"step": [1]}}
    for more, status in (({}, "ok"), ({"kernel/arguments/y/length": "n - 1"}, "launch_error")):
        path = study_with(folder, {**changes, **more})
        done = call("run", path, "-d", "sim", "--no-report", "--no-check", cwd=folder)
        assert ": x 64\n" in done.out, done.said
        records = read_records(folder / "results" / "local" / "sim-mini" / "scale").records
        assert (records[-1].status, records[-1].telemetry["printed"]) == (status, "x 100\n")


def test_a_kernel_without_a_check_is_warned_of(folder: Path) -> None:
    said: list[str] = []
    for changes in ({}, {"kernel/check": None}):
        study = load_study(study_with(folder, changes))
        expand(study, facts_for("sim:mini"), warn=said.append)
    assert len(said) == 1
    assert re.search(r"scale.yaml:\d+: the kernel has no 'check'", said[0])


def test_what_can_change_the_number_is_measured_again(folder: Path) -> None:
    changes: dict[str, Any] = {"kernel/check/seen": {"function": f"{folder / 'check.py'}:seen"}}
    measured(folder, changes)
    keys = {record.key for record in measured(folder, changes)["records"]}
    assert len(keys) == 4, "nothing has changed, so nothing is measured again"
    for file in ("scale.cu", "headers/factor.cuh", "check.py"):
        (folder / file).write_text((folder / file).read_text() + "\n")
        records = measured(folder, changes)["records"]
        now = {record.key for record in records}
        assert len(now - keys) == 4, file
        keys = now
    others: list[dict[str, Any]] = [
        {"kernel/arguments/x/seed": 4},
        {"kernel/macros/FACTOR": "factor + 0"},
    ]
    for change in others:
        now = {record.key for record in measured(folder, changes | change)["records"]}
        assert len(now - keys) == 4, change
        keys = now
    others = [{"kernel/metrics": {"time of one": "time / n"}}, {"about": "other words"}]
    for change in others:
        assert {r.key for r in measured(folder, changes | change)["records"]} == keys, change


def test_a_run_is_read_where_its_files_are_not(folder: Path) -> None:
    measured(folder)
    for name in ("scale.cu", "scale.yaml", "check.py"):
        (folder / name).unlink()
    data = load_dataset(folder / "run")
    assert data.launch[0] == "step"
    metric = data.quantity("instructions per element")
    assert [p.estimate(metric) is not None for p in data.points] == [True] * 4
    text = "".join(path.read_text() for path in (folder / "run").iterdir() if path.is_file())
    assert str(folder) not in text
    assert set(load(folder / "run")["workload"]) == {"kernel:scale"}


@pytest.mark.parametrize("value", ["1 / (n - n)", "10 ** 300 * 10 ** 300", "1e300 * n * 1e300"])
def test_a_metric_that_is_no_number_is_left_out(value: str) -> None:
    [metric] = metrics_of({"kernel": {"metrics": {"m": value}}}, {}).values()
    assert metric.formula is not None
    assert math.isnan(metric.formula({"factor_n": 8}))
    [metric] = metrics_of({"kernel": {"metrics": {"m": "off_chip_sectors / n"}}}, {}).values()
    assert metric.formula is not None
    assert metric.formula({"factor_n": 8, "local_sectors": 8, "global_sectors": 16}) == 3
    assert not metric.measured


SWAPPED = Path(__file__).with_name("swapped.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("recorded_before", [False, True])
def test_arguments_in_another_order_are_measured_again(
    recorded_before: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = SWAPPED.splitlines(keepends=True)
    (at,) = (number for number, line in enumerate(lines) if line.startswith("    a:"))
    other = "".join([*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]])
    file = tmp_path / "study.yaml"

    def run(text: str) -> tuple[dict[str, int], int]:
        file.write_text(text)
        outcome = run_here(load_study(file), "sim:mini", tmp_path / "r")
        return dict(outcome.counts), len(read_records(tmp_path / "r").records)

    with monkeypatch.context() as patch:
        if recorded_before:  # when keys did not have the order
            patch.setattr(manifest, "argument_order", lambda *_: [])
        assert run(SWAPPED) == ({"ok": 1}, 1)
    assert run(SWAPPED) == ({"ok": 1}, 1)
    assert run(other) == ({"wrong": 1}, 2)
    assert run(SWAPPED) == ({"ok": 1}, 3 if recorded_before else 2)
