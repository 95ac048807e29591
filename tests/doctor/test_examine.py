"""The whole examination, and the command."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nqbench.doctor import probe
from nqbench.doctor.probe import ProbeResult, ProbeResults
from nqbench.doctor.report import examine
from tests.cli.call import call
from tests.doctor import fake_pynvml

Around = Callable[[ProbeResults], dict[str, Any]]
Server = dict[str, ProbeResult]

ABSENT = ProbeResult(failure="not installed")
LAPTOP = {
    "packages": ProbeResult({"unmet": [], "count": 17}),
    "compiler": ProbeResult(
        {"version": "13.0.88", "archs": ["sm_75", "sm_90"], "bindings": "13.0.1"}
    ),
    "linker": ProbeResult({"version": "13.0", "runtime": "/usr/local/cuda/lib64/libcudadevrt.a"}),
    "llvmlite": ProbeResult({"llvm": 20}),
    "numba": ProbeResult({"version": "0.62.0"}),
    "driver": ProbeResult(failure="OSError: libcuda.so.1: cannot open shared object file"),
    **dict.fromkeys(("pycuda", "nvml", "nvbench"), ABSENT),
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml.FakeNvml(**{fake_pynvml.NEW_REASONS: 1}))
    return LAPTOP | {
        "driver": ProbeResult({"error": 0, "cuda": [13, 0], "count": 1}),
        "pycuda": ProbeResult({"version": "2025.1.2", "headers": "13.0"}),
        "nvml": ProbeResult(probe.nvml()),
    }


@pytest.fixture
def around(tmp_path: Path) -> Around:
    def make(answers: ProbeResults) -> dict[str, Any]:
        there = {"root": tmp_path, "environment": {"PATH": ""}, "results": tmp_path}
        return {**there, "ask": lambda: answers, "load": lambda: 0.0}

    return make


def test_laptop_without_a_gpu_can_use_the_simulator(around: Around) -> None:
    report = examine(**around(LAPTOP))
    assert (report.device, report.usable) == ("sim", True)
    missing = {row.name for row in report.rows if row.state == "missing"}
    assert {"NVIDIA driver", "PyCUDA", "ncu"} <= missing
    assert not examine("cuda:0", **around(LAPTOP)).usable


def test_server_can_use_its_gpu(server: Server, around: Around) -> None:
    report = examine(**around(server))
    assert (report.device, report.usable) == ("cuda:0", True)
    assert [row.name for row in examine("cuda:3", **around(server)).lacking] == ["cuda:3"]
    names = {row.name for row in report.rows}
    assert "GPU 0 clocks" in names
    assert "CUDA_VISIBLE_DEVICES" not in names
    hidden = around(server) | {"environment": {"CUDA_VISIBLE_DEVICES": "1"}}
    assert "CUDA_VISIBLE_DEVICES" in {row.name for row in examine(**hidden).rows}


def test_a_card_without_a_driver_is_chosen(around: Around, tmp_path: Path) -> None:
    card = tmp_path / "sys/bus/pci/devices/0000:01:00.0"
    card.mkdir(parents=True)
    (card / "vendor").write_text("0x10de\n")
    (card / "class").write_text("0x030000\n")
    report = examine(**around(LAPTOP))
    assert report.device == "cuda:0"
    assert "NVIDIA driver" in report.summary()


def test_the_command_prints_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "ask_all", lambda: LAPTOP)
    done = call("doctor", "--device", "sim", "--json")
    assert done.code == 0, done.err
    report: dict[str, Any] = json.loads(done.out)
    assert report["usable"]
    assert all(row["found"] for row in report["rows"])
    shown = call("doctor", "--device", "cuda")
    assert (shown.code, "needed for: measuring on a GPU" in shown.out) == (1, True)


@pytest.mark.parametrize("word", ["gpu", "cuda:x", "cpu:1", "", "replay:runs"])
def test_unknown_device_is_a_wrong_command_line(word: str) -> None:
    done = call("doctor", "--device", word)
    assert done.code == 2
    assert done.err.startswith(f"nqbench: doctor knows no device {word!r}")
