"""Machine instructions that NVIDIA's assembler makes of one PTX instruction, by architecture.

    python -m benchmarks.expansions > nqbench/simulator/expansions.toml

compiles a kernel with the instruction and one without it, and counts the machine instructions on
the shortest way through each: divisions and roots leave rare operands (subnormals, 64-bit numbers
above 2^32) to a longer way. It needs nvdisasm (pip package
``nvidia-cuda-nvdisasm``, or a CUDA toolkit) and no GPU.
"""

from __future__ import annotations

import functools
import heapq
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from nqbench.compiler.bindings import cuda_roots
from nqbench.compiler.compile import compile_request
from nqbench.compiler.nvrtc import CompileRequest, compiler_version
from nqbench.simulator.models import REPRESENTATIVES

WHOLE: Final = {"u16": "h", "s16": "h", "u32": "r", "s32": "r", "u64": "l", "s64": "l"}
REAL: Final = {"f32": "f", "f64": "d"}
TYPES: Final = {"h": "unsigned short", "r": "unsigned", "l": "unsigned long long", "f": "float",
                "d": "double"}  # fmt: skip
"""C++ types by the constraint of an operand."""
OPERATIONS: Final = (
    *((f"{name}.{kind}", 2, letter) for name in ("div", "rem") for kind, letter in WHOLE.items()),
    *((f"div.{how}.f32", 2, "f") for how in ("rn", "rn.ftz", "full", "full.ftz")),
    *((f"div.{how}.f32", 2, "f") for how in ("approx", "approx.ftz")),
    *((f"{name}.rn{ftz}.f32", 1, "f") for name in ("rcp", "sqrt") for ftz in ("", ".ftz")),
    *((f"{name}.approx{ftz}.f32", 1, "f") for name in ("rcp", "sqrt") for ftz in ("", ".ftz")),
    *((f"rsqrt.approx{ftz}.f32", 1, "f") for ftz in ("", ".ftz")),
    ("div.rn.f64", 2, "d"), ("rcp.rn.f64", 1, "d"), ("sqrt.rn.f64", 1, "d"),
    ("rsqrt.approx.f64", 1, "d"),
)  # fmt: skip
"""PTX instruction, number of operands, constraint of operands and result."""

_TEXT: Final = re.compile(
    r"^\s+/\*(?P<at>[0-9a-f]{4,})\*/\s+(?P<guard>@!?\w+\s+)?(?P<opcode>[A-Z][\w.]*)(?P<rest>.*)"
)
_LABEL: Final = re.compile(r"^(\.L_x_\d+|\$\S+):")
_TARGET: Final = re.compile(r"`\((\S+)\)")


def source(instruction: str, operands: int, letter: str) -> str:
    """A kernel that does the instruction once, with operands that are known at run time only."""
    type_ = TYPES[letter]
    given = ", ".join(f'"{letter}"(in[{n}])' for n in range(2))
    places = ", ".join(f"%{n + 1}" for n in range(operands))
    return (
        f'extern "C" __global__ void k(volatile {type_}* in, volatile {type_}* out) {{\n'
        f'    {type_} x; asm volatile("{instruction} %0, {places};" : "={letter}"(x) : {given});\n'
        "    out[0] = x;\n}\n"
    )


def disassembler() -> Path | None:
    """Where ``nvdisasm`` is; ``None`` if it is not installed."""
    return next((p for root in cuda_roots() if (p := root / "bin/nvdisasm").is_file()), None)


def disassembled(image: bytes) -> str:
    """The machine code of a cubin as text."""
    program = disassembler()
    if program is None:
        raise SystemExit("nvdisasm is not installed: pip install nvidia-cuda-nvdisasm")
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "k.cubin"
        cubin.write_bytes(image)
        done = subprocess.run([program, "-c", cubin], capture_output=True, text=True, check=True)
    return done.stdout


def way(image: bytes) -> int:
    """Instructions on the shortest way through the kernel ``k``."""
    text = disassembled(image)
    code: list[re.Match[str]] = []
    labels: dict[str, int] = {}
    for line in text[text.index(".text.k:") :].splitlines():
        if label := _LABEL.match(line):
            labels[label[1]] = len(code)
        elif found := _TEXT.match(line):
            code.append(found)
    open_: list[tuple[int, int, tuple[int, ...]]] = [(0, 0, ())]
    seen = set[tuple[int, tuple[int, ...]]]()
    while open_:
        length, at, calls = heapq.heappop(open_)
        if (at, calls) in seen:
            continue
        seen.add((at, calls))
        opcode, guard = code[at]["opcode"].partition(".")[0], code[at]["guard"]
        if opcode == "EXIT" and not guard:
            return length
        if opcode in ("BRA", "CALL"):
            there = labels[_TARGET.findall(code[at]["rest"])[-1]]
            deeper = (*calls, at + 1) if opcode == "CALL" else calls
            heapq.heappush(open_, (length + 1, there, deeper))
        elif opcode == "RET":
            heapq.heappush(open_, (length + 1, calls[-1], calls[:-1]))
        if guard or opcode not in ("BRA", "CALL", "RET"):
            heapq.heappush(open_, (length + 1, at + 1, calls))
    raise ValueError("no way through the kernel ends")


@functools.cache
def length_of(instruction: str, operands: int, letter: str, arch: str) -> int:
    """The length of the way through the kernel with an instruction."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "k.cu"
        file.write_text(source(instruction, operands, letter), encoding="utf-8")
        return way(compile_request(CompileRequest("cubin", file, "k", arch)).image)


def table() -> Iterator[str]:
    """The lines of the file."""
    found: dict[str, dict[str, int]] = {}
    for instruction, operands, letter in OPERATIONS:
        kind = {"h": "u16", "r": "u32", "l": "u64", "f": "f32", "d": "f64"}[letter]
        found[instruction] = {
            arch: length_of(instruction, operands, letter, arch)
            - length_of(f"mov.{kind}", 1, letter, arch)
            for arch in REPRESENTATIVES
        }
    usual = {name: statistics.mode(counts.values()) for name, counts in found.items()}
    yield "# Machine instructions of one PTX instruction, on the way that ordinary operands take."
    yield f"# python -m benchmarks.expansions, NVRTC {compiler_version()}"
    yield "[usual]"
    yield from (f'"{name}" = {count}' for name, count in usual.items())
    for arch in REPRESENTATIVES:
        own = {name: counts[arch] for name, counts in found.items() if counts[arch] != usual[name]}
        if own:
            yield f"[{arch}]"
            yield from (f'"{name}" = {count}' for name, count in own.items())


def main() -> None:
    """Print the file."""
    for line in table():
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
