"""A kernel loaded on a CUDA GPU: its launch attributes, its resources, its launches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final

from nqbench.compiler.compile import Compiled
from nqbench.compiler.nvjitlink import linker_version
from nqbench.devices.cuda.arguments import type_code
from nqbench.devices.cuda.blocking_kernel import DEFAULT_CARVEOUT
from nqbench.devices.cuda.driver import allow_pending_launches
from nqbench.devices.cuda.memory import Owner
from nqbench.devices.cuda.query import FIRST_CARVEOUT_CAPABILITY
from nqbench.devices.cuda.resources import resources
from nqbench.errors import DeviceError
from nqbench.plan import Buffer, CachePreference, Kernel

CARVEOUT_PERCENT: Final[Mapping[CachePreference, int]] = {
    "default": -1,  # the driver chooses
    "prefer_l1": 0,
    "prefer_shared": 100,
}
"""Share of the joint L1 and shared memory that is asked for shared memory; a hint to the driver."""


def label_of(kernel: Kernel) -> str:
    """What messages call a kernel: its instance and its geometry."""
    return f"kernel {kernel.entry} {kernel.grid}x{kernel.block}"


class LoadedKernel:
    """A kernel in the current context, ready to launch with packed arguments.

    Raises ``DeviceError`` for arguments that cannot be packed and for too much shared memory.
    """

    def __init__(
        self,
        device: Owner,
        kernel: Kernel,
        compiled: Compiled,
        buffers: Sequence[Buffer],
    ) -> None:
        self.label = label_of(kernel)
        self._device, self._kernel = device, kernel
        self._grid = tuple(map(int, kernel.grid))
        self._block = tuple(map(int, kernel.block))
        self._launched = False
        if kernel.pending_launches:
            allow_pending_launches(kernel.pending_launches)
        self.module = device.cuda.module_from_buffer(compiled.image)
        self.function = self.module.get_function(compiled.symbol)
        self._carveout = self._configure()
        codes = [type_code(kernel.entry, buffers, argument) for argument in kernel.arguments]
        self.function.prepare(codes)
        self.resources: Mapping[str, int | float | str] = {
            **resources(device, kernel, compiled, self.function, self._carveout),
            **({"nvjitlink": linker_version()} if kernel.device_launch else {}),
        }

    def queue(self, arguments: Sequence[Any]) -> None:
        """Queue a launch and return. ``arguments`` are addresses and scalars."""
        self._launched = True
        self.function.prepared_call(
            self._grid, self._block, *arguments, shared_size=self._kernel.shared_bytes
        )

    def queue_timed(
        self, arguments: Sequence[Any], before: Callable[[], None] | None = None
    ) -> tuple[Callable[[], float], Callable[[], bool]]:
        """Queue a launch between two events, after ``before``; all but the first one are held back.

        Held back means: until kernel and events are all queued. The first function waits and gives
        the seconds between the events; the second one then tells whether the launch was held (and
        turns holding off where it was not let go in time).
        """
        # Not the first: the driver may have to wait for the GPU then, to enlarge local memory. It
        # may also have to before a kernel that launches kernels, for their pool of launches.
        hold = self._device.hold() if self._launched and not self._kernel.device_launch else None
        if before is not None:
            before()
        with nullcontext() if hold is None else hold.held(self._split()):
            elapsed = self.function.prepared_timed_call(
                self._grid, self._block, *arguments, shared_size=self._kernel.shared_bytes
            )

        def held() -> bool:
            self._launched = True
            expired = hold is not None and hold.expired
            if expired:
                self._device.no_hold()
            return hold is not None and not expired

        return elapsed, held

    def _configure(self) -> int:
        """Ask for dynamic shared memory above 48 KiB and for the L1 split; the percentage asked."""
        attribute = self._device.cuda.function_attribute
        facts, kernel = self._device.facts, self._kernel
        if kernel.shared_bytes > facts.shared_per_block_optin:
            raise DeviceError(
                f"{self.label} asks for {kernel.shared_bytes} bytes of dynamic shared memory per"
                f" block; {self._device.spec} has {facts.shared_per_block_optin}: use a smaller"
                " block or fewer rows"
            )
        if kernel.shared_bytes > facts.shared_per_block:
            self.function.set_attribute(
                attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel.shared_bytes
            )
        percent = CARVEOUT_PERCENT[kernel.cache]
        if kernel.cache == "default":
            return percent
        if facts.compute_capability >= FIRST_CARVEOUT_CAPABILITY:
            self.function.set_attribute(attribute.PREFERRED_SHARED_MEMORY_CARVEOUT, percent)
        else:
            config = self._device.cuda.func_cache
            self.function.set_cache_config(
                config.PREFER_L1 if kernel.cache == "prefer_l1" else config.PREFER_SHARED
            )
        return percent

    def _split(self) -> int:
        """The L1 split that the holding kernel shares with this one."""
        joint = self._device.facts.compute_capability >= FIRST_CARVEOUT_CAPABILITY
        return self._carveout if joint else DEFAULT_CARVEOUT
