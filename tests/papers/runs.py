"""Runs of the papers' studies with times that are known, as frames of blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nqbench.analysis.data.observed import Observed, observed
from nqbench.papers.schema import Paper
from tests.analysis.builder import H100, Builder

STEPS = {
    "naive_l1_16k": 12.0,
    "naive_l1_48k": 10.0,
    "shared_conflict": 3.0,
    "shared_no_conflict": 2.0,
    "low_divergence": 1.6,
    "pool_distributed": 1.0,
    "pool_monolithic": 0.9,
}
"""Relative times of the kernels in the invented run."""
POOLS = (64, 128, 256, 512, 1024, 2560, 5120, 10240)
SIZES = (15, 16, 17, 18, 19)


def device(name: str, kind: str = "cuda") -> dict[str, Any]:
    """A device as a manifest has it."""
    spec = "cuda:0" if kind == "cuda" else f"sim:{name}"
    timed = kind == "cuda"
    facts = {"name": name}
    return {"spec": spec, "kind": kind, "timed": timed, "identity": facts, "facts": facts}


def named(builder: Builder, name: str, path: Path = Path("run")) -> Observed:
    """The run of a builder as one of the study ``name``."""
    frame = builder.frame()
    frame.attrs["manifest"]["study"]["name"] = name
    frame.attrs["manifest"]["command"] = ["nqbench", "reproduce", name]
    return observed(frame, path)


def levels(n: int, **own: Any) -> dict[str, Any]:
    return {"n": n, "depth": n - 11, "block_size": 128, "blocks": "from_jobs"} | own


def zhang(
    *,
    steps: Mapping[str, float] = STEPS,
    sizes: Sequence[int] = SIZES,
    dev: Mapping[str, Any] = H100,
    **options: Any,
) -> Builder:
    """Zhang's kernels over N, and the pool sweep at the sizes."""
    builder = Builder(dev, **options)
    for n in sizes:
        base_s = 1e-3 * 7.5 ** (n - 15)
        for name, step in steps.items():
            own = {"pool_size": 512} if name == "pool_distributed" else {}
            builder.time("kernels", levels(n, **own), step * base_s, f"zhang2011.{name}")
        builder.time("pool", levels(n, block_size=32), 2.0 * base_s, "zhang2011.low_divergence")
        for pool in POOLS:
            own = {"block_size": 32, "pool_size": pool}
            time_s = (2.2 if pool == POOLS[-1] else 1.2) * base_s
            builder.time("pool", levels(n, **own), time_s, "zhang2011.pool_distributed")
    return builder


def tiny_paper(*claims: Mapping[str, Any]) -> Paper:
    """A paper with two systems and the claims given."""
    filled = [
        {
            "id": f"claim_{i}",
            "statement": "it is so",
            "section": "1",
            "kind": "ratio",
            "value_origin": "printed",
            "architecture_dependent": "true",
            "n": ["15"],
            **claim,
        }
        for i, claim in enumerate(claims)
    ]
    cards = [("gtx275", "GTX 275"), ("gtx480", "GTX480")]
    return Paper.model_validate(
        {
            "schema": "nqbench-paper/2",
            "id": "zhang2011",
            "source": {"title": "A paper", "authors": ["Somebody"]},
            "hardware": [
                {"id": key, "kind": "gpu", "name": name, "role": "r"} for key, name in cards
            ],
            "systems": [],
            "tables": [],
            "figures": [],
            "claims": filled,
            "parameters": [],
            "checks": [],
            "caveats": [{"id": "odd", "kind": "paper_error", "text": "it says otherwise"}],
        }
    )
