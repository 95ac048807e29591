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
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import nqbench
from benchmarks.crosscheck.cases import CASES
from benchmarks.crosscheck.comparison import Comparison, markdown, verdict
from nqbench.devices.cuda.query import find_device, gpu_identity, load_pycuda
from nqbench.errors import DeviceUnavailable, NqbenchError
from nqbench.measure.environment import source_hash

ROOT: Final = Path(__file__).parents[1]
TOOLS: Final = ("nqbench", "nvbench")
LIMIT_S: Final = 300.0
"""One tool needs about a minute for all kernels; five mean that it hangs."""
EXIT_DISAGREE: Final = 1
EXIT_NOTHING_RUN: Final = 2

Timings = Mapping[str, Mapping[str, Any]]
"""By kernel: ``samples_s`` and ``cubin_sha256``."""


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
    try:
        names = chosen(given.kernels)
        if given.rounds < 1:
            raise NqbenchError(f"--rounds {given.rounds}: at least 1")
        require(given.gpu)
        timings = all_rounds(names, given.gpu, given.rounds, cold=given.l2 == "cold")
        comparisons = compare(names, timings)
    except NqbenchError as error:
        sys.stderr.write(f"nvbench_crosscheck: {error}\n")
        return EXIT_NOTHING_RUN
    agree, sentence = verdict(comparisons)
    result = {
        "verdict": sentence,
        "agree": agree,
        "command": shlex.join(["python", "-m", "benchmarks.nvbench_crosscheck", *words]),
        "rounds": given.rounds,
        "environment": environment(given.gpu, given.l2),
        "kernels": [one.as_json() for one in comparisons],
        "timings": {tool: list(timings[tool]) for tool in TOOLS},
    }
    page = markdown(result, comparisons)
    sys.stdout.write(page)
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "crosscheck.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
        (given.out / "crosscheck.md").write_text(page, encoding="utf-8")
    return 0 if agree else EXIT_DISAGREE


def chosen(words: Sequence[str]) -> list[str]:
    """The kernels asked for, all without a word. Raises ``NqbenchError`` for an unknown one."""
    unknown = [word for word in words if word not in CASES]
    if unknown:
        raise NqbenchError(f"no kernel {unknown[0]!r}; there is {', '.join(CASES)}")
    return list(dict.fromkeys(words)) or list(CASES)


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


def all_rounds(
    names: Sequence[str], gpu: int, rounds: int, *, cold: bool
) -> dict[str, list[Timings]]:
    """Timings of every round by tool. Raises ``NqbenchError`` with what a tool said."""
    found: dict[str, list[Timings]] = {tool: [] for tool in TOOLS}
    for round_ in range(rounds):
        # Who comes first alternates: the GPU is warmer for the second.
        for tool in TOOLS if round_ % 2 == 0 else reversed(TOOLS):
            sys.stderr.write(f"round {round_ + 1} of {rounds}: {tool}\n")
            found[tool].append(one_process(tool, names, gpu, cold=cold))
    return found


def one_process(tool: str, names: Sequence[str], gpu: int, *, cold: bool) -> Timings:
    """What one tool measures in a fresh process."""
    with tempfile.TemporaryDirectory(prefix="nqbench-crosscheck-") as folder:
        out = Path(folder) / "timings.json"
        command = [sys.executable, "-m", "benchmarks.crosscheck.side", tool, *names]
        command += ["--gpu", str(gpu), "--out", str(out), *(["--cold"] if cold else [])]
        try:
            done = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise NqbenchError(f"{tool} did not end within {LIMIT_S:g} s") from error
        if done.returncode or not out.exists():
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            reason = lines[-1] if lines else f"exit code {done.returncode}"
            raise NqbenchError(f"{tool} failed: {reason}")
        found: Timings = json.loads(out.read_text(encoding="utf-8"))
        return found


def compare(names: Sequence[str], timings: Mapping[str, Sequence[Timings]]) -> list[Comparison]:
    """The kernels side by side. Raises ``NqbenchError`` if the tools ran different code."""
    compared = []
    for name in names:
        digests = {found[name]["cubin_sha256"] for tool in TOOLS for found in timings[tool]}
        if len(digests) != 1:
            raise NqbenchError(f"{name}: the tools ran different cubins; run again")
        medians = {
            tool: tuple(statistics.median(found[name]["samples_s"]) for found in timings[tool])
            for tool in TOOLS
        }
        compared.append(Comparison(name, medians["nqbench"], medians["nvbench"]))
    return compared


def _version(name: str) -> str:
    """Version of a package; this one may run from its sources, without being installed."""
    return nqbench.__version__ if name == "nqbench" else version(name)


def environment(gpu: int, l2: str) -> dict[str, Any]:
    """What the result depends on."""
    identity = gpu_identity(gpu)
    names = ("nqbench", "cuda-bench", "cuda-bindings", "pycuda")
    return {
        "GPU": f"{identity['name']}, {identity['uuid']}",
        "driver": f"{identity.get('driver')}, CUDA {identity['cuda_driver']}",
        "versions": ", ".join(f"{name} {_version(name)}" for name in names),
        "NVRTC": identity["nvrtc"],
        "nqbench sources": source_hash(),
        "L2 cache": f"cold (nvbench), {l2} (nqbench)",
        "Python": sys.version.split()[0],
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


if __name__ == "__main__":
    sys.exit(main())
