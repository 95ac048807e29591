"""Occupancy against NVIDIA's own calculator and against values worked out by hand."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import cast, get_args

import pytest

from nqbench.compiler.compiled import occupancy
from nqbench.plan import CachePreference
from nqbench.simulator.models import load_model

CASES = Path(__file__).parent / "occupancy_cases.csv"


def test_agrees_with_nvidias_calculator_and_by_hand() -> None:
    """Rows without a reason are results of ``cudaOccMaxActiveBlocksPerMultiprocessor`` of CUDA
    13.5's cuda_occupancy.h."""
    with CASES.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 170
    with pytest.raises(ValueError, match="block_size is 0"):
        occupancy(load_model("mini").facts, 16, 0, 0)
    for row in rows:
        facts, block = load_model(row["model"]).facts, int(row["block_size"])
        cache = cast(CachePreference, row["cache"])
        got = occupancy(facts, int(row["registers"]), int(row["shared_bytes"]), block, cache)
        assert got.blocks_per_multiprocessor == int(row["blocks"]), row
        assert got.limiter in row["limiters"].split("|"), row
        assert got.warps == got.blocks_per_multiprocessor * -(-block // 32)
        assert got.fraction == got.warps / facts.max_warps_per_multiprocessor
        fixed = replace(facts, shared_carveouts=())
        both = {occupancy(fixed, 16, 4096, block, c) for c in get_args(CachePreference)}
        assert len(both) == 1, row
