"""Kernels that launch kernels: compiled and linked here, without a GPU."""

from __future__ import annotations

import struct
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from nqbench.compiler import bindings
from nqbench.compiler.compile import compile_many
from nqbench.compiler.nvrtc import CompileRequest
from nqbench.errors import CompileError
from nqbench.system.files import CACHE_ENVIRONMENT
from tests.compiling import compile_cubin, compile_ptx

NESTED = """\
__global__ void child(int* out, int base) { out[base + threadIdx.x] = base + threadIdx.x; }
template <int WIDTH>
__global__ void parent(int* out) { child<<<1, WIDTH>>>(out, threadIdx.x * WIDTH); }
"""
LAUNCHER = b"__cudaCDP2LaunchDeviceV2"
"""The device runtime's function that a launch becomes."""
EXECUTABLE = 2  # ET_EXEC; a relocatable file, which cannot be loaded, has 1
TIME_OF_FIRST_MEMBER = 8 + 16  # the archive's magic, then the member's name


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv(CACHE_ENVIRONMENT, str(tmp_path / "cache"))
    path = tmp_path / "nested.cu"
    path.write_text(NESTED, encoding="utf-8")
    bindings._nvjitlink.cache_clear()
    yield path
    bindings._nvjitlink.cache_clear()


def elf_type(image: bytes) -> int:
    assert image.startswith(b"\x7fELF")
    return int(struct.unpack_from("<H", image, 16)[0])


@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_a_linked_kernel_is_executable_and_holds_the_runtime(source: Path, arch: str) -> None:
    made = compile_cubin(source, "parent<4>", arch, device_launch=True)
    assert elf_type(made.image) == EXECUTABLE
    assert b".text." + made.symbol.encode() in made.image
    assert b".text." + LAUNCHER in made.image
    assert "ILi4E" in made.symbol
    again = compile_cubin(source, "parent<4>", arch, device_launch=True)
    assert (again.cached, again.image) == (True, made.image)


def test_ptx_stays_unlinked_and_without_the_mark_nothing_compiles(source: Path) -> None:
    request = CompileRequest("ptx", source, "parent<4>", "sm_90", device_launch=True)
    (made,) = compile_many([request])
    assert not isinstance(made, CompileError)
    assert b".extern .func" in made.image
    assert LAUNCHER in made.image
    for compiling in (compile_ptx, compile_cubin):
        with pytest.raises(CompileError, match="device-side kernel launch"):
            compiling(source, "parent<4>", "sm_90")


def without_libraries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    monkeypatch.setitem(sys.modules, "nvidia", None)
    monkeypatch.setattr(bindings, "_USUAL_ROOT", nowhere)
    monkeypatch.setenv("CUDA_PATH", str(nowhere))
    monkeypatch.delenv("CUDA_HOME", raising=False)


def test_a_missing_runtime_is_a_sentence_and_a_row_of_its_own(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_libraries(monkeypatch, tmp_path)
    with pytest.raises(CompileError, match=r"libcudadevrt\.a.*pip install 'nvidia-cuda-runtime"):
        compile_cubin(source, "parent<4>", "sm_90", device_launch=True)
    requests = [
        CompileRequest("cubin", source, "parent<4>", "sm_90", device_launch=True),
        CompileRequest("cubin", source, "child", "sm_90", ("-DNOTHING", "-rdc=true")),
    ]
    lost, kept = compile_many(requests)
    assert isinstance(lost, CompileError)
    assert not isinstance(kept, CompileError)


def test_a_missing_linker_is_a_sentence(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvjitlink", None)
    monkeypatch.delattr("cuda.bindings.nvjitlink", raising=False)
    bindings.linker_version.cache_clear()
    with pytest.raises(CompileError, match="nvJitLink, which cannot be loaded") as caught:
        compile_cubin(source, "parent<4>", "sm_90", device_launch=True)
    assert "\n" not in str(caught.value)


def test_what_the_linker_refuses_is_told_in_its_words(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = tmp_path / bindings.LIBRARY
    damaged.write_bytes(b"no archive at all")
    monkeypatch.setattr(bindings, "device_runtime", lambda: damaged)
    with pytest.raises(CompileError, match=r"cannot be linked with .*libcudadevrt\.a for sm_90"):
        compile_cubin(source, "parent<4>", "sm_90", device_launch=True)


def test_another_runtime_is_linked_anew(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = bindings.device_runtime()
    other = tmp_path / bindings.LIBRARY
    other.write_bytes(real.read_bytes())
    compile_cubin(source, "parent<4>", "sm_90", device_launch=True)
    monkeypatch.setattr(bindings, "device_runtime", lambda: other)
    assert compile_cubin(source, "parent<4>", "sm_90", device_launch=True).cached  # the same bytes
    raw = bytearray(real.read_bytes())
    raw[TIME_OF_FIRST_MEMBER] = raw[TIME_OF_FIRST_MEMBER] ^ 1  # another digit: still an archive
    other.write_bytes(raw)
    assert not compile_cubin(source, "parent<4>", "sm_90", device_launch=True).cached


def test_bindings_of_cuda_12_get_its_libraries_though_newer_ones_are_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What CUDA 13 compiles does not run on a driver that somebody chose CUDA 12 for."""
    loaded: list[str] = []
    library = types.SimpleNamespace(name="libnvrtc.so.12", locate=lambda: tmp_path / "of-12")
    other = types.SimpleNamespace(name="LICENSE", locate=lambda: tmp_path / "LICENSE")
    monkeypatch.setattr(bindings, "installed", lambda name: "12.9.1")
    monkeypatch.setattr(bindings, "files", lambda package: [other, library])
    monkeypatch.setattr("ctypes.CDLL", loaded.append)
    bindings.load_bindings("nvrtc", "nvrtcVersion", CompileError, "NVRTC")
    assert loaded == [str(tmp_path / "of-12")]
    assert bindings.requirements("nvidia-cuda-nvrtc") == ("nvidia-cuda-nvrtc-cu12>=12.6,<13",)
