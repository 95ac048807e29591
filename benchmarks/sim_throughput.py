"""How fast the simulator is: every paper's system on one board, all checks on.

    python -m benchmarks.sim_throughput [--n 12] [--model mini] [--repeat 3] [SYSTEM ...]

``prepare`` is PTX (cached or not), translation and native compilation, which are done once per
kernel; ``JIT`` is translation and native compilation alone. The rate is thread instructions by the
best launch.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from nqbench.devices.base import Device
from nqbench.devices.registry import open_device
from nqbench.devices.sim.launching import SimPrepared
from nqbench.devices.sim.translation import build_cold
from nqbench.plan import KernelPlan
from nqbench.workloads.counting import Counting


@dataclass(frozen=True, slots=True)
class Row:
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


def measure(device: Device, system: str, n: int, repeat: int) -> Row:
    """Simulate one system on a board of ``n``."""
    workload = Counting()
    resolved = workload.resolve({"n": n}, system, device.facts)
    plan = workload.plan(resolved.factors, system, device.facts)
    if not isinstance(plan, KernelPlan):
        raise SystemExit(f"{system} is not a kernel")
    with device.prepare(plan) as prepared:
        start = time.perf_counter()
        assert isinstance(prepared, SimPrepared)
        build_cold(prepared.code)
        jit_s = time.perf_counter() - start
        best, instructions = float("inf"), 0
        for _ in range(repeat):
            start = time.perf_counter()
            launch = prepared.launch()
            best = min(best, time.perf_counter() - start)
            instructions = int((launch.counters or {})["thread_instructions"])
        answer = workload.answer(plan, prepared.fetch())
    return Row(system, instructions, best, jit_s, answer == workload.expected(resolved.factors))


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
    options = parser.parse_args(arguments)
    device = open_device(f"sim:{options.model}")
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
