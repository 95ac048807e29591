"""The simulator that the tests of the workloads share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nqbench.device import Device
from nqbench.devices.registry import open_device


@pytest.fixture(scope="session")
def simulator() -> Iterator[Device]:
    device = open_device("sim:mini")
    yield device
    device.close()
