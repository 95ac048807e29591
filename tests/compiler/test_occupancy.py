"""Occupancy against NVIDIA's own calculator and against values worked out by hand."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nqbench.compiler.occupancy import occupancy
from nqbench.plan import CachePreference
from nqbench.simulator.models import load_model, model_names

CASES = Path(__file__).parent / "occupancy_cases.csv"


def test_agrees_with_nvidias_calculator() -> None:
    """Results of ``cudaOccMaxActiveBlocksPerMultiprocessor`` of CUDA 13.5's cuda_occupancy.h."""
    with CASES.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 150
    with pytest.raises(ValueError, match="block_size is 0"):
        occupancy(load_model("mini").facts, 16, 0, 0)
    for row in rows:
        got = occupancy(
            load_model(row["model"]).facts,
            int(row["registers"]),
            int(row["shared_bytes"]),
            int(row["block_size"]),
            cast(CachePreference, row["cache"]),
        )
        assert got.blocks_per_multiprocessor == int(row["blocks"]), row
        assert got.limiter in row["limiters"].split("|"), row


@pytest.mark.parametrize(
    ("model", "registers", "shared", "block", "blocks", "limiter"),
    [
        # larger than a block may be
        ("sm_90", 16, 0, 1025, 0, "warps"),
        # 255 -> 8192 per warp x 32 warps is more than a block's 65536
        ("sm_90", 255, 0, 1024, 0, "registers"),
        # 1.1: 3 warps round up to 4, 4 * 32 * 10 = 1280 registers, a multiple of 256: 8192 // 1280
        ("gf8600m_gs", 10, 0, 96, 6, "registers"),
        # 1.3: 4 * 32 * 10 = 1280 -> 1536 in units of 512: 16384 // 1536 = 10 blocks, but 8 fit
        ("gtx275", 10, 0, 96, 8, "blocks"),
        # 1.3: 8 * 32 * 17 = 4352 -> 4608: 16384 // 4608
        ("gtx275", 17, 0, 256, 3, "registers"),
        # 1.x: 4000 + 16 -> 4096: 16384 // 4096
        ("gtx280", 10, 4000, 64, 4, "shared"),
        # 1.x: a block of 16 KiB leaves no room for the 16 bytes of launch dimensions
        ("gtx280", 10, 16384, 64, 0, "shared"),
        # 1.x: blocks have at most 512 threads
        ("gtx280", 10, 0, 513, 0, "warps"),
        # 2.0: 21 * 32 = 672 -> 704 per warp; 32768 // 704 = 46 warps, 6 per block
        ("gtx480", 21, 0, 192, 7, "registers"),
        # 2.0, Brodtkorb's version 2: 7 blocks of 192 threads, 42 of 48 warps = 87.5%
        ("gtx480", 23, 0, 192, 7, "registers"),
        # 2.1: 6000 -> 6016: 49152 // 6016
        ("gtx560ti", 16, 6000, 64, 8, "blocks"),
        # 3.7: 131072 registers, 64 * 32 = 2048 per warp: 16 per partition, 64 warps
        ("k80", 64, 0, 256, 8, "warps"),
        # 3.7: 112 KiB of shared memory, 10000 -> 10240 per block
        ("k80", 32, 10000, 64, 11, "shared"),
        # 7.0: 96 KiB, 10000 -> 10240 per block
        ("v100", 32, 10000, 64, 9, "shared"),
        # more shared memory than any block may take
        ("sm_90", 16, 232449, 32, 0, "shared"),
    ],
)
def test_hand_computed(
    model: str, registers: int, shared: int, block: int, blocks: int, limiter: str
) -> None:
    facts = load_model(model).facts
    got = occupancy(facts, registers, shared, block)
    assert (got.blocks_per_multiprocessor, got.limiter) == (blocks, limiter)
    assert got.warps == blocks * -(-block // 32)
    assert got.fraction == got.warps / facts.max_warps_per_multiprocessor


@pytest.mark.parametrize(
    ("model", "shared", "cache", "blocks"),
    [
        # 1 KiB is reserved per block; the smallest share of shared memory that holds one is 8 KiB.
        ("sm_90", 0, "prefer_l1", 8),
        ("sm_90", 0, "prefer_shared", 32),
        ("gtx480", 8192, "prefer_shared", 6),  # of 48 KiB
        ("gtx480", 8192, "prefer_l1", 2),  # of 16
        ("gtx480", 20000, "prefer_l1", 2),
    ],
)
def test_asking_for_l1_costs_resident_blocks(
    model: str, shared: int, cache: CachePreference, blocks: int
) -> None:
    facts = load_model(model).facts
    assert occupancy(facts, 16, shared, 32, cache).blocks_per_multiprocessor == blocks
    fixed = replace(facts, shared_carveouts=())
    both = {occupancy(fixed, 16, shared, 32, c) for c in get_args(CachePreference)}
    assert len(both) == 1


@given(
    model=st.sampled_from(model_names()),
    registers=st.integers(0, 255),
    shared=st.integers(0, 240_000),
    block=st.integers(1, 1024),
    more=st.sampled_from(["registers", "shared_bytes"]),
)
def test_more_of_anything_never_helps(
    model: str, registers: int, shared: int, block: int, more: str
) -> None:
    facts = load_model(model).facts
    less: dict[str, Any] = {"registers": registers, "shared_bytes": shared, "block_size": block}
    got = occupancy(facts, **less)
    assert 0 <= got.fraction <= 1
    fuller = less | {more: less[more] + 1}
    assert occupancy(facts, **fuller).blocks_per_multiprocessor <= got.blocks_per_multiprocessor
