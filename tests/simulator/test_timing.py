"""Modelled time: the makespan by hand, a lone warp's clocks by hand, and the mode as a user sees
it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from nqbench.devices.registry import SimDevice, choose_device
from nqbench.errors import DeviceError
from nqbench.plan import Buffer, KernelPlan
from nqbench.simulator import engine
from nqbench.simulator.codegen.kernel import BLOCK_FIELDS
from nqbench.simulator.codegen.writer import SITE_FIELDS
from nqbench.simulator.models import CACHE, PTXAS, TIME, load_model
from nqbench.simulator.ptxas import Assembled
from nqbench.simulator.timing import KernelWork, Rates, makespan, modelled, required, work_of
from nqbench.simulator.translation import build
from nqbench.workloads.counting import Counting
from tests.simulator.harness import RULES, counting, ptx

H100 = load_model("h100")


@pytest.mark.parametrize(
    ("alone", "issue", "per_block", "resident", "crew", "l2", "clocks"),
    [
        ([100], [30], 1, 1, 1, 0, 100),  # a lone warp takes its own time
        # Two that ask for 60% of the issue slots: the other's 30 come on top, as squares.
        ([100, 100], [30, 30], 2, 1, 1, 0, math.hypot(100, 30)),
        ([100, 100], [80, 80], 2, 1, 1, 0, 160),  # 160% of them: both go slower
        ([100, 50], [100, 50], 2, 1, 1, 0, 150),  # nothing but issue: the sum, whatever the order
        ([100, 50], [50, 50], 2, 1, 1, 0, 125),  # 50 at 2/3 of the speed take 75, then 50 alone
        ([10, 20, 30], [0, 0, 0], 1, 1, 2, 0, 40),  # the third block follows the shortest
        ([10, 20, 30], [0, 0, 0], 1, 2, 2, 0, 30),  # or is resident from the start
        ([10, 90, 10, 10], [0, 0, 0, 0], 2, 1, 1, 0, 100),  # a block ends with its last warp
        ([10] * 12, [0] * 12, 1, 2, 3, 0, 20),  # six at a time
        ([10] * 9, [10] * 9, 1, 2, 3, 0, 30),  # six end at once: each crew takes one of the rest
        ([*range(1, 13)], [*range(1, 13)], 1, 5, 1, 0, 78),  # one by one, whatever is resident
        # Two multiprocessors, a warp each: the chip slows both down alike, at every moment.
        ([100, 100], [30, 30], 1, 1, 2, [50, 50], math.hypot(100, 50)),  # the other's 50
        ([100, 100], [30, 30], 1, 1, 2, [80, 80], 160),  # 160% of it
        ([100, 50], [0, 0], 1, 1, 2, [80, 40], 130),  # 160% until the second has ended, at 80
        # Half as fast, so they ask for half. Then 60% + 50%: half of 110% on top of 100, then one.
        ([100, 100], [200, 200], 1, 1, 2, [100, 100], math.hypot(200, 100)),
        ([100, 100], [0, 200], 1, 1, 2, [60, 100], math.hypot(100, 55) + 100),
    ],
)
def test_makespan_by_hand(
    alone: list[float], issue: list[float], per_block: int, resident: int, crew: int,
    l2: list[float] | int, clocks: float,
) -> None:  # fmt: skip
    warps, slots = np.array(alone, float), np.array(issue, float)
    shared = {"issue": slots, "other": 0.7 * slots}  # the scarcest one counts, not their sum
    asked = np.zeros(len(alone)) + l2
    together = {"device_memory": 0.5 * asked, "l2": asked}
    assert makespan(warps, shared, together, per_block, resident, crew) == pytest.approx(clocks)


def test_the_chip_bounds_the_whole() -> None:
    def each(number: float) -> NDArray[np.float64]:
        return np.array([number])

    work = KernelWork(each(1980), {"issue": each(1)}, each(0), each(3_010_000))
    assert modelled(work, H100, 1, 1).seconds == pytest.approx(4.1e-6)  # 3010 GB/s: 1 us as well
    more = modelled(replace(work, memory_bytes=each(30_100_000)), H100, 1, 1)
    assert more.seconds == pytest.approx(1.31e-5)
    assert more.clocks["device_memory"] == pytest.approx(19_800)
    instant = replace(H100, chip=replace(H100.chip, launch_us=0))
    assert modelled(work, instant, 1, 1).seconds == pytest.approx(1e-6)
    for bound in (
        {"l2_bytes": each(76_000_000)},
        {"contended": (19_800 / 3.5, 0)},  # floats on one word
        {"contended": (100, 19_800 / 0.84)},  # whole numbers in 512 bytes
    ):
        assert modelled(replace(work, **bound), H100, 1, 1).seconds == pytest.approx(1.31e-5)
    # 19,800 blocks of two warps, each started 1.19 clocks after the one before.
    tiny = KernelWork(np.ones(39_600), {"issue": np.ones(39_600)}, *np.zeros((2, 39_600)))
    assert modelled(tiny, H100, 2, 32).seconds == pytest.approx(1.19e-5 + 3.1e-6)


def test_a_lone_warp_by_hand() -> None:
    """H100: shared memory 24, arithmetic 5, a predicate's branch 13, the next instruction 5."""
    text = ptx(
        "mov.u32 %r9, %r8; ld.shared.u32 %r1, [s];\nloop:\n"
        "ld.shared.u32 %r1, [s];"  # issues at 0, there at 24
        "add.s32 %r2, %r1, 1;"  # 24, there at 29
        "mov.u32 %r3, %r2;"  # a copy: free
        "setp.lt.s32 %p1, %r3, 9;"  # 29
        "ld.global.u32 %r4, [%rd1];"  # 30, there at 64 (L1), 322 (L2) or 663
        "@%p1 bra loop;",  # 29 + 13 = 42; the next one at 47
        0,
        ".shared .u32 s;",
    )
    block = next(b for b in build(text, "k", RULES).blocks if b.ending == "branch")
    assert block.closing is not None
    instructions = [*block.instructions, block.closing]
    rates = Rates(required(H100), Assembled())
    assert rates.issue_per_clock == 4
    (load,) = (i for i in instructions if i.opcode == "ld" and "global" in i.modifiers)
    for l2, memory, clocks in ((0, 0, 64), (1, 0, 322), (1, 1, 663), (0.5, 0.25, 278.25)):
        assert rates.alone(instructions, {load: rates.off_chip(True, l2, memory)}) == clocks
    # A load that is part of a wider one does not issue, but its word is there no earlier.
    merged = Assembled(dropped={instructions[0]})
    assert Rates(required(H100), merged).alone(instructions[:1], {}) == 24
    # GTX 480: an instruction every 2 clocks, 40, 22, 22, 22: the branch issues at 84, the load's
    # word is there at 64 + 40 (L1 like shared memory), so the branch counts: 84 + 22.
    assert Rates(required(load_model("gtx480")), Assembled()).alone(instructions, {}) == 106
    assert Rates(required(load_model("gtx560ti")), Assembled()).issue_per_clock == 2
    assert Rates(required(load_model("gtx280")), Assembled()).issue_per_clock == 0.25


def test_lanes_that_part_meet_again() -> None:
    """Ten branches, of which four part the lanes: 10 instructions before them, 14 of 5 clocks where
    a side ends."""
    text = ptx("setp.lt.s32 %p1, %r1, 9; @%p1 bra two;\nst.global.u32 [%rd1], %r1;\ntwo:\n", 0)
    program = build(text, "k", RULES)
    counts = np.zeros((1, len(program.blocks), 4), np.int64)
    (head,) = [block.index for block in program.blocks if block.ending == "branch"]
    counts[0, head] = 10, 320, 4, 0
    sites = np.zeros((1, len(program.sites), len(SITE_FIELDS)), np.int64)
    without = replace(H100, chip=replace(H100.chip, reconvergence_latency=None))
    found = [work_of(program, counts, sites, model) for model in (H100, without)]
    assert found[0].alone[0] - found[1].alone[0] == 10 + 14 * 5
    assert found[0].shared["issue"][0] - found[1].shared["issue"][0] == (10 + 14) / 4


def test_what_the_caches_hold_does_not_come_from_device_memory() -> None:
    program = build(ptx("ld.global.u32 %r4, [%rd1]; st.global.u32 [%rd1], %r4;", 0), "k", RULES)
    counts = np.ones((1, len(program.blocks), 4), np.int64)
    counts[:, :, BLOCK_FIELDS.index("lanes")] = 80  # whole sectors
    sites = np.zeros((1, len(program.sites), len(SITE_FIELDS)), np.int64)
    sites[:, :, SITE_FIELDS.index("sectors")] = 10  # 320 bytes loaded, 320 stored
    for hits, l2_bytes, memory_bytes in (
        ((0.0, 0.0), 640, 640),
        ((0.5, 0.0), 480, 480),
        ((0.0, 0.75), 640, 160),
        ((0.5, 0.5), 480, 240),
    ):
        work = work_of(program, counts, sites, H100, hits)
        assert (work.l2_bytes[0], work.memory_bytes[0]) == (l2_bytes, memory_bytes)


def test_what_a_multiprocessor_shares_by_hand() -> None:
    """Four schedulers, 64 integer and 128 multiply-add lanes: two and four warps a clock."""
    text = "ld.shared.u32 %r1, [s]; ld.global.u32 %r4, [%rd1]; add.s32 %r2, %r2, 1;"
    text += "sub.s32 %r5, %r5, 1; fma.rn.f32 %f1, %f1, %f1, %f1; mul.lo.u32 %r3, %r3, %r3;"
    program = build(ptx(text, 0, ".shared .u32 s;"), "k", RULES)
    sites = np.zeros((1, 2, len(SITE_FIELDS)), np.int64)
    told = [SITE_FIELDS.index(name) for name in ("passes", "lines", "from_l2", "from_memory")]
    sites[:, :, told] = 6, 10, 1, 1
    chip = replace(H100.chip, l1_shared_bytes=0, shared_clocks_per_pass=2)
    model = replace(H100, chip=replace(chip, l1_transactions_per_clock=4.0))
    work = work_of(program, np.ones((1, len(program.blocks), 4), int), sites, model, (0.0, 0.75))
    wanted = {"issue": 7 / 4, "integer": 1, "products": 0.5, "memory_pipe": 14.5, "starts": 4}
    assert {name: of[0] for name, of in work.shared.items()} == wanted
    # A clock after the first load, the memory has it; 14 passes and lines follow.
    assert work.alone == 634 + 2 * 14


@pytest.mark.parametrize(("name", "clocks"), [("h100", 2 * 32 / 64), ("rtx3090", 2 * 32 / 2)])
def test_doubles_have_lanes_of_their_own(name: str, clocks: float) -> None:
    text = "fma.rn.f64 %fd1, %fd1, %fd1, %fd1; add.f64 %fd1, %fd1, %fd1; add.f32 %f1, %f1, %f1;"
    program = build(ptx(text, 0), "k", RULES)
    counts, sites = np.ones((1, len(program.blocks), 4), int), np.zeros((1, 0, 1), int)
    work = work_of(program, counts, sites, load_model(name))
    assert work.shared["doubles"] == clocks


def test_the_mode_models_a_time_and_counts_as_before() -> None:
    plan = counting("zhang2011.naive_l1_48k", SimDevice())
    found = []
    for modes in ((PTXAS,), (TIME,), (TIME,), (TIME, CACHE)):
        with SimDevice("mini", modes=modes).prepare(plan) as prepared:
            found.append(dict(prepared.launch().counters or {}))
            assert Counting().answer(plan, prepared.fetch()) == 92
    plain, timed, again, cached = found
    assert again == timed
    milliseconds = timed.pop("modelled_ms")
    assert 0 < milliseconds < 1
    assert cached["modelled_ms"] >= milliseconds  # some accesses miss
    assert timed == plain


COSTS = """
extern "C" __global__ void store(float* p, int stride) { p[threadIdx.x * stride] = 1; }
extern "C" __global__ void sum(float* p, int stride) { atomicAdd(p + threadIdx.x % stride, 1.0f); }
extern "C" __global__ void count(int* p, int stride) { atomicAdd(p + threadIdx.x % stride, 1); }
"""


@pytest.mark.parametrize(
    ("entry", "stride", "bound", "clocks"),
    [
        # 128 bytes in four sectors, in eight halves, in 32 eighths; 1,980 MHz, 7,600 GB/s.
        ("store", 1, "l2", 2 * 128 * 1980 / 7.6e6),
        ("store", 2, "l2", 2 * 256 * (1 + 1.76 * 16 / 28) * 1980 / 7.6e6),
        ("store", 8, "l2", 2 * 1024 * 2.76 * 1980 / 7.6e6),
        # 64 threads add floats to one word, to two words; whole numbers once per warp, or not, and
        # then one after another in the same 512 bytes.
        ("sum", 1, "atomics", 64 * 3.5),
        ("sum", 2, "atomics", 32 * 3.5),
        ("count", 1, "atomics", 2 * 0.84),
        ("count", 2, "atomics", 64 * 0.84),
    ],
)
def test_what_l2_does_one_after_another(
    tmp_path: Path, entry: str, stride: int, bound: str, clocks: float
) -> None:
    source = tmp_path / "costs.cu"
    source.write_text(COSTS, encoding="utf-8")
    kind = "int32" if entry == "count" else "float32"
    words = Buffer("p", kind, 1024, zero=True, output=True)
    plan = KernelPlan(
        source, entry, ("p", np.int32(stride)), (1, 1, 1), (64, 1, 1), buffers=(words,)
    )  # fmt: skip
    with SimDevice("h100", modes=(TIME,)).prepare(plan) as prepared:
        found = prepared.launch().detail["modelled_clocks"]
    assert found[bound] == pytest.approx(clocks)


def test_counters_of_every_warp_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MAX_COUNT_BYTES", 1000)
    plan = counting("zhang2011.low_divergence", SimDevice())
    with (
        SimDevice("mini", modes=(TIME,)).prepare(plan) as prepared,
        pytest.raises(DeviceError, match="warps are too many to keep counters of each"),
    ):
        prepared.launch()


def test_a_model_without_rates_has_no_modelled_time(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(
        "name: own\nlike: cc_8_6\nfacts: {assumed: a sketch, multiprocessors: 2, l2_bytes: 0}\n"
        "about: no clock\n"
    )
    with pytest.raises(DeviceError, match="does not state clock_mhz, bandwidth_gb_per_s, which"):
        SimDevice(str(path), modes=(TIME,))
    assert choose_device("sim:gtx480:time").spec == "sim:gtx480:time"
