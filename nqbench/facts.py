"""What a device can hold: the limits that decide whether a configuration fits.

Filled from the driver for a real GPU and from ``simulator/models/*.yaml`` for a simulated one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal

DeviceKind = Literal["cuda", "sim", "cpu"]
SIMULATED_BYTES: Final = 1 << 31
"""Global memory of the simulator: sector numbers must fit the counters' 26 bits."""
FAKE_NAME: Final = "fake device (test)"
"""Name of the test device. It stays with its results when they are exported."""


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """Limits of one GPU (or simulated GPU). Memory sizes are in bytes.

    ``shared_per_block`` is what a static allocation or an ordinary launch may take (48 KiB);
    ``shared_per_block_optin`` is what a dynamic allocation may take after opting in.
    ``shared_carveouts`` are the sizes that the shared part of the L1 cache can be given, ascending;
    empty where the split is fixed or unknown. ``register_allocation`` is ``block`` where a block's
    registers are allocated together (compute capability 1.x). ``compiled_for`` is the architecture
    that kernels are compiled for where the compiler no longer knows the chip's own.
    """

    name: str
    kind: DeviceKind
    compute_capability: tuple[int, int]
    multiprocessors: int
    warp_size: int = 32
    max_threads_per_block: int = 1024
    max_threads_per_multiprocessor: int = 2048
    max_warps_per_multiprocessor: int = 64
    max_blocks_per_multiprocessor: int = 32
    max_grid_x: int = 2**31 - 1
    registers_per_multiprocessor: int = 65536
    registers_per_block: int = 65536
    max_registers_per_thread: int = 255
    register_allocation_unit: int = 256
    warp_allocation_granularity: int = 4
    shared_per_block: int = 49152
    shared_per_block_optin: int = 49152
    shared_per_multiprocessor: int = 65536
    shared_reserved_per_block: int = 0
    shared_allocation_unit: int = 128
    shared_banks: int = 32
    memory_bytes: int = 0
    shared_carveouts: tuple[int, ...] = ()
    register_allocation: Literal["warp", "block"] = "warp"
    compiled_for: str = ""

    @property
    def arch(self) -> str:
        """Compiler name of the architecture that kernels are compiled for, e.g. ``sm_90``."""
        major, minor = self.compute_capability
        return self.compiled_for or f"sm_{major}{minor}"

    def as_dict(self) -> dict[str, object]:
        """Plain JSON form, for manifests and keys. What only old chips have is absent elsewhere."""
        data = asdict(self) | {
            "compute_capability": list(self.compute_capability),
            "shared_carveouts": list(self.shared_carveouts),
        }
        old = {"register_allocation": "warp", "compiled_for": ""}
        return {key: value for key, value in data.items() if value != old.get(key)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DeviceFacts:
        """Inverse of ``as_dict``; facts that this version does not know are left out."""
        known = {f.name for f in fields(cls)}
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in data.items()
            if name in known
        }
        return cls(**values)
