"""The planted kernels under compute-sanitizer's four tools, on a GPU: which line each tool names.

    python -m benchmarks.planted [--arch sm_90] [--seconds 25] [KERNEL ...]

Needs nvcc and compute-sanitizer, and nothing of nqbench. One program has all kernels of
``tests/simulator/kernels/planted.cu``; each kernel and tool is a process of its own, eight at a
time. The last lines count the mistakes whose line is named and the right kernels that are reported.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[1] / "tests/simulator/kernels/planted.cu"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
PROGRAM = """
#include <cstdio>
#include <cstring>
#include "planted.cu"
int main(int, char** argv) {{
    int *out, *raw;
    cudaMalloc(&out, 768);
    cudaMalloc(&raw, 768);
    cudaMemset(out, 0, 768);
{launches}
    printf("%s\\n", cudaGetErrorString(cudaDeviceSynchronize()));
}}
"""


class Planted(NamedTuple):
    """The kind of a kernel's mistake (empty: none), the lines it stands in, and which fence is
    missing, if only that: ``__threadfence() after``."""

    kind: str = ""
    lines: frozenset[int] = frozenset()
    fence: str = ""


def planted() -> dict[str, Planted]:
    """Every kernel and what is wrong with it."""
    found: dict[str, Planted] = {}
    name = ""
    for number, line in enumerate(SOURCE.read_text(encoding="utf-8").splitlines(), 1):
        if begins := re.match(r"K (\w+)\(", line):
            name = begins[1]
            found[name] = Planted()
        if bad := re.search(r"// bad: ([a-z ]+)(?:, no (.+))?", line):
            lines, fence = found[name].lines | {number}, bad[2] or found[name].fence
            found[name] = Planted(bad[1], lines, fence)
    return found


def reported(program: Path, name: str, tool: str, seconds: float) -> tuple[bool, set[int]]:
    """Whether a tool reports anything of a kernel, and the lines of ``planted.cu`` that it names;
    a program that hangs is stopped."""
    command = ["compute-sanitizer", "--tool", tool, str(program), name]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as run:
        try:
            raw, _ = run.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)  # the tool and the program
            raw, _ = run.communicate()
    text = raw.decode(errors="replace")
    wrong = bool(
        re.search(r"^=+ +(Error|Warning|Invalid|Uninit|Barrier|Race|Potential)", text, re.M)
    )
    return wrong, {int(line) for line in re.findall(r"planted\.cu:(\d+)", text)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("kernels", nargs="*", metavar="KERNEL")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--seconds", type=float, default=25.0)
    given = parser.parse_args()
    kernels = planted()
    names = given.kernels or list(kernels)
    named = false = mistakes = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(8) as pool:
        source, program = Path(folder, "all.cu"), Path(folder, "all")
        calls = (f'    if (!strcmp(argv[1], "{n}")) {n}<<<2, 96>>>(out, raw);' for n in kernels)
        source.write_text(PROGRAM.format(launches="\n".join(calls)), encoding="utf-8")
        build = ["nvcc", "-lineinfo", f"-arch={given.arch}", f"-I{SOURCE.parent}", "-o"]
        subprocess.run([*build, str(program), str(source)], check=True)
        runs = {
            (name, tool): pool.submit(reported, program, name, tool, given.seconds)
            for name in names
            for tool in TOOLS
        }
        for name in names:
            kind, lines, _ = kernels[name]
            results = {tool: runs[name, tool].result() for tool in TOOLS}
            says = [tool for tool, (wrong, _) in results.items() if wrong]
            right = [tool for tool in says if results[tool][1] & lines]
            mistakes += bool(kind)
            named += bool(kind and right)
            false += bool(not kind and says)
            said = ", ".join(right or says) or "-"
            sys.stdout.write(f"{name:40}  {kind or '-':18}  {said}\n")
    sys.stdout.write(
        f"{named} of {mistakes} mistakes are named at their line;"
        f" {false} of {len(names) - mistakes} right kernels are reported\n"
    )


if __name__ == "__main__":
    main()
