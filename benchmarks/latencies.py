"""Micro-kernels for the facts of a GPU model: latencies in clocks, rates per clock.

    python -m benchmarks.latencies --device cuda:0

runs one warp through chains of dependent steps, one multiprocessor through requests for 32 lines
each, and the chip through partly written sectors, and prints what the models of the simulator call
each number. Nothing of the counting kernels is in it, so a model may be fed with it. In the
simulator it only shows that the kernels run: clocks count instructions there.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from nqbench.device import Device
from nqbench.devices.registry import open_device
from nqbench.plan import Argument, Buffer, KernelPlan

SOURCE: Final = Path(__file__).with_suffix(".cu")
STEPS: Final = 256
LAUNCHES: Final = 5
SECTOR_WORDS: Final = 8


def clocks(
    device: Device,
    entry: str,
    arguments: tuple[Argument, ...],
    buffers: tuple[Buffer, ...] = (),
    grid: int = 1,
    block: int = 32,
) -> tuple[list[int], float]:
    """Clocks of a kernel, launch by launch, and seconds of the last one (0 if not timed)."""
    told = Buffer("clocks", "int64", 2, zero=True, output=True)
    plan = KernelPlan(
        SOURCE, entry, (*arguments, "clocks"), (grid, 1, 1), (block, 1, 1),
        buffers=(*buffers, told),
    )  # fmt: skip
    found, seconds = [], 0.0
    with device.prepare(plan) as prepared:
        for _ in range(LAUNCHES):
            seconds = prepared.launch().kernel_s or 0.0
            found.append(int(prepared.fetch()["clocks"][0]))
    return found, seconds


def chain(words: int, stride: int) -> Buffer:
    """Words that name the word ``stride`` further on, all lanes side by side."""
    places = (np.arange(words, dtype=np.uint64) + stride) % words
    return Buffer("next", "uint32", words, places.astype(np.uint32))


def measure(device: Device, sectors: int, far: int) -> Iterator[tuple[str, float, str]]:
    """Names of facts, values, and what they are made of."""
    a, b = np.uint32(3), np.uint32(5)

    def step(entry: str, *arguments: Argument, of: Buffer | None = None) -> float:
        buffers = (of,) if of else ()
        return statistics.median(clocks(device, entry, arguments, buffers)[0]) / STEPS

    yield "arithmetic_latency", step("add", a, b) / 2, "(x ^ b) + a, half of it"
    yield "shared_latency", step("shared", np.uint32(1024)), "a load and its address"
    yield "l1_latency", step("l1", "next", of=chain(1024, 32)), "a load and its address"
    yield "l2_latency", step("l2", "next", of=chain(1 << 16, 32)), "a load and its address"
    cold, _ = clocks(device, "memory", ("next",), (chain(far, far // STEPS + 32),))
    yield "memory_latency", max(cold) / STEPS, "the slowest launch: later ones find L2"
    plain = step("branch", np.uint32(STEPS), np.uint32(1))
    yield "predicate_latency + branch_latency", plain, "with an addition and a comparison"
    more = step("special", np.uint32(STEPS), np.uint32(1)) - plain
    yield "special register", more, "beyond the loop above"
    for block in (32, 128, 1024):
        words = Buffer("words", "uint32", 32 * 32 * 8, np.zeros(32 * 32 * 8, np.uint32))
        taken, _ = clocks(device, "lines", ("words", np.uint32(8)), (words,), block=block)
        rate = STEPS * block / statistics.median(taken)
        yield "l1_transactions_per_clock", rate, f"{block // 32} warps on one multiprocessor"
    rounds = 64
    words = Buffer("words", "uint32", SECTOR_WORDS * sectors, zero=True)
    grid = 8 * device.facts.multiprocessors
    arguments = ("words", np.uint32(sectors), np.uint32(rounds))
    _, seconds = clocks(device, "stores", arguments, (words,), grid, 256)
    rate = 32e-9 * sectors * rounds / seconds if seconds else 0.0
    yield "l2 stores, GB/s of sectors", rate, "four bytes of each 32, all in L2"


def main() -> None:
    """Print a line for each fact."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--sectors", type=int, default=1 << 18, help="of the stores: 8 MiB")
    parser.add_argument("--far", type=int, default=1 << 26, help="words of the memory's chain")
    given = parser.parse_args()
    device = open_device(given.device)
    for name, value, what in measure(device, given.sectors, given.far):
        sys.stdout.write(f"{name:36s} {value:9.2f}  {what}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
