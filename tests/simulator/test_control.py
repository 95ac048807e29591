"""Control flow: answers, divergence and loop counts, barriers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from nqbench.simulator.translation import build
from tests.simulator.harness import RULES, Arrays, cuda, device, outputs, ptx, run
from tests.simulator.lockstep import nested


def test_nested_loops_in_cuda() -> None:
    values = np.random.default_rng(2).integers(-1000, 1000, 32).astype(np.int32)
    arrays: Arrays = {"in": values, "out": np.zeros(32, np.int32), "rounds": np.int32(23)}
    assert (
        outputs(cuda("flow.cu", "nested", arrays))["out"].tolist() == nested(values.tolist(), 23)[0]
    )


NESTED = """
mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; ld.param.u64 %rd1, [p0]; add.s64 %rd1, %rd1, %rd2;
ld.global.u32 %r2, [%rd1]; rem.u32 %r3, %r1, 7; mov.u32 %r4, 0;
outer:
xor.b32 %r5, %r2, %r4; and.b32 %r5, %r5, 1; setp.eq.u32 %p1, %r5, 1; @%p1 bra odd;
mov.u32 %r6, 0; setp.eq.u32 %p2, %r3, 0; @%p2 bra leave;
inner:
rem.s32 %r7, %r2, 5; setp.eq.s32 %p3, %r7, 0; @%p3 bra leave;
mad.lo.s32 %r2, %r2, 3, %r6; add.u32 %r6, %r6, 1; setp.lt.u32 %p4, %r6, %r3; @%p4 bra inner;
leave:
xor.b32 %r2, %r2, %r4; bra next;
odd:
add.s32 %r2, %r2, 3;
next:
add.u32 %r4, %r4, 1; setp.lt.u32 %p5, %r4, 23; @%p5 bra outer;
ld.param.u64 %rd3, [p1]; add.s64 %rd3, %rd3, %rd2; st.global.u32 [%rd3], %r2;
"""


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nested_loops_against_a_lockstep_warp(seed: int) -> None:
    """The same loops branch by branch: iterations and splits are those of the emulation."""
    values = np.random.default_rng(seed).integers(-1000, 1000, 32).astype(np.int32)
    result = run(ptx(NESTED, 2), [values, np.zeros(32, np.int32)])
    want, warp = nested(values.tolist(), 23)
    assert result.buffers[1].tolist() == want
    assert warp.iterations["outer"] == 22
    assert result.counters["loop_iterations"] == sum(warp.iterations.values())
    assert result.counters["divergent_branches"] == sum(warp.splits.values())
    odd, enter, leave, repeat, outer = (
        line["divergent"] for line in result.lines if line["opcode"] == "bra"
    )
    assert (odd, enter + repeat, leave, outer) == (
        warp.splits["odd"], warp.splits["bound"], warp.splits["break"], 0,
    )  # fmt: skip


CONTINUE = """
mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [p0]; mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd1, %rd1, %rd2; mov.u32 %r2, 0; mov.u32 %r3, 0;
head:
add.u32 %r2, %r2, 1;
add.u32 %r4, %r2, %r1; and.b32 %r4, %r4, 3; setp.eq.u32 %p1, %r4, 0;
setp.gt.u32 %p2, %r2, 12;
@%p2 bra done;
@%p1 bra head;
mad.lo.u32 %r3, %r3, 3, %r2;
bra head;
done:
st.global.u32 [%rd1], %r3;
"""


def test_continue_to_the_head_waits_for_the_rest_of_the_warp() -> None:
    """A jump back to the loop's head from its middle: without a common latch the lanes that take
    it run ahead, and the loop has more iterations than any lane."""
    result = run(ptx(CONTINUE, 1), [np.zeros(32, np.uint32)])
    want = []
    for t in range(32):
        x = 0
        for i in range(1, 13):
            x = (3 * x + i) & 0xFFFFFFFF if (i + t) % 4 else x
        want.append(x)
    assert result.buffers[0].tolist() == want
    assert result.counters["loop_iterations"] == 12
    # The branch that continues splits every time; the one that leaves never does.
    assert result.counters["divergent_branches"] == 12
    # 10 before, 12 rounds of 7 + 2, the last of 6, store, ret.
    assert result.counters["warp_instructions"] == 6 + 12 * 9 + 6 + 2
    lanes = 32 * (6 + 12 * 7 + 6 + 2) + 12 * 24 * 2
    assert result.counters["thread_instructions"] == lanes


def test_predicated_instructions_count_the_lanes_whose_guard_holds() -> None:
    body = """
    mov.u32 %r1, %tid.x; mov.u32 %r2, 5; setp.lt.u32 %p1, %r1, 10;
    @%p1 add.u32 %r2, %r2, %r1; @!%p1 mul.lo.u32 %r2, %r2, 7;
    ld.param.u64 %rd1, [p0]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
    @%p1 st.global.u32 [%rd1], %r2;"""
    result = run(ptx(body, 1), [np.zeros(32, np.uint32)])
    assert result.buffers[0].tolist() == [5 + t if t < 10 else 0 for t in range(32)]
    assert result.counters["warp_instructions"] == 10
    assert result.counters["thread_instructions"] == 7 * 32 + 10 + 22 + 10
    assert result.counters["global_requests"] == 1
    assert result.counters["global_sectors"] == 2
    assert result.counters["branches"] == 0


def test_a_guarded_access_by_nobody_is_no_request() -> None:
    body = """
    mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 40; ld.param.u64 %rd1, [p0]; mov.u32 %r2, 9;
    @%p1 ld.global.u32 %r2, [%rd1+99999]; @%p1 st.global.u32 [%rd1], %r2;
    @%p1 atom.global.add.u32 %r3, [%rd1+7], %r2;"""
    result = run(ptx(body, 1), [np.zeros(4, np.uint32)])
    assert result.counters["global_requests"] == 0
    assert result.counters["global_atomics"] == 0
    assert result.counters["thread_instructions"] == 32 * 5


SWITCH = """
mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [p0]; mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd1, %rd1, %rd2; rem.u32 %r2, %r1, 4;
table: .branchtargets one, two, one, three;
brx.idx %r2, table;
one: mov.u32 %r3, 10; bra join;
two: mov.u32 %r3, 20; bra join;
three: mov.u32 %r3, 30;
join: st.global.u32 [%rd1], %r3;
"""


def test_switch_by_table() -> None:
    result = run(ptx(SWITCH, 1), [np.zeros(32, np.uint32)])
    assert result.buffers[0].tolist() == [[10, 20, 10, 30][t % 4] for t in range(32)]
    assert result.counters["branches"] == 1
    assert result.counters["divergent_branches"] == 1


def test_switch_in_cuda() -> None:
    values = np.arange(32, dtype=np.int32) % 7
    out = np.arange(96, dtype=np.int32) + 2
    got = outputs(cuda("flow.cu", "choose", {"in": values, "out": out}))["out"]
    cases = [2 * 3, 3 + 7, 4 ^ 9, 5 - 5, 6 * 7, -1, -1]
    assert got[64:].tolist() == [cases[v] for v in values]
    assert got[32:34].tolist() == [1, 2]


@pytest.mark.parametrize("threads", [32, 96, 70])
def test_barriers_order_shared_memory_between_warps(threads: int) -> None:
    blocks, steps = 5, 9
    values = np.arange(blocks * threads, dtype=np.int32) % 11
    arrays: Arrays = {"in": values, "out": np.zeros_like(values), "steps": np.int32(steps)}
    plan = cuda("flow.cu", "ring", arrays, grid=blocks, block=threads, dynamic=4 * threads)
    warps = -(-threads // 32)
    for order in ("round_robin", "reverse", "greedy"):
        with device(order).prepare(plan) as prepared:
            launch = prepared.launch()
            out = prepared.fetch()["out"].reshape(blocks, threads)
        for block, row in zip(values.reshape(blocks, threads), out, strict=True):
            turned = np.roll(block, -steps)
            want = turned + 1000 * np.count_nonzero(turned > 5)
            want += 100000 * (threads > 99) + 1000000
            assert row.tolist() == want.tolist()
        assert launch.counters is not None
        assert launch.counters["barriers"] == blocks * warps * (2 * steps + 3)


def test_a_barrier_does_not_wait_for_threads_that_left() -> None:
    plan = cuda("flow.cu", "early_exit", {"out": np.zeros(64, np.int32)}, block=64)
    out = outputs(plan)["out"]
    neighbour = {0: 0, 1: 1, 2: -1}
    # Thread 63 is a multiple of 3, so every other has its neighbour.
    assert out.tolist() == [0 if t % 3 == 0 else t + neighbour[t % 3] for t in range(64)]


def test_grids_and_blocks_of_two_dimensions() -> None:
    plan = cuda("flow.cu", "axes", {"out": np.zeros(3 * 2 * 8 * 5, np.int32)})
    plan = dataclasses.replace(plan, grid=(3, 2, 1), block=(8, 5, 1))
    out = outputs(plan)["out"].reshape(2, 3, 5, 8)
    for y, x, ty, tx in np.ndindex(out.shape):
        assert out[y, x, ty, tx] == tx + 10 * ty + 100 * x + 1000 * y


def test_more_than_64_blocks_of_code() -> None:
    """The set of non-empty blocks takes several words."""
    body = ["mov.u32 %r1, %tid.x; mov.u32 %r2, %r1; ld.param.u64 %rd1, [p0];"]
    body.append("mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;")
    for i in range(100):
        body.append(f"and.b32 %r3, %r2, {1 << i % 5}; setp.eq.u32 %p1, %r3, 0;")
        body.append(f"@%p1 bra skip{i}; mad.lo.u32 %r2, %r2, 3, {i}; skip{i}:")
    body.append("st.global.u32 [%rd1], %r2;")
    text = ptx("\n".join(body), 1)
    assert len(build(text, "k", RULES).blocks) > 192
    out = run(text, [np.zeros(32, np.uint32)]).buffers[0]
    for t in range(32):
        x = t
        for i in range(100):
            x = (3 * x + i) & 0xFFFFFFFF if x & 1 << i % 5 else x
        assert int(out[t]) == x


def test_the_clock_counts_this_warps_instructions() -> None:
    body = """
    mov.u32 %r1, %tid.x; mov.u64 %rd3, %clock64; mov.u32 %r2, 0;
    spin: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 50; @%p1 bra spin;
    mov.u64 %rd4, %clock64; sub.s64 %rd5, %rd4, %rd3; ld.param.u64 %rd1, [p0];
    mul.wide.u32 %rd2, %r1, 8; add.s64 %rd1, %rd1, %rd2; st.global.u64 [%rd1], %rd5;"""
    out = run(ptx(body, 1), [np.zeros(32, np.uint64)]).buffers[0]
    assert len(set(out.tolist())) == 1
    assert 150 <= int(out[0]) <= 160
