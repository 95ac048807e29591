"""What is asked of the driver itself, over a pretended driver with its true error words."""

from __future__ import annotations

import enum
from types import SimpleNamespace
from typing import Any

import pytest

from nqbench.devices.cuda import driver as cuda_driver
from nqbench.errors import DeviceError


class Result(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_ILLEGAL_ADDRESS = 700
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701
    CUDA_ERROR_UNKNOWN = 999


WORDS = {
    Result.CUDA_SUCCESS: b"no error",
    Result.CUDA_ERROR_INVALID_VALUE: b"invalid argument",
    Result.CUDA_ERROR_ILLEGAL_ADDRESS: b"an illegal memory access was encountered",
    Result.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: b"too many resources requested for launch",
}


class Driver:
    """``cuda.bindings.driver`` as far as it is used."""

    CUresult = Result
    CUlimit = SimpleNamespace(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT="pending")

    def __init__(self) -> None:
        self.state = Result.CUDA_SUCCESS
        self.pending = 2048

    def cuCtxGetLimit(self, limit: str) -> tuple[Result, int]:  # noqa: N802
        assert limit == "pending"
        return Result.CUDA_SUCCESS, self.pending

    def cuCtxSetLimit(self, limit: str, value: int) -> tuple[Result]:  # noqa: N802
        assert limit == "pending"
        if value > 1_000_000:
            return (Result.CUDA_ERROR_INVALID_VALUE,)
        self.pending = value
        return (Result.CUDA_SUCCESS,)

    def cuGetErrorString(self, code: Result) -> tuple[Result, bytes | None]:  # noqa: N802
        if code not in WORDS:
            return Result.CUDA_ERROR_INVALID_VALUE, None
        return Result.CUDA_SUCCESS, WORDS[code]

    def cuCtxSynchronize(self) -> tuple[Result]:  # noqa: N802
        return (self.state,)

    def cuInit(self, flags: int) -> tuple[Result]:  # noqa: N802
        return (self.state,)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Any:
    fake = Driver()
    monkeypatch.setattr(cuda_driver, "_driver", lambda: fake)
    cuda_driver._descriptions.cache_clear()
    yield fake
    cuda_driver._descriptions.cache_clear()


def test_errors_have_the_driver_s_names(driver: Driver) -> None:
    for text, name in (
        ("an illegal memory access was encountered", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("too many resources requested for launch", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
        ("words of another driver", ""),
    ):
        assert cuda_driver.error_name(f"cuEventSynchronize failed: {text}") == name
    assert cuda_driver.sticky_error() == ""
    driver.state = Result.CUDA_ERROR_ILLEGAL_ADDRESS
    assert cuda_driver.sticky_error() == "CUDA_ERROR_ILLEGAL_ADDRESS"
    with pytest.raises(DeviceError, match="driver could not start: CUDA_ERROR_ILLEGAL_ADDRESS"):
        cuda_driver.device_uuid(0)


def test_pending_launches_are_allowed_where_the_limit_is_lower(driver: Driver) -> None:
    for wanted, allowed in ((1000, 2048), (5000, 5000)):
        cuda_driver.allow_pending_launches(wanted)
        assert driver.pending == allowed
    with pytest.raises(DeviceError, match=r"memory aside for 2000000 pending launches"):
        cuda_driver.allow_pending_launches(2_000_000)


def test_the_names_asked_of_the_bindings_exist() -> None:
    from cuda.bindings import driver as bindings

    for name in ("PREFERRED_SHARED_MEMORY_CARVEOUT", "MAX_DYNAMIC_SHARED_SIZE_BYTES"):
        assert getattr(bindings.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
    for call in (
        *("CtxSynchronize", "DeviceGet", "DeviceGetUuid", "FuncSetAttribute", "GetErrorString"),
        *("Init", "ModuleGetFunction", "ModuleLoadData", "ModuleUnload"),
        "OccupancyMaxActiveBlocksPerMultiprocessor",
    ):
        assert callable(getattr(bindings, f"cu{call}"))
    assert {int(code): code.name for code in bindings.CUresult}[700] == "CUDA_ERROR_ILLEGAL_ADDRESS"
    assert len(bindings.CUuuid().bytes) == 16
