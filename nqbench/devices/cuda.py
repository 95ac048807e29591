"""A CUDA GPU through PyCUDA's driver interface: the device that measures time.

Kernels come as cubins from NVRTC, so that no CUDA toolkit is needed. One ``CudaDevice`` per
process: measuring happens in worker processes, because a fault on the GPU poisons the context.
After an error with ``fatal`` set, a worker should leave by ``os._exit``: nothing can be freed.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from nqbench.compile import compile_cubin
from nqbench.devices import cuda_driver
from nqbench.devices.cuda_prepared import ABANDONED, CudaPrepared
from nqbench.devices.cuda_query import (
    Gpu,
    find_device,
    find_gpus,
    gpu_facts,
    gpu_identity,
    load_pycuda,
)
from nqbench.errors import DeviceError, DeviceUnavailable, LaunchError
from nqbench.plan import KernelPlan, Plan

__all__ = ["CudaDevice", "CudaPrepared", "Gpu", "find_gpus", "gpu_facts", "gpu_identity"]


class CudaDevice:
    """GPU number ``index``, as the driver counts. The context is made on first use.

    Raises ``DeviceUnavailable`` if there is no driver, no PyCUDA or no such GPU.
    """

    timed = True
    deterministic = False

    def __init__(self, index: int = 0) -> None:
        self.cuda = load_pycuda()
        self.index = index
        self.spec = f"cuda:{index}"
        self.facts = gpu_facts(index)
        self.lost = False
        """A fault or a kernel that does not end has made this process useless for the GPU."""
        self._context: Any = None

    def identity(self) -> Mapping[str, object]:
        """Name, UUID, driver, compiler, clocks, power limit, ECC, MIG, persistence (JSON)."""
        return gpu_identity(self.index)

    def prepare(self, plan: Plan) -> CudaPrepared:
        """Compile for this GPU, load, allocate, copy. Raises ``CompileError``, ``DeviceError``."""
        if not isinstance(plan, KernelPlan):
            raise DeviceError(
                f"{plan.function} is a host function and cannot run on {self.spec};"
                " use --device cpu"
            )
        compiled = compile_cubin(plan.source, plan.entry, self.facts.arch, plan.options)
        self._activate()
        return CudaPrepared(self, plan, compiled)

    def close(self) -> None:
        """Destroy the context. Memory of plans still prepared goes with it."""
        context, self._context = self._context, None
        if context is None:
            return
        atexit.unregister(self.close)
        if self.lost:
            # Destroying it would wait for a kernel that may never end; the process ends instead.
            context.pop()
            ABANDONED.append(context)
            return
        context.pop()
        context.detach()

    def _activate(self) -> None:
        if self._context is not None:
            return
        try:
            self._context = find_device(self.cuda, self.index).make_context()
        except self.cuda.Error as error:
            raise DeviceUnavailable(
                f"{self.spec} gives no context ({error}); 'nvidia-smi' shows its compute mode,"
                " free memory and who else uses it"
            ) from error
        # PyCUDA aborts a process that ends with a context on its stack.
        atexit.register(self.close)

    def synchronize(self) -> None:
        """Wait until the GPU is idle."""
        self.cuda.Context.synchronize()

    @contextmanager
    def translated(self, deed: str) -> Iterator[None]:
        """Turn PyCUDA's errors into ``LaunchError``, fatal if the context no longer works."""
        try:
            yield
        except self.cuda.Error as error:
            stuck = cuda_driver.sticky_error()
            self.lost = self.lost or bool(stuck)
            name = stuck or cuda_driver.error_name(str(error)) or type(error).__name__
            after = "; the process can use this GPU no more" if stuck else ""
            failure = LaunchError(f"{self.spec}: {deed} failed with {name} ({error}){after}")
            failure.fatal = bool(stuck)
            raise failure from error
