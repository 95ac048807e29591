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
def test_memory_is_what_the_papers_say(
    system: str, given: dict[str, Level], name: str, size: int
) -> None:
    assert get("counting").resolve(given, system, GPU).derived[name] == size
