"""The modelled time on kernels whose order of speed is known: the record of its ranks.

    python -m benchmarks.rankings [--model h200 --model a100 ...] [SET ...]

Each set has variants of one computation, whose order of speed ``rankings.yaml`` has, with its
source; the sets that the model had not seen when their order was written down are marked. They run
with caches on each model; equal answers are checked. Printed are Spearman's rank correlation of the
modelled times with that order, how many neighbours are in order, how many tie, and the times. The
kernels are in ``rankings.cu``; sizes fill the models and are quick to simulate.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml
from scipy.stats import spearmanr

from nqbench.devices.registry import SimDevice
from nqbench.plan import Argument, Buffer, KernelPlan
from nqbench.simulator.models import CACHE, TIME

SOURCE: Final = Path(__file__).with_suffix(".cu")
ORDERS: Final = yaml.safe_load(SOURCE.with_suffix(".yaml").read_text(encoding="utf-8"))
"""Known and unseen sets: the order of each, and who says so."""
MODELS: Final = ("h200", "a100", "v100", "rtx3090", "gtx480")
TOLD: Final = 1.05
"""Ratio of two times from which on the model tells them apart, as in verdicts; others tie."""
Kernel = tuple[str, KernelPlan]


@dataclass(frozen=True)
class Ranking:
    """Variants of one computation. ``same``: their answers are; ``not_on``: models to which it does
    not apply."""

    name: str
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
        [
            (str(step), plan("global_stride", (1 << 10,), (256,), *whole, np.int32(step)))
            for step in (1, 2, 4, 8)
        ],
        same=False,
    )
    yield Ranking(
        "strides in shared memory",
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
        [("arrays", plan("arrays", *whole)), ("structs", plan("structs", *whole))],
        same=False,
    )
    n, matrix = 1024, matrix[:1024, :1024].copy()
    whole = (n // 256, n), (256,), matrix, ("float32", n * n), np.int32(n)
    yield Ranking(
        "convolution",
        [
            ("shared", plan("filter_shared", *whole)),
            ("global", plan("filter_global", *whole)),
            ("global, a warp along a column", plan("filter_columns", *whole)),
        ],
    )
    rest = matrix, ("float32", n * n), np.int32(n)
    yield Ranking(
        "softmax",
        [
            ("a warp a row", plan("softmax_warp", (n // 8,), (256,), *rest)),
            ("a thread a row", plan("softmax_thread", (n // 128,), (128,), *rest)),
        ],
        same=False,
    )
    numbers, many = np.arange(1 << 18, dtype=np.uint32), ("uint32", 1 << 18)
    yield Ranking(
        "remainders",
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


def unseen() -> Iterator[Ranking]:
    """The sets that the model had not seen when their order was written down."""
    random = np.random.default_rng(1)
    whole: tuple[Any, ...]
    last: tuple[Any, ...]
    places = random.random((1 << 16, 6), np.float32)
    whole, last = ((1 << 8,), (256,)), (("float32", 1 << 16), np.int32(512))
    four = places[:, :4].copy()
    yield Ranking(
        "bodies",
        [
            ("unrolled tiles", plan("bodies_tiles<32>", *whole, four, *last)),
            ("tiles", plan("bodies_tiles<1>", *whole, four, *last)),
            ("arrays", plan("bodies_arrays", *whole, four, *last)),
            ("structs", plan("bodies_structs", *whole, places, *last)),
        ],
    )
    rows, each = 1 << 15, 32
    words = random.random((rows, each), np.float32)
    at = (np.arange(rows)[:, None] + random.integers(-512, 512, (rows, each))) % rows
    at = np.sort(at).astype(np.int32)
    last = random.random(rows, np.float32), ("float32", rows), np.int32(each)
    whole = (rows // 256,), (256,)
    yield Ranking(
        "sparse matrix",
        [
            ("columns", plan("sparse<true>", *whole, words.T.copy(), at.T.copy(), *last)),
            ("rows", plan("sparse<false>", *whole, words, at, *last)),
        ],
    )
    n = 1 << 21
    pair = [random.random(n, np.float32).astype(np.float16) for _ in range(2)]
    yield Ranking(
        "sums of halves",
        [
            (name, plan(f"halves_{of}", (n // of // 256,), (256,), *pair, ("float16", n)))
            for name, of in (("eight", 8), ("two", 2), ("one", 1))
        ],
        not_on=("gtx480",),  # which has no arithmetic of halves, nor have its atomics
    )
    n = 1 << 18
    pair = [random.random(n, np.float32).astype(np.float16) for _ in range(2)]
    yield Ranking(
        "half atomics",
        [
            ("pairs", plan("product_half2", (n // 512,), (256,), *pair, ("float16", 2))),
            ("single", plan("product_half", (n // 256,), (256,), *pair, ("float16", 1))),
        ],
        same=False,
        not_on=("gtx480",),
    )
    tokens, channels = 2048, 768
    size, known = tokens * channels, random.integers(0, 1000, tokens).astype(np.int32)
    tables = [random.random(of * channels, np.float32) for of in (1000, tokens)]
    rest = known, *tables, ("float32", size)
    yield Ranking(
        "encoder",
        [
            (name, plan(entry, (grid,), (256,), *rest, np.int32(channels // of)))
            for name, entry, grid, of in (
                ("four channels a thread", "encode<float4>", size // 1024, 4),
                ("a channel a thread", "encode<float>", size // 256, 1),
                ("a token a thread", "encode_tokens", tokens // 256, 1),
            )
        ],
    )
    last = tables[1], ("float32", size), np.int32(channels)
    yield Ranking(
        "layer norm",
        [
            ("a warp a row", plan("normal_warp<true>", (tokens // 8,), (256,), *last)),
            (
                "a warp a row, three reads",
                plan("normal_warp<false>", (tokens // 8,), (256,), *last),
            ),
            ("a thread a row", plan("normal_thread", (tokens // 256,), (256,), *last)),
        ],
        same=False,  # but for rounding, near 0
    )
    n = 1024
    last = random.random(n * n, np.float32), ("float32", n * n), np.int32(n)
    yield Ranking(
        "box filter",
        [
            ("columns", plan("box<false>", (n // 64,), (64,), *last)),
            ("rows", plan("box<true>", (n // 64,), (64,), *last)),
        ],
        same=False,
    )
    yield Ranking(
        "precision",
        [
            (name, plan(f"chains<{name}>", (1 << 10,), (256,), *last[:2]))
            for name in ("float", "double")
        ],
    )
    whole = (n // 32, n // 32), (32, 8)
    yield Ranking(
        "strided side",
        [
            ("reads", plan("transpose_gather", *whole, *last)),
            ("writes", plan("transpose_naive", *whole, *last)),
        ],
    )


def times(ranking: Ranking, model: str) -> dict[str, float]:
    """Modelled milliseconds of each variant, in the order of its source. Raises ``ValueError``
    where answers differ."""
    found, answers = dict[str, float](), list[Any]()
    device = SimDevice(model, modes=(CACHE, TIME))
    for name, each in ranking.variants:
        with device.prepare(each) as prepared:
            found[name] = float((prepared.launch().counters or {})["modelled_ms"])
            (answer,) = prepared.fetch().values()
            answers.append(answer)
    for (name, _), answer in zip(ranking.variants, answers, strict=True):
        close = np.allclose(answer, answers[0], rtol=1e-4) or ranking.name == "reduction"
        if ranking.same and not (close and np.isclose(answer.sum(), answers[0].sum(), rtol=1e-4)):
            raise ValueError(f"{ranking.name}: the answer of {name!r} differs")
    kind = "unseen" if ranking.name in ORDERS["unseen"] else "known"
    return {name: found[name] for name in ORDERS[kind][ranking.name]["order"]}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the record: a line for each set and model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help="some of them")
    parser.add_argument("--model", action="append", help=f"default: {', '.join(MODELS)}")
    given = parser.parse_args(arguments)
    wrong = 0
    say("| set, fastest first | model | Spearman | in order | modelled, us |")
    say("|---|---|---|---|---|")
    for ranking in chain(rankings(), unseen()):
        if given.sets and ranking.name not in given.sets:
            continue
        for model in (m for m in given.model or MODELS if m not in ranking.not_on):
            found = times(ranking, model)
            rank = float(spearmanr(range(len(found)), [*found.values()])[0])
            ratios = [b / a for a, b in pairwise(found.values())]
            right, exchanged = sum(r > TOLD for r in ratios), sum(r < 1 / TOLD for r in ratios)
            wrong += exchanged
            shown = ", ".join(f"{name} {1e3 * ms:.3g}" for name, ms in found.items())
            tied = len(ratios) - right - exchanged
            order = f"{right} of {len(ratios)}" + (f", {tied} tied" if tied else "")
            say(f"| {ranking.name} | {model} | {rank:.2f} | {order} | {shown} |")
    say(f"{wrong} neighbours are exchanged")
    return 0


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
