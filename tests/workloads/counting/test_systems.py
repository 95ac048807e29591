"""The named systems have the memory that their papers say."""

from __future__ import annotations

import pytest

from nqbench.point import Level
from nqbench.workloads import get
from tests.workloads.running import GPU


@pytest.mark.parametrize(
    ("system", "given", "name", "size"),
    [
        *(("zhang2011.low_divergence", {"n": n}, "words_per_thread", 44) for n in (15, 16, 18)),
        ("feinbube2010.opt4_compact", {"n": 16, "depth": 5}, "dynamic_shared_bytes", 176 * 64),
        ("tanaka2011.both", {"n": 19, "block_size": 160}, "shared_bytes", 48640),
        ("tanaka2011.both", {"n": 19, "block_size": 48}, "shared_bytes", 14592),
        ("tanaka2011.both", {"n": 16, "block_size": 192}, "shared_bytes", 49152),
    ],
)
def test_memory_is_as_in_papers(system: str, given: dict[str, Level], name: str, size: int) -> None:
    assert get("counting").resolve(given, system, GPU).derived[name] == size
