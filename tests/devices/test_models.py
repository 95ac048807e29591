"""Models of GPUs: what comes with the package, and what a wrong file is told."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from nqbench.devices.registry import SimDevice
from nqbench.errors import DeviceUnavailable
from nqbench.facts import DeviceFacts
from nqbench.plan import Buffer, KernelPlan
from nqbench.simulator import models
from tests.compiling import compile_cubin

GOOD = Path(__file__).with_name("chip.yaml").read_text(encoding="utf-8")

# Facts of the papers' chips as the papers print them (papers/*.yaml).
PRINTED = [
    ("gf8600m_gs", {"compute_capability": (1, 1), "clock_mhz": 1200}),
    ("nvs295", {"clock_mhz": 1300, "shared_per_multiprocessor": 16384}),
    ("gtx275", {"compute_capability": (1, 3), "clock_mhz": 1404}),
    ("gtx280", {"multiprocessors": 30, "shared_banks": 16, "shared_per_multiprocessor": 16384}),
    ("gtx295", {"compute_capability": (1, 3), "clock_mhz": 1242}),
    ("gtx480", {"multiprocessors": 15, "shared_banks": 32, "l1_line_bytes": 128}),
    ("gtx480", {"shared_carveouts": (16 << 10, 48 << 10), "memory_latency": 440}),
    ("gtx560ti", {"multiprocessors": 8, "shared_per_block": 48 << 10}),
    ("k80", {"compute_capability": (3, 7), "max_threads_per_multiprocessor": 2048}),
]


@pytest.mark.parametrize("name", models.model_names())
def test_every_model_is_complete_and_consistent(name: str) -> None:
    model = models.load_model(name)
    facts, chip, stated = model.facts, model.chip, model.stated
    assert (model.name, facts.kind) == (name, "sim")
    assert set(stated) > {f.name for f in fields(DeviceFacts)} - {
        *("name", "kind", "warp_size", "compiled_for")
    }
    assert all(fact.source for fact in stated.values())
    cached = bool(chip.l1_shared_bytes)
    of_caches = {"l1_line_bytes", "l1_latency", "l2_latency", "l2_partial_cost"}
    absent = {f.name for f in fields(chip) if getattr(chip, f.name) is None}
    absent -= {"l2_gb_per_s", "memory_gb_per_s", "block_clocks", "warp_clocks", "restart_clocks"}
    absent -= {"divergence_clocks", "yield_clocks", "bsync_clocks"}
    if facts.compute_capability < (7, 0):
        absent -= {"reconvergence_latency", "integer_atomic_clocks"}
    if facts.compute_capability == (1, 1):
        absent -= {"double_per_clock"}
    assert absent == (set() if cached else of_caches)
    old = facts.compute_capability < (7, 5)
    assert facts.arch == "sm_75" if old else model.remark == ""
    assert ("PTX for sm_75" in model.remark) == old


@pytest.mark.parametrize(("name", "printed"), PRINTED)
def test_facts_are_those_that_the_papers_print(name: str, printed: dict[str, object]) -> None:
    stated = models.load_model(name).stated
    assert {key: stated[key].value for key in printed} == printed


def test_cores_and_clocks_give_the_advertised_peak() -> None:
    """Cores x clock x 2, TFLOPS in single precision, of NVIDIA's product pages."""
    peaks = {"gtx480": 1.345, "gtx560ti": 1.263, "k80": 4.37, "v100": 15.7, "t4": 8.1}
    peaks |= {"rtx2080ti": 13.4, "a100": 19.5, "rtx3090": 35.6, "rtx4090": 82.6, "h200": 66.9}
    for name, peak in {**peaks, "rtx5090": 104.8}.items():
        model = models.load_model(name)
        cores = model.facts.multiprocessors * (model.chip.float_per_clock or 0)
        assert cores * (model.chip.clock_mhz or 0) * 2e-6 == pytest.approx(peak, rel=0.01), name


def test_a_fact_says_where_it_is_from() -> None:
    stated = models.load_model("gtx480").stated
    assert stated["registers_per_multiprocessor"].source.endswith("per compute capability)")
    assert stated["l1_latency"].source.startswith("assumed: L1 answers like")
    assert "F.4.2" in stated["memory.rules"].source


def test_a_real_chip_takes_rules_from_the_nearest_capability() -> None:
    others = [((8, 7), (8, 6)), ((3, 5), (3, 7)), ((6, 1), (3, 7)), ((5, 2), (3, 7))]
    for asked, nearest in [*others, ((7, 0), (7, 0)), ((12, 1), (12, 0)), ((20, 0), (12, 0))]:
        assert models.capability_facts(*asked).compute_capability == nearest


def test_every_architecture_compiles_and_is_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NQBENCH_CACHE_DIR", str(tmp_path))
    source = tmp_path / "k.cu"
    source.write_text("__global__ void k(const int* in, int* out) { *out = *in + 1; }\n")
    buffers = (
        Buffer("in", "int32", 1, np.array([41], np.int32)),
        Buffer("out", "int32", 1, output=True),
    )
    plan = KernelPlan(source, "k", ("in", "out"), buffers=buffers, grid=(1, 1, 1), block=(1, 1, 1))
    for arch, name in {
        models.load_model(name).facts.arch: name for name in models.model_names()
    }.items():
        assert compile_cubin(source, "k", arch).image
        with SimDevice(name).prepare(plan) as prepared:
            prepared.launch()
            assert prepared.fetch()["out"].tolist() == [42], arch


def test_names_start_with_the_default_and_rise() -> None:
    names = models.model_names()
    assert names[0] == models.load_model().name == models.DEFAULT_MODEL == "mini"
    assert names[1:] == (
        *("gf8600m_gs", "nvs295", "gtx275", "gtx280", "gtx295", "gtx480", "gtx560ti", "k80"),
        *("v100", "rtx2080ti", "t4", "a100", "rtx3090", "rtx4090", "h100", "h200", "b200"),
        "rtx5090",
    )
    for arch, name in models.REPRESENTATIVES.items():
        assert (models.load_model(arch).name, models.load_model(arch).facts.arch) == (arch, arch)
        assert models.load_model(arch).facts == models.load_model(name).facts


def test_an_own_file_is_a_model(tmp_path: Path) -> None:
    path = tmp_path / "tiny.yaml"
    path.write_text(GOOD)
    model = models.load_model(str(path))
    assert (model.name, model.facts.multiprocessors, model.facts.arch) == ("tiny", 2, "sm_90")
    assert model.stated["multiprocessors"].source == "its data sheet"
    assert [facts.multiprocessors for facts in models.chips([str(path), "k80"])] == [2, 13]
    path.write_text("name: small H100\nlike: h100\nfacts: {assumed: a sketch, l2_bytes: 1024}\n")
    models.load_model.cache_clear()
    small = models.load_model(str(path))
    assert (small.facts.multiprocessors, small.chip.l2_bytes) == (132, 1024)


CONTRADICTIONS = [
    ("max_threads_per_multiprocessor: 1024", "but max_warps_per_multiprocessor 64, of 32 threads"),
    ("max_threads_per_block: 4096", "4096, more than max_threads_per_multiprocessor, 2048"),
    ("shared_per_block: 300000", "300000, more than shared_per_block_optin, 232448"),
    ("shared_carveouts: [233472, 8192]", "must rise to shared_per_multiprocessor, 233472"),
    ("l1_shared_bytes: 1024", "more than shared_per_multiprocessor, 233472"),
    ("shared_banks: 16", r"but memory\.shared_banks 32"),
]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "  multiprocessors: 2",
            "  multiprocesors: 2",
            "'multiprocesors' in an entry of 'facts'; did you",
        ),
        ("about: a chip", "abut: a chip", "unknown key 'abut' in the model; did you mean 'about'"),
        ("sector_bytes", "sector_byte", "'sector_byte' in 'memory'; did you mean 'sector_bytes'"),
        ("multiprocessors: 2", "l2_bytes: 2", "facts lacks multiprocessors"),
        ("name: chip\n", "", "the file lacks name"),
        ("like: cc_9_0\n", "", "facts lacks compute_capability"),
        ("cc_9_0", "cc_9_1", "like is 'cc_9_1', which is no model; did you mean 'cc_9_0'"),
        ("cc_9_0", "[cc_9_0]", "'like' takes text, not a list"),
        ("multiprocessors: 2", "multiprocessors: true", "as a truth value"),
        ("multiprocessors: 2", "multiprocessors: 0", ":6: .* is 0, but must be at least 1"),
        ("multiprocessors: 2", "multiprocessors: [2]", "a whole number, not a list"),
        ("multiprocessors: 2", "multiprocessors: 2\n  multiprocessors: 3", "given twice"),
        ("multiprocessors: 2", "l2_latency: -1", "is -1, but must be at least 0"),
        ("multiprocessors: 2", "clock_mhz: 0", "is 0, but input should be greater than 0"),
        ("multiprocessors: 2", "clock_mhz: .inf", "is inf, but input should be a finite"),
        ("multiprocessors: 2", "l1_line_bytes: 64", "'l1_line_bytes' takes 128, not 64"),
        ("multiprocessors: 2", "l1_holds: [shared]", "takes 'local' or 'global', not 'shared'"),
        ("multiprocessors: 2", "l1_holds: local", "'l1_holds' takes a list of entries"),
        (
            "multiprocessors: 2",
            "compute_capability: [9]",
            r"is \[9\], but list should have at least 2",
        ),
        ("shared_banks: 32", "shared_banks: 0", "'shared_banks' is 0, but must be at least 1"),
        ("rules: sectors", "rules: sector", "not 'sector'; did you mean 'sectors'"),
        (
            "  multiprocessors",
            "  kind: cuda\n  multiprocessors",
            "unknown key 'kind' in an entry of 'facts'",
        ),
        ("- source: its data sheet\n ", "-", r"facts\.multiprocessors must state one source"),
        ("- source: its data sheet", "- source:", "'source' has no value"),
        ("source: its data", "assumed: x\n  source: its data", "must state one source"),
        ("source: a book, ", "", r"memory\.rules, memory\.shared_banks, .* must state one source"),
        ("memory:", "- {source: b, multiprocessors: 3}\nmemory:", "is stated twice"),
        (
            "- source: its data sheet\n  multiprocessors: 2",
            "  all",
            "'facts' takes keys with values",
        ),
        (GOOD, "- 1\n", "a model is a mapping"),
        (GOOD, "a: [", "not valid YAML"),
        *(("multiprocessors: 2", f"multiprocessors: 2\n  {fact}", s) for fact, s in CONTRADICTIONS),
    ],
)
def test_a_wrong_file_is_told_what_is_wrong(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(DeviceUnavailable, match=said) as caught:
        models.load_model(str(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(DeviceUnavailable, match=r"'sm_9'; did you mean 'sm_90'"):
        models.load_model("sm_9")
    with pytest.raises(DeviceUnavailable, match=r"there is no model file gone\.yaml"):
        models.load_model("gone.yaml")


def test_facts_survive_the_manifest() -> None:
    facts = DeviceFacts("d", "sim", (8, 6), 12, shared_per_block_optin=101376)
    read = DeviceFacts.from_dict({**facts.as_dict(), "a_fact_of_tomorrow": 1})
    assert read == facts
    assert hash(read) == hash(facts)
