"""Whether the clocks held still over a whole run, and how a user could make them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from nqbench.record import Record

STEADY_CLOCK: Final = 0.01
"""SM clocks whose medians stay within 1% over all blocks cannot explain an effect above that."""
SETTING: Final = "applications_clocks_setting"
"""The driver's word for clocks that a user has fixed below the boost range."""


def clock_warning(records: Iterable[Record], identity: Mapping[str, Any]) -> str:
    """One sentence if the SM clock differed between the timed blocks of a GPU, else empty.

    NVML does not tell whether clocks are locked, so what they did is looked at: blocks of one run
    that were timed at different clocks are compared with each other in vain.
    """
    good = [r for r in records if r.round > 0 and r.status == "ok" and r.samples_s]
    blocks = [r.telemetry for r in good if "sm_mhz" in r.telemetry]
    clocks = [block["sm_mhz"]["median"] for block in blocks]
    if not clocks or min(clocks) >= max(clocks) * (1 - STEADY_CLOCK):
        return ""
    bus = identity.get("pci_bus_id")
    gpu = f" -i {bus}" if bus else ""
    held = sum(SETTING in block.get("clock_reasons", ()) for block in blocks)
    set_ = " although they are limited by a setting" if held == len(blocks) else ""
    return (
        f"the SM clock is not locked: between blocks it ranged from {min(clocks):g} to"
        f" {max(clocks):g} MHz{set_}; rounds average over this, but for narrower intervals lock it"
        f" with 'sudo nvidia-smi{gpu} --lock-gpu-clocks={min(clocks):.0f}' (undone by"
        " --reset-gpu-clocks); nqbench changes no setting of a GPU"
    )
