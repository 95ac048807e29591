"""Times cases with nvbench, through NVIDIA's package cuda-bench.

nvbench makes the stream and the timer; the cubin is loaded and launched through the driver in its
primary context. Buffers are renewed before the timer starts, as nqbench does.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.crosscheck.cases import Case, Job, make_job
from nqbench.compiler.compile import Compiled, compile_cubin
from nqbench.devices.cuda.kernel import CARVEOUT_PERCENT
from nqbench.devices.cuda.query import gpu_facts
from nqbench.errors import DeviceError
from nqbench.facts import DeviceFacts
from nqbench.plan import Outputs

TIMEOUT_S: Final = 5.0
"""Longest measuring of one kernel; nvbench's own 15 s would only add samples."""
MIN_SAMPLES: Final = 5


def time_cases(cases: Sequence[Case], index: int) -> dict[str, dict[str, Any]]:
    """Samples in seconds of each case on GPU ``index``, with the digest of its cubin.

    nvbench's isolated measurement: L2 flushed before each launch, a blocking kernel ahead of it.
    Raises ``DeviceError`` for a wrong answer or a kernel that nvbench did not time, ``ImportError``
    without the package.
    """
    from cuda import bench
    from cuda.bench.results import BenchmarkResult

    facts = gpu_facts(index)
    digests: dict[str, str] = {}
    failures: list[str] = []
    for case in cases:
        job = make_job(case, facts)
        compiled = _compile(job, facts)
        digests[case.name] = hashlib.sha256(compiled.image).hexdigest()
        registered = bench.register(_benchmark(job, compiled, index, failures))
        registered.set_name(case.name)
        registered.set_min_samples(MIN_SAMPLES)
        registered.set_timeout(TIMEOUT_S)
    with tempfile.TemporaryDirectory(prefix="nqbench-nvbench-") as folder:
        path = Path(folder) / "nvbench.json"
        words = ["nvbench_crosscheck", "--devices", str(index), "--jsonbin", str(path)]
        bench.run_all_benchmarks(words)
        if failures:
            raise DeviceError("; ".join(failures))
        result = BenchmarkResult.from_json(path)
        return {
            case.name: {
                "samples_s": _samples(result[case.name], case.name),
                "cubin_sha256": digests[case.name],
            }
            for case in cases
        }


def _compile(job: Job, facts: DeviceFacts) -> Compiled:
    plan = job.plan
    return compile_cubin(plan.source, plan.entry, facts.arch, plan.options)


def _samples(result: Any, name: str) -> list[float]:
    """The samples of the only state of one benchmark."""
    (state,) = result
    if state.is_skipped or not state.samples:
        raise DeviceError(f"nvbench did not time {name}: {state.skip_reason or 'no samples'}")
    return [float(value) for value in state.samples]


def _benchmark(
    job: Job, compiled: Compiled, index: int, failures: list[str]
) -> Callable[[Any], None]:
    def run(state: Any) -> None:
        loaded = Loaded(job, compiled, index)

        def launcher(launch: Any, timer: Any) -> None:
            stream = launch.get_stream().addressof()
            loaded.renew(stream)
            timer.start()
            loaded.launch(stream)
            timer.stop()

        state.exec(launcher, timer=True)
        # Raising here would end in nvbench's own handling; the failure is told afterwards.
        if not job.right(loaded.fetch()):
            failures.append(f"{job.case.name}: wrong answer under nvbench")

    return run


class Loaded:
    """A plan in the primary context of a GPU, launched through the driver."""

    def __init__(self, job: Job, compiled: Compiled, index: int) -> None:
        from cuda.bindings import driver

        self._driver = driver
        self._plan = job.plan
        self._label = job.case.name
        self._ask(driver.cuInit(0))
        device = self._ask(driver.cuDeviceGet(index))
        self._ask(driver.cuCtxSetCurrent(self._ask(driver.cuDevicePrimaryCtxRetain(device))))
        self._module = self._ask(driver.cuModuleLoadData(compiled.image))
        self._function = self._ask(
            driver.cuModuleGetFunction(self._module, compiled.symbol.encode())
        )
        self._configure()
        self._memory: dict[str, Any] = {}
        self._pristine: dict[str, Any] = {}
        self._fill()
        self._arguments = [np.array([self._value(a)]) for a in self._plan.arguments]
        self._pointers = np.array([a.ctypes.data for a in self._arguments], dtype=np.uint64)

    def renew(self, stream: int) -> None:
        """Restore and clear what the plan wants, in order on the stream."""
        for buffer in self._plan.buffers:
            if buffer.restore:
                source = self._pristine[buffer.name]
                target = self._memory[buffer.name]
                self._ask(self._driver.cuMemcpyDtoDAsync(target, source, buffer.nbytes, stream))
            elif buffer.zero and buffer.nbytes:
                target = self._memory[buffer.name]
                self._ask(self._driver.cuMemsetD8Async(target, 0, buffer.nbytes, stream))

    def launch(self, stream: int) -> None:
        """Put the kernel into the stream."""
        plan = self._plan
        self._ask(
            self._driver.cuLaunchKernel(
                self._function,
                *plan.grid,
                *plan.block,
                plan.shared_bytes,
                stream,
                self._pointers.ctypes.data,
                0,
            )
        )

    def fetch(self) -> Outputs:
        """Wait, then copy the output buffers to the host."""
        self._ask(self._driver.cuCtxSynchronize())
        outputs: Outputs = {}
        for buffer in self._plan.buffers:
            if buffer.output:
                host = np.empty(buffer.length, buffer.dtype)
                source = self._memory[buffer.name]
                self._ask(self._driver.cuMemcpyDtoH(host.ctypes.data, source, host.nbytes))
                outputs[buffer.name] = host
        return outputs

    def _configure(self) -> None:
        attribute = self._driver.CUfunction_attribute
        plan = self._plan
        settings = {
            attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: plan.shared_bytes,
            attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: CARVEOUT_PERCENT[
                plan.cache
            ],
        }
        for name, value in settings.items():
            self._ask(self._driver.cuFuncSetAttribute(self._function, name, value))

    def _fill(self) -> None:
        for buffer in self._plan.buffers:
            self._memory[buffer.name] = self._allocate(buffer.nbytes)
            if buffer.data is None:
                continue
            data = np.ascontiguousarray(buffer.data, dtype=buffer.dtype)
            targets = [self._memory[buffer.name]]
            if buffer.restore:
                self._pristine[buffer.name] = self._allocate(buffer.nbytes)
                targets.append(self._pristine[buffer.name])
            for target in targets:
                self._ask(self._driver.cuMemcpyHtoD(target, data.ctypes.data, data.nbytes))

    def _allocate(self, nbytes: int) -> Any:
        return self._ask(self._driver.cuMemAlloc(max(1, nbytes)))

    def _value(self, argument: Any) -> Any:
        """A scalar as it is, a buffer's name as its address."""
        if isinstance(argument, str):
            return np.uint64(int(self._memory[argument]))
        return argument

    def _ask(self, answer: tuple[Any, ...]) -> Any:
        status, *values = answer
        if int(status) != 0:
            raise DeviceError(f"{self._label} under nvbench: the driver says {status.name}")
        return values[0] if values else None
