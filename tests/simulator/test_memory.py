"""Passes, sectors and contents of memory accesses against hand computations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.simulator.harness import PLACE, RULES, Result, Rules, cuda, device, ptx, run

LANES = range(32)
pytestmark = pytest.mark.usefixtures("accesses")


def passes(addresses: list[int], nbytes: int) -> int:
    """The bank rule spelled out: by group of lanes, the most different words in one bank."""
    lanes_per_pass = 32 // max(nbytes // 4, 1)
    total = 0
    for start in range(0, 32, lanes_per_pass):
        banks: dict[int, set[int]] = {}
        for address in addresses[start : start + lanes_per_pass]:
            for word in range(address // 4, (address + max(nbytes, 4)) // 4):
                banks.setdefault(word % 32, set()).add(word)
        total += max((len(words) for words in banks.values()), default=0)
    return total


def shared_load(offsets: list[int], nbytes: int, rules: Rules = RULES) -> Result:
    """One load per lane from a given byte offset, after filling shared memory."""
    kind = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "v4.u32"}[nbytes]
    target = {8: "%rd9", 16: "{%r10, %r11, %r12, %r13}"}.get(nbytes, "%r10")
    body = f"""
    mov.u32 %r1, %tid.x; mov.u32 %r2, box; mul.lo.u32 %r3, %r1, 4; mov.u32 %r4, 0;
    add.u32 %r5, %r2, %r3;
    fill: st.shared.u32 [%r5], %r4; add.u32 %r5, %r5, 128; add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, 300; @%p1 bra fill;
    bar.warp.sync -1;
    ld.param.u64 %rd1, [p0]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
    ld.global.u32 %r6, [%rd1]; add.u32 %r7, %r2, %r6;
    ld.shared.{kind} {target}, [%r7];"""
    text = ptx(body, 1, variables=".shared .align 16 .b8 box[38400];")
    return run(text, [np.array(offsets, np.uint32)], rules=rules)


def load_line(result: Result) -> dict[str, int]:
    return next(line for line in result.lines if line["opcode"].startswith("ld.shared"))


STRIDES = {0: 1, 1: 1, 2: 2, 3: 1, 4: 4, 8: 8, 16: 16, 32: 32, 33: 1, 44: 4}


@pytest.mark.parametrize("nbytes", [1, 4, 8, 16])
def test_bank_passes(nbytes: int) -> None:
    draw = np.random.default_rng(nbytes)
    patterns = [[int(x) * nbytes for x in draw.integers(0, n, 32)] for n in (3, 40, 2000)]
    if nbytes == 4:
        strides = [[4 * stride * lane for lane in LANES] for stride in STRIDES]
        assert [passes(offsets, 4) for offsets in strides] == list(STRIDES.values())
        patterns += strides
    for offsets in patterns:
        result = shared_load(offsets, nbytes)
        line = load_line(result)  # shared memory has no sectors
        assert (line["passes"], line["sectors"]) == (passes(offsets, nbytes), 0), offsets
        if nbytes == 4:
            assert result.counters["bank_conflicts"] == passes(offsets, 4) - 1


def global_load(
    offsets: list[int], nbytes: int = 4, rules: Rules = RULES, access: str = "ld.global"
) -> Result:
    """One access per lane at a given byte offset; lanes with a negative offset stay away."""
    kind = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "v2.u64"}[nbytes]
    target = {8: "%rd9", 16: "{%rd9, %rd10}"}.get(nbytes, "%r10")
    operands = f"[%rd4], {target}" if access.startswith(("st", "red")) else f"{target}, [%rd4]"
    body = f"""
    {PLACE} ld.global.u32 %r6, [%rd1]; cvt.u64.u32 %rd3, %r6;
    setp.ge.s32 %p1, %r6, 0; mov.u32 %r10, 0; mov.u64 %rd9, 0; mov.u64 %rd10, 0;
    ld.param.u64 %rd4, [p1]; add.s64 %rd4, %rd4, %rd3; @%p1 {access}.{kind} {operands};"""
    given: list[NDArray[Any]] = [np.array(offsets, np.int32), np.zeros(1 << 16, np.uint8)]
    return run(ptx(body, 2), given, rules=rules)


@pytest.mark.parametrize("nbytes", [4, 8, 16])
def test_sectors(nbytes: int) -> None:
    draw = np.random.default_rng(nbytes)
    patterns = [[int(x) * nbytes for x in draw.integers(0, n, 32)] for n in (60, 900, 4000)]
    patterns += [[nbytes * stride * lane for lane in LANES] for stride in (0, 1, 2, 8, 44, 9)]
    for offsets in patterns:
        result = global_load(offsets, nbytes)
        counters, line = result.counters, [x for x in result.lines if x["space"] == "global"][-1]
        sectors = len({offset // 32 for offset in offsets})
        slots = -(-sectors // 4)
        assert (line["sectors"], line["passes"]) == (sectors, slots)
        assert counters["global_bytes"] == 32 * (4 + sectors)
        assert counters["issue_slots"] == counters["warp_instructions"] + slots - 1


def test_local_memory_is_interleaved_by_words() -> None:
    """The same word of all lanes is 128 consecutive bytes; another word per lane is 32 sectors."""
    body = """
    mov.u32 %r1, %tid.x; mov.u64 %rd1, own; mov.u32 %r2, 0; mov.u64 %rd2, %rd1;
    fill: st.local.u32 [%rd2], %r2; add.s64 %rd2, %rd2, 4; add.u32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, 32; @%p1 bra fill;
    ld.local.u32 %r3, [%rd1+20];
    mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; ld.local.u32 %r4, [%rd4];
    and.b64 %rd6, %rd3, 120; add.s64 %rd6, %rd6, %rd1; ld.local.u64 %rd5, [%rd6];
    ld.local.u8 %r5, [%rd4];
    add.u32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5; cvt.u32.u64 %r6, %rd5; add.u32 %r3, %r3, %r6;
    shr.u64 %rd5, %rd5, 32; cvt.u32.u64 %r6, %rd5; shl.b32 %r6, %r6, 16; add.u32 %r3, %r3, %r6;
    ld.param.u64 %rd7, [p0]; add.s64 %rd7, %rd7, %rd3; st.global.u32 [%rd7], %r3;"""
    text = ptx(body, 1, variables=".local .align 8 .b8 own[128];")
    result = run(text, [np.zeros(32, np.uint32)])
    even = [t & ~1 for t in LANES]
    want = [5 + t + t + even[t] + (even[t] + 1 << 16) for t in LANES]
    assert result.buffers[0].tolist() == want
    sectors = [x["sectors"] for x in result.lines if x["opcode"].startswith("ld.local")]
    assert sectors == [4, 32, 32, 32]
    assert result.counters["local_requests"] == 36
    assert result.counters["local_sectors"] == 32 * 4 + 4 + 3 * 32


@pytest.mark.parametrize(("count", "bits"), [(2, 8), (4, 8), (2, 16), (4, 16)])
def test_vectors_of_parts_of_words_in_local_memory(count: int, bits: int) -> None:
    """Stored as one and loaded one by one, and the other way round."""
    names = [f"%rs{1 + e}" for e in range(count)]
    vector, kind, step = ", ".join(names), f"u{bits}", bits // 8
    each = "".join(f"add.u16 {name}, %rs20, {10 * e};" for e, name in enumerate(names))
    back = "".join(
        f"ld.local.{kind} %rs21, [own+{8 + at}]; st.local.{kind} [own+{16 + at}], %rs21;"
        for at in range(0, count * step, step)
    )
    total = "".join(f"mad.lo.u16 %rs22, {name}, {e + 1}, %rs22;" for e, name in enumerate(names))
    body = f"""
    mov.u32 %r1, %tid.x; cvt.u16.u32 %rs20, %r1; mov.u16 %rs22, 0; {each}
    st.local.v{count}.{kind} [own+8], {{{vector}}}; {back}
    ld.local.v{count}.{kind} {{{vector}}}, [own+16]; {total}
    ld.param.u64 %rd1, [p0]; mul.wide.u32 %rd2, %r1, 2; add.s64 %rd1, %rd1, %rd2;
    st.global.u16 [%rd1], %rs22;"""
    text = ptx(body, 1, variables=".local .align 8 .b8 own[24];")
    found = run(text, [np.zeros(32, np.uint16)]).buffers[0]
    assert found.tolist() == [sum((t + 10 * e) * (e + 1) for e in range(count)) for t in LANES]


def test_bytes_and_halves_in_all_spaces() -> None:
    body = """
    mov.u32 %r1, %tid.x; mov.u32 %r2, box; add.u32 %r3, %r2, %r1; st.shared.u8 [%r3], %r1;
    shl.b32 %r4, %r1, 1; ld.param.u64 %rd1, [p0]; cvt.u64.u32 %rd2, %r4; add.s64 %rd3, %rd1, %rd2;
    sub.u32 %r5, %r1, 16; cvt.u16.u32 %rs1, %r5; st.global.u16 [%rd3], %rs1;
    mov.u64 %rd4, own; st.local.s8 [%rd4+3], %r5; bar.warp.sync -1;
    xor.b32 %r6, %r1, 1; add.u32 %r6, %r6, %r2; ld.shared.u8 %r7, [%r6];
    ld.global.s16 %r8, [%rd3]; ld.local.s8 %r9, [%rd4+3];
    mad.lo.s32 %r10, %r8, 1000, %r7; mad.lo.s32 %r10, %r9, 100000, %r10;
    ld.param.u64 %rd5, [p1]; shl.b32 %r11, %r1, 2; cvt.u64.u32 %rd6, %r11;
    add.s64 %rd5, %rd5, %rd6; st.global.u32 [%rd5], %r10;"""
    variables = ".shared .align 1 .b8 box[32];\n.local .align 4 .b8 own[4];"
    out = run(ptx(body, 2, variables), [np.zeros(32, np.int16), np.zeros(32, np.int32)]).buffers
    assert out[0].tolist() == [t - 16 for t in LANES]
    assert out[1].tolist() == [(t - 16) * 101000 + (t ^ 1) for t in LANES]


Update = Callable[[int, int], int]
ATOMICS: list[tuple[str, Update]] = [
    ("add.u32", lambda old, x: old + x),
    ("min.s32", lambda old, x: min(old, x)),
    ("max.u32", lambda old, x: max(old, x)),
    ("and.b32", lambda old, x: old & x),
    ("or.b32", lambda old, x: old | x),
    ("xor.b32", lambda old, x: old ^ x),
    ("exch.b32", lambda old, x: x),
    ("inc.u32", lambda old, x: 0 if old >= x else old + 1),
    ("dec.u32", lambda old, x: x if old == 0 or old > x else old - 1),
]


def test_atomics_read_and_write_where_there_is_no_cache() -> None:
    """Of 32 words, 4 sectors of 32 bytes, loaded once, stored twice and added to once."""
    place = "ld.global.u32 %r2, [%rd1]; st.global.u32 [%rd1], %r2; st.global.u32 [%rd1], %r2;"
    text = ptx(f"{PLACE}{place} atom.global.add.u32 %r3, [%rd1], %r2;", 1)
    found = run(text, [np.zeros(32, np.uint32)], caches=(0, 0)).counters
    assert (found["dram_read_bytes"], found["dram_write_bytes"]) == (2 * 128, 3 * 128)
    assert found["dram_bytes"] == 5 * 128


@pytest.mark.parametrize("space", ["global", "shared"])
def test_atomics_in_lane_order(space: str) -> None:
    """Lanes hit three cells; each sees what the lanes before it left."""
    body = ["mov.u32 %r1, %tid.x; rem.u32 %r2, %r1, 3; ld.param.u64 %rd1, [p0];"]
    body += ["ld.param.u64 %rd2, [p1]; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd2, %rd2, %rd3;"]
    body += ["add.u32 %r5, %r1, 2; mov.u64 %rd6, box;"]
    for i, (name, _) in enumerate(ATOMICS):
        body.append(f"mad.lo.u32 %r3, %r2, 4, {12 * i}; cvt.u64.u32 %rd4, %r3;")
        if space == "shared":
            body.append("add.s64 %rd5, %rd6, %rd4; mov.u32 %r7, 7; st.shared.u32 [%rd5], %r7;")
        else:
            body.append("add.s64 %rd5, %rd1, %rd4;")
        body.append(f"atom.{space}.{name} %r4, [%rd5], %r5;")
        body.append(f"st.global.u32 [%rd2+{128 * i}], %r4;")
    count = len(ATOMICS)
    arrays = [np.full(3 * count, 7, np.uint32), np.zeros(32 * count, np.uint32)]
    text = ptx("\n".join(body), 2, variables=".shared .align 4 .b8 box[256];")
    result = run(text, arrays)
    for i, (name, update) in enumerate(ATOMICS):
        cells = [7, 7, 7]
        seen = []
        for lane in LANES:
            seen.append(cells[lane % 3])
            cells[lane % 3] = update(cells[lane % 3], lane + 2)
        assert result.buffers[1][32 * i : 32 * (i + 1)].tolist() == seen, name
        if space == "global":
            assert result.buffers[0][3 * i : 3 * i + 3].tolist() == cells, name
    assert result.counters[f"{space}_atomics"] == count
    # Lanes on one word take turns: 11 of them at most.
    if space == "shared":
        lines = [x for x in result.lines if x["opcode"].startswith("atom")]
        assert {x["passes"] for x in lines} == {11}


def test_compare_and_swap_and_long_atomics() -> None:
    body = """
    mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [p0]; cvt.u64.u32 %rd2, %r1; add.s64 %rd9, %rd2, 1;
    atom.global.cas.b64 %rd3, [%rd1], %rd2, %rd9;
    atom.global.add.u64 %rd4, [%rd1+8], %rd2; red.global.max.s64 [%rd1+16], %rd2;
    cvt.rn.f32.u32 %f1, %r1; atom.global.add.f32 %f2, [%rd1+24], %f1;
    ld.param.u64 %rd5, [p1]; shl.b64 %rd6, %rd2, 3; add.s64 %rd5, %rd5, %rd6;
    st.global.u64 [%rd5], %rd3; st.global.u64 [%rd5+256], %rd4;"""
    cells = np.array([0, 2**40, -5, 0], np.int64)
    out = run(ptx(body, 2), [cells, np.zeros(64, np.uint64)]).buffers
    assert out[0][:3].tolist() == [32, 2**40 + 496, 31]
    assert out[0].view(np.float32)[6] == 496.0
    assert out[1][:32].tolist() == list(LANES)
    assert out[1][32:].tolist() == [2**40 + t * (t - 1) // 2 for t in LANES]


def test_generic_addresses_reach_every_space() -> None:
    which = 5
    out = np.arange(96, dtype=np.int32)
    plan = cuda("flow.cu", "generic", {"out": out, "which": np.int32(which)})
    with device().prepare(plan) as prepared:
        counters = prepared.launch().counters
        got = prepared.fetch()["out"]
    for t in LANES:
        first = [100 + t, 10 * which + t, t][t % 3] + 1000
        assert got[32 + t] == first + 10 * (which + 1) + t
    assert counters is not None
    assert counters["shared_requests"] >= 3
    assert counters["local_requests"] >= 3


def test_module_variables() -> None:
    plan = cuda("flow.cu", "module_variables", {"out": np.zeros(32, np.int32)})
    with device().prepare(plan) as prepared:
        for _ in range(2):  # the counter must start again at 0
            prepared.launch()
            got = prepared.fetch()["out"]
            table, scale = [3, 1, 4, 1, 5], [0.5, 2.0]
            assert got.tolist() == [table[t % 5] + int(scale[t % 2] * 8) + 100 * t for t in LANES]
