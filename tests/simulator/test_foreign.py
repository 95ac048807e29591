"""Kernels in files that were written for nvcc: host code, headers, module variables."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from numpy.typing import NDArray

from nqbench.compiler import nvrtc
from nqbench.compiler.bindings import cuda_headers
from nqbench.compiler.compile import compile_many, cubin_request
from nqbench.errors import CompileError, DeviceError, KernelFault, LaunchError
from nqbench.plan import Buffer, KernelPlan
from tests.simulator.harness import KERNELS, cuda, device, outputs

LANES = np.arange(32)
CASES: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("foreign.yaml").read_text(encoding="utf-8")
)
BROKEN, HOSTS, STANDINS = CASES["broken"], CASES["hosts"], CASES["standins"]
HOSTS["hundreds of types of a missing header"] = "".join(
    f"typedef void (*Call{i})(GLenum mode, const GLfloat* v);\n" for i in range(300)
)


def test_a_kernel_between_host_code_runs_with_contents_for_its_constants() -> None:
    weights = np.array([1, 2, 3, 4], np.float32)
    plan = dataclasses.replace(
        cuda("symbols.cu", "weigh", {"out": np.zeros(32, np.float32), "n": np.uint32(30)}),
        symbols={"weights": weights},
    )
    expected = 2 * weights[LANES % 4] + np.array([7, 8])[LANES % 2] + np.float32(np.pi) + LANES
    np.testing.assert_allclose(outputs(plan)["out"], np.where(LANES < 30, expected, 0), rtol=1e-6)


def test_contents_are_set_before_every_launch() -> None:
    plan = dataclasses.replace(
        cuda("symbols.cu", "count", {"out": np.zeros(32, np.uint32)}),
        symbols={"counter": np.array([100], np.uint32)},
    )
    assert outputs(plan, launches=3)["out"].tolist() == (100 + LANES).tolist()


@pytest.mark.parametrize(
    ("symbols", "error", "words"),
    [
        ({"weight": np.zeros(4, np.float32)}, CompileError, "no such variable"),
        ({"weights": np.zeros(4)}, DeviceError, "32 bytes are given .* weights, which has 16"),
    ],
)
def test_contents_that_fit_no_variable_are_refused(
    symbols: dict[str, NDArray[Any]], error: type[Exception], words: str
) -> None:
    plan = cuda("symbols.cu", "weigh", {"out": np.zeros(32, np.float32), "n": np.uint32(30)})
    with pytest.raises(error, match=words):
        outputs(dataclasses.replace(plan, symbols=symbols))


def plan_of(source: Path, text: str, **changes: Any) -> KernelPlan:
    source.write_text(text)
    out = Buffer("out", "int32", 32, np.zeros(32, np.int32), output=True)
    return KernelPlan(
        source, "k", ("out",), buffers=(out,), grid=(1, 1, 1), block=(32, 1, 1), **changes
    )


def test_include_folders_are_searched_and_watched(tmp_path: Path) -> None:
    folder = tmp_path / "common"
    folder.mkdir()
    header = folder / "step.h"
    text = "#include <step.h>\n__global__ void k(int* out) { out[threadIdx.x] = STEP; }\n"
    plan = plan_of(tmp_path / "k.cu", text, include=(folder,))
    for step in (3, 4):
        header.write_text(f"#define STEP {step}\nvoid host(FILE* f) {{ fclose(f); }}\n")
        assert set(outputs(plan)["out"]) == {step}


@pytest.mark.parametrize("case", BROKEN)
def test_an_error_keeps_its_line(case: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=BROKEN[case]["says"]):
        device().prepare(plan_of(tmp_path / "k.cu", BROKEN[case]["text"]))


def test_a_kernel_does_not_need_its_neighbours(tmp_path: Path) -> None:
    text = (
        "texture<float> t;\n__global__ void other(float* a) { a[0] = tex1Dfetch(t, 0); }\n"
        "__global__ void k(int* out) { out[threadIdx.x] = 5; }\n"
        "__global__ void parent(int* a) { k<<<1, 32>>>(a); }\nint main() {}\n"
    )
    plan = plan_of(tmp_path / "k.cu", text)
    assert set(outputs(plan)["out"]) == {5}
    (made,) = compile_many([cubin_request(plan, "sm_90")])
    assert not isinstance(made, CompileError)


@pytest.mark.parametrize("case", HOSTS)
def test_code_of_the_host_in_a_header_stops_no_kernel(case: str, tmp_path: Path) -> None:
    (tmp_path / "host.h").write_text(HOSTS[case])
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner.h").write_text("#pragma once\nconst int SEEN = 5;\n")
    text = (
        '#include "host.h"\n#ifndef N\n#define N 5\n#endif\nint main() { exit(0); }\n'
        "__global__ void k(int* out) { register int r = N; out[threadIdx.x] = r; }\n"
    )
    assert set(outputs(plan_of(tmp_path / "k.cu", text))["out"]) == {5}


@pytest.mark.parametrize("case", STANDINS)
def test_headers_that_nvcc_finds_are_found(case: str, tmp_path: Path) -> None:
    head, value = STANDINS[case]["head"], STANDINS[case]["is"]
    text = f"{head}\n__global__ void k(int* out) {{ out[threadIdx.x] = 1 + {value}; }}\n"
    assert set(outputs(plan_of(tmp_path / "k.cu", text))["out"]) == {1}


def test_a_stand_in_comes_before_a_library_for_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library's own headers may be of another release than the compiler's."""
    installed = tmp_path / "cuda"
    installed.mkdir()
    (installed / "cublas_v2.h").write_text("#error of another release\n")
    folders = (*cuda_headers(), installed)
    monkeypatch.setattr(nvrtc, "cuda_headers", lambda: folders)
    text = "#include <cublas_v2.h>\n__global__ void k(int* a) { a[threadIdx.x] = sizeof(__half); }"
    assert set(outputs(plan_of(tmp_path / "k.cu", text))["out"]) == {2}
    (tmp_path / "cublas_v2.h").write_text("typedef char __half;\n")  # the user's own is theirs
    assert set(outputs(plan_of(tmp_path / "k.cu", text))["out"]) == {1}


@pytest.mark.skipif(
    not any((folder / "cub").is_dir() for folder in cuda_headers()), reason="needs nqbench[cub]"
)
def test_block_and_warp_parts_of_cub_come_with_the_whole_of_it(tmp_path: Path) -> None:
    text = (KERNELS / "cub_parts.cu").read_text(encoding="utf-8")
    found = outputs(plan_of(tmp_path / "k.cu", text))["out"]
    assert found.tolist() == [LANES.sum(), *LANES[1:]]


@pytest.mark.parametrize(("entry", "groups"), [("rotate", 1), ("rotate_in_tiles", 4)])
@pytest.mark.parametrize("order", ["round_robin", "reverse", "greedy"])
def test_threads_of_a_group_wait_for_one_another(order: str, entry: str, groups: int) -> None:
    values = np.arange(256, dtype=np.int32)
    right = np.roll(values.reshape(groups, -1), -3, axis=1).reshape(-1) + 3
    plan = cuda("symbols.cu", entry, {"values": values}, grid=2, block=128)
    with device(order).prepare(dataclasses.replace(plan, cooperative=True)) as prepared:
        for _ in range(2):
            prepared.launch()
            assert prepared.fetch()["values"].tolist() == right.tolist()


def test_a_grid_sync_needs_a_cooperative_launch_that_fits() -> None:
    values = np.arange(256, dtype=np.int32)
    plan = cuda("symbols.cu", "rotate", {"values": values}, grid=4, block=64)
    with device().prepare(plan) as prepared, pytest.raises(KernelFault, match="not cooperative"):
        prepared.launch()
    many = dataclasses.replace(plan, cooperative=True, grid=(1000, 1, 1))
    with pytest.raises(LaunchError, match="a cooperative launch of 1000 blocks, of which"):
        device().prepare(many)
