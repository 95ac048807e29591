"""Compiling: instances by name, includes, errors that name the kernel's own line, the cache."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nqbench.compiler import nvrtc
from nqbench.compiler.compile import compile_kernel, compile_many
from nqbench.compiler.compiled import (
    Compiled,
    cache_key,
    check_arguments,
    parameter_sizes,
    read_entry,
    write_entry,
)
from nqbench.compiler.nvrtc import CompileRequest
from nqbench.errors import CompileError, DeviceUnavailable
from nqbench.plan import KernelPlan
from nqbench.system.files import CACHE_ENVIRONMENT, written
from tests.compiling import compile_cubin, compile_ptx

KERNEL = """\
#include "step.cuh"
template <int N>
__global__ void fill(int* out) { out[threadIdx.x] = STEP * N; }
"""

MANY_ERRORS = "__global__ void k() {\n" + "".join(f"u{i} = 1;\n" for i in range(9)) + "}\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv(CACHE_ENVIRONMENT, str(folder))
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A kernel with an include beside it."""
    (tmp_path / "step.cuh").write_text("constexpr int STEP = 3;\n")
    path = tmp_path / "fill.cu"
    path.write_text(KERNEL)
    return path


def test_ptx_holds_the_instance_asked_for_and_line_information(source: Path) -> None:
    made = compile_ptx(source, "fill<5>", "sm_90")
    text = made.image.decode()
    assert made.symbol in text
    assert "ILi5E" in made.symbol
    assert ".target sm_90" in text
    assert ".loc" in text
    assert str(source) in text
    assert ", 15;" in text  # STEP * N, folded


def test_cubin_is_machine_code_for_the_architecture(source: Path) -> None:
    hopper, turing = (compile_cubin(source, "fill<5>", arch) for arch in ("sm_90", "sm_75"))
    assert hopper.image.startswith(b"\x7fELF")
    assert hopper.image[:4] == turing.image[:4]
    assert hopper.image != turing.image
    assert "registers" in hopper.log
    again = compile_cubin(source, "fill<5>", "sm_90")
    assert (hopper.cached, again.cached) == (False, True)
    assert again == hopper  # but for where it came from
    assert len(nvrtc.compiler_version().split(".")) == 3  # with the build's number


@pytest.mark.parametrize("standard", [(), ("--std=c++20",)])
def test_options_reach_the_compiler(source: Path, standard: tuple[str, ...]) -> None:
    source.write_text("__global__ void f(long* o) { *o = __cplusplus + VALUE; }\n")
    made = compile_ptx(source, "f", "sm_90", (*standard, "-DVALUE=7"))
    assert f", {202009 if standard else 201710};" in made.image.decode()
    assert not made.log


CHANGES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "source": {"fill.cu": KERNEL + "// more\n"},
    "include": {"step.cuh": "constexpr int STEP = 4;\n"},
    "entry": {"entry": "fill<6>"},
    "arch": {"arch": "sm_80"},
    "options": {"options": ("-DX=1",)},
    "kind": {"kind": "ptx"},
}


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_misses_the_cache(source: Path, change: str) -> None:
    compile_cubin(source, "fill<5>", "sm_90")
    request = CompileRequest("cubin", source, "fill<5>", "sm_90")
    changed = dict(CHANGES[change])
    for name in [name for name in changed if "." in name]:
        (source.parent / name).write_text(changed.pop(name))
    (made,) = compile_many([replace(request, **changed)])
    assert isinstance(made, Compiled)
    assert made.cached == (change == "nothing")


def test_an_include_of_an_include_counts(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "outer.cuh").write_text('#pragma once\n#include "inner.cuh"\n')
    circle = '#pragma once\n#include "outer.cuh"\n'
    (folder / "inner.cuh").write_text(circle + "constexpr int V = 41;\n")
    source = tmp_path / "k.cu"
    source.write_text('#include "parts/outer.cuh"\n__global__ void k(int* o) { *o = V; }\n')
    assert ", 41;" in compile_ptx(source, "k", "sm_90").image.decode()
    (folder / "inner.cuh").write_text(circle + "constexpr int V = 42;\n")
    assert ", 42;" in compile_ptx(source, "k", "sm_90").image.decode()


@pytest.mark.parametrize(
    ("text", "entry", "arch", "said"),
    [
        ("__global__ void k() { int x = y; }\n", "k", "sm_90", r"bad\.cu\(1\).*\"y\" is undefined"),
        ('\n\n#include "gone.cuh"\n', "k", "sm_90", r"not found: gone\.cuh \(bad\.cu:3\)"),
        ("__global__ void k() {}\n", "l", "sm_90", r"no such entry in bad\.cu.*\"l\""),
        ("__global__ void k(int*) {}\n", "k<3>", "sm_90", r"in bad\.cu: k is no template"),
        ("template <int> __global__ void k() {}\n", "k", "sm_90", r"template.*, k<\.\.\.>"),
        ("namespace a {\n__global__ void k() {} }", "k", "sm_90", r"mean 'a::k'"),
        ("__global__ void f() { __shfl_up(1, 2); }", "f", "sm_90", r"undefined \(gone since"),
        ("__global__ void k() {}\n", "k", "sm_20", r"this NVRTC \(\d+.* knows .*sm_90"),
        ("__global__ void k() {}\n", "k", "90", r"written like sm_90"),
        ('#include "part.cuh"\n__global__ void k() { f(); }\n', "k", "sm_90", r"part\.cuh\(2\)"),
        (MANY_ERRORS, "k", "sm_90", r"\.cu\(2\).*8 more errors"),
    ],
)
def test_errors_are_one_readable_message(
    tmp_path: Path, text: str, entry: str, arch: str, said: str
) -> None:
    (tmp_path / "part.cuh").write_text("\n__device__ int f() { return wrong; }\n")
    source = tmp_path / "bad.cu"
    source.write_text(text)
    with pytest.raises(CompileError, match=said) as caught:
        compile_cubin(source, entry, arch)
    assert "\n" not in str(caught.value)


def test_a_missing_source_and_a_path_option_are_refused(source: Path) -> None:
    with pytest.raises(CompileError, match=r"nowhere\.cu cannot be read"):
        compile_ptx(source.parent / "nowhere.cu", "k", "sm_90")
    for option in ("-I/x", "--time=/x", "-fdevice-time-trace=/x", "--create-pch=/x"):  # they write
        with pytest.raises(CompileError, match=rf"'{option}' is not accepted"):
            compile_ptx(source, "fill<5>", "sm_90", (option,))
    os.mkfifo(source.with_name("pipe.h"))
    source.write_text('#include "pipe.h"')
    with pytest.raises(CompileError, match=r"pipe\.h cannot be read: it is a pipe or a device"):
        compile_ptx(source, "fill<5>", "sm_90")


def test_a_cache_that_cannot_be_written_stops_nothing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(CACHE_ENVIRONMENT, str(tmp_path / "file"))
    assert not compile_ptx(source, "fill<5>", "sm_90").cached
    assert not compile_ptx(source, "fill<5>", "sm_90").cached
    assert compile_ptx(written("k.cu", b"__global__ void k() {}"), "k", "sm_90").image


def test_keys_and_entries_keep_any_text(cache: Path) -> None:
    assert len({cache_key(parts) for parts in (["ab", "c"], ["a", "bc"], ["a", ""], ["a"])}) == 4
    entry = Compiled(b"\n\x00image\n", "_Zé", 'log with\n"lines"\n')
    assert write_entry("ab" * 32, entry)
    assert read_entry("ab" * 32) == entry


def test_compile_many_keeps_order_and_errors(source: Path) -> None:
    seen: list[int] = []
    entries = ["fill<3>", "fill<oops>", "fill<4>"]
    requests = [CompileRequest("ptx", source, entry, "sm_90") for entry in entries]
    found = compile_many(requests, lambda: seen.append(1))
    assert [type(one) for one in found] == [Compiled, CompileError, Compiled]
    names = [one.symbol for one in found if isinstance(one, Compiled)]
    assert ["ILi3E" in names[0], "ILi4E" in names[1]] == [True, True]
    assert len(seen) == 3
    assert compile_many([]) == []


def test_a_missing_compiler_is_a_sentence_with_the_command(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise RuntimeError("Failure finding nvrtc\nsearched: here and there")

    monkeypatch.setattr("cuda.bindings.nvrtc.nvrtcVersion", missing)
    for name in ("_nvrtc", "compiler_version"):
        monkeypatch.setattr(nvrtc, name, getattr(nvrtc, name).__wrapped__)
    words = r"cannot be loaded \(Failure finding nvrtc\); .*pip install 'nvidia-cuda-nvrtc.*>=1\d"
    for compiling in (
        lambda: compile_ptx(source, "fill<5>", "sm_90"),
        lambda: compile_many([CompileRequest("ptx", source, "fill<5>", "sm_90")]),
    ):
        with pytest.raises(DeviceUnavailable, match=words):
            compiling()


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_arguments_must_fit_the_parameters(tmp_path: Path, arch: str) -> None:
    source = tmp_path / "many.cu"
    source.write_text(
        "struct Three { int a, b, c; };\n"
        'extern "C" __global__ void many(char a, double* b, short c, Three d, float e)\n'
        "{ b[0] = a + c + d.c + e; }\n"
    )
    three = np.zeros(1, "i4, i4, i4")[0]
    right = (np.int8(1), "b", np.int16(2), three, np.float32(3))
    plan = KernelPlan(source, "many", right, (1, 1, 1), (1, 1, 1))
    compiled = compile_kernel(plan, arch)
    sizes = parameter_sizes(compiled)
    assert sizes == (1, 8, 2, 12, 4)
    check_arguments(plan, compiled.symbol, sizes, {})
    with pytest.raises(CompileError, match="many takes 5 arguments, but 4 are given"):
        check_arguments(replace(plan, arguments=right[:4]), compiled.symbol, sizes, {})
    wider = replace(plan, arguments=(*right[:4], np.float64(3)))
    with pytest.raises(CompileError, match=r"argument 5 has 8 bytes, but .* parameter has 4"):
        check_arguments(wider, compiled.symbol, sizes, {})
    assert parameter_sizes(replace(compiled, image=compiled.image[:500])) is None


SIGNATURES = Path(__file__).with_name("signatures.cu").read_text(encoding="utf-8")
CPP = "a:float32 b:float32 =x:float32 =n:int32 raw:float64 flags:uint8 any:int16 =p:int64 =k:int32 "
CPP += "quads:float32 halves:float16 =where:uint64 =box:float32 many:uint64 words:int32"
C = "a:float32 =n:uint32 x:float64 =w:uint32 =s:int64"
FITTING: dict[str, tuple[str, str]] = {
    **{"as they are": ("cpp<float, 3>", CPP), "of C": ("c", C)},
    "raw bytes": ("cpp<float, 3>", CPP.replace("a:float32", "a:uint8")),
    "other signs": ("cpp<int, 3>", CPP.replace("float32", "uint32")),
    "bits of halves": ("cpp<float, 3>", CPP.replace("float16", "uint16")),
    "pairs": ("cpp<float, 3>", CPP.replace("b:float32", "b:complex64")),
    "an address": ("cpp<float, 3>", CPP.replace("=where:uint64", "where:float32")),
    "one of two": ("cases", "a:float32"),
    "no address": ("cpp<float, 3>", CPP.replace("any:int16", "=any:int64")),
}
MISFITS: dict[str, tuple[str, str, str]] = {
    "wide": ("cpp<float, 3>", CPP.replace("a:float32", "a:float64"), r"const float\*, .* float64$"),
    "kind": ("cpp<double, 3>", CPP.replace("float32", "int64"), r"s.yaml:1: a: .* const double\*"),
    "flag": ("cpp<float, 3>", CPP.replace("words:int32", "words:bool"), r"unsigned int\*, .* bool"),
    "scalar": ("cpp<float, 3>", CPP.replace("=n:int32", "=n:int64"), "n: .* takes int, .* int64$"),
    "bits": ("cpp<float, 3>", CPP.replace("=n:int32", "=n:float32"), "takes int, .* float32$"),
    "struct": ("cpp<float, 3>", CPP.replace("=p:int64", "=p:int32"), "p: .* takes Pair, .* int32"),
    "buffer": ("cpp<float, 3>", CPP.replace("=n:int32", "n:int32"), "not a buffer of int32"),
    "number": ("cpp<float, 3>", CPP.replace("b:float32", "=b:float32"), "not one float32"),
    "of C": ("c", C.replace("x:float64", "x:float32"), r"x: .* double\*, not float32$"),
    "order": ("c", "x:float64 a:float32 =n:uint32 =w:uint32 =s:int64", r"in this order"),
    "too few": ("c", "a:float32", r"5 arguments \(const float\*, .*\), but 1 is given: a$"),
}


@pytest.mark.parametrize("case", [*FITTING, *(f"not: {name}" for name in MISFITS)])
def test_arguments_of_a_study_have_the_types_of_the_signature(tmp_path: Path, case: str) -> None:
    """``name:dtype`` is a buffer, ``=name:dtype`` a scalar."""
    (tmp_path / "s.cu").write_text(SIGNATURES)
    entry, given, *said = {**FITTING, **{f"not: {n}": m for n, m in MISFITS.items()}}[case]
    pairs = [one.split(":") for one in given.split()]
    arguments = tuple(np.dtype(d).type(0) if n[0] == "=" else n for n, d in pairs)
    names = tuple(f"s.yaml:{i}: {n.strip('=')}" for i, (n, _) in enumerate(pairs, 1))
    geometry = ((1, 1, 1), (1, 1, 1))
    plan = KernelPlan(tmp_path / "s.cu", entry, arguments, *geometry, names=names)
    compiled = compile_kernel(plan, "sm_90")
    caught = pytest.raises(CompileError, match="|".join(said)) if said else nullcontext()
    with caught:
        check_arguments(plan, compiled.symbol, parameter_sizes(compiled), dict(pairs))
