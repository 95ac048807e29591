"""The simulated caches against a model of them in plain Python, and by way of a device's name."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from nqbench.devices.registry import SimDevice, choose_device, open_device, open_simulator
from nqbench.plan import Buffer, KernelPlan
from nqbench.workloads.counting import Counting
from tests.simulator.harness import PLACE, Rules, counting, ptx, run

L1, L2 = 4 * 4 * 128, 2 * 16 * 128  # 4 sets of 4 lines, 2 sets of 16
ROUNDS, ROWS = 300, 32
Wanted = dict[int, int]  # sectors of a line as bits, by line

BODY = f"""
{PLACE}
ld.param.u64 %rd4, [p1]; mov.u64 %rd8, own; mov.u32 %r2, 0; mov.u32 %r9, 7;
round:
ld.global.u32 %r3, [%rd1]; cvt.u64.u32 %rd5, %r3; add.s64 %rd5, %rd4, %rd5;
ld.global.u32 %r4, [%rd5];
ld.global.u32 %r3, [%rd1+128]; cvt.u64.u32 %rd5, %r3; add.s64 %rd5, %rd4, %rd5;
st.global.u32 [%rd5], %r9;
ld.global.u32 %r3, [%rd1+256]; cvt.u64.u32 %rd5, %r3; add.s64 %rd5, %rd4, %rd5;
red.global.add.u32 [%rd5], %r9;
ld.global.u32 %r3, [%rd1+384]; and.b32 %r5, %r3, 124; cvt.u64.u32 %rd6, %r5;
add.s64 %rd6, %rd8, %rd6;
st.local.u32 [%rd6], %r9;
ld.global.u32 %r3, [%rd1+512]; and.b32 %r5, %r3, 124; cvt.u64.u32 %rd6, %r5;
add.s64 %rd6, %rd8, %rd6;
ld.local.u32 %r6, [%rd6];
add.s64 %rd1, %rd1, 640; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, {ROUNDS}; @%p1 bra round;
"""


class Cache:
    """Sets of lines, the one used last behind; a line has the bits of its sectors and of those
    that are newer than below."""

    def __init__(self, nbytes: int, ways: int, hashed: bool = False) -> None:
        self.ways, self.hashed = ways, hashed
        self.sets: list[OrderedDict[int, list[int]]] = [
            OrderedDict() for _ in range(nbytes // 128 // ways)
        ]

    def of(self, line: int) -> OrderedDict[int, list[int]]:
        place = (line * 2654435761 & 0xFFFFFFFF) >> 16 if self.hashed else line
        return self.sets[place % len(self.sets)]

    def take(self, line: int) -> tuple[list[int], tuple[int, list[int]] | None]:
        """The line's bits, and the line that went for it."""
        lines, gone = self.of(line), None
        if line not in lines:
            if len(lines) == self.ways:
                gone = lines.popitem(last=False)
            lines[line] = [0, 0]
        lines.move_to_end(line)
        return lines[line], gone


class Reference:
    """Both levels as docs/simulator.md describes them."""

    def __init__(self, whole_lines: bool, l1_holds_global: bool) -> None:
        self.l1, self.l2 = Cache(L1, 4, hashed=not whole_lines), Cache(L2, 16)
        self.whole, self.holds = whole_lines, l1_holds_global
        self.counts: Counter[str] = Counter()

    def below(self, line: int, sectors: int, reads: bool, writes: bool) -> None:
        bits, gone = self.l2.take(line)
        if gone:
            self.counts["dram_write_bytes"] += 32 * gone[1][1].bit_count()
        missing = sectors & ~bits[0]
        self.counts["l2_hit_sectors"] += (sectors & bits[0]).bit_count()
        self.counts["l2_miss_sectors"] += missing.bit_count()
        self.counts["dram_read_bytes"] += 32 * missing.bit_count() * reads
        bits[0] |= sectors
        bits[1] |= sectors * writes

    def access(self, wanted: Wanted, kind: str) -> None:
        for line, sectors in wanted.items():
            if kind in ("store", "atomic") or (kind == "load" and not self.holds):
                lines = self.l1.of(line)
                if self.holds and (self.whole or kind == "atomic"):
                    lines.pop(line, None)
                self.below(line, sectors, kind != "store", kind != "load")
                continue
            bits, gone = self.l1.take(line)
            if gone and gone[1][1]:
                self.below(gone[0], gone[1][1], False, True)
            missing = sectors & ~bits[0]
            self.counts["l1_hit_sectors"] += (sectors & bits[0]).bit_count()
            self.counts["l1_miss_sectors"] += missing.bit_count()
            if kind == "local store":
                bits[1] |= sectors * self.whole  # written back, else through
                if not self.whole:
                    self.below(line, sectors, False, True)
            elif missing:
                missing = ~bits[0] & 15 if self.whole else missing
                self.below(line, missing, True, False)
            bits[0] |= sectors | missing


def lines_of(addresses: Iterable[int]) -> Wanted:
    found: Wanted = {}
    for address in addresses:
        found[address >> 7] = found.get(address >> 7, 0) | 1 << (address >> 5 & 3)
    return found


@pytest.mark.parametrize("rules", ["lines", "sectors"])
@pytest.mark.parametrize("holds", ["local", "local, global"])
def test_against_plain_python(rules: str, holds: str) -> None:
    draw = np.random.default_rng(7)
    near = draw.integers(0, 64, (ROUNDS, 5, 1)) * 32  # most lanes of an access lie close together
    offsets = (near + draw.integers(0, 40, (ROUNDS, 5, 32))) * 4
    offsets[::3] = draw.integers(0, 2048, (len(offsets[::3]), 5, 32)) * 4
    memory: Rules = (
        ("bank_bytes", 4), ("cache", "on"), ("l1_holds", holds), ("rules", rules),
        ("sector_bytes", 32), ("shared_banks", 32),
    )  # fmt: skip
    text = ptx(BODY, 2, variables=".local .align 4 .b8 own[128];")
    arrays = [offsets.astype(np.uint32).ravel(), np.zeros(4096, np.uint32)]
    counters = run(text, arrays, rules=memory, caches=(L1, L2)).counters

    expected = Reference(rules == "lines", "global" in holds)
    at, data = 1 << 16, (1 << 16) * (1 + -(-4 * offsets.size // (1 << 16)) + 1)  # by pages
    for rounds in offsets.tolist():
        kinds = ("load", "store", "atomic", "local store", "local load")
        for kind, places in zip(kinds, rounds, strict=True):
            expected.access(lines_of(range(at, at + 128, 4)), "load")
            at += 128
            if kind.startswith("local"):
                rows = [(1 << 40) + (x & 124) * 32 + 4 * lane for lane, x in enumerate(places)]
                expected.access(lines_of(rows), kind)
            else:
                expected.access(lines_of(data + x for x in places), kind)
    assert {name: counters[name] for name in expected.counts} == expected.counts
    assert counters["dram_bytes"] == sum(
        expected.counts[f"dram_{way}_bytes"] for way in ("read", "write")
    )
    hits, misses = (counters[f"l1_{what}_sectors"] for what in ("hit", "miss"))
    assert counters["l1_hit_percent"] == pytest.approx(100 * hits / (hits + misses))


def test_local_memory_by_generation() -> None:
    """Without caches all of it goes to the memory, with them next to nothing does; the other
    counters do not depend on the mode."""
    moved = {}
    for model in ("gf8600m_gs", "gtx275", "gtx480"):
        found = []
        for mode in ("", ":cache"):
            device = open_simulator(f"sim:{model}{mode}")
            plan = counting("feinbube2010.base", device)
            with device.prepare(plan) as prepared:
                found.append(prepared.launch().counters or {})
                assert Counting().answer(plan, prepared.fetch()) == 92
        plain, cached = found
        assert plain.items() <= cached.items()
        moved[model] = cached["dram_bytes"]
        if model != "gtx480":
            assert cached["dram_bytes"] == cached["local_bytes"] + cached["global_bytes"]
    assert moved["gf8600m_gs"] >= moved["gtx275"] > 2 * moved["gtx480"]


LOCAL = """
extern "C" __global__ void rows(int* out, int n) {
    int own[128], sum = 0;
#pragma unroll 1
    for (int k = 0; k < 4 * 40; k++) {
        own[k * n % 40] = k;
        sum += own[(k + n) * n % 40];
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""


@pytest.mark.parametrize("threads", [32, 64])
def test_local_memory_of_a_multiprocessor_lies_together(tmp_path: Path, threads: int) -> None:
    """Seven warps with 40 lines each fit 256 KB. (132 times 128 rows are 33 times its 512 sets.)"""
    (tmp_path / "rows.cu").write_text(LOCAL, encoding="utf-8")
    blocks = 7 * 132 * 32 // threads
    out = Buffer("out", "int32", blocks * threads, output=True)
    plan = KernelPlan(
        tmp_path / "rows.cu", "rows", ("out", np.int32(7)), (blocks, 1, 1), (threads, 1, 1),
        buffers=(out,),
    )  # fmt: skip
    with SimDevice("h100", modes=("cache",)).prepare(plan) as prepared:
        counters = prepared.launch().counters or {}
    assert counters["l1_hit_percent"] > 85


def test_names_of_devices() -> None:
    assert choose_device("sim:gtx480:cache").spec == "sim:gtx480:cache"
    assert choose_device("sim:gtx480:cache:reverse").spec == "sim:gtx480:reverse:cache"
    device = open_device("sim:gtx480:reverse:cache")
    assert device.identity()["caches"] == [65536, ["local", "global"], 786432]
    assert not {"caches", "time"} & {*open_device("sim:gtx480").identity()}


@pytest.mark.parametrize(
    ("model", "cache", "nbytes"),
    [
        ("gtx480", "default", 16384),
        ("gtx480", "prefer_l1", 49152),
        ("gtx480", "prefer_shared", 16384),
        ("h100", "prefer_l1", 262144 - 8192),
        ("h100", "prefer_shared", 28672),
    ],
)
def test_sizes_of_l1(model: str, cache: str, nbytes: int) -> None:
    device = SimDevice(model, modes=("cache",))
    plan = counting("zhang2011.naive_l1_16k", device, cache=cache)
    with device.prepare(plan) as prepared:
        (kernel,) = prepared.kernels.values()
    assert kernel.geometry.caches is not None
    assert kernel.geometry.caches[0] == nbytes
