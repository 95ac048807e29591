"""Modelled time: the makespan by hand, a lone warp's clocks by hand, merged accesses, and the mode
as a user sees it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nqbench.devices.sim.merging import merges

from nqbench.devices.models import CACHE, TIME, load_model
from nqbench.devices.registry import choose_device
from nqbench.devices.sim import SimDevice
from nqbench.devices.sim.timing import Rates, Work, makespan, modelled
from nqbench.devices.sim.translation import MERGED, build
from nqbench.errors import DeviceError
from nqbench.plan import KernelPlan
from nqbench.workloads.counting import Counting
from tests.devices.sim.harness import RULES, ptx, run

MERGING = (*RULES, (MERGED, "on"))
H100 = load_model("h100")


@pytest.mark.parametrize(
    ("alone", "issue", "per_block", "resident", "crew", "clocks"),
    [
        ([100], [30], 1, 1, 1, 100),  # a lone warp takes its own time
        ([100, 100], [30, 30], 2, 1, 1, 100),  # two that ask for 60% of the issue slots do too
        ([100, 100], [80, 80], 2, 1, 1, 160),  # 160% of them: both go slower
        ([100, 50], [100, 50], 2, 1, 1, 150),  # nothing but issue: the sum, whatever the order
        ([100, 50], [50, 50], 2, 1, 1, 125),  # 50 at 2/3 of the speed take 75, then 50 alone
        ([10, 20, 30], [0, 0, 0], 1, 1, 2, 40),  # the third block follows the shortest
        ([10, 20, 30], [0, 0, 0], 1, 2, 2, 30),  # or is resident from the start
        ([10, 90, 10, 10], [0, 0, 0, 0], 2, 1, 1, 100),  # a block ends with its last warp
    ],
)
def test_makespan_by_hand(
    alone: list[float], issue: list[float], per_block: int, resident: int, crew: int, clocks: float
) -> None:
    shared = {"issue": np.array(issue, float), "other": np.zeros(len(issue))}
    span = makespan(np.array(alone, float), shared, per_block, resident, crew)
    assert span == pytest.approx(clocks)


@given(
    warps=st.lists(st.tuples(st.integers(1, 99), st.floats(0, 1)), min_size=1, max_size=12),
    resident=st.integers(1, 4),
    crew=st.integers(1, 3),
)
def test_a_makespan_is_within_its_bounds(
    warps: list[tuple[int, float]], resident: int, crew: int
) -> None:
    alone = np.array([clocks for clocks, _ in warps], float)
    used = alone * [share for _, share in warps]
    span = makespan(alone, {"issue": used}, 1, resident, crew)
    assert span >= max(alone.max(), used.sum() / crew) - 1e-6
    assert span <= alone.sum() + 1e-6


def test_the_chip_bounds_the_whole() -> None:
    work = Work(np.array([1980.0]), {"issue": np.array([1.0])}, 0, 3_352_000)
    assert modelled(work, H100, 1, 1).seconds == pytest.approx(1e-6)  # 3352 GB/s: 1 us as well
    more = modelled(replace(work, memory_bytes=33_520_000), H100, 1, 1)
    assert more.seconds == pytest.approx(1e-5)
    assert more.clocks["device_memory"] == pytest.approx(19_800)
    assert modelled(replace(work, l2_bytes=76_000_000), H100, 1, 1).seconds == pytest.approx(1e-5)


def test_a_lone_warp_by_hand() -> None:
    """H100: shared memory 20, arithmetic 4, a predicate's branch 13, the next instruction 5."""
    text = ptx(
        "mov.u32 %r9, %r8; ld.shared.u32 %r1, [s];\nloop:\n"
        "ld.shared.u32 %r1, [s];"  # issues at 0, there at 20
        "add.s32 %r2, %r1, 1;"  # 20, there at 24
        "mov.u32 %r3, %r2;"  # a copy: free
        "setp.lt.s32 %p1, %r3, 9;"  # 24
        "ld.global.u32 %r4, [%rd1];"  # 25, there at 53 (L1) or 225 (L2)
        "@%p1 bra loop;",  # 24 + 13 = 37; the next one at 42
        0,
        ".shared .u32 s;",
    )
    block = next(b for b in build(text, "k", RULES).blocks if b.ending == "branch")
    rates = Rates(H100.chip)
    assert rates.issue_per_clock == 4
    assert (rates.alone(block, True, set()), rates.alone(block, False, set())) == (53, 225)
    # GTX 480: an instruction every 2 clocks, 40, 22, 22, 22: the branch issues at 84, the load's
    # word is there at 64 + 40 (L1 like shared memory), so the branch counts: 84 + 22.
    assert Rates(load_model("gtx480").chip).alone(block, True, set()) == 106
    assert Rates(load_model("gtx560ti").chip).issue_per_clock == 2
    assert Rates(load_model("gtx280").chip).issue_per_clock == 0.25


LOADS = "ld.shared.u32 %r{0}, [%r9{1}];"
STORES = "st.shared.u32 [%r9{1}], %r{0};"


def accesses(form: str, *offsets: int) -> str:
    return "".join(form.format(i, f"+{o}" if o else "") for i, o in enumerate(offsets))


@pytest.mark.parametrize(
    ("shift", "body", "merged"),
    [
        (4, accesses(LOADS, 0, 4, 8, 12), [4, 4, 4, 4]),
        (4, accesses(LOADS, 0, 4, 8), [4, 4, 4]),  # three words: ptxas loads all four
        (4, accesses(STORES, 0, 4, 8), [2, 2]),  # but it stores what is given
        (4, accesses(LOADS, 4, 8), []),  # two halves of two groups of 8 bytes
        (4, accesses(LOADS, 8, 12), [2, 2]),
        (3, accesses(LOADS, 0, 4, 8, 12), [2, 2, 2, 2]),  # aligned to 8 bytes only
        (2, accesses(LOADS, 0, 4, 8, 12), []),
        (4, accesses(STORES, 12, 0, 8, 4), [4, 4, 4, 4]),  # in any order
        (4, accesses(LOADS, 0) + "add.s32 %r5, %r5, 1;" + accesses(LOADS, 4), [2, 2]),
        (4, accesses(LOADS, 0) + accesses(STORES, 8) + accesses(LOADS, 4), []),
        (4, accesses(LOADS, 0) + "bar.sync 0;" + accesses(LOADS, 4), []),
        (4, accesses(LOADS, 0) + "add.s32 %r9, %r9, 8;" + accesses(LOADS, 4), []),
        (4, accesses(LOADS, 16, 20, 24, 28, 0), [4, 4, 4, 4]),
        (4, "@%p1 " + accesses(LOADS, 0) + accesses(LOADS, 4), []),
    ],
)
def test_accesses_that_ptxas_merges(shift: int, body: str, merged: list[int]) -> None:
    head = f"mov.u32 %r8, %tid.x; shl.b32 %r9, %r8, {shift}; mov.u32 %r7, s; add.s32 %r9, %r7, %r9;"
    program = build(ptx(head + body, 0, ".shared .align 16 .b8 s[4096];"), "k", RULES)
    found = merges(program.blocks, program.symbols.addresses)
    assert [merge.words for merge in found.values()] == merged
    leads = [merge for merge in found.values() if merge.leads]
    assert sum(merge.words for merge in leads) >= len(merged)


def test_merged_accesses_count_as_one_wide_access() -> None:
    """Rows of 44 words by thread, as in Zhang's shared_conflict: against v4 in the source."""
    head = (
        "mov.u32 %r8, %tid.x; mul.lo.s32 %r9, %r8, 176; mov.u32 %r7, s; add.s32 %r9, %r7, %r9;"
        "setp.lt.u32 %p1, %r8, 21; @!%p1 bra done;"
    )
    words = accesses(STORES, 0, 4, 8, 12) + accesses(LOADS, 0, 4, 8)
    wide = "st.shared.v4.u32 [%r9], {%r0, %r1, %r2, %r3};ld.shared.v4.u32 {%r0,%r1,%r2,%r3}, [%r9];"
    tail, space = "\ndone:\n", ".shared .align 16 .b8 s[6000];"
    plain, merged, vector = (
        run(ptx(head + body + tail, 0, space), [], rules=rules).counters
        for body, rules in ((words, RULES), (words, MERGING), (wide, RULES))
    )
    names = ("shared_requests", "shared_passes", "bank_conflicts")
    assert [merged[name] for name in names] == [vector[name] for name in names] == [2, 6, 0]
    assert (plain["shared_requests"], plain["shared_passes"]) == (7, 21)
    assert merged["warp_instructions"] == plain["warp_instructions"]


def test_the_mode_models_a_time_and_counts_as_before() -> None:
    workload, facts = Counting(), load_model("mini").facts
    factors = workload.resolve({"n": 8}, "zhang2011.naive_l1_48k", facts).factors
    plan = workload.plan(factors, None, facts)
    assert isinstance(plan, KernelPlan)
    found = []
    for modes in ((), (TIME,), (TIME,), (TIME, CACHE)):
        with SimDevice("mini", modes=modes).prepare(plan) as prepared:
            found.append(dict(prepared.launch().counters or {}))
            assert workload.answer(plan, prepared.fetch()) == 92
    plain, timed, again, cached = found
    assert again == timed
    milliseconds = timed.pop("modelled_ms")
    assert 0 < milliseconds < 1
    assert cached["modelled_ms"] >= milliseconds  # some accesses miss
    assert timed == plain  # nothing to merge: its shared memory is not used


def test_a_model_without_rates_has_no_modelled_time(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(
        "name: own\nlike: cc_8_6\nfacts: {assumed: a sketch, multiprocessors: 2, l2_bytes: 0}\n"
        "about: no clock\n"
    )
    with pytest.raises(DeviceError, match="does not state clock_mhz, bandwidth_gb_per_s, which"):
        SimDevice(str(path), modes=(TIME,))
    assert choose_device("sim:gtx480:time").spec == "sim:gtx480:time"
