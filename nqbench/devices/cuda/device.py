"""A CUDA GPU as a device: the one that measures time.

Kernels come as cubins from NVRTC, so that no CUDA toolkit is needed. One ``CudaDevice`` per
process: workers measure, because a fault on the GPU makes the context unusable.
After an error with ``fatal`` set, a worker should leave by ``os._exit``: nothing can be freed.
"""

from __future__ import annotations

from collections.abc import Mapping

from nqbench.compiler.compile import compile_kernel
from nqbench.devices.cuda.gpu import Gpu
from nqbench.devices.cuda.kernel import CudaKernel
from nqbench.devices.cuda.program import CudaProgram
from nqbench.devices.cuda.query import NvmlSensor, find_device, gpu_identity
from nqbench.errors import DeviceError
from nqbench.plan import MultiLaunchPlan, Plan


class CudaDevice(Gpu):
    """GPU number ``index``, as the driver counts. The context is made on first use.

    Raises ``DeviceUnavailable`` if there is no driver, no PyCUDA or no such GPU.
    """

    def identity(self) -> Mapping[str, object]:
        """Name, UUID, driver, compiler, clocks, power limit, ECC, MIG, persistence (JSON)."""
        return gpu_identity(self.index)

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
        self.activate()
        if isinstance(plan, MultiLaunchPlan):
            return CudaProgram(self, plan, compiled)
        return CudaKernel(self, plan, compiled)

    def sensor(self) -> NvmlSensor:
        """Clocks, temperature, power. Raises ``DeviceError`` where NVML cannot be used."""
        return NvmlSensor(find_device(self.cuda, self.index).pci_bus_id())
