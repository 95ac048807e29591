"""A CUDA GPU through PyCUDA's driver interface: the device that measures time.

Kernels come as cubins from NVRTC, so that no CUDA toolkit is needed. One ``CudaDevice`` per
process: workers measure, because a fault on the GPU makes the context unusable.
After an error with ``fatal`` set, a worker should leave by ``os._exit``: nothing can be freed.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, overload

from nqbench.compiler.compile import compile_kernel
from nqbench.device import Device
from nqbench.devices.cuda import driver as cuda_driver
from nqbench.devices.cuda.blocking_kernel import BlockingKernel
from nqbench.devices.cuda.kernel import CudaKernel
from nqbench.devices.cuda.memory import ABANDONED, L2Flush
from nqbench.devices.cuda.nvml import NvmlSensor
from nqbench.devices.cuda.program import CudaProgram
from nqbench.devices.cuda.query import find_device, gpu_facts, gpu_identity, load_pycuda
from nqbench.errors import DeviceError, DeviceUnavailable, LaunchError
from nqbench.plan import KernelPlan, MultiLaunchPlan, Plan


class CudaDevice(Device):
    """GPU number ``index``, as the driver counts. The context is made on first use.

    Raises ``DeviceUnavailable`` if there is no driver, no PyCUDA or no such GPU.
    """

    ramp_s = 0.3

    def __init__(self, index: int = 0) -> None:
        self.cuda = load_pycuda()
        self.index = index
        self.spec = f"cuda:{index}"
        self.facts = gpu_facts(index)
        self.lost = False
        """A fault or a kernel that does not end has made the GPU unusable in this process."""
        self._context: Any = None
        self._blocking: BlockingKernel | None = None
        self._cannot_block = False
        self._flush: L2Flush | None = None

    def identity(self) -> Mapping[str, object]:
        """Name, UUID, driver, compiler, clocks, power limit, ECC, MIG, persistence (JSON)."""
        return gpu_identity(self.index)

    @overload
    def prepare(self, plan: KernelPlan) -> CudaKernel: ...

    @overload
    def prepare(self, plan: Plan) -> CudaKernel | CudaProgram: ...

    def prepare(self, plan: Plan) -> CudaKernel | CudaProgram:
        """Compile for this GPU, load, allocate, copy. Raises ``CompileError``, ``DeviceError``."""
        if plan.on_cpu:
            raise DeviceError(
                f"{plan.name} is a computation for the CPU and cannot run on {self.spec};"
                " use --device cpu"
            )
        compiled = {
            name: compile_kernel(kernel, self.facts.arch) for name, kernel in plan.kernels.items()
        }
        self._activate()
        if isinstance(plan, MultiLaunchPlan):
            return CudaProgram(self, plan, compiled)
        return CudaKernel(self, plan, compiled)

    def sensor(self) -> NvmlSensor:
        """Clocks, temperature, power. Raises ``DeviceError`` where NVML cannot be used."""
        return NvmlSensor(find_device(self.cuda, self.index).pci_bus_id())

    def blocking_kernel(self) -> BlockingKernel | None:
        """Keeps launch latency out of kernel times; ``None`` if this GPU cannot do it.

        It needs page-locked memory that the GPU can access, which a virtual GPU may not offer.
        """
        if self._blocking is None and not self._cannot_block:
            try:
                self._blocking = BlockingKernel(self.cuda, self.facts.arch)
            except self.cuda.Error:
                self._cannot_block = True
        return self._blocking

    def stop_blocking(self) -> None:
        """Stop blocking the stream in this process, after it was not released in time."""
        self._blocking, self._cannot_block = None, True

    def l2_flush(self) -> L2Flush:
        """The L2 flush. Raises ``DeviceError`` if it is not possible."""
        if self._flush is None:
            device = find_device(self.cuda, self.index)
            l2_bytes = int(device.get_attribute(self.cuda.device_attribute.L2_CACHE_SIZE))
            self._flush = L2Flush(self.cuda, self.spec, l2_bytes)
        return self._flush

    def close(self) -> None:
        """Destroy the context. Memory of plans still prepared goes with it."""
        context, self._context = self._context, None
        if context is None:
            return
        atexit.unregister(self.close)
        owned, self._blocking, self._flush = (self._blocking, self._flush), None, None
        if self.lost:
            # Destroying it would wait for a kernel that may never end; the process ends instead.
            context.pop()
            ABANDONED.extend((context, owned))
            return
        del owned  # their memory is freed while there is still a context
        context.pop()
        context.detach()

    def _activate(self) -> None:
        if self._context is not None:
            return
        try:
            flags = self.cuda.ctx_flags
            self._context = find_device(self.cuda, self.index).make_context(
                flags.SCHED_AUTO | flags.MAP_HOST
            )
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
    def translated(self, action: str | Callable[[], str]) -> Iterator[None]:
        """Turn PyCUDA's errors into ``LaunchError``, fatal if the context no longer works."""
        try:
            yield
        except self.cuda.Error as error:
            stuck = cuda_driver.sticky_error()
            self.lost = self.lost or bool(stuck)
            name = stuck or cuda_driver.error_name(str(error)) or type(error).__name__
            after = "; this process can no longer use the GPU" if stuck else ""
            what = action if isinstance(action, str) else action()
            failure = LaunchError(f"{self.spec}: {what} failed with {name} ({error}){after}")
            failure.fatal = bool(stuck)
            raise failure from error
