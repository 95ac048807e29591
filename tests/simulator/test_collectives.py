"""Warp-level instructions against their definition, with full and partial member masks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.harness import ptx, run

LANES = range(32)


def source(kind: str, lane: int, b: int, width: int) -> int:
    """Source lane of a shuffle with segments of ``width``, from CUDA's description."""
    start = lane // width * width
    target = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": start + b % width}[kind]
    return target if inside(kind, lane, target, width) else lane


def inside(kind: str, lane: int, target: int, width: int) -> bool:
    """Whether a source is allowed: a butterfly may reach into earlier segments, not later ones."""
    start = lane // width * width
    return (start <= target or kind == "bfly") and target < start + width


@pytest.mark.parametrize("kind", ["up", "down", "bfly", "idx"])
def test_shuffle(kind: str) -> None:
    cases = [(b, width) for b in (0, 1, 3, 8, 17) for width in (32, 8)]
    body = ["mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, 11; ld.param.u64 %rd1, [p0];"]
    body.append("mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;")
    for i, (b, width) in enumerate(cases):
        clamp = (32 - width) << 8 | (0 if kind == "up" else 31)
        body.append(f"shfl.sync.{kind}.b32 %r3|%p1, %r2, {b}, {clamp}, -1;")
        body.append("selp.u32 %r4, 1000, 0, %p1; add.u32 %r3, %r3, %r4;")
        body.append(f"st.global.u32 [%rd1+{128 * i}], %r3;")
    out = run(ptx("\n".join(body), 1), [np.zeros(32 * len(cases), np.uint32)]).buffers[0]
    for i, (b, width) in enumerate(cases):
        for lane in LANES:
            j = source(kind, lane, b, width)
            moved = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": j}[kind]
            flag = inside(kind, lane, moved, width)
            got = int(out[32 * i + lane])
            assert got == 11 * j + 1000 * flag, (kind, b, width, lane)


VOTES = """
mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [p0]; mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd1, %rd1, %rd2; ld.global.u32 %r2, [%rd1]; setp.gt.s32 %p1, %r2, 4;
ld.param.u64 %rd3, [p1]; add.s64 %rd3, %rd3, %rd2;
setp.lt.u32 %p2, %r1, 12; @%p2 bra low;
vote.sync.ballot.b32 %r3, %p1, 0xFFFFF000; vote.sync.any.pred %p3, %p1, 0xFFFFF000;
vote.sync.all.pred %p4, !%p1, 0xFFFFF000; redux.sync.add.s32 %r4, %r2, 0xFFFFF000;
redux.sync.max.s32 %r5, %r2, 0xFFFFF000; match.any.sync.b32 %r6, %r2, 0xFFFFF000;
bra join;
low:
vote.sync.ballot.b32 %r3, %p1, 0xFFF; vote.sync.any.pred %p3, %p1, 0xFFF;
vote.sync.all.pred %p4, !%p1, 0xFFF; redux.sync.add.s32 %r4, %r2, 0xFFF;
redux.sync.max.s32 %r5, %r2, 0xFFF; match.any.sync.b32 %r6, %r2, 0xFFF;
join:
selp.u32 %r7, 1, 0, %p3; selp.u32 %r8, 1, 0, %p4;
st.global.u32 [%rd3], %r3; st.global.u32 [%rd3+128], %r7; st.global.u32 [%rd3+256], %r8;
st.global.u32 [%rd3+384], %r4; st.global.u32 [%rd3+512], %r5; st.global.u32 [%rd3+640], %r6;
activemask.b32 %r9; st.global.u32 [%rd3+768], %r9;
"""


def test_votes_and_reductions_in_two_groups() -> None:
    values = np.random.default_rng(1).integers(-9, 9, 32).astype(np.int32)
    arrays = [values, np.zeros(7 * 32, np.int32)]
    out = run(ptx(VOTES, 2), arrays).buffers[1].astype(np.int64).reshape(7, 32)
    for group in (range(12), range(12, 32)):
        yes = sum(1 << t for t in group if values[t] > 4)
        for t in group:
            assert out[0, t] & 0xFFFFFFFF == yes
            assert out[1, t] == (yes != 0)
            assert out[2, t] == all(values[u] <= 4 for u in group)
            assert out[3, t] == sum(values[u] for u in group)
            assert out[4, t] == max(values[u] for u in group)
            same = sum(1 << u for u in group if values[u] == values[t])
            assert out[5, t] & 0xFFFFFFFF == same
    assert (out[6] == -1).all()


def test_members_of_the_exited_are_not_waited_for() -> None:
    body = """
    mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 20; @%p1 exit;
    mov.pred %p2, 1; vote.sync.ballot.b32 %r2, %p2, -1;
    ld.param.u64 %rd1, [p0]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
    st.global.u32 [%rd1], %r2;"""
    out = run(ptx(body, 1), [np.zeros(32, np.uint32)]).buffers[0]
    assert out.tolist() == [(1 << 20) - 1] * 20 + [0] * 12


def test_lanes_wait_for_members_that_come_another_way() -> None:
    """Half of the warp makes a detour through a loop; the vote still sees all."""
    body = """
    mov.u32 %r1, %tid.x; mov.u32 %r2, 0; setp.lt.u32 %p1, %r1, 16; @%p1 bra meet;
    more: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %r1; @%p2 bra more;
    meet: setp.gt.u32 %p3, %r2, 20; vote.sync.ballot.b32 %r3, %p3, -1;
    ld.param.u64 %rd1, [p0]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
    st.global.u32 [%rd1], %r3;"""
    out = run(ptx(body, 1), [np.zeros(32, np.uint32)]).buffers[0]
    assert out.tolist() == [sum(1 << t for t in range(21, 32))] * 32


def test_a_mask_that_differs_by_lane() -> None:
    """Groups of four, each with its own member mask in a register."""
    body = """
    mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 28; mov.u32 %r3, 15; shl.b32 %r3, %r3, %r2;
    redux.sync.add.u32 %r4, %r1, %r3; and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 1;
    vote.sync.ballot.b32 %r6, %p1, %r3; add.u32 %r4, %r4, %r6;
    match.all.sync.b32 %r7|%p2, %r2, %r3; selp.u32 %r7, %r7, 0, %p2; xor.b32 %r4, %r4, %r7;
    ld.param.u64 %rd1, [p0]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
    st.global.u32 [%rd1], %r4;"""
    out = run(ptx(body, 1), [np.zeros(32, np.uint32)]).buffers[0]
    for t in LANES:
        first = t & 28
        want = 4 * first + 6 + (0b1010 << first) & 0xFFFFFFFF
        assert int(out[t]) == want ^ (15 << first)


def test_special_registers() -> None:
    names = ["laneid", "warpid", "ntid.x", "nctaid.x", "ctaid.x", "lanemask_lt", "lanemask_ge"]
    names += ["lanemask_eq", "lanemask_le", "lanemask_gt", "nwarpid"]
    body = ["mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 64, %r1;"]
    body.append("ld.param.u64 %rd1, [p0]; mul.wide.u32 %rd2, %r3, 4; add.s64 %rd1, %rd1, %rd2;")
    for i, name in enumerate(names):
        body.append(f"mov.u32 %r4, %{name}; st.global.u32 [%rd1+{512 * i}], %r4;")
    out = run(
        ptx("\n".join(body), 1), [np.zeros(128 * len(names), np.uint32)], threads=64, blocks=2
    ).buffers[0]
    every = (1 << 32) - 1
    for thread in range(128):
        lane, bit = thread % 32, 1 << thread % 32
        below = bit - 1
        want = [lane, thread // 32 % 2, 64, 2, thread // 64, below, every - below]
        want += [bit, below | bit, every - below - bit, 2]
        assert [int(out[128 * i + thread]) for i in range(len(names))] == want
