"""A kernel from YAML alone: what it computes, how it is checked, what a mistake says."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

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

SOURCE = """
#include "factor.cuh"
__constant__ float weights[4];
__device__ int offset;
template <int Step>
__global__ void scale(const float* x, float* y, int* seen, int n, float alpha) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * Step;
    for (int k = i; k < i + Step && k < n; ++k) y[k] = FACTOR * alpha * x[k] + weights[k % 4];
    if (i < n) atomicAdd(seen + (i + offset) % 8, 1);
}
template <class Real> __global__ void axpy(const Real* x, Real* y, Real alpha, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = alpha * x[i] + y[i];
}
struct Shape { char tag; double alpha; int n; };
__device__ float doubled(float);
__device__ int counts[3];
__global__ void counted(const float* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(counts + (x[i] > 0.5f), i);
}
__global__ void shaped(const float* x, float* y, Shape s) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < s.n) y[i] = doubled(s.alpha * x[i]) + s.tag;
}
extern "C" __global__ void naive(const float* x, float* y, int* seen, int n, float alpha) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = FACTOR * alpha * x[i] + weights[i % 4];
    if (i < n) atomicAdd(seen + (i + offset) % 8, 1);
}
"""
STUDY = """
name: scale
n: [64, 100]
kernel:
  source: scale.cu
  entry: scale<{step}>
  include: [headers]
  macros: {FACTOR: factor}
  values: {threads_x: ceil(n / step)}
  arguments:
    x: {dtype: float32, length: n, contents: random, seed: 3}
    y: {dtype: float32, length: n}
    seen: {dtype: int32, length: 8, contents: zeros}
    n: int32
    alpha: {dtype: float32, value: 0.5}
  variables:
    weights: {dtype: float32, contents: np.arange(4) * 0.25}
    offset: {dtype: int32, length: 1, contents: ones}
  grid: ceil(threads_x / 32)
  block: 32
  factors: {step: {levels: [1, 2], launch: true}, factor: {range: [1, 9], default: 3}}
  metrics: {instructions per element: warp_instructions / n}
  check:
    y: {equals: 'factor * alpha * x + weights[np.arange(n) % 4]', relative: 1e-6}
matrix: {step: [1, 2]}
"""
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


def study_with(folder: Path, changes: dict[str, Any], name: str = "scale") -> Path:
    """The study with values replaced (``None``: removed) by their keys, joined by dots."""
    data = yaml.safe_load(STUDY)
    for keys, value in changes.items():
        *outer, last = keys.split("/")
        place = data
        for key in outer:
            place = place.setdefault(key, {})
        if value is None:
            del place[last]
        else:
            place[last] = value
    path = folder / f"{name}.yaml"
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


RIGHT: dict[str, dict[str, Any]] = {
    "numpy": {},
    "function": {"kernel/check": {"seen": {"function": "check.py:seen"}}},
    "both": {"kernel/check/seen": {"function": "check.py:seen"}},
    "reference": {
        "kernel/check": {"y": {"reference": {"step": 1}}, "seen": {"function": "check.py:seen"}},
    },
    "entry": {
        "kernel/entry": "{variant}",
        "kernel/factors/variant": ["naive", "scale<1>"],
        "kernel/check": {"y": {"reference": {"variant": "naive"}}},
        "matrix": {"variant": ["scale<1>", "naive"]},
        "fixed": {"step": 1},
    },
    "type": {
        "kernel/entry": "axpy<{'float' if real == 'float32' else 'double'}>",
        "kernel/factors/real": ["float32", "float64"],
        "kernel/arguments": {
            "x": {"dtype": "{real}", "length": "n", "contents": "rng.random(n) - 0.5"},
            "y": {"dtype": "{real}", "length": "n", "contents": "x[::-1]"},
            "alpha": {"dtype": "{real}", "value": 2},
            "n": "int32",
        },
        "kernel/variables": None,
        "kernel/check": {"y": "alpha * x + y"},
        "matrix": {"real": ["float32", "float64"], "step": [1]},
    },
    "system": {"kernel/systems": {"wide": {"step": 2}}, "matrix": None, "system": "wide"},
    "nothing varies": {"kernel/factors/step": {"levels": [1, 2], "default": 2}, "matrix": None},
    "three dimensions": {"kernel/grid": ["ceil(threads_x / 32)", 1, 1], "kernel/block": [32, 1]},
    "unchecked": {"kernel/check": None},
    "a module variable": {
        "kernel/entry": "counted",
        "kernel/arguments": {
            "x": {"dtype": "float32", "length": "n", "contents": "random"},
            "n": "int32",
        },
        "kernel/variables": {"counts": {"dtype": "int32", "contents": "np.array([0, 10, 7])"}},
        "kernel/check": {
            "counts": "counts + np.array([np.sum(np.arange(n)[x <= 0.5]),"
            " np.sum(np.arange(n)[x > 0.5]), 0])"
        },
        "matrix": {"step": [1]},
    },
    "steps": {
        "kernel/entry": None,
        "kernel/grid": None,
        "kernel/block": None,
        "kernel/variables": None,
        "kernel/arguments": {
            "x": {"dtype": "float32", "length": "n", "contents": "random"},
            "y": {"dtype": "float32", "length": "n", "contents": "zeros"},
            "z": {"dtype": "float32", "length": "n", "contents": "random", "restore": True},
            "alpha": {"dtype": "float32", "value": 2},
            "n": "int32",
        },
        "kernel/steps": [
            {"entry": "axpy<float>", "arguments": list(order), "grid": "ceil(n / 32)", "block": 32}
            for order in (("x", "y", "alpha", "n"), ("y", "z", "alpha", "n"))
        ],
        "kernel/check": {"y": "2 * x", "z": {"equals": "z + 4 * x", "relative": 1e-6}},
        "matrix": {"step": [1]},
    },
    "a struct, and a function of another file": {
        "kernel/sources": ["more/doubled.cu"],
        "kernel/entry": "shaped",
        "kernel/arguments": {
            "x": {"dtype": "float32", "length": "n", "contents": "random"},
            "y": {"dtype": "float32", "length": "n"},
            "s": {
                "fields": {
                    "tag": {"dtype": "int8", "value": 7},
                    "alpha": {"dtype": "float64", "value": 0.5},
                    "n": "int32",
                }
            },
        },
        "kernel/variables": None,
        "kernel/check": {"y": "x + 7"},
        "matrix": {"step": [1]},
    },
}


@pytest.mark.parametrize("changes", RIGHT.values(), ids=RIGHT)
def test_it_runs_and_is_right(folder: Path, changes: dict[str, Any]) -> None:
    found = measured(folder, changes)
    assert set(found["counts"]) == {"ok"}, found["reason"]


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


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "tolerance": (
        {"kernel/check/y": {"equals": "0.5001 * 3 * x + weights[np.arange(n) % 4]"}},
        r"y\[\d+\] is [\d.]+, not [\d.]+; \d+ of 100 elements are wrong; nothing was timed",
    ),
    "equal bits": (
        {"kernel/check/y": {"equals": "(1.5 + 2e-7) * x + weights[np.arange(n) % 4]"}},
        r"\(largest relative difference [\d.]+e-7; the check asks for equal bits; relative: 1e-6\?",
    ),
    "a tolerance too small": (
        {"kernel/check/y/equals": "(1.5 + 2e-7) * x + weights[np.arange(n) % 4]"}
        | {"kernel/check/y/relative": 1e-9},
        r"the check allows relative: 1e-9; relative: 1e-6\?\)",
    ),
    "never written": (
        {"kernel/grid": "ceil(n / 64)", "n": 100, "kernel/factors/step": [1], "matrix": None}
        | {"fixed": {"step": 1}},
        r"y\[64\] and 35 more were never written \(right: [\d.]+\); 36 of 100 elements are wrong",
    ),
    "length of the expression": (
        {"kernel/check/y": "x[:5]"},
        r"the check of 'y': `x\[:5\]` gives 5 values, but the buffer has 100",
    ),
    "shape of the expression": (
        {"kernel/check/y": "np.outer(x, x)"},
        r"the check of 'y': `np.outer.*` gives \(100, 100\), but the buffer has 100",
    ),
    "type of a buffer": (
        {"kernel/arguments/x/dtype": "float64"},
        "scale.yaml:15: x: the kernel takes const float*, the study says float64",
    ),
    "no value": ({"kernel/check/y": "x @ np.eye(3)"}, "the check of 'y': `x @ np.eye(3)` has no"),
    "function": (
        {"kernel/check/y": {"function": "check.py:fails"}},
        "check.py:fails raised check.py:11: IndexError: index 10000 is out of bounds",
    ),
    "function that ends the program": (
        {"kernel/check/y": {"function": "check.py:ends"}},
        "check.py:ends raised check.py:",
    ),
    "a file of something else": (
        {"kernel/check/y": {"file": "text.npy"}},
        "text.npy is not a file that np.save makes of an array of numbers",
    ),
    "parameter": (
        {"kernel/check/seen": {"function": "check.py:seen"}, "kernel/arguments/n": "int32"}
        | {"kernel/check/y": {"function": "other.py:f"}},
        "other.py:f has a parameter 'z', which is neither a buffer with contents",
    ),
    "compile error": ({"kernel/macros/FACTOR": "'oops'"}, r"scale.cu\(28\): error: identifier"),
    "no such entry": ({"kernel/entry": "scael<{step}>"}, "no such entry in scale.cu"),
    "reference": (
        {
            "kernel/entry": "{variant}",
            "kernel/factors/variant": ["missing", "naive"],
            "kernel/check/y": {"reference": {"variant": "missing"}},
            "matrix": {"variant": ["naive"]},
            "fixed": {"step": 1},
        },
        "the reference that it is checked against failed: scale.cu: kernel missing does not",
    ),
    "changed input": (
        {
            "kernel/arguments/y/contents": "ones",
            "kernel/check": {"seen": {"function": "check.py:seen"}},
        },
        "the kernel changes 'y', so every launch would start from what the one before left",
    ),
    "too many contents": (
        {"kernel/variables/weights/contents": "np.arange(5)"},
        "20 bytes are given for the module variable weights, which has 16",
    ),
    "out of bounds": ({"kernel/arguments/y/length": "n - 1"}, "y"),
}


@pytest.mark.parametrize(("changes", "said"), WRONG.values(), ids=WRONG)
def test_what_goes_wrong_is_a_status_with_a_reason(
    folder: Path, changes: dict[str, Any], said: str
) -> None:
    (folder / "other.py").write_text("def f(z):\n    return z\n")
    (folder / "text.npy").write_text("1 2 3")
    found = measured(folder, changes)
    assert "ok" not in found["counts"]
    assert ("check_error" in found["counts"]) == said.startswith(CHECK_ERRORS)
    assert said in found["reason"] or re.search(said, found["reason"])
    assert str(folder) not in found["reason"]
    assert "\n" not in found["reason"]


PROGRAM: dict[str, Any] = {"name": "echo", "command": ["echo", "{n}"]}
SWEEPS: dict[str, tuple[dict[str, Any], list[tuple[str | None, Any]]]] = {
    "no matrix": ({"matrix": None}, [(None, 1), (None, 2)]),
    "its name": ({"systems": ["scale"]}, [("scale", 1), ("scale", 2)]),
    "beside a program": (
        {"systems": ["scale", PROGRAM], "matrix": None},
        [("scale", 1), ("scale", 2), ("echo", "-")],
    ),
    "a system gives it": (
        {"kernel/systems": {"one": {"step": 1}}, "systems": ["one", "scale"], "matrix": None},
        [("one", 1), ("scale", 1), ("scale", 2)],
    ),
    "a default": (
        {"kernel/factors/step": {"levels": [1, 2], "default": 2}, "matrix": None},
        [(None, 2)],
    ),
}


@pytest.mark.parametrize(("changes", "points"), SWEEPS.values(), ids=SWEEPS)
def test_factors_that_a_sweep_leaves_out_take_all_levels(
    folder: Path, changes: dict[str, Any], points: list[tuple[str | None, Any]]
) -> None:
    study = load_study(study_with(folder, {"n": 64, **changes}))
    found = expand(study, facts_for("sim:mini"))
    assert [(p.system, p.factors["step"]) for p in found] == points
    listed = study.as_json()["sweeps"][0].get("matrix", {})
    assert ("step" in listed) == (len({step for _, step in points}) > 1), "reports order levels"


CHECK_ERRORS = ("the check of", "check.py:", "text.npy", "other.py", "the reference")
MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": ({"kernel/entri": "f"}, "did you mean 'entry'"),
    "unknown factor": ({"kernel/grid": "n // stpe"}, "unknown name 'stpe'; did you mean 'step'"),
    "factor in numpy": (
        {"kernel/check/y": "x * alhpa"},
        "unknown name 'alhpa'; did you mean 'alpha",
    ),
    "a word": ({"kernel/arguments/x/contents": "zero"}, "did you mean 'zeros'"),
    "no contents": ({"kernel/check/y": "y"}, "unknown name 'y'"),
    "loop": ({"kernel/check/y": "sum(x[j] for j in range(5))"}, "a loop is not part of "),
    "view": ({"kernel/check/y": "np.lib.view(x, 3)"}, "uses np.lib, which is not"),
    "scipy": ({"kernel/check/y": "scipy.signal.fir(x)"}, "uses scipy.signal.fir, which"),
    "bare function": (
        {"kernel/check/y": "sqrt(x)"},
        "calls sqrt(), which is not available; write np.sqrt",
    ),
    "method": (
        {"kernel/check/y": "x.t + 1"},
        "uses x.t, which is not available; did you mean 'T'? A",
    ),
    "contents": ({"kernel/arguments/x/contents": "lambda: 3"}, "save can hold anything: contents"),
    "python's word": (
        {"kernel/arguments/in": "int32"},
        "expressions could not read it; call it in_",
    ),
    "missing source": ({"kernel/source": "scael.cu"}, "no file scael.cu; did you mean scale.cu"),
    "missing file": ({"kernel/arguments/x/contents": "a.npy"}, "there is no file a.npy"),
    "missing python": ({"kernel/check/y": {"function": "chek.py:f"}}, "did you mean check.py"),
    "dtype": ({"kernel/arguments/x/dtype": "float23"}, "did you mean 'float32'"),
    "scalar of no factor": ({"kernel/arguments/m": "int32"}, "'m' is a type alone"),
    "length 0": ({"kernel/arguments/y/length": "n - n"}, "`n - n` is 0, but must be at least 1"),
    "negative grid": ({"kernel/grid": "8 - n"}, "grid: `8 - n` is -56, but must be at least 1"),
    "large block": ({"kernel/block": 2048}, "2048 threads are more than the 1024 of a block"),
    "division by zero": ({"kernel/values/v": "n // (n - n)"}, "division by zero"),
    "level": ({"matrix": {"step": [1, 3]}}, "'step' is 3"),
    "listed level": ({"matrix": {"step": [8]}}, "'step' is 8, but takes 1 or 2"),
    "listed size": ({"kernel/factors/n": [64, 128]}, "'n' is 100, but takes 64 or 128"),
    "no level": ({"kernel/factors/factor": {"range": [1, 9]}}, "factor 'factor' has no level here"),
    "programs alone": ({"systems": [PROGRAM], "matrix": None}, "so the kernel does not run; name"),
    "a factor of no program": ({"systems": [PROGRAM]}, "'step' is no part of a command of the"),
    "program named as the kernel": ({"systems": [{**PROGRAM, "name": "scale"}, "scale"]}, "of its"),
    "checked scalar": ({"kernel/check/n": "3"}, "'check' names buffers, not 'n'"),
    "missing field": (
        {"kernel/arguments/s": {"fields": {"m": "int32"}}},
        "'m' is a type alone, so a scalar, but no factor is called so; choose from n, step",
    ),
    "field and length": (
        {"kernel/arguments/s": {"fields": {"n": "int32"}, "length": 3}},
        "'s' has fields and length; keep one of them",
    ),
    "missing further source": ({"kernel/sources": ["scael.cu"]}, "there is no file scael.cu"),
    "no entry": ({"kernel/entry": None}, "'kernel' needs 'entry' (or `steps`)"),
    "steps and a grid": (
        {"kernel/steps": [{"entry": "f", "grid": 1, "block": 1}]},
        "'entry' is given for each of the steps; remove it here",
    ),
    "argument of a step": (
        {
            **dict.fromkeys(("kernel/entry", "kernel/grid", "kernel/block")),
            "kernel/steps": [{"entry": "f", "grid": 1, "block": 1, "arguments": ["u"]}],
        },
        "'u' is none of the kernel's arguments; ",
    ),
    "two names": ({"kernel/arguments/step": {"dtype": "int8", "length": 1}}, "under factors too"),
    "flag": ({"kernel/cooperative": "yes please"}, "'cooperative' takes true or false"),
    "workload too": ({"workload": "counting"}, "both say what is computed"),
    "metric": ({"kernel/metrics/GB/s": 1, "kernel/metrics": {"x": "tiem"}}, "did you mean 'time'"),
    "list": ({"kernel/arguments/x/contents": [1]}, "takes a number or text, not a list"),
    "half a level": ({"kernel/factors/step": [1.5]}, "takes a whole number or text, not 1.5"),
    "reserved": ({"kernel/factors/probe": ["a"]}, "'probe' cannot be a name"),
    "default": ({"kernel/factors/factor/default": 10}, "takes a whole number from 1 to 9"),
    "too large": ({"kernel/arguments/m": {"dtype": "int8", "value": 300}}, "too large for int8"),
    "far too large": (
        {"kernel/arguments/m": {"dtype": "float32", "value": "10 ** 300 * 10 ** 300"}},
        "is 1e600, too large for float32",
    ),
    "memory": ({"kernel/arguments/x/length": "10 ** 30"}, "more than the memory of"),
    "no value": ({"kernel/grid": ["n // 0"]}, "'grid': the expression `n // 0` has no value"),
    "form": ({"kernel/check/y": {"function": "check.py"}}, "but takes FILE.py:NAME: a Python"),
    "macro": ({"kernel/macros": {"A B": 1}}, "'A B' cannot be a name"),
    "value": ({"report": [{"table": "results", "value": "GB/s"}]}, "'value' cannot be 'GB/s'"),
}


@pytest.mark.parametrize(("changes", "said"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_said_with_its_line(folder: Path, changes: dict[str, Any], said: str) -> None:
    path = study_with(folder, changes)
    with pytest.raises((StudyError, InfeasibleError)) as caught:
        expand(load_study(path), facts_for("sim:mini"))
    assert said in str(caught.value)
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
    changes: dict[str, Any] = {"kernel/check/seen": {"function": "check.py:seen"}}
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


SWAPPED = """
name: swapped
n: 64
kernel:
  source: |
    extern "C" __global__ void copy(const float* from, float* to) {
        to[threadIdx.x] = from[threadIdx.x];
    }
  entry: copy
  arguments:
    a: {dtype: float32, length: n, contents: zeros}
    b: {dtype: float32, length: n, contents: ones, restore: true}
  grid: 1
  block: 64
  check: {b: np.zeros(n)}
"""


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
