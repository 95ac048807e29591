"""The command ``devices``."""

from __future__ import annotations


def devices() -> None:
    """List the devices of this machine, and what is missing for the others."""
    from nqbench.cli.show.tables import show_rows
    from nqbench.devices.registry import list_devices

    show_rows(list_devices())
