"""Stand-ins for ``cuda.bench`` and the driver's bindings that note the order of what happens.

They have the calls that the cross-check makes, with the signatures of cuda-bench 0.3 and
cuda-bindings 13. ``kernel(memory, *arguments)`` runs in place of the compiled one.
"""

from __future__ import annotations

import ctypes
import enum
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

STREAM = 77


class Status(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1


class _Attribute:
    def __getattr__(self, name: str) -> str:
        return name


class FakeBindings(types.ModuleType):
    """``cuda.bindings.driver`` with device memory in bytearrays; addresses are plain numbers."""

    def __init__(self, codes: tuple[type[np.generic], ...]) -> None:
        super().__init__("cuda.bindings.driver")
        self.events: list[str] = []
        self.memory: dict[int, bytearray] = {}
        self.codes = codes
        self.kernel: Callable[..., None] = lambda memory, *arguments: None
        self.refuse = ""
        self.CUfunction_attribute = _Attribute()
        for name, value in {
            "cuInit": None,
            "cuDeviceGet": 0,
            "cuDevicePrimaryCtxRetain": 5,
            "cuCtxSetCurrent": None,
            "cuModuleLoadData": 6,
            "cuModuleGetFunction": 8,
            "cuFuncSetAttribute": None,
            "cuCtxSynchronize": None,
        }.items():
            setattr(self, name, self._constant(name, value))

    def _constant(self, name: str, value: Any) -> Callable[..., tuple[Any, ...]]:
        return lambda *arguments: self._done(name, *(() if value is None else (value,)))

    def _done(self, name: str, *values: Any) -> tuple[Any, ...]:
        if name == self.refuse:
            return (Status.CUDA_ERROR_INVALID_VALUE, *values)
        return (Status.CUDA_SUCCESS, *values)

    def cuMemAlloc(self, nbytes: int) -> tuple[Any, ...]:  # noqa: N802
        address = 0x1000 * (len(self.memory) + 1)
        self.memory[address] = bytearray(b"\xab" * nbytes)
        return self._done("cuMemAlloc", address)

    def cuMemcpyHtoD(self, target: int, host: int, nbytes: int) -> tuple[Any, ...]:  # noqa: N802
        self.memory[target][:nbytes] = ctypes.string_at(host, nbytes)
        return self._done("cuMemcpyHtoD")

    def cuMemcpyDtoH(self, host: int, source: int, nbytes: int) -> tuple[Any, ...]:  # noqa: N802
        ctypes.memmove(host, bytes(self.memory[source][:nbytes]), nbytes)
        return self._done("cuMemcpyDtoH")

    def cuMemcpyDtoDAsync(  # noqa: N802
        self, target: int, source: int, nbytes: int, stream: int
    ) -> tuple[Any, ...]:
        assert stream == STREAM
        self.events.append("renew")
        self.memory[target][:nbytes] = self.memory[source][:nbytes]
        return self._done("cuMemcpyDtoDAsync")

    def cuMemsetD8Async(  # noqa: N802
        self, target: int, value: int, nbytes: int, stream: int
    ) -> tuple[Any, ...]:
        assert stream == STREAM
        self.events.append("renew")
        self.memory[target][:nbytes] = bytes([value]) * nbytes
        return self._done("cuMemsetD8Async")

    def cuLaunchKernel(self, function: int, *rest: Any) -> tuple[Any, ...]:  # noqa: N802
        *geometry, _shared, stream, parameters, extra = rest
        assert (len(geometry), stream, extra) == (6, STREAM, 0)
        self.events.append("launch")
        pointers = (ctypes.c_uint64 * len(self.codes)).from_address(parameters)
        values = [
            np.frombuffer(ctypes.string_at(pointer, code().itemsize), code)[0]
            for pointer, code in zip(pointers, self.codes, strict=True)
        ]
        self.kernel(self.memory, *values)
        return self._done("cuLaunchKernel")


class FakeBench(types.ModuleType):
    """``cuda.bench``: runs each benchmark for a few samples of 100 us."""

    def __init__(self, events: list[str]) -> None:
        super().__init__("cuda.bench")
        self.events = events
        self.benchmarks: list[Any] = []
        self.skip_reason: str | None = None
        self.words: list[str] = []

    def register(self, function: Callable[[Any], None]) -> Any:
        made = types.SimpleNamespace(function=function, name="", settings={})
        made.set_name = lambda name: setattr(made, "name", name)
        made.set_min_samples = lambda count: made.settings.update(samples=count)
        made.set_timeout = lambda seconds: made.settings.update(timeout=seconds)
        self.benchmarks.append(made)
        return made

    def run_all_benchmarks(self, words: list[str]) -> None:
        assert words[1:3] == ["--devices", "0"]
        assert words[3] == "--jsonbin"
        Path(words[4]).write_text("{}")
        self.words = words
        for benchmark in self.benchmarks:
            benchmark.function(types.SimpleNamespace(exec=self._execute))

    def _execute(self, launcher: Callable[[Any, Any], None], *, timer: bool) -> None:
        assert timer
        stream = types.SimpleNamespace(addressof=lambda: STREAM)
        launch = types.SimpleNamespace(get_stream=lambda: stream)
        clock = types.SimpleNamespace(
            start=lambda: self.events.append("start"), stop=lambda: self.events.append("stop")
        )
        for _ in range(2):
            launcher(launch, clock)

    def results(self) -> types.ModuleType:
        """``cuda.bench.results``."""
        module: Any = types.ModuleType("cuda.bench.results")
        state = types.SimpleNamespace(
            is_skipped=self.skip_reason is not None,
            skip_reason=self.skip_reason,
            samples=None if self.skip_reason else [1e-4, 1.01e-4],
        )
        result = {benchmark.name: [state] for benchmark in self.benchmarks}
        module.BenchmarkResult = types.SimpleNamespace(
            from_json=lambda path: _Named(result, [state])
        )
        made: types.ModuleType = module
        return made


class _Named(dict[str, list[Any]]):
    """Results by name; benchmarks are registered only after this is made."""

    def __init__(self, known: dict[str, list[Any]], default: list[Any]) -> None:
        super().__init__(known)
        self.default = default

    def __missing__(self, name: str) -> list[Any]:
        return self.default
