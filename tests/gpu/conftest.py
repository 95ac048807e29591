"""What every test on a real GPU needs. Without a GPU each is skipped, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from nqbench.errors import DeviceUnavailable
from tests.gpu.afresh import Afresh

if TYPE_CHECKING:
    from nqbench.devices.cuda.device import CudaDevice

HERE = Path(__file__).parent
OPENED: list[CudaDevice] = []
"""What this process has opened; one that is lost stays so."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)
    folder = TemporaryDirectory()
    config.add_cleanup(folder.cleanup)
    plugin = Afresh(config, Path(folder.name), lambda: any(device.lost for device in OPENED))
    config.pluginmanager.register(plugin, "afresh")


@pytest.fixture(scope="session")
def device() -> Iterator[CudaDevice]:
    """The first GPU, shared by all tests that leave it whole."""
    from nqbench.devices.cuda.device import CudaDevice

    try:
        opened = CudaDevice(0)
    except DeviceUnavailable as absence:
        pytest.skip(f"no GPU to test on: {absence}")
    OPENED.append(opened)
    yield opened
    opened.close()


@pytest.fixture
def kernels() -> Path:
    """CUDA source of the tests' own kernels."""
    return HERE / "kernels.cu"
