"""How fast the simulator is: every paper's system on one board, all checks on.

    python -m benchmarks.sim_throughput [--n 12] [--model mini] [--checked] [SYSTEM ...]
    python -m benchmarks.sim_throughput --numba [--n 8]

``prepare`` is PTX (cached or not), translation and native compilation, which are done once per
kernel; ``JIT`` is translation and native compilation alone. The rate is thread instructions by the
best launch. ``--checked`` watches every access, as ``nqbench check`` does. ``--numba`` times one
counting loop, with the same threads, in this simulator and in that of numba.cuda.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from nqbench.device import Device
from nqbench.devices.registry import open_simulator
from nqbench.plan import Buffer, KernelPlan
from nqbench.simulator import native
from nqbench.simulator.launching import SimPrepared
from nqbench.simulator.translation import build
from nqbench.workloads.counting import Counting

SOURCE: Final = Path(__file__).with_suffix(".cu")
BLOCK: Final = 32
cuda: Any = None


@dataclass(frozen=True, slots=True)
class SystemCost:
    """One system's cost."""

    system: str
    thread_instructions: int
    launch_s: float
    jit_s: float
    right: bool

    @property
    def rate(self) -> float:
        """Thread instructions per second."""
        return self.thread_instructions / self.launch_s


def measure(device: Device, system: str, n: int, repeat: int) -> SystemCost:
    """Simulate one system on a board of ``n``."""
    workload = Counting()
    resolved = workload.resolve({"n": n}, system, device.facts)
    plan = workload.plan(resolved.factors, system, device.facts)
    if not isinstance(plan, KernelPlan):
        raise SystemExit(f"{system} is not a kernel")
    with device.prepare(plan) as prepared:
        start = time.perf_counter()
        assert isinstance(prepared, SimPrepared)
        build.__wrapped__(*prepared.code.source, native.compile_object)  # not from the cache
        jit_s = time.perf_counter() - start
        best, instructions = float("inf"), 0
        for _ in range(repeat):
            start = time.perf_counter()
            launch = prepared.launch()
            best = min(best, time.perf_counter() - start)
            instructions = int((launch.counters or {})["thread_instructions"])
        answer = workload.answer(plan, prepared.fetch())
    return SystemCost(
        system, instructions, best, jit_s, answer == workload.expected(resolved.factors)
    )


def count(n: int, solutions: Any) -> None:
    """The loop of ``sim_throughput.cu``, for numba.cuda's simulator (which sets ``cuda``)."""
    thread = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if thread >= n * n:
        return
    full = (1 << n) - 1
    first, second = 1 << (thread // n), 1 << (thread % n)
    columns = cuda.local.array(32, np.int32)
    left = cuda.local.array(32, np.int32)
    right = cuda.local.array(32, np.int32)
    free = cuda.local.array(32, np.int32)
    row = found = 0
    columns[0] = first | second
    left[0] = ((first << 1) | second) << 1
    right[0] = ((first >> 1) | second) >> 1
    free[0] = full & ~(columns[0] | left[0] | right[0])
    if second & (first | first << 1 | first >> 1):
        free[0] = 0
    while row >= 0:
        queen = free[row] & -free[row]
        if queen == 0:
            row -= 1
            continue
        free[row] ^= queen
        if columns[row] | queen == full:
            found += 1
            continue
        columns[row + 1] = columns[row] | queen
        left[row + 1] = (left[row] | queen) << 1
        right[row + 1] = (right[row] | queen) >> 1
        row += 1
        free[row] = full & ~(columns[row] | left[row] | right[row])
    solutions[thread] = found


def run_numba(n: int, blocks: int) -> tuple[float, np.ndarray]:
    """Seconds and answers of one launch in numba.cuda's simulator."""
    global cuda
    import numba

    numba.config.ENABLE_CUDASIM = 1  # type: ignore[attr-defined]
    from numba import cuda

    solutions = np.zeros(n * n, np.int32)
    start = time.perf_counter()
    cuda.jit(count)[blocks, BLOCK](n, solutions)
    return time.perf_counter() - start, solutions


def beside_numba(device: Device, n: int, repeat: int) -> None:
    """Time both simulators on the same jobs, one thread each."""
    blocks = -(-n * n // BLOCK)
    plan = KernelPlan(
        SOURCE, "count", (np.int32(n), "solutions"), (blocks, 1, 1), (BLOCK, 1, 1),
        buffers=(Buffer("solutions", "int32", n * n, output=True),),
    )  # fmt: skip
    best, instructions = float("inf"), 0
    with device.prepare(plan) as prepared:
        for _ in range(repeat):
            start = time.perf_counter()
            counters = prepared.launch().counters or {}
            best = min(best, time.perf_counter() - start)
        ours, instructions = prepared.fetch()["solutions"], int(counters["thread_instructions"])
    seconds, theirs = min((run_numba(n, blocks) for _ in range(repeat)), key=lambda run: run[0])
    if not np.array_equal(ours, theirs):
        raise SystemExit(f"N = {n}: the simulators disagree")
    say(f"N = {n}, {n * n} threads, {ours.sum():,} solutions, {instructions:,} instructions")
    for name, spent in (("nqbench", best), ("numba.cuda", seconds)):
        rate, job = instructions / spent / 1e6, spent / n**2 * 1e6
        say(f"{name:12} {spent:12.6f} s {job:12.2f} us per job {rate:10.3f} million/s")
    say(f"ratio {seconds / best:,.0f}")


def say(line: str) -> None:
    """Print at once, also into a pipe."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help="default: all kernels")
    parser.add_argument("--n", type=int, default=12, help="board size (default 12)")
    parser.add_argument(
        "--model", default="mini", help="simulated GPU, with modes (gtx480:cache); default mini"
    )
    parser.add_argument("--repeat", type=int, default=3, help="launches per system, best counts")
    parser.add_argument("--checked", action="store_true", help="as in nqbench check")
    parser.add_argument("--numba", action="store_true", help="compare with numba.cuda's simulator")
    options = parser.parse_args(arguments)
    device = open_simulator(f"sim:{options.model}", checked=options.checked)
    if options.numba:
        beside_numba(device, options.n, options.repeat)
        return
    names = options.systems or [
        name for name, levels in Counting.systems.items() if "memory" in levels
    ]
    row = "{:32} {:>14} {:>9} {:>12} {:>7}"
    say(row.format("system", "instructions", "launch s", "million/s", "JIT s"))
    rows = []
    for name in names:
        rows.append(found := measure(device, name, options.n, options.repeat))
        numbers = f"{found.rate / 1e6:.0f}" + ("" if found.right else " WRONG")
        say(
            row.format(
                name,
                f"{found.thread_instructions:,}",
                f"{found.launch_s:.4f}",
                numbers,
                f"{found.jit_s:.3f}",
            )
        )
    total, seconds = sum(r.thread_instructions for r in rows), sum(r.launch_s for r in rows)
    slowest_jit = max(r.jit_s for r in rows)
    say(
        row.format(
            "all", f"{total:,}", f"{seconds:.4f}", f"{total / seconds / 1e6:.0f}",
            f"{slowest_jit:.3f}",
        )
    )  # fmt: skip


if __name__ == "__main__":
    main()
