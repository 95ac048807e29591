"""The named systems: what each step of a paper changes, and nothing else."""

from __future__ import annotations

import pytest

from nqbench.point import Level
from nqbench.workloads import get
from tests.workloads.running import GPU


def levels(system: str, n: int = 16) -> dict[str, Level]:
    return dict(get("counting").resolve({"n": n}, system, GPU).factors)


STEPS = """
feinbube2010 base -> opt1_shared_stack: memory allocation storage layout
feinbube2010 opt1_shared_stack -> opt2_shared_all: memory
feinbube2010 opt2_shared_all -> opt3_shared_extern: allocation storage
feinbube2010 opt3_shared_extern -> opt4_compact: rows max_board
tanaka2011 none -> conflict_free: layout
tanaka2011 none -> dynamic: assignment
tanaka2011 conflict_free -> both: assignment
tanaka2011 dynamic -> both: layout
zhang2011 naive_l1_16k -> naive_l1_48k: cache
zhang2011 naive_l1_16k -> shared_conflict: memory allocation
zhang2011 shared_conflict -> shared_no_conflict: layout
zhang2011 shared_no_conflict -> low_divergence: loop
zhang2011 low_divergence -> pool_distributed: assignment pool_size
zhang2011 pool_distributed -> pool_monolithic: assignment pool_size blocks
frontier predicated -> lookahead: loop
frontier lookahead -> unrolled: loop assignment encoding adders steps lookahead depth blocks block_size
"""  # noqa: E501


@pytest.mark.parametrize("step", STEPS.strip().splitlines())
def test_a_step_changes_only_what_the_paper_says(step: str) -> None:
    systems, _, factors = step.partition(": ")
    paper, before, _, after = systems.split()
    old, new = levels(f"{paper}.{before}"), levels(f"{paper}.{after}")
    assert {factor for factor in old if old[factor] != new[factor]} == {*factors.split()}


def test_the_44_words_of_zhang() -> None:
    for n in (15, 16, 18):
        resolved = get("counting").resolve({"n": n}, "zhang2011.low_divergence", GPU)
        assert resolved.factors["depth"] == n - 11
        assert resolved.derived["words_per_thread"] == 44


def test_shared_memory_of_feinbube_and_tanaka() -> None:
    """Bytes per thread and per block that the papers' sizes imply."""
    workload = get("counting")
    compact = workload.resolve({"n": 16, "depth": 5}, "feinbube2010.opt4_compact", GPU)
    assert compact.derived["dynamic_shared_bytes"] == 176 * 64
    for n, block, nbytes in ((19, 160, 48640), (19, 48, 14592), (16, 192, 49152)):
        both = workload.resolve({"n": n, "block_size": block}, "tanaka2011.both", GPU)
        assert both.derived["shared_bytes"] == nbytes
