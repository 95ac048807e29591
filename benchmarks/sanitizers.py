"""Does `nqbench check` find what NVIDIA's compute-sanitizer finds? The same kernels under both.

    python -m benchmarks.sanitizers [--out DIR] [--kernels NAME ...]

Runs each kernel of tests/simulator/kernels/planted.cu in the simulator's checked mode and, on a
GPU, under the tools memcheck, racecheck, initcheck and synccheck. Prints a table: which of them
find the planted mistake, and at which line. Exits with 0 if nqbench finds every mistake at its line
and nothing in the kernels without one, with 1 if not, with 2 if compute-sanitizer could not be run.

Needs nvcc and compute-sanitizer, which come with the CUDA toolkit.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from nqbench.devices.simulator import SimDevice
from nqbench.plan import Buffer, KernelPlan
from nqbench.simulator.mistakes import run_checked

SOURCE: Final = Path(__file__).parents[1] / "tests" / "simulator" / "kernels" / "planted.cu"
TOOLS: Final = ("memcheck", "racecheck", "initcheck", "synccheck")
WORDS, BLOCKS, THREADS = 192, 2, 96
LIMIT_S: Final = 60.0
"""A run takes a second or two; a minute means that the kernel hangs, as one of them may."""
PARALLEL: Final = 8
HOST: Final = """
#include <cstdio>
#include <cstring>
#include "{source}"
int main(int, char** words) {{
    int *out, *raw;
    cudaMalloc(&out, {nbytes});
    cudaMalloc(&raw, {nbytes});
    cudaMemset(out, 0, {nbytes});
{launches}
    printf("%s\\n", cudaGetErrorString(cudaDeviceSynchronize()));
}}
"""
LAUNCH: Final = '    if (!strcmp(words[1], "{name}")) {name}<<<{blocks}, {threads}>>>(out, raw);'


@dataclass(frozen=True, slots=True)
class Seen:
    """What a tool says about a kernel: how many mistakes, and lines that it names."""

    count: int
    lines: tuple[int, ...] = ()
    note: str = ""

    def cell(self, right: Sequence[int]) -> str:
        """As a cell of the table; ``right`` are the lines of the planted mistake."""
        if self.note or not self.count:
            return self.note or "-"
        hits = [line for line in self.lines if line in right]
        return f"line {hits[0]}" if hits else f"{self.count} at {self.lines or 'no line'}"


@dataclass(slots=True)
class Planted:
    """A kernel of the file, the kind of its mistake (empty: none) and the lines it stands in."""

    name: str
    kind: str = ""
    lines: list[int] = field(default_factory=list)


def planted() -> list[Planted]:
    """The kernels, as the file's own comments describe them."""
    found: list[Planted] = []
    for number, line in enumerate(SOURCE.read_text(encoding="utf-8").splitlines(), 1):
        if begins := re.match(r"K (\w+)\(", line):
            found.append(Planted(begins[1]))
        if bad := re.search(r"// bad: (.+)", line):
            found[-1].kind = bad[1]
            found[-1].lines.append(number)
    return found


def plan_of(name: str) -> KernelPlan:
    """How every kernel of the file is launched."""
    out = Buffer("out", "int32", WORDS, np.zeros(WORDS, np.int32), restore=True, output=True)
    raw = Buffer("raw", "int32", WORDS)
    return KernelPlan(
        SOURCE, name, ("out", "raw"), buffers=(out, raw), grid=(BLOCKS, 1, 1), block=(THREADS, 1, 1)
    )


def ours(name: str) -> Seen:
    """What nqbench finds."""
    device = SimDevice(checked=True, max_steps=1 << 22)
    found = [finding for _, finding in run_checked(plan_of(name), device.simulation)]
    places = [place for f in found for place in (f.place, f.other) if place]
    return Seen(sum(f.count for f in found), tuple(sorted({place.line for place in places})))


def host_program(kernels: Sequence[Planted]) -> str:
    """A program that launches the kernel which its first word names."""
    launches = "\n".join(
        LAUNCH.format(name=kernel.name, blocks=BLOCKS, threads=THREADS) for kernel in kernels
    )
    return HOST.format(source=SOURCE, nbytes=4 * WORDS, launches=launches)


def theirs(sanitizer: str, program: Path, tool: str, name: str) -> Seen:
    """What one tool of compute-sanitizer finds."""
    command = [sanitizer, "--tool", tool, str(program), name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return Seen(0, note="hangs")
    return parsed(done.stdout + done.stderr)


def parsed(text: str) -> Seen:
    """The summary of a tool's output, and the lines of the file that it names."""
    summary = re.search(r"SUMMARY: (\d+) (?:errors?|hazards? displayed)", text)
    if summary is None:
        last = text.strip().splitlines()[-1:] or ["no output"]
        return Seen(0, note=f"? {last[0][:60]}")
    lines = {int(line) for line in re.findall(rf"{SOURCE.name}:(\d+)", text)}
    return Seen(int(summary[1]), tuple(sorted(lines)))


def tool(name: str) -> str | None:
    """A program of the CUDA toolkit."""
    home = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    places = (home / "bin", home / "compute-sanitizer", home / "extras" / "compute-sanitizer")
    found = shutil.which(name)
    return found or next((str(p / name) for p in places if (p / name).is_file()), None)


def markdown(kernels: Sequence[Planted], seen: dict[str, dict[str, Seen]]) -> str:
    """The table, and how many of the mistakes each side finds at their line."""
    columns = ("nqbench", *TOOLS)
    rows = [
        [k.name, k.kind or "none", *(seen[k.name][c].cell(k.lines) for c in columns)]
        for k in kernels
    ]
    lines = [f"| {' | '.join(row)} |" for row in (["kernel", "mistake", *columns], *rows)]
    lines.insert(1, "|" + "---|" * (2 + len(columns)))
    bad = [k for k in kernels if k.kind]
    us = sum(at_line(seen[k.name]["nqbench"], k) for k in bad)
    them = sum(any(at_line(seen[k.name][t], k) for t in TOOLS) for k in bad)
    wrong = [k.name for k in kernels if not k.kind and any(seen[k.name][c].count for c in columns)]
    lines += [
        "",
        f"Found at its line, of {len(bad)} mistakes: nqbench {us}, compute-sanitizer {them}."
        f" Kernels without a mistake in which something was found: {', '.join(wrong) or 'none'}.",
    ]
    return "\n".join(lines)


def at_line(seen: Seen, kernel: Planted) -> bool:
    """Whether a tool names a line of the mistake."""
    return not set(seen.lines).isdisjoint(kernel.lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both; print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, help="folder for sanitizers.md and sanitizers.json")
    parser.add_argument("--kernels", nargs="*", help="default: all of the file")
    given = parser.parse_args(arguments)
    kernels = [k for k in planted() if not given.kernels or k.name in given.kernels]
    compiler, sanitizer = tool("nvcc"), tool("compute-sanitizer")
    if compiler is None or sanitizer is None:
        missing = "nvcc" if compiler is None else "compute-sanitizer"
        sys.stderr.write(f"{missing} was not found; it comes with the CUDA toolkit\n")
        return 2
    seen = {kernel.name: {"nqbench": ours(kernel.name)} for kernel in kernels}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(PARALLEL) as pool:
        main_file, program = Path(folder) / "main.cu", Path(folder) / "planted"
        main_file.write_text(host_program(kernels), encoding="utf-8")
        options = ["-arch=native", "-lineinfo", "-O3", "-o", str(program), str(main_file)]
        subprocess.run([compiler, *options], check=True)
        pending = {
            (k.name, t): pool.submit(theirs, sanitizer, program, t, k.name)
            for k in kernels
            for t in TOOLS
        }
        for (name, which), future in pending.items():
            seen[name][which] = future.result()
    page = markdown(kernels, seen)
    sys.stdout.write(page + "\n")
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "sanitizers.md").write_text(page + "\n", encoding="utf-8")
        data = {
            name: {t: {"count": s.count, "lines": s.lines, "note": s.note} for t, s in by.items()}
            for name, by in seen.items()
        }
        text = json.dumps(data, indent=1)
        (given.out / "sanitizers.json").write_text(text + "\n", encoding="utf-8")
    wrong = [
        k.name
        for k in kernels
        if (k.kind and not at_line(seen[k.name]["nqbench"], k))
        or (not k.kind and seen[k.name]["nqbench"].count)
    ]
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
