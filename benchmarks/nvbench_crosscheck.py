"""Does nqbench time a kernel as NVIDIA's nvbench does? The same cubin, both tools, one GPU.

    python -m benchmarks.nvbench_crosscheck [--gpu 0] [--rounds 3] [--l2 cold|hot] [--out DIR]

Kernels from 50 microseconds to 1 second: a kernel that waits for a chosen time, and the counting
kernels on several boards. In each round both tools time all of them, each in a fresh process, the
order changing from round to round. Exits with 0 if the medians of every kernel are within 1% or 1
microsecond of each other, whichever is larger; with 1 if not; with 2 if nothing could be run.

nvbench flushes the L2 cache before each launch; so does nqbench here, unless ``--l2 hot``. Needs a
GPU, PyCUDA and the package cuda-bench, whose only dependency, cuda-bindings, nqbench has already.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import nqbench
from benchmarks.crosscheck_sides import CASES, ToolTimes
from nqbench.devices.cuda.query import find_device, gpu_identity, load_pycuda
from nqbench.errors import DeviceUnavailable, NqbenchError
from nqbench.measure.manifest import source_hash

TOOLS: Final = ("nqbench", "nvbench")
LIMIT_S: Final = 300.0
"""One tool needs about a minute for all kernels; five mean that it hangs."""
RELATIVE_LIMIT, ABSOLUTE_LIMIT_S = 0.01, 1e-6
"""Below that, events, launch and clocks differ from one process to the next anyway."""
SHORTEST_S, LONGEST_S = 45e-6, 1.1
"""Kernels that are judged: 50 microseconds to 1 second, with room for what a timer adds."""


@dataclass(frozen=True, slots=True)
class ToolComparison:
    """One kernel, timed by both tools: the medians of the processes, in seconds."""

    kernel: str
    nqbench_s: tuple[float, ...]
    nvbench_s: tuple[float, ...]

    @property
    def medians_s(self) -> tuple[float, float]:
        """The median of nqbench's medians, and that of nvbench's."""
        return statistics.median(self.nqbench_s), statistics.median(self.nvbench_s)

    @property
    def share(self) -> float:
        """The difference as a share of what is allowed."""
        ours_s, theirs_s = self.medians_s
        return abs(ours_s - theirs_s) / max(RELATIVE_LIMIT * theirs_s, ABSOLUTE_LIMIT_S)

    @property
    def in_range(self) -> bool:
        """Whether the kernel is as long as those the check is about."""
        return SHORTEST_S <= self.medians_s[1] <= LONGEST_S

    def line(self) -> str:
        """As a row of the page."""
        ours_s, theirs_s = self.medians_s
        spreads = (max(values) - min(values) for values in (self.nqbench_s, self.nvbench_s))
        judged = "agree" if self.share <= 1 else "DISAGREE"
        cells = (
            f"`{self.kernel}`",
            *(microseconds(s) for s in (ours_s, theirs_s, ours_s - theirs_s)),
            microseconds(max(RELATIVE_LIMIT * theirs_s, ABSOLUTE_LIMIT_S)),
            " / ".join(map(microseconds, spreads)),
            judged if self.in_range else "out of range",
        )
        return f"| {' | '.join(cells)} |"


def verdict(comparisons: Sequence[ToolComparison]) -> tuple[bool, str]:
    """Whether the tools agree, and one sentence. Kernels out of range do not count."""
    judged = [one for one in comparisons if one.in_range]
    if not judged:
        return False, "no kernel took between 50 microseconds and 1 second: nothing was compared"
    times = [one.medians_s[1] for one in judged]
    span = f"{len(judged)} kernels from {microseconds(min(times))} to {microseconds(max(times))} us"
    if bad := [one.kernel for one in judged if one.share > 1]:
        return False, f"nqbench and nvbench disagree on {len(bad)} of {span}: {', '.join(bad)}"
    worst = max(judged, key=lambda one: one.share)
    return True, (
        f"nqbench and nvbench agree on {span}; the largest difference, as a share of what is"
        f" allowed, is {worst.share:.0%} ({worst.kernel})"
    )


def microseconds(seconds: float) -> str:
    """Seconds as microseconds with two decimals."""
    return f"{seconds * 1e6:,.2f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check; print the page; write it if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="default: all")
    parser.add_argument("--gpu", type=int, default=0, help="number of the GPU")
    parser.add_argument("--rounds", type=int, default=3, help="processes per tool")
    parser.add_argument("--l2", choices=("cold", "hot"), default="cold", help="nqbench's L2 cache")
    parser.add_argument("--out", type=Path, help="folder for crosscheck.json and crosscheck.md")
    given = parser.parse_args(arguments)
    words = list(sys.argv[1:] if arguments is None else arguments)
    names = list(dict.fromkeys(given.kernels)) or list(CASES)
    try:
        if unknown := set(names) - set(CASES):
            raise NqbenchError(f"no kernel {unknown.pop()!r}; there is {', '.join(CASES)}")
        if given.rounds < 1:
            raise NqbenchError(f"--rounds {given.rounds}: at least 1")
        require(given.gpu)
        timings = all_rounds(names, given.gpu, given.rounds, cold=given.l2 == "cold")
        comparisons = compare(names, timings)
    except NqbenchError as error:
        sys.stderr.write(f"nvbench_crosscheck: {error}\n")
        return 2
    agree, sentence = verdict(comparisons)
    command = shlex.join(["python", "-m", "benchmarks.nvbench_crosscheck", *words])
    about = environment(given.gpu, given.l2)
    heads = "kernel | nqbench, us | nvbench, us | difference, us | allowed, us | spread, us |"
    lines = [f"| {heads} |", "|---|---:|---:|---:|---:|---:|---|", *(c.line() for c in comparisons)]
    page = (
        f"# Cross-check with nvbench\n\n{sentence}.\n\n"
        + "\n".join(f"- {name}: {text}" for name, text in about.items())
        + "\n\nThe same cubin, launched by both tools on one GPU, in turns. Each time is the median"
        f" over {given.rounds} processes of the median of their samples; *spread* is the range of"
        " these medians, nqbench / nvbench. Allowed: 1% or 1 us, whichever is larger.\n\n"
        + "\n".join(lines)
        + f"\n\n    {command}\n"
    )
    sys.stdout.write(page)
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        result = {"verdict": sentence, "agree": agree, "command": command, "environment": about}
        data = {**result, "kernels": [asdict(c) for c in comparisons], "timings": timings}
        (given.out / "crosscheck.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
        (given.out / "crosscheck.md").write_text(page, encoding="utf-8")
    return 0 if agree else 1


def require(gpu: int) -> None:
    """Raise ``DeviceUnavailable`` in one sentence if the GPU or a package is missing."""
    find_device(load_pycuda(), gpu)
    try:
        found = importlib.util.find_spec("cuda.bench")
    except ModuleNotFoundError:  # not even cuda-bindings, which has the package around it
        found = None
    if found is None:
        raise DeviceUnavailable(
            "nvbench's Python package is not installed; install it with"
            f" {sys.executable} -m pip install cuda-bench"
        )


def all_rounds(names: Sequence[str], gpu: int, rounds: int, *, cold: bool) -> dict[str, list[Any]]:
    """Timings of every round by tool. Raises ``NqbenchError`` with what a tool said."""
    found: dict[str, list[Any]] = {tool: [] for tool in TOOLS}
    for round_ in range(rounds):
        # Who comes first alternates: the GPU is warmer for the second.
        for tool in TOOLS if round_ % 2 == 0 else reversed(TOOLS):
            sys.stderr.write(f"round {round_ + 1} of {rounds}: {tool}\n")
            found[tool].append(one_process(tool, names, gpu, cold=cold))
    return found


def one_process(tool: str, names: Sequence[str], gpu: int, *, cold: bool) -> ToolTimes:
    """What one tool measures in a fresh process."""
    with tempfile.TemporaryDirectory(prefix="nqbench-crosscheck-") as folder:
        out = Path(folder) / "timings.json"
        command = [sys.executable, "-m", "benchmarks.crosscheck_sides", tool, *names]
        command += ["--gpu", str(gpu), "--out", str(out), *(["--cold"] if cold else [])]
        root = Path(__file__).parents[1]
        try:
            done = subprocess.run(
                command, cwd=root, capture_output=True, text=True, timeout=LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise NqbenchError(f"{tool} did not end within {LIMIT_S:g} s") from error
        if done.returncode or not out.exists():
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            reason = lines[-1] if lines else f"exit code {done.returncode}"
            raise NqbenchError(f"{tool} failed: {reason}")
        found: ToolTimes = json.loads(out.read_text(encoding="utf-8"))
        return found


def compare(
    names: Sequence[str], timings: Mapping[str, Sequence[ToolTimes]]
) -> list[ToolComparison]:
    """The kernels side by side. Raises ``NqbenchError`` if the tools ran different code."""
    compared = []
    for name in names:
        if len({found[name]["cubin_sha256"] for tool in TOOLS for found in timings[tool]}) != 1:
            raise NqbenchError(f"{name}: the tools ran different cubins; run again")
        ours, theirs = (
            tuple(statistics.median(found[name]["samples_s"]) for found in timings[tool])
            for tool in TOOLS
        )
        compared.append(ToolComparison(name, ours, theirs))
    return compared


def environment(gpu: int, l2: str) -> dict[str, str]:
    """What the result depends on."""
    identity = gpu_identity(gpu)
    packages = ", ".join(f"{n} {version(n)}" for n in ("cuda-bench", "cuda-bindings", "pycuda"))
    return {
        "GPU": f"{identity['name']}, {identity['uuid']}",
        "driver": f"{identity.get('driver')}, CUDA {identity['cuda_driver']}",
        "versions": f"nqbench {nqbench.__version__}, {packages}",
        "NVRTC": str(identity["nvrtc"]),
        "nqbench sources": source_hash(),
        "L2 cache": f"cold (nvbench), {l2} (nqbench)",
        "Python": sys.version.split()[0],
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


if __name__ == "__main__":
    sys.exit(main())
