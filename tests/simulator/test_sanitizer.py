"""The checked mode finds every planted mistake at its line, and nothing in what is right."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest

from benchmarks.sanitizers import parsed, plan_of, planted
from nqbench.compiler.compile import Compiled, compile_kernel
from nqbench.devices.simulator import SimDevice
from nqbench.plan import Kernel
from nqbench.simulator import launching
from nqbench.simulator.mistakes import run_checked
from nqbench.simulator.sanitizer import Finding

PLANTED = {kernel.name: kernel for kernel in planted()}


@functools.cache
def compiled_once(arch: str) -> Compiled:
    """All kernels of the file: PTX has each of them, whichever is asked for."""
    return compile_kernel(plan_of(next(iter(PLANTED))), arch, "ptx")


@pytest.fixture(autouse=True)
def one_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(kernel: Kernel, arch: str, kind: str) -> Compiled:
        return replace(compiled_once(arch), symbol=kernel.entry)

    monkeypatch.setattr(launching, "compile_kernel", compiled)


@functools.cache
def device(order: str = "round_robin") -> SimDevice:
    return SimDevice(order=order, checked=True, max_steps=1 << 22)


def findings(entry: str, order: str = "round_robin") -> list[Finding]:
    return [finding for _, finding in run_checked(plan_of(entry), device(order).simulation)]


@pytest.mark.parametrize("entry", PLANTED)
def test_every_mistake_is_found_at_its_line_and_nothing_else(entry: str) -> None:
    kernel, found = PLANTED[entry], findings(entry)
    assert {f.kind for f in found} == ({kernel.kind} if kernel.kind else set())
    lines = {place.line for f in found for place in (f.place, f.other) if place}
    assert not kernel.kind or lines & set(kernel.lines)


@pytest.mark.parametrize("order", ["reverse", "greedy"])
@pytest.mark.parametrize("entry", ["write_after_read", "sums", "last_one", "last_block", "locked"])
def test_a_race_is_found_in_any_order_of_warps(entry: str, order: str) -> None:
    assert {f.kind for f in findings(entry, order)} == {PLANTED[entry].kind} - {""}


def test_threads_values_and_counts() -> None:
    (race,) = [f for f in findings("in_a_warp") if f.kind == "race"]
    assert (race.count, race.does, race.buffer, race.element) == (192, ("reads", "wrote"), "s", 1)
    assert race.threads == (((0, 0, 0), (0, 0, 0)), ((0, 0, 0), (1, 0, 0)))
    assert race.values == (1,)
    (lost,) = findings("last_one")
    assert (lost.count, lost.buffer, lost.element, lost.values) == (96, "out", 0, (1, 2))
    assert [block[0] for block, _ in lost.threads] == [1, 0]
    (beyond,) = findings("global_beyond")
    assert beyond.count == 8
    assert beyond.message == "0 bytes beyond the end of buffer 'out' of 768 bytes"


def test_the_output_of_compute_sanitizer_is_read() -> None:
    seen = parsed(
        "========= Invalid __global__ write of size 4 bytes\n"
        "=========     at global_beyond+0x70 in planted.cu:9\n"
        "========= ERROR SUMMARY: 8 errors\n"
    )
    assert (seen.count, seen.lines, seen.cell([9])) == (8, (9,), "line 9")
    none = parsed("========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n")
    assert none.cell([]) == "-"
    assert parsed("========= Internal error").cell([]) == "? ========= Internal error"
