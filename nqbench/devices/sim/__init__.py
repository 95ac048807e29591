"""SIMT simulator: runs the same kernels without a GPU and counts what a profiler would."""

from nqbench.devices.models import ORDERS
from nqbench.devices.sim.device import SimDevice
from nqbench.devices.sim.launching import SimPrepared

__all__ = ["ORDERS", "SimDevice", "SimPrepared"]
