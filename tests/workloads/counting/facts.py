"""Devices of the tests."""

from __future__ import annotations

from nqbench.facts import DeviceFacts

GPU = DeviceFacts(
    name="test GPU",
    kind="sim",
    compute_capability=(9, 0),
    multiprocessors=4,
    shared_per_block_optin=232_448,
    shared_per_multiprocessor=233_472,
    memory_bytes=2**32,
)
HOST = DeviceFacts(name="test CPU", kind="cpu", compute_capability=(0, 0), multiprocessors=0)
