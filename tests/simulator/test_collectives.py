"""Warp-level instructions against their definition, with full and partial member masks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.simulator.harness import PLACE, computed, ptx, run

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
    texts = []
    for b, width in cases:
        clamp = (32 - width) << 8 | (0 if kind == "up" else 31)
        texts.append(
            f"mul.lo.u32 %r2, %a, 11; shfl.sync.{kind}.b32 %d|%p1, %r2, {b}, {clamp}, -1;"
            " selp.u32 %r4, 1000, 0, %p1; add.u32 %d, %d, %r4;"
        )
    out = computed(texts, "uint32", np.arange(32, dtype=np.uint32))
    for row, (b, width) in zip(out.tolist(), cases, strict=True):
        for lane in LANES:
            j = source(kind, lane, b, width)
            moved = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": j}[kind]
            want = 11 * j + 1000 * inside(kind, lane, moved, width)
            assert row[lane] == want, (kind, b, width, lane)


Votes = Callable[[list[int], int], int]
VOTES: dict[str, Votes] = {
    # What lane t gets, of its group's values x: as bits where lanes count.
    "vote.sync.ballot.b32 %d, %p1, {m}": lambda x, t: sum((x[u] > 4) << u for u in group(t)),
    "vote.sync.any.pred %p3, %p1, {m}": lambda x, t: any(x[u] > 4 for u in group(t)),
    "vote.sync.all.pred %p3, !%p1, {m}": lambda x, t: all(x[u] <= 4 for u in group(t)),
    "redux.sync.add.s32 %d, %a, {m}": lambda x, t: sum(x[u] for u in group(t)),
    "redux.sync.max.s32 %d, %a, {m}": lambda x, t: max(x[u] for u in group(t)),
    "match.any.sync.b32 %d, %a, {m}": lambda x, t: sum((x[u] == x[t]) << u for u in group(t)),
}


def group(lane: int) -> range:
    return range(12) if lane < 12 else range(12, 32)


def test_votes_and_reductions_in_two_groups() -> None:
    values = np.random.default_rng(1).integers(-9, 9, 32).astype(np.int32)
    texts = [
        f"setp.gt.s32 %p1, %a, 4; setp.lt.u32 %p2, %b, 12; @%p2 bra low{n};"
        f" {text.format(m='0xFFFFF000')}; bra join{n}; low{n}: {text.format(m='0xFFF')};"
        f" join{n}: {'selp.u32 %d, 1, 0, %p3' if 'pred' in text else 'mov.b32 %d, %d'}"
        for n, text in enumerate(VOTES)
    ]
    out = computed([*texts, "activemask.b32 %d"], "uint32", values, np.arange(32, dtype=np.uint32))
    for row, (text, of) in zip(out.tolist(), VOTES.items(), strict=False):
        want = [of(values.tolist(), t) & 0xFFFFFFFF for t in LANES]
        assert row == want, text
    assert (out[-1] == 0xFFFFFFFF).all()


def test_members_of_the_exited_are_not_waited_for() -> None:
    body = """setp.ge.u32 %p1, %r1, 20; @%p1 exit;
    mov.pred %p2, 1; vote.sync.ballot.b32 %r2, %p2, -1; st.global.u32 [%rd1], %r2;"""
    out = run(ptx(PLACE + body, 1), [np.zeros(32, np.uint32)]).buffers[0]
    assert out.tolist() == [(1 << 20) - 1] * 20 + [0] * 12


def test_lanes_wait_for_members_that_come_another_way() -> None:
    """Half of the warp makes a detour through a loop; the vote still sees all."""
    text = (
        "mov.u32 %r2, 0; setp.lt.u32 %p1, %a, 16; @%p1 bra meet;"
        " more: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %a; @%p2 bra more;"
        " meet: setp.gt.u32 %p3, %r2, 20; vote.sync.ballot.b32 %d, %p3, -1"
    )
    (out,) = computed([text], "uint32", np.arange(32, dtype=np.uint32))
    assert out.tolist() == [sum(1 << t for t in range(21, 32))] * 32


def test_a_mask_that_differs_by_lane() -> None:
    """Groups of four, each with its own member mask in a register."""
    text = (
        "and.b32 %r2, %a, 28; mov.u32 %r3, 15; shl.b32 %r3, %r3, %r2;"
        " redux.sync.add.u32 %r4, %a, %r3; and.b32 %r5, %a, 1; setp.eq.u32 %p1, %r5, 1;"
        " vote.sync.ballot.b32 %r6, %p1, %r3; add.u32 %r4, %r4, %r6;"
        " match.all.sync.b32 %r7|%p2, %r2, %r3; selp.u32 %r7, %r7, 0, %p2; xor.b32 %d, %r4, %r7"
    )
    (out,) = computed([text], "uint32", np.arange(32, dtype=np.uint32))
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
