"""The cross-check without a GPU: both sides over pretended drivers, and every way to fail."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import cuda.bindings
import numpy as np
import pytest

from benchmarks import nvbench_crosscheck
from benchmarks.crosscheck import side_nqbench, side_nvbench
from benchmarks.crosscheck.cases import CASES, make_job
from nqbench.device import Launch
from nqbench.errors import DeviceError, DeviceUnavailable, NqbenchError
from nqbench.plan import KernelPlan, Outputs
from nqbench.simulator.models import load_model
from tests.benchmarks.fake_nvbench import FakeBench, FakeBindings

SPIN = CASES["spin_50us"]
SPIN_CODES = (np.uint64, np.uint64)


class FakeGpu:
    """In place of ``CudaDevice`` and of what it prepares: a kernel of ``kernel_s`` seconds."""

    facts = load_model("sm_90").facts
    kernel_s = 0.0025
    right = True
    closed = 0
    cold = False

    def prepare(self, plan: KernelPlan) -> FakeGpu:
        assert plan.entry == "spin"
        return self

    def launch(self) -> Launch:
        return Launch(self.kernel_s)

    def flush_l2(self) -> None:
        self.cold = True

    def fetch(self) -> Outputs:
        return {"launches": np.array([1 if self.right else 0], np.uint64)}

    def close(self) -> None:
        self.closed += 1

    def __enter__(self) -> FakeGpu:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NQBENCH_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    fake = FakeGpu()
    monkeypatch.setattr(side_nqbench, "CudaDevice", lambda index: fake)
    return fake


@pytest.fixture
def bindings(monkeypatch: pytest.MonkeyPatch) -> FakeBindings:
    monkeypatch.setattr(side_nvbench, "gpu_facts", lambda index: FakeGpu.facts)
    fake = FakeBindings(SPIN_CODES)
    fake.kernel = count_launch
    monkeypatch.setattr(cuda.bindings, "driver", fake, raising=False)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", fake)
    return fake


@pytest.fixture
def bench(bindings: FakeBindings, monkeypatch: pytest.MonkeyPatch) -> FakeBench:
    fake = FakeBench(bindings.events)
    install(fake, monkeypatch)
    return fake


def install(bench: FakeBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "bench", bench, raising=False)
    monkeypatch.setitem(sys.modules, "cuda.bench", bench)
    monkeypatch.setitem(sys.modules, "cuda.bench.results", bench.results())


def count_launch(memory: dict[int, bytearray], ns: int, launches: int) -> None:
    """The kernel ``spin``: adds one to the word that the buffer holds."""
    assert int(ns) == 50_000
    word = memory[int(launches)]
    word[:8] = (int.from_bytes(word[:8], "little") + 1).to_bytes(8, "little")


def test_every_case_is_a_plan_that_knows_its_answer() -> None:
    facts = load_model("sm_90").facts
    for name in ("spin_1000us", "zhang2011.low_divergence_n13", "tanaka2011.both_n15"):
        job = make_job(CASES[name], facts)
        assert isinstance(job.plan, KernelPlan)
        outputs = {b.name: np.zeros(b.length, b.dtype) for b in job.plan.buffers if b.output}
        assert not job.right(outputs)
        (name,) = outputs
        outputs[name][0] = {"n13": 73712, "n15": 2279184}.get(job.case.name[-3:], 1)
        assert job.right(outputs)


def test_nqbench_side_times_what_it_checked(gpu: FakeGpu) -> None:
    found = side_nqbench.time_cases([SPIN], 0, cold=False)["spin_50us"]
    assert set(found["samples_s"]) == {gpu.kernel_s}
    assert len(found["samples_s"]) >= side_nqbench.POLICY.samples
    assert found["ended_by"] == "target"
    assert gpu.closed == 2  # the kernel and the device


def test_nqbench_side_refuses_a_wrong_answer(gpu: FakeGpu) -> None:
    gpu.right = False
    with pytest.raises(DeviceError, match="spin_50us: wrong answer"):
        side_nqbench.time_cases([SPIN], 0, cold=False)
    assert gpu.closed == 2


def test_a_long_kernel_is_sampled_a_few_times(gpu: FakeGpu) -> None:
    gpu.kernel_s = 1.0
    found = side_nqbench.time_cases([SPIN], 0, cold=False)["spin_50us"]
    assert found["samples_s"] == [1.0] * side_nqbench.LONG_SAMPLES


@pytest.mark.parametrize("cold", [True, False])
def test_the_cache_is_cold_if_asked_for(gpu: FakeGpu, cold: bool) -> None:
    side_nqbench.time_cases([SPIN], 0, cold=cold)
    assert gpu.cold == cold


def test_nvbench_side_renews_before_the_timer_starts(
    bench: FakeBench, bindings: FakeBindings
) -> None:
    found = side_nvbench.time_cases([SPIN], 0)["spin_50us"]
    assert found["samples_s"] == [1e-4, 1.01e-4]
    assert bindings.events == ["renew", "start", "launch", "stop"] * 2


def test_both_sides_launch_the_same_cubin(bench: FakeBench, gpu: FakeGpu) -> None:
    theirs = side_nvbench.time_cases([SPIN], 0)["spin_50us"]["cubin_sha256"]
    assert theirs == side_nqbench.time_cases([SPIN], 0, cold=False)["spin_50us"]["cubin_sha256"]


def test_nvbench_side_restores_what_the_kernel_overwrites(
    bench: FakeBench, bindings: FakeBindings
) -> None:
    case = CASES["zhang2011.pool_monolithic_n16"]
    plan = make_job(case, load_model("sm_90").facts).plan
    bindings.codes = tuple(
        np.uint64 if isinstance(argument, str) else type(argument) for argument in plan.arguments
    )
    starts: list[int] = []

    def search(memory: dict[int, bytearray], *arguments: Any) -> None:
        counter, results = memory[int(arguments[5])], memory[int(arguments[6])]
        starts.append(int.from_bytes(counter[:4], "little"))
        counter[:4] = b"\xff" * 4
        results[:] = bytes(len(results))
        results[:8] = (14772512).to_bytes(8, "little")

    bindings.kernel = search
    side_nvbench.time_cases([case], 0)
    assert starts == [plan.threads] * 2


def test_nvbench_side_tells_a_wrong_answer(bench: FakeBench, bindings: FakeBindings) -> None:
    bindings.kernel = lambda memory, ns, launches: None
    with pytest.raises(DeviceError, match="spin_50us: wrong answer under nvbench"):
        side_nvbench.time_cases([SPIN], 0)


def test_nvbench_side_tells_a_refusal_of_the_driver(
    bench: FakeBench, bindings: FakeBindings
) -> None:
    bindings.refuse = "cuModuleLoadData"
    with pytest.raises(DeviceError, match="driver says CUDA_ERROR_INVALID_VALUE"):
        side_nvbench.time_cases([SPIN], 0)


def test_kernel_that_nvbench_skips(bench: FakeBench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.skip_reason = "Deadlock"
    install(bench, monkeypatch)
    with pytest.raises(DeviceError, match="nvbench did not time spin_50us: Deadlock"):
        side_nvbench.time_cases([SPIN], 0)


def test_missing_package_is_one_sentence_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = types.SimpleNamespace(
        Device=type("Device", (), {"count": staticmethod(lambda: 1), "__init__": lambda s, i: None})
    )
    monkeypatch.setattr(nvbench_crosscheck, "load_pycuda", lambda: driver)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DeviceUnavailable, match="-m pip install cuda-bench"):
        nvbench_crosscheck.require(0)
    with pytest.raises(DeviceUnavailable, match="no GPU cuda:7"):
        nvbench_crosscheck.require(7)


def test_a_tool_that_fails_ends_the_check_with_its_own_words() -> None:
    with pytest.raises(NqbenchError, match="nqbench failed: there is no"):
        nvbench_crosscheck.one_process("nqbench", ["spin_50us"], 99, cold=False)


def test_command_without_a_gpu_or_with_a_wrong_word() -> None:
    for words, sentence in ((["--gpu", "99"], "there is no"), (["spin"], "no kernel 'spin'")):
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.nvbench_crosscheck", *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=nvbench_crosscheck.ROOT,
        )
        assert done.returncode == 2
        assert done.stderr.startswith(f"nvbench_crosscheck: {sentence}")
        assert len(done.stderr.splitlines()) == 1


def timings(us: float, digest: str = "d") -> dict[str, Any]:
    return {"spin_50us": {"samples_s": [us * 1e-6] * 3, "cubin_sha256": digest}}


def test_different_cubins_are_not_compared() -> None:
    found = {"nqbench": [timings(50)], "nvbench": [timings(50, "other")]}
    with pytest.raises(NqbenchError, match="different cubins"):
        nvbench_crosscheck.compare(["spin_50us"], found)


@pytest.mark.parametrize(("ours_us", "code"), [(50.4, 0), (52.0, 1)])
def test_whole_check(
    ours_us: float, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, bool]] = []

    def one_process(tool: str, names: list[str], gpu: int, *, cold: bool) -> dict[str, Any]:
        asked.append((tool, cold))
        return timings(ours_us if tool == "nqbench" else 50.0)

    monkeypatch.setattr(nvbench_crosscheck, "one_process", one_process)
    monkeypatch.setattr(nvbench_crosscheck, "require", lambda gpu: None)
    monkeypatch.setattr(nvbench_crosscheck, "environment", lambda gpu, l2: {"GPU": "pretended"})
    out = tmp_path / "deep" / "folder"
    words = ["spin_50us", "--rounds", "2", "--out", str(out)]
    assert nvbench_crosscheck.main(words) == code
    assert asked == [("nqbench", True), ("nvbench", True), ("nvbench", True), ("nqbench", True)]
    stored = json.loads((out / "crosscheck.json").read_text())
    assert stored["agree"] is (code == 0)
    assert stored["kernels"][0]["nqbench_s"] == pytest.approx([ours_us * 1e-6] * 2)
    assert stored["command"].startswith("python -m benchmarks.nvbench_crosscheck spin_50us")
    assert "pretended" in (out / "crosscheck.md").read_text()
