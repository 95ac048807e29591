"""Kernels from YAML alone on a real GPU: the studies that the simulator runs too."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nqbench.analysis.data.dataset import load_dataset
from nqbench.study import expand, load_study
from nqbench.workloads import register
from tests.toys import run_here
from tests.workloads.own.test_belief import study_of
from tests.workloads.own.test_own_kernel import CASES, cases, measured, with_sources

if TYPE_CHECKING:
    from nqbench.devices.cuda.device import CudaDevice

EXAMPLE = Path(__file__).parents[2] / "examples" / "transpose"
QUICK = {"measure": {"rounds": 1, "budget": "200ms"}}
SAID = ("tolerance", "function", "no such entry", "reference", "too many contents")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return with_sources(tmp_path)


@cases("right", "ends")
def test_it_runs_and_is_right(
    device: CudaDevice, folder: Path, changes: dict[str, Any], ends: list[str]
) -> None:
    found = measured(folder, changes | QUICK, device.spec)
    assert [*found["counts"]] == ends, found["reason"]


@pytest.mark.parametrize("name", SAID)
def test_what_goes_wrong_is_a_status(device: CudaDevice, folder: Path, name: str) -> None:
    changes = {key: value for key, value in CASES["wrong"][name].items() if key != "says"}
    found = measured(folder, changes | QUICK, device.spec)
    assert "ok" not in found["counts"]
    assert CASES["wrong"][name]["says"].partition("[")[0].rstrip("\\") in found["reason"]


def test_arguments_of_the_wrong_size_are_refused(device: CudaDevice, folder: Path) -> None:
    changes = {"kernel/arguments/alpha/dtype": "float64"}
    found = measured(folder, changes | QUICK, device.spec)
    assert set(found["counts"]) == {"compile_error"}
    assert "alpha: the kernel takes float, not float64" in found["reason"]


def test_the_transpose_has_a_rate(device: CudaDevice, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "transpose")
    path = tmp_path / "transpose" / "transpose.yaml"
    text = path.read_text().replace("[4096, 8192]", "[1024]")
    path.write_text(text + "measure: {rounds: 2, budget: 400ms}\n")
    outcome = run_here(load_study(path), device.spec, tmp_path / "run", isolate=True)
    assert outcome.counts == {"ok": 12}
    data = load_dataset(tmp_path / "run")
    for point in data.points:
        (time,) = data.quantities()
        rate, seconds = point.estimate(data.quantity("GB/s")), point.estimate(time)
        assert rate is not None
        assert seconds is not None
        assert rate.value == pytest.approx(8 * 1024**2 / seconds.value / 1e9, rel=1e-3)


KEEPS = Path(__file__).with_name("keeps.cu").read_text(encoding="utf-8")
"""A variable of the module keeps what a launch leaves there; the simulator resets it."""
ODD = "np.where(np.arange(n) % 2 == 1, 2 * x, np.nan)"


@pytest.mark.parametrize(
    ("body", "changes", "said"),
    [
        ("right", {}, ""),
        ("right", {"kernel/source": KEEPS}, "the one on other contents: y[0] is"),
        ("half", {"kernel/check/y": ODD}, "y[0] and 31 more were never"),
    ],
)
def test_a_timed_launch_is_checked_on_other_contents(
    device: CudaDevice, tmp_path: Path, body: str, changes: dict[str, Any], said: str
) -> None:
    study = load_study(study_of(tmp_path, body, changes | QUICK))
    outcome = run_here(study, device.spec, tmp_path / "run", isolate=True)
    assert outcome.counts == ({"wrong": 1} if said else {"ok": 1})
    assert not said or said in outcome.failures[0].reason


def test_fills_of_a_buffer_differ_in_every_byte(device: CudaDevice, tmp_path: Path) -> None:
    study = load_study(study_of(tmp_path, "half", {}))
    (point,) = expand(study, device.facts)
    plan = register(study.external).plan(point.configuration, point.system, device.facts)
    with device.prepare(plan) as prepared:
        first = prepared.fetch()["y"].view(np.uint8)
        assert prepared.refill({})
        assert not (prepared.fetch()["y"].view(np.uint8) == first).any()
        prepared.refill({}, again=False)
        assert (prepared.fetch()["y"].view(np.uint8) == first).all()
        assert np.isnan(first.view(np.float32)).all()
