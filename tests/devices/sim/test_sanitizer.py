"""The checked mode finds every planted mistake at its line, and nothing in what is right."""

from __future__ import annotations

import functools
import re
from dataclasses import replace

import numpy as np
import pytest

from nqbench.compiler.compile import Compiled, compile_kernel
from nqbench.devices.sim import SimDevice, launching
from nqbench.devices.sim.sanitizer import Finding
from nqbench.plan import Buffer, Kernel, KernelPlan
from nqbench.solve.check import run_checked
from tests.devices.sim.harness import KERNELS

SOURCE = KERNELS / "planted.cu"
WORDS = 192


def planted() -> dict[str, set[tuple[str, int]]]:
    """Kind and line of the mistakes of each kernel, as its text says."""
    found: dict[str, set[tuple[str, int]]] = {}
    name = ""
    for number, line in enumerate(SOURCE.read_text(encoding="utf-8").splitlines(), 1):
        if begins := re.match(r"K (\w+)\(", line):
            name = begins[1]
            found[name] = set()
        if bad := re.search(r"// bad: (.+)", line):
            found[name].add((bad[1], number))
    return found


PLANTED = planted()


@functools.cache
def compiled_once(arch: str) -> Compiled:
    """All kernels of the file: PTX has each of them, whichever is asked for."""
    return compile_kernel(plan_of(next(iter(PLANTED))), arch, "ptx")


@pytest.fixture(autouse=True)
def one_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(kernel: Kernel, arch: str, kind: str) -> Compiled:
        return replace(compiled_once(arch), symbol=kernel.entry)

    monkeypatch.setattr(launching, "compile_kernel", compiled)


def plan_of(entry: str) -> KernelPlan:
    out = Buffer("out", "int32", WORDS, np.zeros(WORDS, np.int32), restore=True, output=True)
    raw = Buffer("raw", "int32", WORDS)
    return KernelPlan(
        SOURCE, entry, ("out", "raw"), buffers=(out, raw), grid=(2, 1, 1), block=(96, 1, 1)
    )


@functools.cache
def device(order: str = "round_robin") -> SimDevice:
    return SimDevice(order=order, checked=True, max_steps=1 << 22)


def findings(entry: str, order: str = "round_robin") -> list[Finding]:
    return [finding for _, finding in run_checked(plan_of(entry), device(order))]


@pytest.mark.parametrize("entry", PLANTED)
def test_every_mistake_is_found_at_its_line_and_nothing_else(entry: str) -> None:
    found = findings(entry)
    lines = {(f.kind, place.line) for f in found for place in (f.place, f.other) if place}
    marked = PLANTED[entry]
    assert {f.kind for f in found} == {kind for kind, _ in marked}
    if marked:
        assert lines & marked
