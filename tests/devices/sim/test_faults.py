"""Every fault names kernel, place, lane and PTX line; nothing hangs or passes silently."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nqbench.devices.sim import SimDevice
from nqbench.errors import KernelFault, LaunchTimeout
from tests.devices.sim.harness import KERNELS, Arrays, cuda, device


def message(entry: str, arrays: Arrays | None = None, block: int = 32) -> str:
    given = arrays or {"out": np.zeros(64, np.int32)}
    plan = cuda("faults.cu", entry, given, block=block)
    with device().prepare(plan) as prepared, pytest.raises(KernelFault) as caught:
        prepared.launch()
    text = str(caught.value)
    assert text.startswith(f"kernel {entry}: ")
    assert "\n" not in text
    return text


def source_line(text: str) -> str:
    """The line of the test kernel that a message names."""
    found = re.search(r"PTX line \d+ \(faults\.cu:(\d+)\)", text)
    assert found is not None, text
    return (KERNELS / "faults.cu").read_text().splitlines()[int(found[1]) - 1]


def test_reading_beyond_a_buffer_names_it_and_the_lane() -> None:
    text = message("beyond", {"in": np.zeros(32, np.int32), "out": np.zeros(32, np.int32)})
    assert "access outside every buffer" in text
    assert "0 bytes beyond the end of buffer 'in' of 128 bytes" in text
    assert "block (0, 0, 0), thread (24, 0, 0), warp 0, lane 24" in text
    assert "ld.global" in text
    assert "in[threadIdx.x + 8]" in source_line(text)


def test_writing_before_a_buffer() -> None:
    text = message("before")
    assert "16 bytes before buffer 'out'" in text
    assert "lane 0;" in text


def test_writing_far_away_is_caught_in_the_first_lane_outside() -> None:
    assert "lane 1;" in message("far_away")


def test_null_pointer() -> None:
    text = message("null_pointer", {"out": np.zeros(32, np.int32), "address": np.int64(0)})
    assert "access outside every buffer: address 0x0" in text


def test_misaligned_access() -> None:
    text = message("misaligned", {"out": np.zeros(256, np.int8)})
    assert "misaligned access" in text
    assert "is not a multiple of 4" in text
    assert "byte 37 of buffer 'out' of 256 bytes" in text
    assert "lane 9;" in text


def test_shared_memory_of_the_block_ends() -> None:
    text = message("shared_beyond", {"out": np.full(32, 3, np.int32)})
    assert "outside the shared memory of the block: address 0x80, 128 bytes" in text
    assert "lane 29;" in text


def test_reading_shared_memory_never_written() -> None:
    text = message("unwritten")
    assert "reads shared memory that was never written, address 0x4, byte 4 of box;" in text
    assert "lane 0;" in text
    assert "box[threadIdx.x + 1]" in source_line(text)


def test_reading_a_byte_never_written() -> None:
    text = message("unwritten_byte", {"out": np.zeros(32, np.uint8)})
    assert "never written, address 0x5" in text
    assert "lane 26;" in text


def test_atomic_on_shared_memory_never_written() -> None:
    assert "never written, address 0x4" in message("unwritten_atomic")


def test_values_that_look_unwritten_are_not() -> None:
    out = np.zeros(64, np.uint32)
    plan = cuda("faults.cu", "looks_unwritten", {"out": out, "pattern": np.uint32(0xA7A7A7A7)})
    with device().prepare(plan) as prepared:
        prepared.launch()
        assert (prepared.fetch()["out"][:32] == 0xA7A7A7A7).all()


def test_division_by_zero() -> None:
    values = np.arange(32, dtype=np.int32) + 10
    values[17] = 3
    text = message("divide", {"out": values})
    assert "integer division by zero" in text
    assert "lane 17;" in text


def test_a_barrier_that_cannot_fill_is_a_deadlock() -> None:
    text = message("half_barrier", {"out": np.zeros(96, np.int32)}, block=96)
    assert "deadlock: block (0, 0, 0) waits at barrier 1" in text
    assert "bar.sync" in text


def test_lanes_of_a_warp_at_two_barriers() -> None:
    text = message("split_barrier")
    assert "lanes of one warp wait at different bar.sync instructions" in text


def test_members_that_never_come() -> None:
    text = message("missing_members")
    assert "deadlock: lanes 0xffff0000 of block (0, 0, 0), warp 0 wait at vote.sync.ballot" in text
    assert "__ballot_sync" in source_line(text)


def test_a_lane_outside_its_own_mask() -> None:
    text = message("not_a_member")
    assert "not in the member mask" in text
    assert "lane 16;" in text


def test_shuffle_from_a_lane_that_does_not_take_part() -> None:
    text = message("inactive_source")
    assert "does not take part (source lane 20)" in text
    assert "lane 19;" in text


def test_trap() -> None:
    text = message("traps")
    assert "trap" in text
    assert "lane 3;" in text


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("approximate", "sin.approx.f32"),
        ("calls", "calls are not simulated; the function must be inlined"),
    ],
)
def test_unknown_instructions_are_found_before_the_launch(entry: str, words: str) -> None:
    dtype = np.float32 if entry == "approximate" else np.int32
    plan = cuda("faults.cu", entry, {"out": np.zeros(32, dtype)})
    with pytest.raises(KernelFault) as caught:
        device().prepare(plan)
    assert words in str(caught.value)
    assert re.search(r"at PTX line \d+ \(faults\.cu:\d+\)$", str(caught.value))


def test_an_endless_kernel_ends_in_a_timeout() -> None:
    plan = cuda("faults.cu", "endless", {"out": np.zeros(4, np.int32)})
    small = SimDevice(max_steps=10_000)
    with small.prepare(plan) as prepared, pytest.raises(LaunchTimeout, match="may be endless"):
        prepared.launch()
    with device().prepare(plan) as prepared, pytest.raises(LaunchTimeout, match=r"after 0\.05 s"):
        prepared.launch(timeout_s=0.05)
