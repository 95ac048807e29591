"""The named systems: what each step of a paper changes, and nothing else."""

from __future__ import annotations

import pytest

from nqbench.point import Level
from nqbench.workloads import get
from nqbench.workloads.base import NOT_APPLICABLE
from nqbench.workloads.counting.factors import FACTORS
from nqbench.workloads.counting.systems import SYSTEMS, is_cpu, paper_of
from tests.workloads.running import GPU

KERNEL_SYSTEMS = [system for system in SYSTEMS if not is_cpu(system)]


def levels(system: str, n: int = 16) -> dict[str, Level]:
    return dict(get("counting").resolve({"n": n}, system, GPU).factors)


def test_sixteen_systems_three_of_ours_and_four_host_programs() -> None:
    assert len(KERNEL_SYSTEMS) == 19
    assert [s for s in SYSTEMS if is_cpu(s)] == [
        "cpu.somers",
        "cpu.multicore",
        "cpu.frontier",
        "cpu.frontier_multicore",
    ]
    papers = {"feinbube2010", "tanaka2011", "zhang2011"}
    assert {paper_of(s) for s in KERNEL_SYSTEMS} == {*papers, "frontier"}


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


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("n", [5, 8, 12, 16, 18])
def test_every_system_resolves_to_a_level_for_every_factor(system: str, n: int) -> None:
    workload = get("counting")
    resolved = workload.resolve({"n": n}, system, GPU)
    assert set(resolved.factors) == set(FACTORS)
    assert "auto" not in resolved.factors.values()
    assert workload.resolve(resolved.factors, system, GPU) == resolved
    if is_cpu(system):
        assert {f for f, level in resolved.factors.items() if level != NOT_APPLICABLE} == {"n"}


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
