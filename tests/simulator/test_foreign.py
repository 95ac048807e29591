"""Kernels in files that were written for nvcc: host code, headers, module variables."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nqbench.compiler import nvrtc
from nqbench.compiler.bindings import cuda_headers
from nqbench.compiler.compile import compile_many, cubin_request
from nqbench.errors import CompileError, DeviceError, KernelFault, LaunchError
from nqbench.plan import Buffer, KernelPlan
from tests.simulator.harness import cuda, device, outputs

LANES = np.arange(32)


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


BROKEN = {
    "a kernel that launches one": (
        "__global__ void n() {}\n__global__ void k(int* out) { n<<<1, 1>>>(); }\n",
        r"k\.cu\(2\): error: device-side .* \(kernels that launch kernels run only as plans",
    ),
    "a missing header is named": (
        '#include "sizes.h"\n__global__ void k(int* out) { out[0] = SIZE; }\n',
        r"k\.cu\(2\): error: identifier .SIZE. is undefined; not found: sizes\.h \(k\.cu:1\); put",
    ),
    "a library that wants a host": (
        "#include <thrust/device_vector.h>\n"
        "__global__ void k(int* out) { thrust::device_vector<int> v; out[0] = v[0]; }\n",
        r"k\.cu\(2\): error: .*; thrust/device_vector\.h needs a host compiler; include only",
    ),
    "headers of other machines are not": (
        "#ifdef ARM\n#include <arm.h>\n#endif\n__global__ void k(int* out) { out[0] = none; }\n",
        r"k\.cu\(4\): error: identifier .none. is undefined$",
    ),
    "what an undefined name follows from": (
        "int main() { return 0; }\ntypedef __nv_bfloat16 real;\n"
        "__device__ real one();\n__global__ void k(real* out) { out[0] = one(); }\n",
        r'k\.cu\(2\): error: identifier "__nv_bfloat16" is undefined',
    ),
    "a library for kernels that is not installed": (
        "#include <curand_kernel.h>\n__global__ void k(int* out) { curandState s; }\n",
        r'"curandState" is undefined; curand_kernel\.h is not installed: pip install .nvidia-cur',
    ),
    "a kernel without a body": (
        "__global__ void k(int* out);\n",
        r"k\.cu: kernel k is only declared there; name the file",
    ),
    "lines count with the host code": (
        "int main() {\n return 0;\n}\n__global__ void k(int* out) { out[0] = none; }\n",
        r'k\.cu\(4\): error: identifier "none"',
    ),
    "a device function that the kernel calls": (
        "int main() { f(); }\n__device__ int f() { return none; }\n"
        "__global__ void k(int* out) { out[0] = f(); }\n",
        r'k\.cu\(2\): error: identifier "none"',
    ),
    "a texture": (
        "texture<float> t;\nint main() {}\n"
        "__global__ void k(int* out) { out[0] = tex1Dfetch(t, 0); }\n",
        r"k\.cu\(1\): error: texture is not a template \(texture references are not in CUDA 12",
    ),
    # Nothing silently takes the place of what does not compile.
    "a specialization": (
        "template <typename T> struct Five { static const int value = 4; };\n"
        "template <> struct Five<int> { static const int value = 5; unknown x; };\n"
        "__global__ void k(int* out) { out[threadIdx.x] = Five<int>::value; }\n",
        r"k\.cu\(2\): .*another 'Five' would take its place",
    ),
    "a specialized function": (
        "template <typename T> __device__ int five(T) { return 4; }\n"
        "template <> __device__ int five<int>(int) { return missing; }\n"
        "__global__ void k(int* out) { out[threadIdx.x] = five(1); }\n",
        r"k\.cu\(2\): .*another 'five' would take its place",
    ),
    "an overload, called by a macro": (
        "__device__ int five(double) { return 4; }\n__device__ int five(int) { return missing; }\n"
        "#define CALL five(1)\n__global__ void k(int* out) { out[threadIdx.x] = CALL; }\n",
        r"k\.cu\(2\): .*another 'five' would take its place",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_an_error_keeps_its_line(case: str, tmp_path: Path) -> None:
    text, words = BROKEN[case]
    with pytest.raises(CompileError, match=words):
        device().prepare(plan_of(tmp_path / "k.cu", text))


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


HOSTS = {
    "declarations with types of a missing header": (
        "#include <pthread.h>\ntypedef pthread_t Thread;\n"
        "Thread start(void* (*f)(void*), void* p);\n"
        "void wait_for(const Thread* threads,\n              int count);\n"
    ),
    "a declaration with a constant that is no declaration": "const int five(5);\n#define N five\n",
    "hundreds of types of a missing header": "".join(
        f"typedef void (*Call{i})(GLenum mode, const GLfloat* v);\n" for i in range(300)
    ),
    "a header that wants to be set up": "#ifndef HAVE_TIMER\n#error no timer\n#endif\n",
    "members of the host in a class of the device": (
        "struct Lock {\n  int* at;\n"
        "  Lock() {\n    cudaMalloc(&at, 4);\n    cudaMemset(at, 0, 4);\n  }\n"
        "public: ~Lock() { cudaFree(at); }\n  __device__ int five() { return 5; }\n};\n"
        "#define N Lock().five()\n"
    ),
    "a class of the host's library": "class Log { std::vector<std::string> lines; };\n",
    "an attribute on a line of its own": (
        "#include <vector>\n#include <string>\n[[noreturn]]\nvoid fail(const std::string& s);\n"
        "static std::string f(std::vector<int> v) { fail(v.size()); }\n"
        "::std::string g();\n[[noreturn]]\nstatic __device__ void bad() { __trap(); }\n"
        "#define N (threadIdx.x > 99 ? (bad(), 1) : 5)\n"
    ),
    "programmatic launches": (
        "__device__ int five() {\n  cudaGridDependencySynchronize();\n"
        "  cudaTriggerProgrammaticLaunchCompletion();\n  return 5;\n}\n#define N five()\n"
    ),
    "the same with CUDA's own declarations": (
        "#include <cuda_device_runtime_api.h>\n"
        "__device__ int five() { cudaGridDependencySynchronize(); return 5; }\n#define N five()\n"
    ),
    "a union without a name in a block": (
        "#include <cuda_fp16.h>\ntypedef struct {\n  __extension__ union {\n"
        "    struct { __half d, s; };\n    __half2 both;\n  };\n} Block;\n"
        "__device__ int five() { Block b; b.both = __half2(2, 3); return int(b.d + b.s); }\n"
        "#define N five()\n"
    ),
    "a header under two names": '#include "inner/../inner.h"\n#include "inner.h"\n#define N SEEN\n',
    "number types of cuBLAS": (
        "#include <cublas_v2.h>\n#include <cublasLt.h>\n#include <curand.h>\n"
        "typedef __nv_bfloat16 real;\ncublasHandle_t handle;\n#define N int(float(real(5.f)))\n"
    ),
}


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


STANDINS = {
    "limits": (
        "#include <climits>\n#include <limits>",
        "INT_MAX - std::numeric_limits<int>::max()",
    ),
    "numbers": ("#include <cstdint>\n#include <stdlib.h>", "int(uint64_t(-1) == UINT64_MAX) - 1"),
    "maths": ("#include <cmath>\n#include <float.h>", "int(std::sqrt(4.0) + FLT_MIN) - 2"),
    "groups": (
        "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;",
        "cg::tiled_partition<32>(cg::this_thread_block()).shfl(int(threadIdx.x), 0)",
    ),
    "types": (
        "#include <type_traits>\n#include <utility>\n#include <array>\n#include <functional>\n"
        "template <class T> using Wide = std::bool_constant<(sizeof(T) > 4)>;\n"
        "typedef std::conditional_t<Wide<int>::value, char, std::decay_t<const int&>> Chosen;\n"
        'static_assert(std::is_integral_v<Chosen> && !std::is_signed<unsigned>{}, "");\n'
        "template <size_t... i>\n"
        "__device__ int sum(std::index_sequence<i...>) { return (i + ...); }",
        "std::plus<int>()(std::array<int, 2>{{1, 2}}[1], sum(std::make_index_sequence<3>())) - 5",
    ),
    "halves": ("#include <cuda_fp16.h>", "sizeof(__half) - 2"),
    "constants": ("#include <math_constants.h>", "int(CUDART_PI_F) - 3"),
}


@pytest.mark.parametrize("case", STANDINS)
def test_headers_that_nvcc_finds_are_found(case: str, tmp_path: Path) -> None:
    head, value = STANDINS[case]
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
    text = (
        "#include <cub/cub.cuh>\n#include <cub/device/device_reduce.cuh>\n"
        "#include <thrust/device_vector.h>\n#include <thrust/sort.h>\n"
        "__global__ void k(int* out) {\n  typedef cub::BlockReduce<int, 32> Whole;\n"
        "  typedef cub::WarpScan<int> Scan;\n  __shared__ Whole::TempStorage a;\n"
        "  __shared__ Scan::TempStorage b;\n  int sum = Whole(a).Sum(threadIdx.x), before;\n"
        "  Scan(b).ExclusiveSum(1, before);\n"
        "  out[threadIdx.x] = threadIdx.x ? before : sum;\n}\n"
        "int main() { thrust::device_vector<int> v; thrust::sort(v.begin(), v.end()); }\n"
    )
    found = outputs(plan_of(tmp_path / "k.cu", text))["out"]
    assert found.tolist() == [LANES.sum(), *LANES[1:]]


@pytest.mark.parametrize("order", ["round_robin", "reverse", "greedy"])
def test_blocks_of_a_cooperative_launch_wait_for_one_another(order: str) -> None:
    values = np.arange(256, dtype=np.int32)
    plan = cuda("symbols.cu", "rotate", {"values": values}, grid=4, block=64)
    with device(order).prepare(dataclasses.replace(plan, cooperative=True)) as prepared:
        for _ in range(2):
            prepared.launch()
            assert prepared.fetch()["values"].tolist() == (np.roll(values, -3) + 3).tolist()


def test_a_grid_sync_needs_a_cooperative_launch_that_fits() -> None:
    values = np.arange(256, dtype=np.int32)
    plan = cuda("symbols.cu", "rotate", {"values": values}, grid=4, block=64)
    with device().prepare(plan) as prepared, pytest.raises(KernelFault, match="not cooperative"):
        prepared.launch()
    many = dataclasses.replace(plan, cooperative=True, grid=(1000, 1, 1))
    with pytest.raises(LaunchError, match="a cooperative launch of 1000 blocks, of which"):
        device().prepare(many)
