"""Every fault names kernel, place, lane and PTX line; nothing hangs or passes silently."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest

from nqbench.devices.registry import SimDevice
from nqbench.errors import KernelFault, LaunchTimeout
from tests.simulator.harness import KERNELS, Arrays, cuda, device, outputs

pytestmark = pytest.mark.usefixtures("accesses")


def divisors() -> np.ndarray[Any, Any]:
    """Thread 17's number makes the kernel divide by zero."""
    values = np.arange(32, dtype=np.int32) + 10
    values[17] = 3
    return values


ZEROS = {count: np.zeros(count, np.int32) for count in (32, 96)}
SKIPPING = ("skips", "skips_a_turn", "meets_less_often")
GIVEN: dict[str, Arrays] = {
    "beyond": {"in": ZEROS[32], "out": ZEROS[32]},
    "null_pointer": {"out": ZEROS[32], "address": np.int64(0)},
    "misaligned": {"out": np.zeros(256, np.int8)},
    "shared_beyond": {"out": np.full(32, 3, np.int32)},
    "unwritten_byte": {"out": np.zeros(32, np.uint8)},
    "divide": {"out": divisors()},
    **{name: {"out": ZEROS[96]} for name in ("half_barrier", *SKIPPING)},
}


def stopping() -> dict[str, tuple[str, str]]:
    """Of each kernel that stops the line at which it does, and what is said, as its source says."""
    found: dict[str, tuple[str, str]] = {}
    name, said = "", ""
    for line in (KERNELS / "faults.cu").read_text().splitlines():
        if begins := re.match(r"__global__ void (\w+)\(", line):
            name = begins[1]
        if words := re.match(r" *// stops: (.*)", line):
            said = f"{said} {words[1]}".strip()
        elif said:
            found[begins[1] if begins else name], said = (line, said), ""
    return found


FAULTS = stopping()


@pytest.mark.parametrize("entry", FAULTS)
def test_a_fault_says_what_and_where(entry: str) -> None:
    given = GIVEN.get(entry, {"out": np.zeros(64, np.int32)})
    plan = cuda("faults.cu", entry, given, block=96 if given.get("out") is ZEROS[96] else 32)
    with device().prepare(plan) as prepared, pytest.raises(KernelFault) as caught:
        prepared.launch()
    text, (wrong, said) = str(caught.value), FAULTS[entry]
    assert re.match(f"kernel {entry}: .*{said}", text)
    assert "\n" not in text
    found = re.search(r"PTX line \d+ \(faults\.cu:(\d+)\)", text)
    assert found is not None
    line = (KERNELS / "faults.cu").read_text().splitlines()[int(found[1]) - 1]
    assert line == wrong or entry == "split_barrier"  # at either of two


def test_memory_that_a_kernel_wrote_may_be_read() -> None:
    out = np.zeros(64, np.uint32)
    plan = cuda("faults.cu", "looks_unwritten", {"out": out, "pattern": np.uint32(0xA7A7A7A7)})
    assert (outputs(plan)["out"][:32] == 0xA7A7A7A7).all()


def test_an_unwritten_word_that_decides_nothing_is_a_note() -> None:
    plan = cuda("faults.cu", "copies_unwritten", {"out": np.zeros(64, np.int32)})
    plan = dataclasses.replace(
        plan, buffers=tuple(dataclasses.replace(b, restore=True) for b in plan.buffers)
    )
    with device().prepare(plan) as prepared:
        for _ in range(2):
            (note,) = prepared.launch().detail["printed"]
            assert re.match("note: .*nothing has written.*; no result depends on it$", note)
            assert "copies_unwritten" in note
            assert prepared.fetch()["out"][:31].tolist() == [2 * i for i in range(31)]


@pytest.mark.parametrize("what", [0, 1, 2])
def test_an_unwritten_word_that_decides_is_a_fault(what: int) -> None:
    out = np.zeros(64, np.int32)
    plan = cuda("faults.cu", "decides_by_unwritten", {"out": out, "what": np.int32(what)})
    with device().prepare(plan) as prepared:
        for _ in range(2):
            with pytest.raises(KernelFault, match="nothing has written"):
                prepared.launch()


REFUSED = {
    "faults.cu unknown": r"setmaxnreg\.inc\.sync\.aligned\.u32 at PTX line \d+ \(faults\.cu:\d+\)$",
    "faults.cu textured": r"textures are not simulated; at PTX line \d+ \(faults\.cu:135\)",
    "faults.cu clustered": r"cluster\.arrive: thread block clusters are not simulated; at PTX line",
    "calls.cu numbers": r"fibonacci\(int\), which calls itself \(recursion is not simulated\)",
    "calls.cu mallocs": r"asks for memory of the heap .* at PTX line \d+ \(calls\.cu:\d+\)",
}


@pytest.mark.parametrize("kernel", REFUSED)
def test_what_is_not_simulated_is_found_before_the_launch(kernel: str) -> None:
    source, entry = kernel.split()
    given: Arrays = {"out": np.zeros(32, np.int32)}
    more: Arrays = {"texture": np.uint64(0)} if entry == "textured" else {}
    with pytest.raises(KernelFault, match=REFUSED[kernel]):
        device().prepare(cuda(source, entry, {**given, **more}))


LOOPS = (
    r"may be endless, .*; lanes 0xffffffff of block \(0, 0, 0\), warp 0 are at"
    r" .* at PTX line \d+ \(faults\.cu:\d+\)$"
)


def test_an_endless_kernel_ends_in_a_timeout() -> None:
    plan = cuda("faults.cu", "endless", {"out": np.zeros(4, np.int32)})
    small = SimDevice(max_steps=10_000)
    with small.prepare(plan) as prepared, pytest.raises(LaunchTimeout, match=LOOPS):
        prepared.launch()
    with (
        device().prepare(plan) as prepared,
        pytest.raises(LaunchTimeout, match=r"after 0\.05 s; lanes"),
    ):
        prepared.launch(timeout_s=0.05)


@pytest.mark.parametrize(
    ("entry", "total"),
    [("skips_once", 3 * 96), ("leaves_early", 3 * 70), ("meets_elsewhere", 3 * 32)],
)
def test_threads_that_left_or_all_go_past_a_barrier(entry: str, total: int) -> None:
    plan = cuda("faults.cu", entry, {"out": np.zeros(96, np.int32)}, block=96)
    with device().prepare(plan) as prepared:
        prepared.launch()
        assert int(prepared.fetch()["out"].sum()) == total
