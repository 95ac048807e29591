"""Object code on disk: found again, shared by kernels with the same code, never trusted blindly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nqbench.simulator import native, translation
from nqbench.simulator.native import Cpu
from nqbench.simulator.translation import build
from tests.simulator.harness import PLACE, RULES, cuda, device, ptx, run

ADD = PLACE + "st.global.u32 [%rd1], %r1;"


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules compiled from now on, with an empty cache."""
    monkeypatch.setenv("NQBENCH_CACHE_DIR", str(tmp_path))
    modules: list[str] = []
    compile_object = native.compile_object

    def noted(text: str, cpu: Cpu) -> bytes:
        modules.append(text)
        return compile_object(text, cpu)

    monkeypatch.setattr(native, "compile_object", noted)
    return modules


def right(text: str) -> bool:
    return np.array_equal(run(text, [np.zeros(32, np.uint32)]).buffers[0], np.arange(32))


def test_a_kernel_is_compiled_once(compiled: list[str]) -> None:
    text = ptx(ADD, 1, variables="// once")
    assert right(text)
    assert len([module for module in compiled if "define i32 @sim_warp(" in module]) == 1
    compiled.clear()
    assert right(ptx(ADD, 1, variables="// other text, same instructions"))
    assert not compiled
    build.__wrapped__(*build(text, "k", RULES).source, native.compile_object)
    assert len(compiled) == 1


@pytest.mark.parametrize("blocks", [0, 300])
def test_a_long_kernel_is_translated_once(
    blocks: int, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translation, "KEPT_FROM", 0)
    monkeypatch.setattr(translation, "MANY_BLOCKS", blocks)
    build.cache_clear()
    plan = cuda("kept.cu", "walks", {"out": np.arange(256, dtype=np.int32)}, block=256)
    found = []
    for _ in range(2):
        with device().prepare(plan) as prepared:
            launch = prepared.launch()
            found.append((launch.counters, launch.detail, prepared.fetch()["out"].tolist()))
        build.cache_clear()
        monkeypatch.setattr(translation, "_translated", None)  # no need of it again
    assert any("optnone" in module for module in compiled) == (blocks == 0)
    assert found[0] == found[1]
    assert found[0][2] == [sum(i ^ j for j in range(i % 7)) + 7 for i in range(256)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("this_cpu", lambda: Cpu("x86-64", "")),
        ("PASSES", native.PASSES[:2]),
        ("OPTIMISATION_LEVEL", 1),
        ("installed", lambda package: "0"),
    ],
)
def test_another_cpu_other_passes_or_another_llvm_compile_anew(
    name: str, value: object, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    build(ptx(ADD, 1, variables=f"// before {name}"), "k", RULES)
    compiled.clear()
    monkeypatch.setattr(native, name, value)
    assert right(ptx(ADD, 1, variables=f"// with another {name}"))
    assert any("define i32 @sim_warp(" in module for module in compiled)
