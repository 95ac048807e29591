"""The static report, of kernels built to spill and to fill shared memory."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from nqbench.compiler.compiled import resources_of
from nqbench.compiler.static import static_report
from nqbench.errors import CompileError, StudyError
from nqbench.measure.launch import static_rows
from nqbench.plan import CachePreference, KernelPlan
from nqbench.simulator.models import chips
from nqbench.study import expand, load_study
from tests.compiling import compile_cubin, compile_ptx

SOURCE = Path(__file__).with_name("resources.cu").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NQBENCH_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "k.cu"
    path.write_text(SOURCE)
    return path


def plan(
    source: Path, entry: str, block: int = 128, shared: int = 0, cache: CachePreference = "default"
) -> KernelPlan:
    return KernelPlan(
        *(source, entry, ()), buffers=(), grid=(1, 1, 1), block=(block, 1, 1),
        shared_bytes=shared, cache=cache,
    )  # fmt: skip


def test_stack_and_shared_memory_are_those_of_the_source(source: Path) -> None:
    report = resources_of(compile_cubin(source, "stacked<40>", "sm_90"))
    assert report.stack_bytes >= 160  # int kept[40]
    assert report.static_shared_bytes == 160  # int fixed[40]
    assert report.spill_bytes == 0
    with pytest.raises(CompileError, match="compile to a cubin"):
        resources_of(compile_ptx(source, "other", "sm_90"))


def test_spills_appear_when_registers_are_short(source: Path) -> None:
    free = resources_of(compile_cubin(source, "crowded<64>", "sm_90"))
    tight = resources_of(compile_cubin(source, "crowded<64>", "sm_90", ("--maxrregcount=32",)))
    assert free.spill_bytes == 0
    assert free.registers > 64
    assert tight.registers <= 32
    assert min(tight.spill_store_bytes, tight.spill_load_bytes) > 0
    assert tight.spill_bytes == tight.spill_store_bytes + tight.spill_load_bytes
    assert tight.stack_bytes > 0


def test_rows_come_by_architecture_then_plan(source: Path) -> None:
    plans = [
        ("wide", plan(source, "other", 1024)),
        ("shared", plan(source, "stacked<40>", 128, 40_000)),
        ("narrow", plan(source, "other", 32, cache="prefer_l1")),
    ]
    rows = static_report(plans, chips(["sm_75", "sm_90"]))
    assert [(r.label, r.arch) for r in rows] == [
        (label, arch) for arch in ("sm_75", "sm_90") for label, _ in plans
    ]
    by = {(r.label, r.arch): r for r in rows}
    assert by["wide", "sm_75"].occupancy == 1.0
    assert by["wide", "sm_90"].limiter == "warps"
    assert by["shared", "sm_75"].blocks_per_multiprocessor == 1  # 40160 of 65536
    assert by["shared", "sm_90"].blocks_per_multiprocessor == 5  # 41216 of 233472
    assert by["shared", "sm_90"].limiter == "shared"
    assert by["shared", "sm_90"].dynamic_shared_bytes == 40_000
    assert by["narrow", "sm_90"].blocks_per_multiprocessor == 8
    assert all(r.note == "" for r in rows)


def test_chips_that_no_longer_compile_take_registers_of_the_oldest_that_does(source: Path) -> None:
    plans = [("small", plan(source, "other", 512)), ("large", plan(source, "crowded<80>", 64))]
    small, large, other, _ = static_report(plans, chips(["gtx480", "t4"]))
    assert (small.arch, small.chip, small.note) == (
        *("sm_75", "GeForce GTX 480", "registers of sm_75 code"),
    )
    assert small.registers == other.registers
    assert (small.blocks_per_multiprocessor, other.blocks_per_multiprocessor) == (3, 2)
    assert (large.registers or 0) > 63
    assert large.note == "registers of sm_75 code; 63 per thread at most"
    assert large.blocks_per_multiprocessor == 8  # 16 warps of 63 -> 2048 registers: 32768 of 32768


def test_a_kernel_that_does_not_compile_is_a_row_with_the_reason(source: Path) -> None:
    good, bad = static_report(
        [("good", plan(source, "other")), ("bad", plan(source, "missing"))], chips(["sm_90"])
    )
    assert good.registers
    assert bad.registers is None
    assert bad.occupancy is None
    assert "missing" in bad.note
    with pytest.raises(StudyError, match="names no architecture"):
        chips([])


def test_every_kernel_of_a_program_has_a_row(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(
        "name: s\nworkload: fitness\nn: {cuda: [10]}\n"
        "systems: [fitness_schemes.gpu_coarse, fitness_schemes.cpu_serial]\n"
    )
    rows = static_rows(partial(expand, load_study(study)), ["sm_90"])
    assert [row.label.rpartition(" ")[2] for row in rows] == ["@coarse"]
    assert all(row.registers for row in rows)
