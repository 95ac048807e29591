"""The modelled time on kernels whose order of speed is known: the record of its ranks.

    python -m benchmarks.rankings [--model h200 --model a100 ...] [SET ...]

Each set has variants of one computation from the fastest to the slowest, as its source has them.
They run with caches on each model; equal answers are checked. Printed are Spearman's rank
correlation of the modelled times with that order, how many neighbours are in order, and the times.
The kernels are in ``rankings.cu``; sizes fill the models and are quick to simulate.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.stats import spearmanr

from nqbench.devices.registry import SimDevice
from nqbench.plan import Argument, Buffer, KernelPlan
from nqbench.simulator.models import CACHE, TIME

SOURCE: Final = Path(__file__).with_suffix(".cu")
MODELS: Final = ("h200", "a100", "v100", "rtx3090", "gtx480")
Kernel = tuple[str, KernelPlan]


@dataclass(frozen=True)
class Ranking:
    """Variants from the fastest to the slowest, and who says so. ``same``: their answers are;
    ``not_on``: models to which it does not apply."""

    name: str
    source: str
    variants: Sequence[Kernel]
    same: bool = True
    not_on: Sequence[str] = ()


def plan(
    entry: str, grid: tuple[int, ...], block: tuple[int, ...], *arguments: Any, shared: int = 0
) -> KernelPlan:
    """A launch; an array is an input, and a type with a length an output of zeros."""
    buffers, given = list[Buffer](), list[Argument]()
    for number, argument in enumerate(arguments):
        name = f"b{number}"
        if isinstance(argument, np.ndarray):
            buffers.append(Buffer(name, argument.dtype.name, argument.size, argument.reshape(-1)))
        elif isinstance(argument, tuple):
            dtype, length = argument
            buffers.append(Buffer(name, dtype, length, zero=True, output=True))
        given.append(name if isinstance(argument, np.ndarray | tuple) else argument)
    return KernelPlan(
        SOURCE, entry, tuple(given), _three(grid), _three(block), buffers=tuple(buffers),
        shared_bytes=shared,
    )  # fmt: skip


def _three(shape: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*shape, 1, 1)[:3]
    return x, y, z


def rankings() -> Iterator[Ranking]:
    """All sets."""
    random = np.random.default_rng(0)
    whole: tuple[Any, ...]
    rest: tuple[Any, ...]
    n = 2048
    matrix = random.random((n, n), np.float32)
    shape = (n // 32, n // 32), (32, 8), matrix, ("float32", n * n), np.int32(n)
    yield Ranking(
        "transpose",
        "Ruetsch and Micikevicius, Optimizing Matrix Transpose in CUDA, 2009",
        [
            ("tile, padded", plan("transpose_tile<1>", *shape)),
            ("tile, bank conflicts", plan("transpose_tile<0>", *shape)),
            ("naive", plan("transpose_naive", *shape)),
        ],
    )
    words, out = random.integers(0, 9, 1 << 20, np.uint32), ("uint32", 1 << 12)
    whole = (words.size // 256,), (256,), words, out
    yield Ranking(
        "reduction",
        "Harris, Optimizing Parallel Reduction in CUDA, 2007",
        [
            ("first sum at the load", plan("reduce<3>", (words.size // 512,), *whole[1:])),
            ("sequential", plan("reduce<2>", *whole)),
            ("bank conflicts", plan("reduce<1>", *whole)),
            ("divergent", plan("reduce<0>", *whole)),
        ],
    )
    floats, one = np.ones(1 << 20, np.float32), ("float32", 1)
    whole = (floats.size // 256,), (256,), floats, one
    yield Ranking(
        "atomics",
        "Luitjens, Faster Parallel Reductions on Kepler, 2014",
        [
            ("one per block", plan("sum<2>", *whole)),
            ("one per warp", plan("sum<1>", *whole)),
            ("one per thread", plan("sum<0>", *whole)),
        ],
    )
    data, bins = random.integers(0, 256, 1 << 21, np.uint8), ("uint32", 256)
    whole = (256,), (256,), data, bins, np.int32(data.size)
    yield Ranking(
        "histogram",
        "Sakharnykh, Fast Histograms Using Shared Atomics on Maxwell, 2015",
        [
            ("shared atomics", plan("histogram_shared", *whole)),
            ("global atomics", plan("histogram_global", *whole)),
        ],
        not_on=("gtx480",),  # shared atomics were loops before Maxwell
    )
    n, depth = 1024, 128
    a, b = (random.integers(0, 9, n * depth).astype(np.float32) for _ in range(2))
    rest = a, b, ("float32", n * n), np.int32(n), np.int32(depth)
    whole = (n // 32, n // 32), (32, 32)
    yield Ranking(
        "matrix product",
        "Boehm, How to Optimize a CUDA Matmul Kernel, 2022, kernels 1 to 4",
        [
            ("eight results a thread", plan("product_several", (n // 64, n // 64), (512,), *rest)),
            ("tiles", plan("product_tile", *whole, *rest)),
            ("along rows", plan("product_row", *whole, *rest)),
            ("along columns", plan("product_column", *whole, *rest)),
        ],
        not_on=("gtx480",),  # which has no registers for blocks of 1,024 threads
    )
    field = random.random(1 << 24, np.float32)
    whole = field, ("float32", 1 << 18)
    yield Ranking(
        "strides in memory",
        "CUDA C++ Best Practices Guide, Strided Accesses",
        [
            (str(step), plan("global_stride", (1 << 10,), (256,), *whole, np.int32(step)))
            for step in (1, 2, 4, 8)
        ],
        same=False,
    )
    yield Ranking(
        "strides in shared memory",
        "CUDA C++ Programming Guide, Shared Memory (bank conflicts)",
        [
            (
                str(step),
                plan("bank_stride", (1056,), (256,), ("uint32", 1056 * 256), np.uint32(step)),
            )
            for step in (1, 2, 4, 8, 16, 32)
        ],
        same=False,
    )
    chain = (np.arange(1 << 18, dtype=np.uint32) + 32 * 97) % (1 << 18)
    yield Ranking(
        "occupancy",
        "Volkov, Understanding Latency Hiding on GPUs, 2016",
        [
            (f"{blocks} blocks", plan("occupancy", (1 << 11,), (128,), chain, ("uint32", 1 << 18),
                                      shared=48 * 1024 // blocks))
            for blocks in (8, 2, 1)
        ],
    )  # fmt: skip
    particles = random.random(1 << 22, np.float32)
    whole = (1 << 12,), (256,), particles, ("float32", 1 << 20)
    yield Ranking(
        "layouts",
        "CUDA C++ Best Practices Guide, Coalesced Access to Global Memory",
        [("arrays", plan("arrays", *whole)), ("structs", plan("structs", *whole))],
        same=False,
    )
    n, matrix = 1024, matrix[:1024, :1024].copy()
    whole = (n // 256, n), (256,), matrix, ("float32", n * n), np.int32(n)
    yield Ranking(
        "convolution",
        "Podlozhnyuk, Image Convolution with CUDA, 2007",
        [
            ("shared", plan("filter_shared", *whole)),
            ("global", plan("filter_global", *whole)),
            ("global, a warp along a column", plan("filter_columns", *whole)),
        ],
    )
    rest = matrix, ("float32", n * n), np.int32(n)
    yield Ranking(
        "softmax",
        "Karpathy, llm.c, dev/cuda/softmax_forward.cu, kernels 1 and 3",
        [
            ("a warp a row", plan("softmax_warp", (n // 8,), (256,), *rest)),
            ("a thread a row", plan("softmax_thread", (n // 128,), (128,), *rest)),
        ],
        same=False,
    )
    numbers, many = np.arange(1 << 18, dtype=np.uint32), ("uint32", 1 << 18)
    yield Ranking(
        "remainders",
        "CUDA C++ Best Practices Guide, Division Modulo Operations",
        [
            (name, plan(f"remainders<{kind}>", (1 << 10,), (256,), numbers, many, by(64)))
            for name, kind, by in (
                ("mask", "unsigned, true", np.uint32),
                ("32 bits", "unsigned, false", np.uint32),
                ("64 bits", "unsigned long long, false", np.uint64),
            )
        ],
        same=False,
    )


def times(ranking: Ranking, model: str) -> list[float]:
    """Modelled milliseconds of each variant. Raises ``ValueError`` where answers differ."""
    found, answers = [], list[Any]()
    device = SimDevice(model, modes=(CACHE, TIME))
    for _, each in ranking.variants:
        with device.prepare(each) as prepared:
            found.append(float((prepared.launch().counters or {})["modelled_ms"]))
            (answer,) = prepared.fetch().values()
            answers.append(answer)
    for (name, _), answer in zip(ranking.variants, answers, strict=True):
        close = np.allclose(answer, answers[0], rtol=1e-4) or ranking.name == "reduction"
        if ranking.same and not (close and np.isclose(answer.sum(), answers[0].sum(), rtol=1e-4)):
            raise ValueError(f"{ranking.name}: the answer of {name!r} differs")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the record: a line for each set and model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help="some of them")
    parser.add_argument("--model", action="append", help=f"default: {', '.join(MODELS)}")
    given = parser.parse_args(arguments)
    wrong = 0
    say("| set, fastest first | model | Spearman | in order | modelled, us |")
    say("|---|---|---|---|---|")
    for ranking in rankings():
        if given.sets and ranking.name not in given.sets:
            continue
        for model in (m for m in given.model or MODELS if m not in ranking.not_on):
            found = times(ranking, model)
            rank = float(spearmanr(range(len(found)), found)[0])
            right = sum(a < b for a, b in pairwise(found))
            wrong += right < len(found) - 1
            shown = ", ".join(
                f"{name} {1e3 * ms:.3g}"
                for (name, _), ms in zip(ranking.variants, found, strict=True)
            )
            order = f"{right} of {len(found) - 1}"
            say(f"| {ranking.name} | {model} | {rank:.2f} | {order} | {shown} |")
    say(f"{wrong} orders have an exchange")
    return 0


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
