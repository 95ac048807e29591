"""What of a file written for nvcc is host code."""

from __future__ import annotations

import re

import pytest

from nqbench.compiler.host import marks_of, pieces, without

CASES = {
    "a kernel": ("__global__ void kept() { int a[2] = {1, 2}; }", ["kept"]),
    "its helpers": ("__device__ int kept1() {}\nint gone() {}\n__host__ __device__ int kept2() {}",
                    ["kept1", "kept2"]),
    "a template": ("template <class T, int N = (1 < 2)>\n__global__ void kept(T* a) {}\n"
                   "template <class T> void gone(T a) { a(); }", ["kept"]),
    "linkage": ('extern "C" __global__ void kept() {}\nextern "C" {\nvoid gone() {}\n'
                "__global__ void kept2() {}\n}", ["kept", "kept2"]),
    "namespaces": ("namespace a { namespace {\nvoid gone() {}\n__device__ void kept() {} } }",
                   ["kept"]),
    "a constant expression": ("constexpr int kept(int a) { return a; }\nint gone() {}", ["kept"]),
    "macros that stand for a mark": (
        "#define KERNEL extern __global__\n#define BOTH \\\n  __host__ __device__\n"
        "KERNEL void kept() {}\nBOTH int kept2() {}\nHOST int gone() {}", ["kept", "kept2"]),
    "launch bounds": ("__global__ void __launch_bounds__(256, 2) kept(int a) {}", ["kept"]),
    "classes": ("struct kept { int a() { return 1; } } x;\nclass __align__(16) kept2 { int b; };\n"
                "kept gone() { return x; }", ["kept", "kept2"]),
    "a result that is a structure": ("struct A gone() { return {}; }\nstruct kept { int a; };",
                                     ["kept"]),
    "variables": ("int kept[] = {1, 2};\n__constant__ float kept2[4];",
                  ["kept", "kept2"]),
    "braces in text and comments": (
        'void gone() { puts("}"); char c = \'}\'; /* } */ // }\n auto r = R"x(})x"; }\n'
        "__global__ void kept() {}", ["kept"]),
    "directives in host code": (
        "void gone() {\n#ifdef A\n  one(\n#else\n  two(\n#endif\n  1);\n}\n"
        "__global__ void kept() {}", ["kept"]),
    "operators": (
        "__device__ bool operator==(A kept, A b) { return true; }\n"
        "A& operator+=(A& gone, A b) {}\nbool operator<=(A gone, A b) {}\n"
        "__global__ void kept2() {}", ["kept", "kept2"]),
    "declarations": ("void gone(int);\n__global__ void kept(int* a);", ["kept"]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_host_functions_go_and_lines_stay(case: str) -> None:
    text, names = CASES[case]
    host = [p for p in pieces(text, marks_of(text)) if p.function and not p.device]
    left = without(text, host)
    assert left.count("\n") == text.count("\n")
    assert [n for n in re.findall(r"\b(?:kept|gone)\d?\b", left) if n != "gone"][
        : len(names)
    ] == names
    assert "gone" not in left
    directives = [line for line in text.split("\n") if line.startswith("#")]
    assert [line for line in left.split("\n") if line.startswith("#")] == directives
    for name in names:  # where it was
        assert _line(left, name) == _line(text, name)


def _line(text: str, name: str) -> int:
    found = re.search(rf"\b{name}\b", text)
    assert found is not None
    return text.count("\n", 0, found.start())
