"""What every test on a real GPU needs. Without a GPU each is skipped, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nqbench.errors import DeviceUnavailable

if TYPE_CHECKING:
    from nqbench.devices.cuda.device import CudaDevice

HERE = Path(__file__).parent
OPENED: list[CudaDevice] = []
"""What this process has opened; one that is lost stays so."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)


def pytest_runtest_setup() -> None:
    """Faults that are meant happen in processes of their own. After another one, the device of this
    process is lost, and every test would fail with it."""
    if any(device.lost for device in OPENED):
        pytest.fail(
            "not run: an earlier test made the GPU unusable for this process", pytrace=False
        )


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
