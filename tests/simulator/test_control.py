"""Control flow: answers, divergence and loop counts, barriers; operations as a roofline counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from nqbench.devices.registry import open_device
from nqbench.plan import KernelPlan
from nqbench.point import Level
from nqbench.simulator.tally import combined
from nqbench.simulator.translation import build
from nqbench.workloads.ceilings import WORKLOAD
from tests.simulator.harness import KERNELS, PLACE, RULES, Arrays, cuda, device, outputs, ptx, run

# A warp in lock step, in plain Python: what the counters of nested loops must be. Lanes that leave
# a branch or a loop wait for the others where the structure ends.
Lanes = frozenset[int]


@dataclass
class Warp:
    """Counts loop iterations per loop and splits per branch."""

    iterations: dict[str, int] = field(default_factory=dict)
    splits: dict[str, int] = field(default_factory=dict)

    def branch(self, name: str, lanes: Lanes, test: Callable[[int], bool]) -> tuple[Lanes, Lanes]:
        """Lanes for which the test holds, and the others."""
        yes = frozenset(t for t in lanes if test(t))
        if yes and yes != lanes:
            self.splits[name] = self.splits.get(name, 0) + 1
        return yes, lanes - yes

    def again(self, name: str) -> None:
        """One more iteration of a loop by at least one lane."""
        self.iterations[name] = self.iterations.get(name, 0) + 1


def wrap(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def remainder(a: int, b: int) -> int:
    """C's ``%``: the sign of the dividend."""
    return -(-a % b) if a < 0 else a % b


def nested(values: list[int], rounds: int) -> tuple[list[int], Warp]:
    """``nested`` of ``flow.cu`` for one warp, with ``break`` and the loop's bound tested apart."""
    warp, total = Warp(), list(values)
    everyone: Lanes = frozenset(range(32))

    def odd(i: int) -> Callable[[int], bool]:
        return lambda t: (total[t] ^ i) & 1 == 1

    def within(j: int) -> Callable[[int], bool]:
        return lambda t: j < t % 7

    for i in range(rounds):
        skip, rest = warp.branch("odd", everyone, odd(i))
        for t in skip:
            total[t] = wrap(total[t] + 3)
        inside, j = rest, 0
        inside, _ = warp.branch("bound", inside, within(0))
        while inside:
            _, inside = warp.branch("break", inside, lambda t: remainder(total[t], 5) == 0)
            for t in inside:
                total[t] = wrap(total[t] * 3 + j)
            j += 1
            inside, _ = warp.branch("bound", inside, within(j))
            if inside:
                warp.again("inner")
        for t in rest:
            total[t] = wrap(total[t] ^ i)
        if i + 1 < rounds:
            warp.again("outer")
    return total, warp


NESTED = (KERNELS / "nested.ptx").read_text(encoding="utf-8")


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


CONTINUE = (KERNELS / "continue.ptx").read_text(encoding="utf-8")


def test_continue_to_the_head_waits_for_the_rest_of_the_warp() -> None:
    """A jump back to the loop's head from its middle: without a common latch the lanes that take
    it run ahead, and the loop has more iterations than any lane."""
    result = run(ptx(PLACE + CONTINUE, 1), [np.zeros(32, np.uint32)])
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


NOBODY = [0] * 32
GUARDED: dict[str, tuple[str, list[int], dict[str, int]]] = {
    # What lanes whose guard holds leave in memory, and what is counted.
    "some lanes": (
        "mov.u32 %r2, 5; setp.lt.u32 %p1, %r1, 10; @%p1 add.u32 %r2, %r2, %r1;"
        " @!%p1 mul.lo.u32 %r2, %r2, 7; @%p1 st.global.u32 [%rd1], %r2;",
        [5 + t if t < 10 else 0 for t in range(32)],
        {"warp_instructions": 10, "thread_instructions": 7 * 32 + 10 + 22 + 10, "branches": 0}
        | {"global_requests": 1, "global_sectors": 2},
    ),
    "nobody": (
        "setp.gt.u32 %p1, %r1, 40; mov.u32 %r2, 9; @%p1 ld.global.u32 %r2, [%rd1+99999];"
        " @%p1 st.global.u32 [%rd1], %r2; @%p1 atom.global.add.u32 %r3, [%rd1+7], %r2;",
        NOBODY, {"global_requests": 0, "global_atomics": 0, "thread_instructions": 32 * 7},
    ),
    "operations": (  # setp, mul, add; xor where it runs
        "setp.lt.u32 %p1, %r1, 5; mov.f32 %f1, 0f3f800000; @%p1 fma.rn.f32 %f1, %f1, %f1, %f1;"
        " @%p1 xor.b32 %r1, %r1, 7; and.pred %p2, %p1, %p1; min.f32 %f1, %f1, %f1;",
        NOBODY, {"float_operations": 2 * 5, "integer_operations": 32 * 3 + 5},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", GUARDED)
def test_predicated_instructions_count_the_lanes_whose_guard_holds(case: str) -> None:
    body, left, counted = GUARDED[case]
    result = run(ptx(PLACE + body, 1), [np.zeros(32, np.uint32)])
    assert result.buffers[0].tolist() == left
    assert counted.items() <= result.counters.items()


SWITCH = (KERNELS / "switch.ptx").read_text(encoding="utf-8")


def test_switch_by_table() -> None:
    result = run(ptx(PLACE + SWITCH, 1), [np.zeros(32, np.uint32)])
    assert result.buffers[0].tolist() == [[10, 20, 10, 30][t % 4] for t in range(32)]
    assert result.counters["branches"] == 1
    assert result.counters["divergent_branches"] == 1


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


@pytest.mark.parametrize("order", ["round_robin", "reverse", "greedy"])
def test_a_register_names_the_barrier(order: str) -> None:
    given: Arrays = {"out": np.zeros(192, np.int32), "raw": np.zeros(1, np.int32)}
    plan = cuda("planted.cu", "hand_over_in_turn", given, grid=2, block=96)
    with device(order).prepare(plan) as prepared:
        prepared.launch()
        out = prepared.fetch()["out"].reshape(2, 3, 32)
    for block, (first, *others) in enumerate(out):
        assert not first.any()
        right = [t * sum(range(block, 4)) for t in range(32)]
        assert [other.tolist() for other in others] == [right, right]


def test_a_barrier_does_not_wait_for_threads_that_left() -> None:
    plan = cuda("flow.cu", "early_exit", {"out": np.zeros(64, np.int32)}, block=64)
    out = outputs(plan)["out"]
    neighbour = {0: 0, 1: 1, 2: -1}
    # Thread 63 is a multiple of 3, so every other has its neighbour.
    assert out.tolist() == [0 if t % 3 == 0 else t + neighbour[t % 3] for t in range(64)]


def test_grids_and_blocks_of_two_dimensions() -> None:
    plan = cuda("flow.cu", "axes", {"out": np.zeros(3 * 2 * 8 * 5, np.int32)})
    plan = replace(plan, grid=(3, 2, 1), block=(8, 5, 1))
    out = outputs(plan)["out"].reshape(2, 3, 5, 8)
    for y, x, ty, tx in np.ndindex(out.shape):
        assert out[y, x, ty, tx] == tx + 10 * ty + 100 * x + 1000 * y


def test_code_of_a_template_that_calls_itself() -> None:
    calls = [f".loc 2 {a} 1, function_name f, inlined_at 2 {b} 1\n" for a, b in ((5, 7), (7, 5))]
    body = "".join(calls) + PLACE + "st.global.u32 [%rd1], %r1;"
    assert run(ptx(body, 1), [np.zeros(32, np.uint32)]).buffers[0].tolist() == [*range(32)]


def test_more_than_64_blocks_of_code() -> None:
    """The set of non-empty blocks takes several words."""
    body = [PLACE, "mov.u32 %r2, %r1;"]
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


@pytest.mark.parametrize("operation", ["fma", "float_add", "int_add", "logic"])
def test_operations_of_the_ceilings(operation: str) -> None:
    """What the workload says that it does, and beyond it the few of loops and addresses."""
    device = open_device("sim:mini")
    given: dict[str, Level] = {"n": 512, "operation": operation, "steps": 64}
    factors = WORKLOAD.resolve(given, None, device.facts).factors
    plan = WORKLOAD.plan(factors, None, device.facts)
    assert isinstance(plan, KernelPlan)
    with device.prepare(plan) as prepared:
        counters = prepared.launch().counters or {}
    if operation in ("fma", "float_add"):
        assert counters["float_operations"] == plan.about["float_operations"]
    else:
        assert counters["float_operations"] == 0
        # The two instructions of x ^ (y & a) may become one, which is what a GPU does with them.
        least = int(plan.about["integer_operations"])
        assert least <= counters["integer_operations"] <= 2.2 * least


def test_the_counters_of_several_launches_are_those_of_one() -> None:
    half = {"warp_instructions": 10, "thread_instructions": 160, "lane_efficiency": 0.5}
    full = {"warp_instructions": 30, "thread_instructions": 960, "lane_efficiency": 1.0}
    assert combined([half, full, {"barriers": 2}]) == {
        **{"warp_instructions": 40, "thread_instructions": 1120, "lane_efficiency": 0.875},
        "barriers": 2,
    }
    assert combined([{"barriers": 2}, {"barriers": 3}]) == {"barriers": 5}
