"""The kernels of ``nvbench_crosscheck``, timed by one tool in a process of its own.

    python -m benchmarks.crosscheck_sides {nqbench,nvbench} CASE... --gpu N --out FILE [--cold]

nqbench times with its device, its warm-up and its sampling; nvbench through NVIDIA's package
cuda-bench, which makes the stream and the timer, while the cubin is loaded and launched through the
driver in its primary context. Both renew buffers before the timer starts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from nqbench.compiler.compile import compile_kernel
from nqbench.devices.cuda.device import CudaDevice
from nqbench.devices.cuda.kernel import CARVEOUT_PERCENT
from nqbench.devices.cuda.query import gpu_facts
from nqbench.errors import DeviceError, NqbenchError
from nqbench.facts import DeviceFacts
from nqbench.measure.sampling import LONG_LAUNCH_S, TIME_SHARE, Policy, sample, warm_up
from nqbench.plan import Buffer, KernelPlan, Outputs
from nqbench.workloads import get

SPINS_US: Final = (50, 100, 200, 1_000, 10_000, 100_000, 1_000_000)
COUNTING: Final = (
    *(("zhang2011.low_divergence", n) for n in (13, 14, 15, 16, 17, 18)),
    ("zhang2011.pool_monolithic", 16),  # its counter is renewed before every launch
    ("tanaka2011.both", 15),  # its result is cleared before every launch
    ("feinbube2010.opt4_compact", 16),
)
CASES: Final = {
    **{f"spin_{us}us": ("", us) for us in SPINS_US},
    **{f"{system}_n{n}": (system, n) for system, n in COUNTING},
}
"""Kernels by name: a system of the counting workload and its board, or microseconds of waiting."""
POLICY: Final = Policy(samples=20)
LONG_SAMPLES: Final = 3
"""Of a kernel so long that nqbench would take one sample: a few more show how they scatter."""
NVBENCH_WORDS: Final = {"min_samples": 5, "timeout": 5.0}
"""Longest measuring of one kernel, seconds: nvbench's own 15 s would only add samples."""

ToolTimes = dict[str, dict[str, Any]]
"""By kernel: ``samples_s`` and ``cubin_sha256``."""


@dataclass(frozen=True, slots=True, eq=False)
class CrosscheckJob:
    """A case on a GPU. ``right`` judges the outputs of the latest launch."""

    name: str
    plan: KernelPlan
    right: Callable[[Outputs], bool]


def make_job(name: str, facts: DeviceFacts) -> CrosscheckJob:
    """The plan of a case for a GPU with these facts."""
    system, number = CASES[name]
    if not system:
        launches = Buffer("launches", "uint64", 1, zero=True, output=True)
        source = Path(__file__).with_name("spin.cu")
        arguments = (np.uint64(number * 1000), "launches")
        one = (1, 1, 1)
        plan = KernelPlan(source, "spin", arguments, one, one, buffers=(launches,))
        return CrosscheckJob(name, plan, lambda outputs: int(outputs["launches"][0]) == 1)
    workload = get("counting")
    found = workload.resolve({"n": number}, system, facts)
    made = workload.plan(found.factors, system, facts)
    assert isinstance(made, KernelPlan)
    expected = workload.expected(found.factors)
    return CrosscheckJob(name, made, lambda outputs: workload.answer(made, outputs) == expected)


def by_nqbench(names: Sequence[str], index: int, *, cold: bool) -> ToolTimes:
    """Samples in seconds of each case on GPU ``index``, with the digest of its cubin.

    Raises ``DeviceError`` for a wrong answer, ``InfeasibleError`` for a cold cache that cannot be
    had.
    """
    device = CudaDevice(index)
    try:
        return {name: _time(device, make_job(name, device.facts), cold=cold) for name in names}
    finally:
        device.close()


def _time(device: CudaDevice, job: CrosscheckJob, *, cold: bool) -> dict[str, Any]:
    plan = job.plan
    image = compile_kernel(plan, device.facts.arch).image
    with device.prepare(plan) as prepared:
        if cold:
            prepared.flush_l2()

        def launch() -> float:
            kernel_s = prepared.launch().kernel_s
            assert kernel_s is not None  # a GPU measures time
            return kernel_s

        warm = warm_up(launch, POLICY.warm_up, POLICY.share_s * TIME_SHARE)
        if (warm.lowest_s or 0.0) > LONG_LAUNCH_S:
            samples = tuple(launch() for _ in range(LONG_SAMPLES))
        else:
            samples = sample(launch, POLICY).values_s
        if not job.right(prepared.fetch()):
            raise DeviceError(f"{job.name}: wrong answer; its times mean nothing")
    return {"samples_s": list(samples), "cubin_sha256": hashlib.sha256(image).hexdigest()}


def by_nvbench(names: Sequence[str], index: int) -> ToolTimes:
    """The same by nvbench's isolated measurement: L2 flushed before each launch, a blocking kernel
    ahead of it.

    Raises ``DeviceError`` for a wrong answer or a kernel that nvbench did not time, ``ImportError``
    without the package.
    """
    from cuda import bench
    from cuda.bench.results import BenchmarkResult

    facts = gpu_facts(index)
    digests: dict[str, str] = {}
    failures: list[str] = []
    for name in names:
        loaded = Loaded(make_job(name, facts), facts, index, failures)
        digests[name] = hashlib.sha256(loaded.compiled.image).hexdigest()
        registered = bench.register(loaded.run)
        registered.set_name(name)
        for word, value in NVBENCH_WORDS.items():
            getattr(registered, f"set_{word}")(value)
    with tempfile.TemporaryDirectory(prefix="nqbench-nvbench-") as folder:
        path = Path(folder) / "nvbench.json"
        bench.run_all_benchmarks(["crosscheck", "--devices", str(index), "--jsonbin", str(path)])
        if failures:
            raise DeviceError("; ".join(failures))
        result = BenchmarkResult.from_json(path)
        found: ToolTimes = {}
        for name in names:
            (state,) = result[name]
            if state.is_skipped or not state.samples:
                why = state.skip_reason or "no samples"
                raise DeviceError(f"nvbench did not time {name}: {why}")
            samples = [float(value) for value in state.samples]
            found[name] = {"samples_s": samples, "cubin_sha256": digests[name]}
        return found


class Loaded:
    """A job in the primary context of a GPU, launched through the driver for nvbench."""

    def __init__(
        self, job: CrosscheckJob, facts: DeviceFacts, index: int, failures: list[str]
    ) -> None:
        from cuda.bindings import driver

        self.job, self.plan, self.index, self.failures = job, job.plan, index, failures
        self.driver = driver
        plan = job.plan
        self.compiled = compile_kernel(plan, facts.arch)

    def run(self, state: Any) -> None:
        """What nvbench calls: load, time launches, check the answer."""
        self._load()

        def launcher(launch: Any, timer: Any) -> None:
            stream = launch.get_stream().addressof()
            self._renew(stream)
            timer.start()
            self._launch(stream)
            timer.stop()

        state.exec(launcher, timer=True)
        # Raising here would end in nvbench's own handling; the failure is told afterwards.
        if not self.job.right(self._fetch()):
            self.failures.append(f"{self.job.name}: wrong answer under nvbench")

    def _load(self) -> None:
        ask, driver, plan = self._ask, self.driver, self.plan
        ask(driver.cuInit(0))
        device = ask(driver.cuDeviceGet(self.index))
        ask(driver.cuCtxSetCurrent(ask(driver.cuDevicePrimaryCtxRetain(device))))
        module = ask(driver.cuModuleLoadData(self.compiled.image))
        self.function = ask(driver.cuModuleGetFunction(module, self.compiled.symbol.encode()))
        names = driver.CUfunction_attribute
        dynamic = names.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        carveout = names.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
        ask(driver.cuFuncSetAttribute(self.function, dynamic, plan.shared_bytes))
        ask(driver.cuFuncSetAttribute(self.function, carveout, CARVEOUT_PERCENT[plan.cache]))
        self.memory = {b.name: self._filled(b) for b in plan.buffers}
        self.pristine = {b.name: self._filled(b) for b in plan.buffers if b.restore}
        values = [
            np.uint64(int(self.memory[a])) if isinstance(a, str) else a for a in plan.arguments
        ]
        self.arguments = [np.array([value]) for value in values]
        self.pointers = np.array([a.ctypes.data for a in self.arguments], dtype=np.uint64)

    def _filled(self, buffer: Buffer) -> Any:
        target = self._ask(self.driver.cuMemAlloc(max(1, buffer.nbytes)))
        if buffer.data is not None:
            data = np.ascontiguousarray(buffer.data, dtype=buffer.dtype)
            self._ask(self.driver.cuMemcpyHtoD(target, data.ctypes.data, data.nbytes))
        return target

    def _renew(self, stream: int) -> None:
        """Restore and clear what the plan wants, in order on the stream."""
        for buffer in self.plan.buffers:
            target = self.memory[buffer.name]
            if buffer.restore:
                source = self.pristine[buffer.name]
                self._ask(self.driver.cuMemcpyDtoDAsync(target, source, buffer.nbytes, stream))
            elif buffer.zero and buffer.nbytes:
                self._ask(self.driver.cuMemsetD8Async(target, 0, buffer.nbytes, stream))

    def _launch(self, stream: int) -> None:
        shape = (*self.plan.grid, *self.plan.block, self.plan.shared_bytes)
        pointers = self.pointers.ctypes.data
        self._ask(self.driver.cuLaunchKernel(self.function, *shape, stream, pointers, 0))

    def _fetch(self) -> Outputs:
        """Wait, then copy the output buffers to the host."""
        self._ask(self.driver.cuCtxSynchronize())
        outputs: Outputs = {}
        for buffer in (b for b in self.plan.buffers if b.output):
            host = np.empty(buffer.length, buffer.dtype)
            source = self.memory[buffer.name]
            self._ask(self.driver.cuMemcpyDtoH(host.ctypes.data, source, host.nbytes))
            outputs[buffer.name] = host
        return outputs

    def _ask(self, answer: tuple[Any, ...]) -> Any:
        status, *values = answer
        if int(status) != 0:
            raise DeviceError(f"{self.job.name} under nvbench: the driver says {status.name}")
        return values[0] if values else None


def main() -> int:
    """Write the samples of every case to ``--out``; 1 with one sentence if that fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tool", choices=("nqbench", "nvbench"))
    parser.add_argument("cases", nargs="+", choices=sorted(CASES))
    parser.add_argument("--gpu", type=int, required=True)
    parser.add_argument("--cold", action="store_true", help="nqbench: flush L2 before each launch")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    try:
        if given.tool == "nqbench":
            found = by_nqbench(given.cases, given.gpu, cold=given.cold)
        else:
            found = by_nvbench(given.cases, given.gpu)
    except NqbenchError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    given.out.write_text(json.dumps(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
