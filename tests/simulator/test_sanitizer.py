"""The checked mode finds every planted mistake at its line, and nothing in what is right."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.planted import SOURCE, planted
from nqbench.compiler.compile import compile_kernel
from nqbench.compiler.compiled import Compiled
from nqbench.devices.registry import SimDevice
from nqbench.plan import Buffer, Kernel, KernelPlan
from nqbench.simulator import engine, launching
from nqbench.simulator.findings import Finding, sentence
from nqbench.simulator.mistakes import run_checked

WORDS = 192
NOTHING = "nothing orders the two"
WHY = {
    "": NOTHING,
    "after": "the atomic that hands it over comes without a {} before",
    "before": "it saw the atomic that hands it over, but a {} is missing between that and this",
}


def plan_of(name: str) -> KernelPlan:
    """How every kernel of the file is launched."""
    out = Buffer("out", "int32", WORDS, np.zeros(WORDS, np.int32), restore=True, output=True)
    raw = Buffer("raw", "int32", WORDS)
    return KernelPlan(SOURCE, name, ("out", "raw"), (2, 1, 1), (96, 1, 1), buffers=(out, raw))


PLANTED = planted()


@functools.cache
def compiled_once(arch: str) -> Compiled:
    """All kernels of the file: PTX has each of them, whichever is asked for."""
    return compile_kernel(plan_of(next(iter(PLANTED))), arch, "ptx")


@pytest.fixture(autouse=True)
def one_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "WATCHED_SLICE", 1 << 10)
    monkeypatch.setattr(engine, "IDLE_WORK", 1 << 18)

    def compiled(kernel: Kernel, arch: str, kind: str) -> Compiled:
        return replace(compiled_once(arch), symbol=kernel.entry)

    monkeypatch.setattr(launching, "compile_kernel", compiled)


@functools.cache
def device(order: str = "round_robin") -> SimDevice:
    return SimDevice(order=order, checked=True, max_steps=1 << 26)


def findings(entry: str, order: str = "round_robin") -> list[Finding]:
    return [finding for _, finding in run_checked(plan_of(entry), device(order).simulation)]


@pytest.mark.parametrize("entry", PLANTED)
def test_every_mistake_is_found_at_its_line_and_nothing_else(entry: str) -> None:
    (kind, marked, missing), found = PLANTED[entry], findings(entry)
    assert {f.kind for f in found} == {kind} - {""}
    lines = {place.source_line for f in found for place in (f.place, f.other) if place}
    assert not kind or lines & marked
    if kind in ("race", "lost update"):
        said = {sentence(f).rpartition("; ")[2] for f in found}
        fence, _, where = missing.partition(" ")
        assert WHY[where].format(fence) in said
        assert (NOTHING in said) == (missing == "")


SOME = ["write_after_read", "sums", "last_one", "last_block", "locked", "told_by_a_flag", "relayed"]


@pytest.mark.parametrize("order", ["reverse", "greedy"])
@pytest.mark.parametrize(
    "entry", [*SOME, "last_warp_without_a_fence", "filled_again_without_a_fence"]
)
def test_a_race_is_found_in_any_order_of_warps(entry: str, order: str) -> None:
    assert {f.kind for f in findings(entry, order)} == {PLANTED[entry][0]} - {""}


def test_threads_values_and_counts() -> None:
    (race,) = [f for f in findings("in_a_warp") if f.kind == "race"]
    assert (race.count, race.does, race.buffer, race.element) == (192, ("reads", "wrote"), "s", 1)
    assert race.threads == (((0, 0, 0), (0, 0, 0)), ((0, 0, 0), (1, 0, 0)))
    assert race.values == (1,)
    (lost,) = findings("last_one")
    assert (lost.count, lost.buffer, lost.element, lost.values) == (96, "out", 0, (1, 2))
    assert [block[0] for block, _ in lost.threads] == [1, 0]
    (next_one,) = findings("next_local_array")
    assert next_one.message == "outside of its array, which has 16 bytes, and inside another one"
    early, late = (findings(e)[0].message for e in ("left_before_writing", "shared_unwritten"))
    assert (early, late) == ("26 threads of the block have left before", "")
    (beyond,) = findings("global_beyond")
    assert beyond.count == 8
    assert beyond.message == "right beyond the end of buffer 'out' of 768 bytes"
