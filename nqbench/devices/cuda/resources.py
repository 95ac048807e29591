"""What a loaded kernel takes of a CUDA GPU: the compiler's, the driver's and our own figures."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from nqbench.compiler.compile import Compiled
from nqbench.compiler.occupancy import occupancy
from nqbench.compiler.static import resources_of
from nqbench.devices.cuda import driver as cuda_driver
from nqbench.facts import DeviceFacts
from nqbench.plan import Kernel


class Gpu(Protocol):
    """What is needed of the device."""

    cuda: Any
    facts: DeviceFacts


def resources(
    gpu: Gpu,
    plan: Kernel,
    compiled: Compiled,
    function: Any,
    carveout_percent: int,
) -> dict[str, int | float | str]:
    """Registers, memory and occupancy of PyCUDA's ``function``, made from ``compiled``.

    The compiler's and the driver's figures stand side by side with our own occupancy.
    """
    attribute, facts = gpu.cuda.function_attribute, gpu.facts
    taken = resources_of(compiled)
    block_size = int(np.prod(plan.block))
    registers = int(function.get_attribute(attribute.NUM_REGS))
    static_shared = int(function.get_attribute(attribute.SHARED_SIZE_BYTES))
    ours = occupancy(facts, registers, static_shared + plan.shared_bytes, block_size, plan.cache)
    probe = cuda_driver.OccupancyProbe(compiled.image, compiled.symbol)
    blocks = probe.blocks_per_multiprocessor(block_size, plan.shared_bytes, carveout_percent)
    probe.close()
    warps = blocks * -(-block_size // facts.warp_size)
    return {
        "registers": registers,
        "stack_bytes": taken.stack_bytes,
        "local_bytes": int(function.get_attribute(attribute.LOCAL_SIZE_BYTES)),
        "spill_bytes": taken.spill_bytes,
        "spill_store_bytes": taken.spill_store_bytes,
        "spill_load_bytes": taken.spill_load_bytes,
        "static_shared_bytes": static_shared,
        "dynamic_shared_bytes": plan.shared_bytes,
        "carveout_percent": carveout_percent,
        "blocks_per_multiprocessor": blocks,
        "occupancy": warps / facts.max_warps_per_multiprocessor,
        "occupancy_computed": ours.fraction,
        "occupancy_limiter": ours.limiter,
    }
