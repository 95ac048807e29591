"""What the memory rules and caches of old chips make of the papers' kernels: the tables of
docs/simulator.md.

    python -m benchmarks.generations [feinbube2010 zhang2011 tanaka2011 brodtkorb_part1] [--n 12]

Counters of the simulator, no times. ``--n`` is the board; Brodtkorb's problems have 1,000 and 2,000
nodes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from nqbench.devices.registry import open_device
from nqbench.workloads import get

Row = Sequence[str]
Counters = Mapping[str, int | float]


def launch(
    spec: str, workload: str, system: str, **levels: Any
) -> tuple[Counters, Mapping[str, Any]]:
    """Counters and detail of one launch, its answer checked."""
    device = open_device(spec)
    work = get(workload)
    factors = work.resolve(levels, system, device.facts).factors
    plan = work.plan(factors, system, device.facts)
    with device.prepare(plan) as prepared:
        launched = prepared.launch()
        if work.answer(plan, prepared.fetch()) != work.expected(factors):
            raise SystemExit(f"{system} on {spec} gives a wrong answer")
    return launched.counters or {}, launched.detail


def millions(value: float) -> str:
    """Such as ``1.39``."""
    value /= 1e6
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def feinbube(n: int) -> Iterator[Row]:
    """Local memory against shared memory, where it is uncached and where it is not."""
    yield ("system", "model", "rules of", "warp instructions, M", "bank conflicts, M",
           "transactions, M", "off-chip bytes, M")  # fmt: skip
    for system in ("base", "opt3_shared_extern", "opt4_compact"):
        for model, of in (
            ("gf8600m_gs", "1.1"),
            ("gtx275", "1.3"),
            ("gtx480", "2.0"),
            ("h100", "9.0"),
        ):
            c, _ = launch(f"sim:{model}:cache", "counting", f"feinbube2010.{system}", n=n)
            moved = c["local_transactions"] + c["global_transactions"]
            counts = (c["warp_instructions"], c["bank_conflicts"], moved, c["dram_bytes"])
            yield (system, model, of, *map(millions, counts))


def zhang(n: int) -> Iterator[Row]:
    """The two splits of 64 KB."""
    yield ("system", "n", "L1, KB", "L1 hits, %", "L2 hits, %", "sectors asked of L2, M")
    for size in (n + 1, n + 2, n + 3):
        for system, nbytes in (("naive_l1_16k", 16), ("naive_l1_48k", 48)):
            c, _ = launch("sim:gtx480:cache", "counting", f"zhang2011.{system}", n=size)
            asked = c["l2_hit_sectors"] + c["l2_miss_sectors"]
            yield (system, str(size), str(nbytes), f"{c['l1_hit_percent']:.1f}",
                   f"{c['l2_hit_percent']:.1f}", millions(asked))  # fmt: skip


def tanaka(n: int) -> Iterator[Row]:
    """The conflict-free layout."""
    yield "system", "model", "shared requests, M", "passes per request", "bank conflicts, M"
    for model in ("gtx280", "gtx480", "gtx560ti"):
        for system in ("none", "conflict_free", "dynamic", "both"):
            c, _ = launch(f"sim:{model}", "counting", f"tanaka2011.{system}", n=n)
            each = c["shared_passes"] / c["shared_requests"]
            yield (system, model, millions(c["shared_requests"]), f"{each:.2f}",
                   millions(c["bank_conflicts"]))  # fmt: skip


def brodtkorb(_: int) -> Iterator[Row]:
    """Transactions per load request of the evaluation and the apply kernel, and the L1."""
    yield ("version", "model", "nodes", "L1, KB", "evaluation: transactions per load",
           "L1 hits, %", "apply: transactions per load")  # fmt: skip
    models = ("gf8600m_gs", "gtx280", "gtx480")
    for model, nodes, version in product(models, (1000, 2000), (2, 3, 4, 5)):
        system = f"brodtkorb_part1.gpu_v{version}"
        c, detail = launch(f"sim:{model}:cache", "local_search", system, n=nodes, iterations=1)
        each = [per_load(detail["kernels"][k]["lines"]) for k in ("evaluation", "apply")]
        l1 = ("16" if version < 3 else "48", f"{c['l1_hit_percent@evaluation']:.1f}")
        l1 = l1 if model == "gtx480" else ("-", "-")
        yield f"v{version}", model, str(nodes), l1[0], each[0], l1[1], each[1]


def per_load(lines: Sequence[Mapping[str, Any]]) -> str:
    """Transactions per load request of global memory."""
    loads = [x for x in lines if x["space"] == "global" and x["opcode"].startswith("ld")]
    return f"{sum(x['passes'] for x in loads) / sum(x['requests'] for x in loads):.2f}"


PAPERS = {
    "feinbube2010": feinbube, "zhang2011": zhang, "tanaka2011": tanaka,
    "brodtkorb_part1": brodtkorb,
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=f"of {', '.join(PAPERS)}")
    parser.add_argument("--n", type=int, default=12, help="board size (default 12)")
    options = parser.parse_args(arguments)
    for paper in options.papers or PAPERS:
        sys.stdout.write(f"\n{paper}: {PAPERS[paper].__doc__}\n\n")
        for number, row in enumerate(PAPERS[paper](options.n)):
            sys.stdout.write(f"| {' | '.join(row)} |\n")
            if not number:
                sys.stdout.write("|" + "---|" * len(row) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
